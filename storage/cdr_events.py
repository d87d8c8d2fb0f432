"""Call detail records: a batch is kept, each event id once, and added to the sums of its months, in one transaction.

Every transaction takes its rows in the same order: events, sums, months, periods, and within each the order of the keys. So none of two
that overlap ever waits for the other while the other waits for it.

Of a record that is not kept any more a digest of its id stays, so that none is ever counted a second time.
Choice: 20 bytes of BLAKE2b. By chance two of 10^12 ids agree in one of 10^24 databases, and to make two that agree takes 2^80 tries. With
16 bytes it would be 2^64, which large machines can do. The four bytes more are four on SQLite and none on PostgreSQL, which pads to eight.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import orjson
import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import BadRequest
from registry.ids import Ids
from storage.cdr_sums import MOST_OF_MONTH, MOST_OF_SIM, SimAddition, add_to_months, add_to_sums
from storage.engine.connection import Connection, runs_in_thread
from storage.engine.json_rows import json_rows, pack_rows
from storage.engine.statement import Command, Dialect, Query, Value
from storage.engine.table import CLUSTERED, TableDescription, table_of
from storage.invoice_periods import month_of_moment, month_text, open_periods
from storage.replicas import is_closed_to_older_programs


class CdrEventTable(TableDescription, table=True):
    """A call detail record (CDR) as its sender told it, once per organisation and event id."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    event: str = Field(primary_key=True, sa_type=sa.Text)
    iccid: str = Field(sa_type=sa.Text)
    occurred_at: int = Field(sa_type=sa.BigInteger)
    bytes_up: int = Field(sa_type=sa.BigInteger)
    bytes_down: int = Field(sa_type=sa.BigInteger)
    network: str | None = Field(default=None, sa_type=sa.Text)
    country: str | None = Field(default=None, sa_type=sa.Text)
    __table_args__ = CLUSTERED


class CallRecordDigestTable(TableDescription, table=True):
    """What is left of a call record that is not kept any more: 20 bytes of a digest of organisation and id. Never swept."""

    digest: bytes = Field(primary_key=True, sa_type=sa.LargeBinary)
    __table_args__ = CLUSTERED


CDR_EVENT = table_of(CdrEventTable)


class CdrEvent(NamedTuple):
    """One record; `occurred_at` is Unix seconds."""

    event: str
    iccid: str
    occurred_at: int
    bytes_up: int
    bytes_down: int
    network: str | None
    country: str | None


CDR_KINDS = {
    **dict.fromkeys(("event", "iccid"), sa.Text),
    **dict.fromkeys(("occurred_at", "bytes_up", "bytes_down"), sa.BigInteger),
    **dict.fromkeys(("network", "country"), sa.Text),
}


def insert_cdr_query(dialect: Dialect) -> sa.Executable:
    """Insert what is new, and say which that was; a parallel batch with the same event is waited for."""
    given = json_rows(dialect, "events", "given", **CDR_KINDS)
    organisation = sa.bindparam("organisation", type_=sa.Text)
    rows = sa.select(organisation, *given.c).order_by(given.c.event)
    insert = dialect.insert(CDR_EVENT).from_select(["organisation", *CdrEvent._fields], rows)
    return insert.on_conflict_do_nothing(index_elements=["organisation", "event"]).returning(CDR_EVENT.c.event)


INSERT_CDR = Query(str, insert_cdr_query)

REMOVE_REPEATED_CDR = Command(
    lambda dialect: sa.delete(CDR_EVENT).where(
        CDR_EVENT.c.organisation == sa.bindparam("organisation"),
        CDR_EVENT.c.event.in_(sa.select(json_rows(dialect, "events", "given", event=sa.Text).c.event)),
    )
)


@runs_in_thread
def ingest_cdr(connection: Connection, *, organisation: str, events: Sequence[CdrEvent], now: float, ids: Ids) -> int:
    """Keep the events that are new, add them to their months and open the months' periods; returns how many were new.

    Of events with one id the first is kept. A batch that a sum cannot hold is refused whole.
    """
    first: dict[str, CdrEvent] = {}
    for event in events:
        first.setdefault(event.event, event)
    kept = connection.all(INSERT_CDR, organisation=organisation, events=pack_rows([tuple(first[id]) for id in sorted(first)]))
    repeats = remove_repeated_cdr(connection, organisation, kept)
    new = [first[row] for row in kept if row not in repeats]
    additions = sum_by_sim(new)
    months = sum_by_month(additions)
    add_to_totals(connection, organisation, additions, months, lambda addition: events.index(largest_event(new, addition)))
    open_periods(connection, organisation=organisation, months=months, now=now, ids=ids)
    return len(new)


def remove_repeated_cdr(connection: Connection, organisation: str, events: Sequence[str]) -> set[str]:
    """Remove those of the records just stored that were stored before and removed since; returns their ids.

    Choice: after they are stored, not before. Of a record that is being removed the INSERT waits for the end, and a statement after it
    sees the digest that stays; one before might not, and the record would count twice.
    """
    if not events or not is_closed_to_older_programs(connection, revision=CDR_DIGESTS_REVISION):
        return set()
    repeats = removed_cdr_ids(connection, organisation=organisation, events=events)
    if repeats:
        connection.run(REMOVE_REPEATED_CDR, organisation=organisation, events=pack_rows([[event] for event in repeats]))
    return set(repeats)


def sum_by_sim(events: Sequence[CdrEvent]) -> list[SimAddition]:
    """One sum for each SIM and month, in the order of their keys."""
    sums: dict[tuple[int, str], SimAddition] = {}
    for _, iccid, occurred_at, up, down, network, country in events:
        key = (month_of_moment(occurred_at), iccid)
        before = sums.get(key)
        if before is None:
            sums[key] = SimAddition(*key, up, down, up + down, 1, network, country)
        else:
            agreed = before.network if before.network == network else None, before.country if before.country == country else None
            sums[key] = SimAddition(
                *key, before.bytes_up + up, before.bytes_down + down, before.bytes_total + up + down, before.events + 1, *agreed
            )
    return [sums[key] for key in sorted(sums)]


def sum_by_month(additions: Sequence[SimAddition]) -> dict[int, int]:
    """Bytes of each month, in the order of the months."""
    months: dict[int, int] = {}
    for addition in additions:
        months[addition.month] = months.get(addition.month, 0) + addition.bytes_total
    return months


def add_to_totals(
    connection: Connection, organisation: str, additions: Sequence[SimAddition], months: dict[int, int], place: Callable[[SimAddition], int]
) -> None:
    """All of it, or a refusal that undoes all of it; `place` says which event of the batch to name."""
    if not additions:
        return
    taken = add_to_sums(connection, organisation=organisation, additions=additions)
    for addition in additions:
        if (addition.month, addition.iccid) not in taken or addition.bytes_total > MOST_OF_SIM:
            raise sum_is_too_large(f"events[{place(addition)}]", "its SIM's records", addition.month, f"{MOST_OF_SIM} bytes (2^53-1)")
    grown = add_to_months(connection, organisation=organisation, additions=months.items())
    if len(grown) < len(months):
        raise sum_is_too_large("events", "all records", min(months.keys() - grown), f"{MOST_OF_MONTH} bytes (2^63-1)")


def largest_event(events: Sequence[CdrEvent], addition: SimAddition) -> CdrEvent:
    """The event with the most bytes of a SIM's month: if one is wrong, it is this."""
    of = (event for event in events if (month_of_moment(event.occurred_at), event.iccid) == (addition.month, addition.iccid))
    return max(of, key=lambda event: event.bytes_up + event.bytes_down)


def sum_is_too_large(param: str, what: str, month: int, most: str) -> BadRequest:
    """The refusal of a batch that takes a sum beyond what is held exactly."""
    return BadRequest(
        f"{param}: with this batch {what} of {month_text(month)} would add up to more than {most}, up and down together",
        param=param,
        hint="Check the unit, which is bytes, and that no record comes under two ids. Nothing of this batch was stored",
    )


CALL_RECORD_DIGEST = table_of(CallRecordDigestTable)

CDR_DIGESTS_REVISION = "0023"
"""The schema from which on programs look here when they store records: nothing is removed beside an older one."""

DIGEST_BYTES = 20


class CdrKey(NamedTuple):
    """The organisation and id of a call record."""

    organisation: str
    event: str


def cdr_digests(organisation: str, events: Sequence[str]) -> list[bytes]:
    """What ids of an organisation are found by. None of the texts holds a line feed."""
    start = blake2b(f"{organisation}\n".encode(), digest_size=DIGEST_BYTES)
    digests: list[bytes] = []
    for event in events:
        digest = start.copy()
        digest.update(event.encode())
        digests.append(digest.digest())
    return digests


def offset_rows(dialect: Dialect) -> sa.Subquery:
    """The bound offsets, as a table: a plain JSON array, which is read in half the time of an array of rows."""
    given = sa.bindparam("offsets", type_=sa.Text)
    rows = sa.func.json_each(given) if dialect.name == "sqlite" else sa.func.json_array_elements_text(sa.cast(given, sa.JSON))
    value = rows.table_valued("value", name="rows").c.value
    return sa.select((value if dialect.name == "sqlite" else sa.cast(value, sa.Integer)).label("offset")).subquery("given")


def digest_at(offset: sa.ColumnElement[int]) -> sa.ColumnElement[bytes]:
    """One of the digests that are bound one behind the other, since JSON has no bytes."""
    return sa.func.substr(
        sa.bindparam("digests", type_=sa.LargeBinary), offset, sa.literal_column(str(DIGEST_BYTES)), type_=sa.LargeBinary()
    )


def inserting_digests(dialect: Dialect) -> sa.Executable:
    """Insert the digests that begin at the offsets."""
    given = offset_rows(dialect)
    rows = sa.select(digest_at(given.c.offset)).order_by(given.c.offset)
    return dialect.insert(CALL_RECORD_DIGEST).from_select(["digest"], rows).on_conflict_do_nothing(index_elements=["digest"])


def finding_digests(dialect: Dialect) -> sa.Executable:
    """The offsets whose digests are stored."""
    given = offset_rows(dialect)
    return sa.select(given.c.offset).join_from(given, CALL_RECORD_DIGEST, CALL_RECORD_DIGEST.c.digest == digest_at(given.c.offset))


INSERT_CDR_DIGESTS = Command(inserting_digests)

FIND_CDR_DIGESTS = Query(int, finding_digests)


def digest_binds(digests: Sequence[bytes]) -> dict[str, Value]:
    """The digests as values to bind."""
    return {"digests": b"".join(digests), "offsets": orjson.dumps(list(range(1, len(digests) * DIGEST_BYTES, DIGEST_BYTES))).decode()}


def insert_cdr_digests(connection: Connection, *, organisation: str, events: Sequence[str]) -> None:
    """Remember ids of an organisation for ever."""
    connection.run(INSERT_CDR_DIGESTS, **digest_binds(sorted(cdr_digests(organisation, events))))


def removed_cdr_ids(connection: Connection, *, organisation: str, events: Sequence[str]) -> list[str]:
    """Those of the ids whose records were stored once and removed."""
    ids = dict(zip(cdr_digests(organisation, events), events, strict=True))
    digests = sorted(ids)  # neighbours are in the same page
    return [ids[digests[row // DIGEST_BYTES]] for row in connection.all(FIND_CDR_DIGESTS, **digest_binds(digests))]
