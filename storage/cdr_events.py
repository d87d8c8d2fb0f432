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
from storage.engine.drivers import Value
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    StatementBuild,
    TableDescription,
    bound_list,
    column_kinds,
    json_rows,
    pack_rows,
    runs_in_thread,
    upsert,
    writes,
)
from storage.engine.store import Store
from storage.engine.sweep import SWEEP_STEPS, SWEPT_AT_ONCE
from storage.invoices import month_of_moment, month_text, open_periods
from storage.replicas import is_closed_to_older_programs, older_programs_are_gone


class CdrEvent(NamedTuple):
    """One record; `occurred_at` is Unix seconds."""

    event: Key
    iccid: str
    occurred_at: BigInt
    bytes_up: BigInt
    bytes_down: BigInt
    network: str | None
    country: str | None


class CdrEventTable(TableDescription, row=CdrEvent, table=True):
    """A call detail record (CDR) as its sender told it, once per organisation and event id."""

    organisation: str = Field(primary_key=True)
    __table_args__ = CLUSTERED


class CallRecordDigestTable(TableDescription, table=True):
    """What is left of a call record that is not kept any more: 20 bytes of a digest of organisation and id. Never swept."""

    digest: bytes = Field(primary_key=True)
    __table_args__ = CLUSTERED


class PassState(NamedTuple):
    """The pass that runs or ran last; `begun`: Unix seconds."""

    begun: BigInt
    running: int
    organisation: str
    event: str
    block: BigInt


class CallRecordPassTable(TableDescription, row=PassState, table=True):
    """How far the search for old call records came, one row. `running`: 0 once it reached the end; `begun`: Unix seconds.

    It goes on behind the record with this key on SQLite, and at this block of the table on PostgreSQL.
    """

    id: int = Field(primary_key=True)


CDR_EVENT = CdrEventTable.table


def insert_cdr_query(dialect: Dialect) -> sa.Executable:
    """Insert what is new, and say which that was; a parallel batch with the same event is waited for."""
    given = json_rows(dialect, "events", "given", **column_kinds(CDR_EVENT, CdrEvent._fields))
    organisation = sa.bindparam("organisation", type_=sa.Text)
    rows = sa.select(organisation, *given.c).order_by(given.c.event)
    insert = dialect.insert(CDR_EVENT).from_select(["organisation", *CdrEvent._fields], rows)
    return insert.on_conflict_do_nothing(index_elements=["organisation", "event"]).returning(CDR_EVENT.c.event)


INSERT_CDR = Query(str, insert_cdr_query)

REMOVE_REPEATED_CDR = Command(
    lambda dialect: sa.delete(CDR_EVENT).where(
        CDR_EVENT.c.organisation == sa.bindparam("organisation"),
        CDR_EVENT.c.event.in_(bound_list(dialect, "events")),
    )
)


@runs_in_thread
def ingest_cdr(connection: Connection, *, organisation: str, events: Sequence[CdrEvent], now: float, ids: Ids) -> int:
    """Keep the events that are new, add them to their months and open the months' periods; returns how many were new.

    Of events with one id the first is kept. A batch that a sum cannot hold is refused whole. `now`: Unix seconds.
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


CALL_RECORD_DIGEST = CallRecordDigestTable.table

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
    return {"digests": b"".join(digests), "offsets": orjson.dumps(list(range(1, len(digests) * DIGEST_BYTES, DIGEST_BYTES))).decode()}


def removed_cdr_ids(connection: Connection, *, organisation: str, events: Sequence[str]) -> list[str]:
    """Those of the ids whose records were stored once and removed."""
    ids = dict(zip(cdr_digests(organisation, events), events, strict=True))
    digests = sorted(ids)  # neighbours are in the same page
    return [ids[digests[row // DIGEST_BYTES]] for row in connection.all(FIND_CDR_DIGESTS, **digest_binds(digests))]


CALL_RECORD_PASS = CallRecordPassTable.table

SHORTEST_PASS_SECONDS = 86_400

CDR_PASSES = 30
"""Passes in the time for which records are kept, at most one a day."""

PASS_ROWS = 5000

PASS_BLOCKS = 128
"""What a step reads: rows on SQLite; on PostgreSQL blocks, of which as many hold about as much."""


class PassPlace(NamedTuple):
    """How far a pass came: behind the record with this key on SQLite, before this block of the table on PostgreSQL."""

    organisation: str
    event: str
    block: int


class OldCdrs(NamedTuple):
    """The old records of a step, and where the next step begins; None behind the last one."""

    records: list[CdrKey]
    following: PassPlace | None


PASS_START = PassPlace("", "", 0)

CDR_KEY = (CDR_EVENT.c.organisation, CDR_EVENT.c.event)

CDR_IS_AFTER = sa.tuple_(*CDR_KEY) > sa.tuple_(sa.bindparam("organisation", type_=sa.Text), sa.bindparam("event", type_=sa.Text))

FROM_BLOCK = sa.bindparam("block", type_=sa.BigInteger)

MANY_BLOCKS = sa.bindparam("blocks", type_=sa.BigInteger)

CDR_IS_OLD = CDR_EVENT.c.occurred_at < sa.bindparam("before", type_=sa.BigInteger)

BEFORE_LAST = sa.bindparam("rows", type_=sa.Integer) - sa.literal_column("1", sa.Integer)

IN_BLOCKS = sa.text("cdr_event.ctid >= ('(' || :block || ',0)')::tid AND cdr_event.ctid < ('(' || (:block + :blocks) || ',0)')::tid")


def following_place_query(dialect: Dialect) -> sa.Executable:
    """Where the step behind this one begins; no row where this one reads to the end."""
    if dialect.name == "sqlite":
        block = sa.literal_column("0", sa.Integer).label("block")
        return sa.select(*CDR_KEY, block).where(CDR_IS_AFTER).order_by(*CDR_KEY).limit(1).offset(BEFORE_LAST)
    bytes_of_block = sa.cast(sa.func.current_setting("block_size"), sa.BigInteger)
    size = sa.func.pg_relation_size(sa.literal_column(f"'{CDR_EVENT.name}'"), type_=sa.BigInteger)
    none = [sa.literal_column("''", sa.Text).label(name) for name in ("organisation", "event")]
    return sa.select(*none, (FROM_BLOCK + MANY_BLOCKS).label("block")).where(size > (FROM_BLOCK + MANY_BLOCKS) * bytes_of_block)


def old_cdrs_query(dialect: Dialect) -> sa.Executable:
    """The keys of the old records that a step reads."""
    if dialect.name == "sqlite":
        read = (
            sa.select(*CDR_KEY, CDR_EVENT.c.occurred_at).where(CDR_IS_AFTER).order_by(*CDR_KEY).limit(sa.bindparam("rows")).subquery("read")
        )
        is_old = read.c.occurred_at < sa.bindparam("before", type_=sa.BigInteger)
        return sa.select(read.c.organisation, read.c.event).where(is_old)
    return sa.select(*CDR_KEY).where(IN_BLOCKS, CDR_IS_OLD)


FIND_FOLLOWING_PLACE = Query(PassPlace, following_place_query)

OLD_CDRS = Query(CdrKey, old_cdrs_query)

REMOVE_CDRS = Query(
    CdrKey,
    lambda dialect: sa.delete(CDR_EVENT).where(
        sa.tuple_(*CDR_KEY).in_(sa.select(*json_rows(dialect, "records", "given", organisation=sa.Text, event=sa.Text).c))
    ),
)

FIND_PASS = Query(PassState, lambda _: sa.select(*(CALL_RECORD_PASS.c[name] for name in PassState._fields)))


async def sweep_call_records(
    store: Store, *, days: int, now: float, steps: int = SWEEP_STEPS, rows: int = PASS_ROWS, blocks: int = PASS_BLOCKS
) -> int:
    """Remove records of data that was used more than `days` days before `now`, in Unix seconds; how many they were.

    At most `steps` steps, each of which reads `rows` rows or `blocks` blocks or removes 500 records: the next run goes on from there.
    """
    state = await store.write(begin_pass, now=now, every=max(SHORTEST_PASS_SECONDS, days * SHORTEST_PASS_SECONDS // CDR_PASSES))
    if state is None:
        return 0
    place: PassPlace | None = PassPlace(*state[2:])
    total, before = 0, int(now) - days * SHORTEST_PASS_SECONDS
    while place is not None and steps > 0:
        found = await store.read(runs_in_thread(old_cdrs), place=place, before=before, rows=rows, blocks=blocks)
        parts = [found.records[start : start + SWEPT_AT_ONCE] for start in range(0, len(found.records), SWEPT_AT_ONCE)]
        removed = sum([await store.write(runs_in_thread(remove_cdrs), records=part, now=now) for part in parts[:steps]])
        total, steps = total + removed, steps - 1 - len(parts)
        if removed < len(found.records):  # the rest is read again
            break
        place = found.following
    await store.write(save_pass, state=PassState(state.begun, int(place is not None), *(place or PASS_START)))
    return total


def begin_pass(connection: Connection, *, now: float, every: int) -> PassState | None:
    """The pass that runs, or a new one if the last began `every` seconds ago; None while there is none to do. `now`: Unix seconds."""
    if not older_programs_are_gone(connection, now=now, revision=CDR_DIGESTS_REVISION):
        return None
    state = connection.first(FIND_PASS)
    if state is None or (not state.running and state.begun + every <= now):
        state = PassState(int(now), 1, *PASS_START)
        save_pass(connection, state=state)
    return state if state.running else None


@writes
def save_pass(*, state: PassState) -> StatementBuild:
    """Store how far a pass came."""
    return upsert(CALL_RECORD_PASS, key=["id"], id=1, **state._asdict())


def old_cdrs(connection: Connection, *, place: PassPlace, before: int, rows: int, blocks: int) -> OldCdrs:
    """The records from `place` on, as many as a step reads, of data that was used before `before`, in Unix seconds."""
    given = {**place._asdict(), "rows": rows, "blocks": blocks}
    return OldCdrs(connection.all(OLD_CDRS, **given, before=before), connection.first(FIND_FOLLOWING_PLACE, **given))


def remove_cdrs(connection: Connection, *, records: Sequence[CdrKey], now: float) -> int:
    """Remove records and remember their ids, in one transaction; how many. 0 while an older program runs beside. `now`: Unix seconds."""
    if not older_programs_are_gone(connection, now=now, revision=CDR_DIGESTS_REVISION):
        return 0
    removed = connection.all(REMOVE_CDRS, records=pack_rows([tuple(record) for record in records]))
    by_organisation: dict[str, list[str]] = {}
    for record in removed:
        by_organisation.setdefault(record.organisation, []).append(record.event)
    for organisation, events in by_organisation.items():
        connection.run(INSERT_CDR_DIGESTS, **digest_binds(sorted(cdr_digests(organisation, events))))
    return len(removed)
