"""The limits that processes share: each reports what it spent and wants, and one transaction at a time counts it.

What is counted never exceeds a limit. A process may be ahead of the count by one portion of a bucket, and by nothing in places. Every
report locks one row first, so that all of them, of all processes, come one after the other.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.shared_limits import (
    ALONE_AFTER_SECONDS,
    CLOCK_TOLERANCE_SECONDS,
    LEASE_SECONDS,
    BucketCount,
    BucketLevel,
    BucketUse,
    CountingMode,
    LimitAnswer,
    LimitReport,
    PlaceGrant,
    PlaceUse,
)
from storage.engine.sql import Command, Connection, Key, Query, TableDescription, upsert
from storage.engine.store import Store


class CountingProcess(NamedTuple):
    """A process that counts; `lease_end`: Unix seconds."""

    id: Key
    lease_end: float
    alone: int


class LimitProcessTable(TableDescription, row=CountingProcess, table=True):
    """A process that counts calls. `alone`: 1 while it counts by itself. The row without a name is locked by every report."""


class LimitBucketTable(TableDescription, table=True):
    """A token bucket that is not full: its tokens at the moment `at`; it is full again at `full_at`. The name is a digest."""

    name: str = Field(primary_key=True)
    tokens: float
    at: float
    full_at: float


class ProcessPlaces(NamedTuple):
    """Places of one process: see LimitPlaceTable."""

    name: Key
    process: Key
    held: int
    wanted: int
    since: float


class LimitPlaceTable(TableDescription, row=ProcessPlaces, table=True):
    """Places of a process for calls under way at once; how many more it wants, and since when."""


LIMIT_PROCESS = LimitProcessTable.table

LIMIT_BUCKET = LimitBucketTable.table

LIMIT_PLACE = LimitPlaceTable.table

LIMIT_LOCK_ROW = ""

# The assignment changes nothing: it locks the row until the transaction ends.
LOCK_PROCESS = Command(
    lambda dialect: (
        dialect.insert(LIMIT_PROCESS)
        .values(id=LIMIT_LOCK_ROW, lease_end=0.0, alone=0)
        .on_conflict_do_update(index_elements=["id"], set_={"alone": LIMIT_PROCESS.c.alone})
    )
)

LIST_PROCESSES = Query(
    CountingProcess, sa.select(*(LIMIT_PROCESS.c[name] for name in CountingProcess._fields)).where(LIMIT_PROCESS.c.id != LIMIT_LOCK_ROW)
)

RENEW_PROCESS = Command(upsert(LIMIT_PROCESS, CountingProcess._fields, key=["id"]))

# One that stood still while it was alone has to tell what it counted before it is alone again.
END_ALONE = Command(lambda _: sa.update(LIMIT_PROCESS).where(LIMIT_PROCESS.c.id == sa.bindparam("process")).values(alone=0))

LEAVE_PROCESS = Command(lambda _: sa.delete(LIMIT_PROCESS).where(LIMIT_PROCESS.c.id == sa.bindparam("process")))

LIST_PLACES = Query(ProcessPlaces, lambda _: sa.select(*(LIMIT_PLACE.c[name] for name in ProcessPlaces._fields)))

EMPTY_PLACES = Command(lambda _: sa.delete(LIMIT_PLACE).where(LIMIT_PLACE.c.process == sa.bindparam("whose")))

INSERT_PLACE = Command(lambda _: sa.insert(LIMIT_PLACE).values({name: sa.bindparam(name) for name in ProcessPlaces._fields}))

LEVELS = sa.select(*(LIMIT_BUCKET.c[name] for name in BucketLevel._fields))

FIND_LEVEL = Query(BucketLevel, lambda _: LEVELS.where(LIMIT_BUCKET.c.name == sa.bindparam("bucket")))

LIST_LEVELS = Query(BucketLevel, lambda _: LEVELS.where(LIMIT_BUCKET.c.full_at > sa.bindparam("now")))

UPSERT_LEVEL = Command(upsert(LIMIT_BUCKET, BucketLevel._fields, key=["name"]))

# Of two levels of one bucket the lower one is that which is full later.
LOWER_LEVEL = Command(upsert(LIMIT_BUCKET, BucketLevel._fields, key=["name"], where=LIMIT_BUCKET.c.full_at < sa.bindparam("full_at")))

FORGET_FULL = Command(lambda _: sa.delete(LIMIT_BUCKET).where(LIMIT_BUCKET.c.full_at <= sa.bindparam("now")))


class StoreLimitLedger:
    """The shared counts in a database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def report(self, report: LimitReport) -> LimitAnswer:
        """Count what is reported, in one transaction. Raises StoreUnavailable."""
        return await self._store.write(count_report, report=report)


def count_report(connection: Connection, *, report: LimitReport) -> LimitAnswer:
    connection.run(LOCK_PROCESS)
    processes = connection.all(LIST_PROCESSES)
    mine = next((each for each in processes if each.id == report.process), None)
    others = forget_ended_processes(connection, [each for each in processes if each.id != report.process], report.now)
    living = [each.id for each in others if each.lease_end > report.now]
    waiting = any(each.alone for each in others if each.lease_end > report.now)
    was_alone = mine is not None and bool(mine.alone)
    if report.alone and report.levels is None and not waiting:
        if living or not was_alone:
            renew_process(connection, report, alone=was_alone)
            return LimitAnswer(CountingMode.ALONE, others=True)
        renew_process(connection, report, alone=True)
        return LimitAnswer(CountingMode.ALONE)
    if waiting:
        renew_process(connection, report, alone=False)
        store_places(connection, report, {use.name: PlaceGrant(use.held, use.limit) for use in report.places})
        return LimitAnswer(CountingMode.WAITING)
    connection.run_many(END_ALONE, [{"process": each.id} for each in others if each.alone])
    connection.run_many(LOWER_LEVEL, [level._asdict() for level in report.levels or ()])
    counts = {use.name: count_bucket(connection, use, report.now) for use in report.buckets}
    if report.sweeping:
        connection.run(FORGET_FULL, now=report.now)
    if not others and report.levels is None:
        renew_process(connection, report, alone=True)
        connection.run(EMPTY_PLACES, whose=report.process)
        return LimitAnswer(
            CountingMode.ALONE,
            buckets=counts,
            levels=[corrected_level(level, report.now) for level in connection.all(LIST_LEVELS, now=report.now)],
        )
    renew_process(connection, report, alone=False)
    grants = grant_places(connection, report, living)
    store_places(connection, report, grants)
    return LimitAnswer(CountingMode.SHARED, buckets=counts, places=grants)


def forget_ended_processes(connection: Connection, others: Sequence[CountingProcess], now: float) -> list[CountingProcess]:
    """The other processes, without those whose lease ended long ago, or ends later than any: their rows are deleted."""
    kept: list[CountingProcess] = []
    for each in others:
        if now - ALONE_AFTER_SECONDS < each.lease_end <= now + LEASE_SECONDS + CLOCK_TOLERANCE_SECONDS:
            kept.append(each)
        else:
            connection.run(LEAVE_PROCESS, process=each.id)
            connection.run(EMPTY_PLACES, whose=each.id)
    return kept


def renew_process(connection: Connection, report: LimitReport, *, alone: bool) -> None:
    """The lease of the process that reports, or none where it leaves."""
    if report.leaving:
        connection.run(LEAVE_PROCESS, process=report.process)
    else:
        connection.run(RENEW_PROCESS, id=report.process, lease_end=report.now + LEASE_SECONDS, alone=int(alone))


def corrected_level(level: BucketLevel, now: float) -> BucketLevel:
    """A level as it counts: one of a later time is of a clock that was ahead, and has been set right since. `now`: Unix seconds."""
    return level if level.at <= now + CLOCK_TOLERANCE_SECONDS else level._replace(at=now, full_at=now + level.full_at - level.at)


def count_bucket(connection: Connection, use: BucketUse, now: float) -> BucketCount:
    """As many of the tokens spent as the bucket has. Its time never goes back, so that clocks that differ fill it no faster."""
    row = connection.first(FIND_LEVEL, bucket=use.name)
    level = BucketLevel(use.name, use.size, now, now) if row is None else corrected_level(row, now)
    at = max(level.at, now)
    tokens = min(use.size, level.tokens + (at - level.at) * use.rate)
    counted = max(0.0, min(use.used, tokens))
    if counted or level is not row:
        left = tokens - counted
        connection.run(UPSERT_LEVEL, name=use.name, tokens=left, at=at, full_at=at + (use.size - left) / use.rate)
    return BucketCount(counted, tokens - counted)


def grant_places(connection: Connection, report: LimitReport, living: Sequence[str]) -> dict[str, PlaceGrant]:
    """What each of the reported places gets, by name."""
    others: dict[str, list[ProcessPlaces]] = defaultdict(list)
    for row in connection.all(LIST_PLACES) if report.places else ():
        if row.process in living:
            others[row.name].append(row)
    return {use.name: place_grant(use, others[use.name]) for use in report.places}


def place_grant(use: PlaceUse, others: Sequence[ProcessPlaces]) -> PlaceGrant:
    """What a process gets of one limit: what is free, unless another one has less than an equal share and waits for it.

    Where there are fewer places than processes each is given back after one call, and goes to the process that waits the longest.
    """
    equal = use.limit // (1 + sum(1 for each in others if each.held or each.wanted))
    least = max(1, equal)
    hungry = [each for each in others if each.wanted and each.held < least]
    free = use.limit - use.held - sum(each.held for each in others)
    wanted = use.wanted
    if hungry:
        wanted = min(wanted, least - use.held)
        free -= sum(least - each.held for each in hungry if each.since < use.since)
    return PlaceGrant(use.held + max(0, min(wanted, free)), equal if hungry else use.limit)


def store_places(connection: Connection, report: LimitReport, grants: Mapping[str, PlaceGrant]) -> None:
    """The places of the process that reports: these, and no others."""
    connection.run(EMPTY_PLACES, whose=report.process)
    if report.leaving:
        return
    for use in report.places:
        held = grants[use.name].held
        if held or use.wanted:
            wanted = use.wanted - (held - use.held)
            connection.run(INSERT_PLACE, name=use.name, process=report.process, held=held, wanted=wanted, since=use.since)
