"""What the network bridge saw of a line: stored for its intent, or kept while nobody knows whose the line or the package is.

The first sight of a country is an event, once per intent. An early sighting is kept only while an eSIM is being drawn, or while nobody
knows whether one was, and for its owner alone: the newest country and the highest total of each subject.
"""

from typing import NamedTuple

import orjson
import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import Ids
from storage.engine.sql import BigInt, Command, Connection, Query, TableDescription, upsert
from storage.events import NewEvent, emit_event
from storage.intents import INTENT, IntentHolder, find_holder
from storage.issuance import ISSUANCE, OPEN_ISSUANCE_STATES
from storage.line_owners import CLOCKS_DIFFER_SECONDS, line_subject, lock_subject, owner_at, owner_of_package, package_subject
from storage.usage import claim_metered_lines, raise_usage


class NetworkEventTable(TableDescription, table=True):
    """What the bridge observed about an intent's line."""

    id: str = Field(primary_key=True)
    intent: str = Field(index=True)
    iccid: str
    bridge_type: str
    mcc: str | None
    mnc: str | None
    data: str
    occurred_at: float
    created: BigInt


class EarlySighting(NamedTuple):
    """What was seen, and what it means."""

    bridge_type: str
    mcc: str | None
    mnc: str | None
    data: str
    occurred_at: float
    country: str | None
    used_bytes: BigInt | None


class EarlySightingTable(TableDescription, row=EarlySighting, table=True):
    """What was reported of a line, or of a package, that was nobody's while an eSIM was being drawn; of each kind the one that counts.

    `since` tells totals of different owners apart: when the newest eSIM that may have been meant was sent for.
    """

    subject: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    since: float = Field(primary_key=True)
    received: float = Field(index=True)


NETWORK_EVENT = NetworkEventTable.table


class Sighting(NamedTuple):
    """One observation. `data` is JSON text of the members we know; `country` and `used_bytes` are what they mean."""

    bridge_type: str
    iccid: str
    mcc: str | None
    mnc: str | None
    data: str
    occurred_at: float
    country: str | None
    used_bytes: int | None

    @property
    def early(self) -> EarlySighting:
        """What is kept of it while the line is nobody's."""
        return EarlySighting(self.bridge_type, self.mcc, self.mnc, self.data, self.occurred_at, self.country, self.used_bytes)


class PackageUse(NamedTuple):
    """The data that was used of a package so far."""

    package_id: int
    used_bytes: int


INSERT_NETWORK_EVENT = Command(
    lambda _: sa.insert(NETWORK_EVENT).values(
        {name: sa.bindparam(name) for name in ("id", "intent", "iccid", "bridge_type", "mcc", "mnc", "data", "occurred_at", "created")}
    )
)

NOTE_FIRST_ATTACH = Command(
    sa.update(INTENT).where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.attached_at.is_(None)).values(attached_at=sa.bindparam("at"))
)


def observe_line(connection: Connection, *, seen: Sighting, now: float, ids: Ids, account: int | None = None) -> str | None:
    """Record a sighting against the intent that owned the ICCID then: its id, or None when no intent did.

    `account` is whose the line was, if the caller knows: who moved a line to another account is not told where it is. `now`: Unix seconds.
    """
    holder = owner_at(connection, iccid=seen.iccid, at=seen.occurred_at, account=account)
    if holder is None:
        lock_subject(connection, subject=line_subject(seen.iccid))
        holder = owner_at(connection, iccid=seen.iccid, at=seen.occurred_at, account=account)
    if holder is None:
        store_early_sighting(connection, subject=line_subject(seen.iccid), early=seen.early, now=now)
        return None
    record_sighting(connection, holder=holder, seen=seen, now=now, ids=ids)
    return holder.id


def observe_package(connection: Connection, *, use: PackageUse, now: float, ids: Ids) -> str | None:
    """Record what was used of a package against the intent whose plan it is: its id, or None when it is no intent's."""
    data = orjson.dumps({"used_bytes": use.used_bytes}).decode()
    early = EarlySighting("package.usage", None, None, data, now, None, use.used_bytes)
    owner = owner_of_package(connection, package_id=use.package_id)
    if owner is None:
        lock_subject(connection, subject=package_subject(use.package_id))
        owner = owner_of_package(connection, package_id=use.package_id)
    if owner is None:
        store_early_sighting(connection, subject=package_subject(use.package_id), early=early, now=now)
        return None
    holder, iccid = owner
    record_sighting(connection, holder=holder, seen=Sighting(iccid=iccid, **early._asdict()), now=now, ids=ids)
    return holder.id


def record_sighting(connection: Connection, *, holder: IntentHolder, seen: Sighting, now: float, ids: Ids) -> None:
    """Keep a sighting of an intent's line, and tell what is new in it. `now`: Unix seconds."""
    connection.run(
        INSERT_NETWORK_EVENT,
        id=ids.new("nev_"),
        intent=holder.id,
        iccid=seen.iccid,
        bridge_type=seen.bridge_type,
        mcc=seen.mcc,
        mnc=seen.mnc,
        data=seen.data,
        occurred_at=seen.occurred_at,
        created=int(now),
    )
    if seen.country is not None and connection.run(NOTE_FIRST_ATTACH, intent=holder.id, at=int(seen.occurred_at)) == 1:
        emit_event(connection, event=first_attach_event(holder, seen, now, ids), ids=ids)
    if seen.used_bytes is not None:
        raise_usage(connection, intent=holder.id, total=seen.used_bytes, now=now, ids=ids)


def first_attach_event(holder: IntentHolder, seen: Sighting, now: float, ids: Ids) -> NewEvent:
    """esim.first_attach. `now`: Unix seconds."""
    data = {
        "intent": holder.id,
        "iccid": seen.iccid,
        "plan": holder.plan_id,
        "mcc": seen.mcc,
        "mnc": seen.mnc,
        "country": seen.country,
    }
    return NewEvent(
        ids.new("evt_"),
        holder.organisation,
        holder.id,
        "esim.first_attach",
        holder.livemode,
        orjson.dumps(data).decode(),
        f"attach|{holder.id}",
        int(now),
    )


EARLY_SIGHTING = EarlySightingTable.table

# Choice: an outcome that is unknown for longer than this has lost what was reported at first; later reports tell the same.
EARLY_SIGHTING_KEPT_SECONDS = 7 * 86_400

ANY_DRAW = 0.0


class DrawTimes(NamedTuple):
    """When eSIMs that are still being drawn were sent for: the first of all, and the last that a sighting may be of."""

    oldest: float | None
    newest: float | None


DRAW_SENT = ISSUANCE.c.dispatched

FIND_DRAW_TIMES = Query(
    DrawTimes,
    lambda _: sa.select(
        sa.func.min(DRAW_SENT).label("oldest"),
        sa.func.max(sa.case((sa.bindparam("latest") >= DRAW_SENT, DRAW_SENT))).label("newest"),
    ).where(ISSUANCE.c.state.in_(OPEN_ISSUANCE_STATES), ISSUANCE.c.intent.is_not(None)),
)

EARLY_SIGHTING_KEY = ("subject", "kind", "since")

EARLY_SIGHTING_VALUES = (*EarlySighting._fields, "received")


def store_early_command(counts_more: sa.ColumnElement[bool]) -> Command:
    """Keep it, unless what is there counts more."""
    return Command(upsert(EARLY_SIGHTING, (*EARLY_SIGHTING_KEY, *EARLY_SIGHTING_VALUES), key=EARLY_SIGHTING_KEY, where=counts_more))


STORE_EARLY_PLACE = store_early_command(EARLY_SIGHTING.c.occurred_at < sa.bindparam("occurred_at"))

STORE_EARLY_USAGE = store_early_command(EARLY_SIGHTING.c.used_bytes < sa.bindparam("used_bytes"))

TAKE_EARLY_SIGHTINGS = Query(EarlySighting, lambda _: sa.delete(EARLY_SIGHTING).where(EARLY_SIGHTING.c.subject == sa.bindparam("subject")))

FORGET_EARLY_SIGHTING = Command(lambda _: sa.delete(EARLY_SIGHTING).where(EARLY_SIGHTING.c.received < sa.bindparam("old")))


def store_early_sighting(connection: Connection, *, subject: str, early: EarlySighting, now: float) -> None:
    """For whoever turns out to own the subject. What is older than every draw under way is nobody's who is still to come.

    The newest place is of the newest owner. Totals of different owners are kept apart by the draws between them, since the highest
    counts: of a draw that is under way, no total from before it can stand in the way of one from after it. `now`: Unix seconds.
    """
    if early.country is None and early.used_bytes is None:
        return
    draws = connection.first(FIND_DRAW_TIMES, latest=early.occurred_at + CLOCKS_DIFFER_SECONDS) or DrawTimes(None, None)
    # What came before every draw that is under way is nobody's for ever.
    oldest = now if draws.oldest is None else draws.oldest
    connection.run(FORGET_EARLY_SIGHTING, old=max(now - EARLY_SIGHTING_KEPT_SECONDS, oldest - CLOCKS_DIFFER_SECONDS))
    if draws.newest is None:
        return
    values = early._asdict()
    if early.country is not None:
        connection.run(STORE_EARLY_PLACE, subject=subject, kind="place", since=ANY_DRAW, received=now, **values)
    if early.used_bytes is not None:
        connection.run(STORE_EARLY_USAGE, subject=subject, kind="usage", since=draws.newest, received=now, **values)


def take_early_sightings(connection: Connection, *, subject: str, since: float) -> list[EarlySighting]:
    """What was kept, oldest first; it is kept no longer. What happened before `since` is a previous owner's. `since`: Unix seconds."""
    kept = [early for early in connection.all(TAKE_EARLY_SIGHTINGS, subject=subject) if early.occurred_at >= since - CLOCKS_DIFFER_SECONDS]
    return sorted(kept, key=lambda early: early.occurred_at)


def apply_early_sightings(
    connection: Connection, *, intent: str, organisation: str, iccid: str, package_id: int | None, since: float, now: float, ids: Ids
) -> None:
    """Sightings, package totals and metered lines since the eSIM was sent for (`since`); again, it changes nothing.

    What happened before is of whoever had the ICCID then. The locks are always taken in this order: line, package.
    """
    lock_subject(connection, subject=line_subject(iccid))
    kept = take_early_sightings(connection, subject=line_subject(iccid), since=since)
    if package_id is not None:
        lock_subject(connection, subject=package_subject(package_id))
        kept += take_early_sightings(connection, subject=package_subject(package_id), since=since)
    holder = find_holder(connection, iccid=iccid)
    if holder is None or (holder.id, holder.organisation) != (intent, organisation):
        return
    for early in kept:
        seen = Sighting(iccid=iccid, **early._asdict())
        record_sighting(connection, holder=holder, seen=seen, now=now, ids=ids)
    claim_metered_lines(connection, intent=intent, iccid=iccid, since=since, now=now, ids=ids)
