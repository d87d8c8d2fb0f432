"""What may be done a number of times per hour: a strict window that slides, counted in the database for all processes."""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import sqlalchemy as sa
from sqlmodel import Field

from registry.rate_limits import rate_limited
from storage.engine.sql import Command, Connection, Query, TableDescription, changes_rows, delete_oldest


class AllowanceTable(TableDescription, table=True):
    """When something that is limited per hour was done last: a JSON list of Unix seconds per name. The name holds a digest, no address."""

    name: str = Field(primary_key=True)
    times: str
    updated: float = Field(index=True)


ALLOWANCE = AllowanceTable.table

WINDOW_SECONDS = 3600.0


class Allowance(NamedTuple):
    """How often something may be done in any hour."""

    name: str
    limit: int


class AllowanceExceeded(NamedTuple):
    """Which limit is used up, and how many seconds it is until one more is allowed."""

    limit: int
    seconds: float


# The assignment changes nothing: it locks the row, so that two who come at once are counted one after the other.
LOCK_ALLOWANCE = Query(
    str,
    lambda dialect: (
        dialect.insert(ALLOWANCE)
        .values(name=sa.bindparam("name"), times="[]", updated=sa.bindparam("now"))
        .on_conflict_do_update(index_elements=["name"], set_={"times": ALLOWANCE.c.times})
        .returning(ALLOWANCE.c.times)
    ),
)

NOTE_ALLOWANCE = Command(
    sa.update(ALLOWANCE).where(ALLOWANCE.c.name == sa.bindparam("named")).values(times=sa.bindparam("done"), updated=sa.bindparam("at"))
)


def allowance_for(what: str, whom: str, limit: int) -> Allowance:
    """The allowance of `limit` times an hour for doing `what` to `whom`, whose name or address is kept as a digest."""
    return Allowance(f"{what}|{hashlib.sha256(whom.encode()).hexdigest()}", limit)


def take_allowances(connection: Connection, *, wanted: Sequence[Allowance], now: float) -> AllowanceExceeded | None:
    """Count one use of each of `wanted`; where a limit is reached count none, and return the longest wait. `now`: Unix seconds."""
    done = {each.name: recent_uses(connection, each.name, now) for each in sorted(wanted)}  # in one order for all: no deadlock
    exceeded = [
        AllowanceExceeded(each.limit, wait)
        for each in wanted
        if (wait := seconds_until_allowed(done[each.name], each.limit, now)) is not None
    ]
    if exceeded:
        return max(exceeded, key=lambda each: each.seconds)
    for name, times in done.items():
        connection.run(NOTE_ALLOWANCE, named=name, done=json.dumps([*times, now]), at=now)
    return None


def recent_uses(connection: Connection, name: str, now: float) -> list[float]:
    """When it was done in the hour before `now`, Unix seconds; the row stays locked until the transaction ends."""
    row = connection.first(LOCK_ALLOWANCE, name=name, now=now)
    times = cast(list[float], json.loads(row)) if row is not None else []
    return sorted(at for at in times if at > now - WINDOW_SECONDS)


def seconds_until_allowed(times: Sequence[float], limit: int, now: float) -> float | None:
    """Seconds until fewer than `limit` of `times` are in the window; None where that is so at `now` (Unix seconds)."""
    return None if len(times) < limit else times[-limit] + WINDOW_SECONDS - now


@changes_rows
def sweep_allowances(*, before: float, most: int) -> sa.Executable:
    """Delete the oldest rows whose last use was before `before` (Unix seconds), at most `most`; returns how many."""
    return delete_oldest(ALLOWANCE, ALLOWANCE.c.updated < before, ALLOWANCE.c.updated, most)


def spend_allowances(connection: Connection, *, wanted: Sequence[Allowance], what: str, upgrade_url: str, now: float) -> None:
    """Counts one use of each allowance in `wanted`; raises QuotaExceeded where one of this hour is used up.

    Call it first in a write: the refusal undoes the whole transaction. `what` is a plural noun; `now`: Unix seconds.
    """
    exceeded = take_allowances(connection, wanted=wanted, now=now)
    if exceeded is None:
        return
    limit, seconds = exceeded.limit, max(1, math.ceil(exceeded.seconds))
    text = f"Too many {what}: {limit} per hour are allowed here; wait {seconds} s and repeat the call"
    raise rate_limited(text, limit=limit, reset=math.ceil(now) + seconds, retry_after=seconds, upgrade_url=upgrade_url)
