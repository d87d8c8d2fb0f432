"""What a process tells the database about the shared limits, and what it is told: plain values, so that only storage knows statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

LEASE_SECONDS = 4.0
"""How long a process may count without another report. One that dies loses what it had after this."""
QUIET_SECONDS = 10.0
"""A process counts alone again when the leases of all others ended this long ago."""
AGREE_SECONDS = 5.0
"""Clocks of processes differ by less. A time that is further ahead is of a clock that was wrong, and counts for nothing."""
PORTION = 10
"""A portion is the tenth part of a bucket, and at least two tokens."""


def portion_of(size: float) -> float:
    """How many tokens of a bucket of `size` a process may spend before the database has counted them."""
    return min(size, max(2.0, size // PORTION))


class Counting(StrEnum):
    """How a process counts.

    ALONE: by itself, no other process is there. SHARED: in portions of the database's counts. WAITING: another process counts alone
    and has not noticed yet that it is not. NONE: it has no lease.
    """

    ALONE = "alone"
    SHARED = "shared"
    WAITING = "waiting"
    NONE = "none"


class BucketUse(NamedTuple):
    """Tokens of a bucket that a process has spent and the database has not counted. `rate`: tokens a second."""

    name: str
    rate: float
    size: float
    used: float


class BucketCount(NamedTuple):
    """How many of the tokens spent the database has counted now, and how many the bucket still holds."""

    counted: float
    tokens: float


class BucketLevel(NamedTuple):
    """A bucket that is not full: its tokens at a moment, and when it is full again without further use (both Unix seconds)."""

    name: str
    tokens: float
    at: float
    full_at: float


class PlaceUse(NamedTuple):
    """Places for calls under way: how many of `limit` a process keeps, how many calls wait for more, and since when (Unix seconds)."""

    name: str
    limit: int
    held: int
    wanted: int
    since: float


class PlaceGrant(NamedTuple):
    """How many places a process has now. `most`: what it has beyond this it gives back as its calls end: another one has too few."""

    held: int
    most: int


@dataclass(frozen=True, slots=True)
class LimitReport:
    """One process's report, which also renews its lease. `now`: Unix seconds.

    `alone`: it has counted alone since its last report. `levels`: what its buckets hold where it ends that; None where it does not.
    `leaving`: it gives up its lease. `sweeping`: rows that say nothing any more are to be deleted.
    """

    process: str
    now: float
    alone: bool = False
    levels: Sequence[BucketLevel] | None = None
    buckets: Sequence[BucketUse] = ()
    places: Sequence[PlaceUse] = ()
    leaving: bool = False
    sweeping: bool = False


@dataclass(frozen=True, slots=True)
class LimitAnswer:
    """The answer to a report. Counts and grants are by name.

    `others`: another process is there while this one counted alone: it has to report again, with its levels.
    `levels`: of all buckets, where it begins to count alone.
    """

    counting: Counting
    others: bool = False
    buckets: Mapping[str, BucketCount] = field(default_factory=dict[str, BucketCount])
    places: Mapping[str, PlaceGrant] = field(default_factory=dict[str, PlaceGrant])
    levels: Sequence[BucketLevel] = ()


class LimitLedger(Protocol):
    """The shared counts. Raises StoreUnavailable; waits for the database."""

    async def report(self, report: LimitReport) -> LimitAnswer:
        """Count what is reported, in one transaction."""
        ...
