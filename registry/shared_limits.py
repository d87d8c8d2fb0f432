"""Limits that processes share: token buckets and places for calls under way, and the report in which a process tells the database of them.

A process that is alone counts in memory. Others spend at most a portion of a bucket, or lease a part of the places, before the database
counts it. Reports and answers are plain values, so that only storage knows statements.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from registry.errors import StoreUnavailable
from registry.rate_limits import BUCKETS_LIMIT, TokenBuckets

LEASE_SECONDS = 4.0
"""How long a process may count without another report. One that dies loses what it had after this."""
ALONE_AFTER_SECONDS = 10.0
"""A process counts alone again when the leases of all others ended this long ago."""
CLOCK_TOLERANCE_SECONDS = 5.0
"""Clocks of processes differ by less. A time that is further ahead is of a clock that was wrong, and counts for nothing."""
PORTION_DIVISOR = 10
"""A portion is the tenth part of a bucket, and at least two tokens."""


def bucket_portion(size: float) -> float:
    """How many tokens of a bucket of `size` a process may spend before the database has counted them."""
    return min(size, max(2.0, size // PORTION_DIVISOR))


class CountingMode(StrEnum):
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
    """How many places a process has now. It gives back what it has beyond `most` as its calls end, since another process has too few."""

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

    counting: CountingMode
    others: bool = False
    buckets: Mapping[str, BucketCount] = field(default_factory=dict[str, BucketCount])
    places: Mapping[str, PlaceGrant] = field(default_factory=dict[str, PlaceGrant])
    levels: Sequence[BucketLevel] = ()


class LimitLedger(Protocol):
    """The shared counts. Raises StoreUnavailable; waits for the database."""

    async def report(self, report: LimitReport) -> LimitAnswer:
        """Count all that `report` tells, in one transaction."""
        ...


class CountingLease(Protocol):
    """What places and buckets know of the process's lease. Times are monotonic seconds; `is_cut_off`: the database takes no report."""

    alone_until: float
    used_at: float
    lease_end: float
    is_cut_off: bool

    def touch(self, now: float) -> None:
        """Something was counted at `now` that other processes have to know of."""
        ...

    def hurry(self) -> None:
        """Reports at once."""
        ...

    async def counted(self) -> None:
        """Reports, and waits until the database has counted what was spent before. Raises StoreUnavailable."""
        ...


def ignore_more_places() -> None:
    """Nobody waits."""


class PlaceCount:
    """So many places, in this process alone. `more` is called when there are more than there were."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use: int = 0
        self.more: Callable[[], None] = ignore_more_places

    def take(self) -> bool:
        if self.in_use >= self.limit:
            return False
        self.in_use += 1
        return True

    def give_back(self) -> None:
        self.in_use -= 1

    def want(self, calls: int) -> None:
        """So many calls wait."""


class SharedPlaces(PlaceCount):
    """This process's part of a limit. The sum over all processes is never above it; what is not used is given back."""

    def __init__(self, name: str, limit: int, lease: CountingLease, monotonic: Callable[[], float]) -> None:
        super().__init__(limit)
        self.name = name
        self._lease, self._monotonic = lease, monotonic
        self._held: int = 0
        self._most: int = limit
        self._peak: int = 0
        self._wanted: int = 0
        self._since: float = 0.0

    @property
    def has_waiting(self) -> bool:
        """Calls wait here."""
        return self._wanted > 0

    @property
    def is_short(self) -> bool:
        """Calls wait here, and another process may have places."""
        return self._wanted > 0 and self._held < self.limit

    @property
    def is_idle(self) -> bool:
        """Nothing is under way, and nothing waits."""
        return not (self.in_use or self._wanted)

    def take(self) -> bool:
        """A place, if one is free here; a process without a lease has none.

        Choice: while the database takes no report, a process goes on with the places that it had, and one at least.
        """
        lease, now = self._lease, self._monotonic()
        lease.used_at = now
        allowed = self.limit if now < lease.alone_until else self._held if now < lease.lease_end else 0
        if lease.is_cut_off:
            allowed = max(allowed, self._held, 1)
        if self.in_use >= allowed:
            return False
        self.in_use += 1
        self._peak = max(self._peak, self.in_use)
        return True

    def give_back(self) -> None:
        """A call is over; where another process has too few places, its place goes there."""
        self.in_use -= 1
        keep = max(self.in_use, self._most)
        if self._held > keep:
            self._held = keep
            self._lease.hurry()

    def want(self, calls: int) -> None:
        """So many calls wait: more places are asked for."""
        first = calls > 0 and not self._wanted
        self._wanted, now = calls, self._monotonic()
        if first and now >= self._lease.alone_until:
            self._lease.touch(now)
            if self._held < self.limit:
                self._lease.hurry()

    def use(self, wall: float, *, fresh: bool) -> PlaceUse | None:
        """The report about these places; no more are kept then. `fresh`: no place is leased yet, so only those in use are kept."""
        need = self.in_use + self._wanted
        self._held = max(self.in_use, 0 if fresh else min(self._held, self._most, max(self._peak, need)))
        self._peak = self.in_use
        wanted = need - self._held if need > self._held else 0
        if not wanted:
            self._since = 0.0
        elif not self._since:
            self._since = wall
        return PlaceUse(self.name, self.limit, self._held, wanted, self._since) if self._held or wanted else None

    def grant(self, granted: PlaceGrant, asked: PlaceUse) -> None:
        """What was granted; what was given back in the meantime stays given back."""
        self._most = granted.most
        if granted.held > asked.held:
            self._held += granted.held - asked.held
            self._since = 0.0


BUCKET_PAUSE_SECONDS = 0.25
"""Seconds. A bucket that was found empty is not asked for again before it holds a token, and mostly not before it holds a portion."""
SHORTEST_WAIT_SECONDS = 0.001


@dataclass(slots=True)
class UncountedTokens:
    """Tokens of one bucket that were spent here and not counted yet; until `closed_until` nobody asks the database for it again."""

    rate: float
    size: float
    tokens: float = 0.0
    closed_until: float = 0.0

    def has_room(self) -> bool:
        """One more token is within the portion."""
        return self.tokens + 1 <= bucket_portion(self.size)


def bucket_name(key: str) -> str:
    """What a bucket is called in the database, which keeps no addresses."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


class SharedBuckets:
    """The buckets of one process. Times are monotonic seconds; `rate`: tokens a second; `size`: tokens."""

    def __init__(self, lease: CountingLease) -> None:
        self._lease = lease
        self._own = TokenBuckets()
        self._known: dict[str, tuple[float, float, float]] = {}
        """Buckets as the database had them when this process began to count alone, by their name there."""
        self._spent: dict[str, UncountedTokens] = {}

    def _counts_here(self, key: str, now: float) -> bool:
        """Whether this process counts a use of the bucket by itself: it is alone, or the database takes no report."""
        lease = self._lease
        if now >= lease.alone_until:
            lease.touch(now)
            return lease.is_cut_off
        lease.used_at = now
        if self._known:
            self._recall(key)
        return True

    def take(self, key: str, rate: float, size: float, now: float) -> float | None:
        if self._counts_here(key, now):
            return self._own.take(key, rate, size, now)
        spent = self._spent_of(key, rate, size)
        if not spent.has_room():
            return max(SHORTEST_WAIT_SECONDS, spent.closed_until - now)
        spent.tokens += 1
        return None

    def wait(self, key: str, rate: float, size: float, now: float) -> float | None:
        alone = now < self._lease.alone_until
        if alone and self._known:
            self._recall(key)
        if alone or self._lease.is_cut_off:
            return self._own.wait(key, rate, size, now)
        spent = self._spent.get(key)
        return None if spent is None or spent.has_room() else max(SHORTEST_WAIT_SECONDS, spent.closed_until - now)

    def charge(self, key: str, amount: float, rate: float, size: float, now: float) -> None:
        if self._counts_here(key, now):
            self._own.charge(key, amount, rate, size, now)
        else:
            self._spent_of(key, rate, size).tokens += amount

    async def replenish(self, key: str, now: Callable[[], float]) -> bool:
        """Has the database count what was spent of the empty bucket `key`.

        Choice: while the database takes no report, this process counts for itself. Calls that only read go on, as on a full disk.
        """
        if now() < self._lease.alone_until or self._lease.is_cut_off:
            return False
        spent = self._spent.get(key)
        if spent is None or spent.has_room():
            return True
        if now() < spent.closed_until:
            return False
        with suppress(StoreUnavailable):
            await self._lease.counted()
        return self._lease.is_cut_off or now() < self._lease.alone_until or spent.has_room()

    @property
    def owes(self) -> bool:
        """Something was spent that the database has not counted."""
        return any(spent.tokens for spent in self._spent.values())

    def uses(self, most: int) -> dict[str, BucketUse]:
        """What is to be counted, by key: the most spent first, `most` at once."""
        due = [(key, spent) for key, spent in self._spent.items() if spent.tokens > 0]
        if len(due) > most:
            due = sorted(due, key=lambda each: each[1].tokens / bucket_portion(each[1].size), reverse=True)[:most]
        return {key: BucketUse(bucket_name(key), spent.rate, spent.size, spent.tokens) for key, spent in due}

    def count(self, key: str, count: BucketCount, now: float) -> None:
        """Takes over the database's count of the bucket `key`: how much of the spent tokens is counted, and how many are left."""
        spent = self._spent.get(key)
        if spent is None:
            return
        spent.tokens -= count.counted
        if spent.has_room():
            spent.closed_until = 0.0
            if spent.tokens <= 0:
                del self._spent[key]
            return
        until_one = (1 - count.tokens) / spent.rate
        until_portion = (bucket_portion(spent.size) - count.tokens) / spent.rate
        spent.closed_until = now + max(until_one, min(until_portion, BUCKET_PAUSE_SECONDS))

    def levels(self, now: float, wall: float) -> list[BucketLevel]:
        """What the buckets hold that were counted alone, and are counted so no more; `wall` is Unix seconds at `now`."""
        shift = wall - now
        found = [
            BucketLevel(bucket_name(key), tokens, at + shift, full_at + shift)
            for key, (tokens, at, full_at) in self._own.levels()
            if full_at > now
        ]
        self.forget()
        return found

    def forget(self) -> None:
        self._own, self._known = TokenBuckets(), {}

    def begin_alone(self, levels: Iterable[BucketLevel], now: float, wall: float) -> None:
        """From now on all buckets are counted here: they hold what the database has, less what was spent here since."""
        shift = now - wall
        self._known = {level.name: (level.tokens, level.at + shift, level.full_at + shift) for level in levels}
        self.charge_uncounted(now)

    def charge_uncounted(self, now: float) -> None:
        """Count what was spent on account while the database was not to be asked."""
        spent, self._spent = self._spent, {}
        for key, each in spent.items():
            self._recall(key)
            self._own.charge(key, each.tokens, each.rate, each.size, now)
        self._known = {name: level for name, level in self._known.items() if level[2] > now}

    def _recall(self, key: str) -> None:
        known = self._known.pop(bucket_name(key), None)
        if known is not None:
            self._own.put(key, known)

    def _spent_of(self, key: str, rate: float, size: float) -> UncountedTokens:
        spent = self._spent.get(key)
        if spent is None:
            if len(self._spent) >= BUCKETS_LIMIT:
                del self._spent[next(iter(self._spent))]
            spent = self._spent[key] = UncountedTokens(rate, size)
        else:
            spent.rate, spent.size = rate, size
        return spent
