"""The limits that processes share: each reports what it spent and wants, and one transaction at a time counts it.

What is counted never exceeds a limit. A process may be ahead of the count by one portion of a bucket, and by nothing in places. Every
report locks one row first, so that all of them, of all processes, come one after the other.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.limit_report import (
    AGREE_SECONDS,
    LEASE_SECONDS,
    QUIET_SECONDS,
    BucketCount,
    BucketLevel,
    BucketUse,
    Counting,
    LimitAnswer,
    LimitReport,
    PlaceGrant,
    PlaceUse,
)
from storage.calls.limit_tables import LimitBucketTable, LimitPlaceTable, LimitProcessTable
from storage.connection import Connection
from storage.database_state import TableName, named
from storage.statement import Command, Dialect, Query, table
from storage.store import Store

PROCESS, BUCKET, PLACE = table(LimitProcessTable), table(LimitBucketTable), table(LimitPlaceTable)
LOCK_ROW = ""


class Process(NamedTuple):
    """A process that counts; `lease_end`: Unix seconds."""

    id: str
    lease_end: float
    alone: int


class Place(NamedTuple):
    """Places of one process: see LimitPlaceTable."""

    name: str
    process: str
    held: int
    wanted: int
    since: float


# The assignment changes nothing: it locks the row until the transaction ends.
LOCK = Command(
    lambda dialect: (
        dialect.insert(PROCESS)
        .values(id=LOCK_ROW, lease_end=0.0, alone=0)
        .on_conflict_do_update(index_elements=["id"], set_={"alone": PROCESS.c.alone})
    )
)
PROCESSES = Query(Process, sa.select(PROCESS.c.id, PROCESS.c.lease_end, PROCESS.c.alone).where(PROCESS.c.id != LOCK_ROW))
RENEW = Command(
    lambda dialect: (
        dialect.insert(PROCESS)
        .values(id=sa.bindparam("process"), lease_end=sa.bindparam("ends"), alone=sa.bindparam("is_alone"))
        .on_conflict_do_update(index_elements=["id"], set_={"lease_end": sa.bindparam("ends"), "alone": sa.bindparam("is_alone")})
    )
)
# One that stood still while it was alone has to tell what it counted before it is alone again.
END_ALONE = Command(sa.update(PROCESS).where(PROCESS.c.id == sa.bindparam("process")).values(alone=0))
LEAVE = Command(sa.delete(PROCESS).where(PROCESS.c.id == sa.bindparam("process")))
PLACES = Query(Place, sa.select(PLACE.c.name, PLACE.c.process, PLACE.c.held, PLACE.c.wanted, PLACE.c.since))
EMPTY_PLACES = Command(sa.delete(PLACE).where(PLACE.c.process == sa.bindparam("whose")))
KEEP_PLACE = Command(
    lambda dialect: dialect.insert(PLACE).values(
        name=sa.bindparam("name"),
        process=sa.bindparam("process"),
        held=sa.bindparam("held"),
        wanted=sa.bindparam("wanted"),
        since=sa.bindparam("since"),
    )
)
LEVEL = Query(
    BucketLevel,
    sa.select(BUCKET.c.name, BUCKET.c.tokens, BUCKET.c.at, BUCKET.c.full_at).where(BUCKET.c.name == sa.bindparam("bucket")),
)
LEVELS = Query(
    BucketLevel, sa.select(BUCKET.c.name, BUCKET.c.tokens, BUCKET.c.at, BUCKET.c.full_at).where(BUCKET.c.full_at > sa.bindparam("now"))
)


def keep_level(dialect: Dialect, where: sa.ColumnElement[bool] | None = None) -> sa.Executable:
    """A level of a bucket, in place of the one that there is; `where`: of which there is."""
    values = {name: sa.bindparam(name, type_=sa.Float) for name in ("tokens", "at", "full_at")}
    return (
        dialect.insert(BUCKET)
        .values(name=sa.bindparam("name"), **values)
        .on_conflict_do_update(index_elements=["name"], set_=values, where=where)
    )


KEEP_LEVEL = Command(keep_level)
# Of two levels of one bucket that is the lower which is full later.
LOWER_LEVEL = Command(lambda dialect: keep_level(dialect, BUCKET.c.full_at < sa.bindparam("full_at")))
FORGET_FULL = Command(sa.delete(BUCKET).where(BUCKET.c.full_at <= sa.bindparam("now")))


TABLES = Query(TableName, named(PLACE.name))


class StoreLimitLedger:
    """The shared counts in a database. On the schema before theirs, which has none, every process counts alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._has_tables = False

    async def report(self, report: LimitReport) -> LimitAnswer:
        """Count what is reported, in one transaction. Raises StoreUnavailable."""
        if not self._has_tables:
            self._has_tables = await self._store.read(has_tables)
            if not self._has_tables:
                return LimitAnswer(Counting.ALONE)
        return await self._store.write(count_report, report=report)


def has_tables(connection: Connection) -> bool:
    """Whether the database has the tables of shared limits."""
    return connection.first(TABLES) is not None


def count_report(connection: Connection, *, report: LimitReport) -> LimitAnswer:
    """The answer to one report, which is counted."""
    connection.run(LOCK)
    processes = connection.all(PROCESSES)
    mine = next((each for each in processes if each.id == report.process), None)
    others = forget_dead(connection, [each for each in processes if each.id != report.process], report.now)
    living = [each.id for each in others if each.lease_end > report.now]
    waiting = any(each.alone for each in others if each.lease_end > report.now)
    was_alone = mine is not None and bool(mine.alone)
    if report.alone and report.levels is None and not waiting:
        if living or not was_alone:
            renew(connection, report, alone=was_alone)
            return LimitAnswer(Counting.ALONE, others=True)
        renew(connection, report, alone=True)
        return LimitAnswer(Counting.ALONE)
    if waiting:
        renew(connection, report, alone=False)
        keep_places(connection, report, {use.name: PlaceGrant(use.held, use.limit) for use in report.places})
        return LimitAnswer(Counting.WAITING)
    connection.run_many(END_ALONE, [{"process": each.id} for each in others if each.alone])
    connection.run_many(LOWER_LEVEL, [level._asdict() for level in report.levels or ()])
    counts = {use.name: count_bucket(connection, use, report.now) for use in report.buckets}
    if report.sweeping:
        connection.run(FORGET_FULL, now=report.now)
    if not others and report.levels is None:
        renew(connection, report, alone=True)
        connection.run(EMPTY_PLACES, whose=report.process)
        return LimitAnswer(
            Counting.ALONE, buckets=counts, levels=[known(level, report.now) for level in connection.all(LEVELS, now=report.now)]
        )
    renew(connection, report, alone=False)
    grants = grant_places(connection, report, living)
    keep_places(connection, report, grants)
    return LimitAnswer(Counting.SHARED, buckets=counts, places=grants)


def forget_dead(connection: Connection, others: Sequence[Process], now: float) -> list[Process]:
    """The other processes, without those whose lease ended long ago, or ends later than any: their rows are deleted."""
    kept: list[Process] = []
    for each in others:
        if now - QUIET_SECONDS < each.lease_end <= now + LEASE_SECONDS + AGREE_SECONDS:
            kept.append(each)
        else:
            connection.run(LEAVE, process=each.id)
            connection.run(EMPTY_PLACES, whose=each.id)
    return kept


def renew(connection: Connection, report: LimitReport, *, alone: bool) -> None:
    """The lease of the process that reports, or none where it leaves."""
    if report.leaving:
        connection.run(LEAVE, process=report.process)
    else:
        connection.run(RENEW, process=report.process, ends=report.now + LEASE_SECONDS, is_alone=int(alone))


def known(level: BucketLevel, now: float) -> BucketLevel:
    """A level as it counts: one of a later time is of a clock that was ahead, and has been set right since."""
    return level if level.at <= now + AGREE_SECONDS else level._replace(at=now, full_at=now + level.full_at - level.at)


def count_bucket(connection: Connection, use: BucketUse, now: float) -> BucketCount:
    """As many of the tokens spent as the bucket has. Its time never goes back, so that clocks that differ fill it no faster."""
    row = connection.first(LEVEL, bucket=use.name)
    level = BucketLevel(use.name, use.size, now, now) if row is None else known(row, now)
    at = max(level.at, now)
    tokens = min(use.size, level.tokens + (at - level.at) * use.rate)
    counted = max(0.0, min(use.used, tokens))
    if counted or level is not row:
        left = tokens - counted
        connection.run(KEEP_LEVEL, name=use.name, tokens=left, at=at, full_at=at + (use.size - left) / use.rate)
    return BucketCount(counted, tokens - counted)


def grant_places(connection: Connection, report: LimitReport, living: Sequence[str]) -> dict[str, PlaceGrant]:
    """What each of the reported places gets, by name."""
    others: dict[str, list[Place]] = defaultdict(list)
    for row in connection.all(PLACES) if report.places else ():
        if row.process in living:
            others[row.name].append(row)
    return {use.name: grant(use, others[use.name]) for use in report.places}


def grant(use: PlaceUse, others: Sequence[Place]) -> PlaceGrant:
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


def keep_places(connection: Connection, report: LimitReport, grants: Mapping[str, PlaceGrant]) -> None:
    """The places of the process that reports: these, and no others."""
    connection.run(EMPTY_PLACES, whose=report.process)
    if report.leaving:
        return
    for use in report.places:
        held = grants[use.name].held
        if held or use.wanted:
            wanted = use.wanted - (held - use.held)
            connection.run(KEEP_PLACE, name=use.name, process=report.process, held=held, wanted=wanted, since=use.since)
