"""What the network bridge saw of a line; the first sight of a country is an event, once per intent."""

from typing import NamedTuple

import orjson
import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.issuing.intents import Holder
from storage.network.early_sightings import Early, keep_early
from storage.network.line_owner import hold, line_subject, owner_at, owner_of_package, package_subject
from storage.network.metering import raise_usage
from storage.network.network_tables import NetworkEventTable
from storage.schema import IntentTable
from storage.statement import Command, table
from storage.webhooks.events import NewEvent, emit

INTENT, SEEN = table(IntentTable), table(NetworkEventTable)


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
    def early(self) -> Early:
        """What is kept of it while the line is nobody's."""
        return Early(self.bridge_type, self.mcc, self.mnc, self.data, self.occurred_at, self.country, self.used_bytes)


class PackageUse(NamedTuple):
    """The data that was used of a package so far."""

    package_id: int
    used_bytes: int


INSERT = Command(
    sa.insert(SEEN).values(
        {name: sa.bindparam(name) for name in ("id", "intent", "iccid", "bridge_type", "mcc", "mnc", "data", "occurred_at", "created")}
    )
)
FIRST_ATTACH = Command(
    sa.update(INTENT).where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.attached_at.is_(None)).values(attached_at=sa.bindparam("at"))
)


def observe(connection: Connection, *, seen: Sighting, now: float, ids: Ids, account: int | None = None) -> str | None:
    """Record a sighting against the intent that owned the ICCID then: its id, or None when no intent did.

    `account` is whose the line was, if the caller knows: who moved a line to another account is not told where it is.
    """
    holder = owner_at(connection, iccid=seen.iccid, at=seen.occurred_at, account=account)
    if holder is None:
        hold(connection, subject=line_subject(seen.iccid))
        holder = owner_at(connection, iccid=seen.iccid, at=seen.occurred_at, account=account)
    if holder is None:
        keep_early(connection, subject=line_subject(seen.iccid), early=seen.early, now=now)
        return None
    record(connection, holder=holder, seen=seen, now=now, ids=ids)
    return holder.id


def observe_package(connection: Connection, *, use: PackageUse, now: float, ids: Ids) -> str | None:
    """Record what was used of a package against the intent whose plan it is: its id, or None when it is no intent's."""
    data = orjson.dumps({"used_bytes": use.used_bytes}).decode()
    early = Early("package.usage", None, None, data, now, None, use.used_bytes)
    owner = owner_of_package(connection, package_id=use.package_id)
    if owner is None:
        hold(connection, subject=package_subject(use.package_id))
        owner = owner_of_package(connection, package_id=use.package_id)
    if owner is None:
        keep_early(connection, subject=package_subject(use.package_id), early=early, now=now)
        return None
    holder, iccid = owner
    record(connection, holder=holder, seen=Sighting(iccid=iccid, **early._asdict()), now=now, ids=ids)
    return holder.id


def record(connection: Connection, *, holder: Holder, seen: Sighting, now: float, ids: Ids) -> None:
    """Keep a sighting of an intent's line, and tell what is new in it."""
    connection.run(
        INSERT,
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
    if seen.country is not None and connection.run(FIRST_ATTACH, intent=holder.id, at=int(seen.occurred_at)) == 1:
        emit(connection, event=attach_event(holder, seen, now, ids), ids=ids)
    if seen.used_bytes is not None:
        raise_usage(connection, intent=holder.id, total=seen.used_bytes, now=now, ids=ids)


def attach_event(holder: Holder, seen: Sighting, now: float, ids: Ids) -> NewEvent:
    """esim.first_attach."""
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
