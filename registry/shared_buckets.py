"""Token buckets that processes share: one that is alone counts in memory, others spend at most a portion before the database counts it."""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from registry.errors import StoreUnavailable
from registry.limit_report import BucketCount, BucketLevel, BucketUse, portion_of
from registry.throttle import CAPACITY, Throttle, Wait

LONGEST_PAUSE = 0.25
"""Seconds. A bucket that was found empty is not asked for again before it holds a token, and mostly not before it holds a portion."""
SHORTEST_WAIT = 0.001


class Lease(Protocol):
    """What buckets know of the process's lease. Times are monotonic seconds."""

    alone_until: float
    used_at: float
    is_cut_off: bool

    def touch(self, now: float) -> None: ...
    async def counted(self) -> None: ...


@dataclass(slots=True)
class Spent:
    """Tokens of one bucket that were spent here and not counted yet; until `closed_until` nobody asks the database for it again."""

    rate: float
    size: float
    tokens: float = 0.0
    closed_until: float = 0.0

    def has_room(self) -> bool:
        """One more token is within the portion."""
        return self.tokens + 1 <= portion_of(self.size)


def name_of(key: str) -> str:
    """What a bucket is called in the database, which keeps no addresses."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


class SharedBuckets:
    """The buckets of one process. Times are monotonic seconds; `rate`: tokens a second; `size`: tokens."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._own = Throttle()
        self._known: dict[str, tuple[float, float, float]] = {}
        """Buckets as the database had them when this process began to count alone, by their name there."""
        self._spent: dict[str, Spent] = {}

    def take(self, key: str, rate: float, size: float, now: float) -> Wait | None:
        """Take one token, or say how long to wait."""
        lease = self._lease
        if now < lease.alone_until:
            lease.used_at = now
            if self._known:
                self._recall(key)
            return self._own.take(key, rate, size, now)
        lease.touch(now)
        if lease.is_cut_off:
            return self._own.take(key, rate, size, now)
        spent = self._spent_of(key, rate, size)
        if not spent.has_room():
            return Wait(max(SHORTEST_WAIT, spent.closed_until - now))
        spent.tokens += 1
        return None

    def wait(self, key: str, rate: float, size: float, now: float) -> Wait | None:
        """How long until there is a token, without taking it."""
        if now < self._lease.alone_until:
            if self._known:
                self._recall(key)
            return self._own.wait(key, rate, size, now)
        if self._lease.is_cut_off:
            return self._own.wait(key, rate, size, now)
        spent = self._spent.get(key)
        return None if spent is None or spent.has_room() else Wait(max(SHORTEST_WAIT, spent.closed_until - now))

    def charge(self, key: str, amount: float, rate: float, size: float, now: float) -> None:
        """Take tokens that have been used already; the bucket may owe some afterwards."""
        lease = self._lease
        if now < lease.alone_until:
            lease.used_at = now
            if self._known:
                self._recall(key)
            self._own.charge(key, amount, rate, size, now)
            return
        lease.touch(now)
        if lease.is_cut_off:
            self._own.charge(key, amount, rate, size, now)
        else:
            self._spent_of(key, rate, size).tokens += amount

    async def replenish(self, key: str, now: Callable[[], float]) -> bool:
        """Have the database count what was spent of an empty bucket; whether it is worth while to try it again.

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
            due = sorted(due, key=lambda each: each[1].tokens / portion_of(each[1].size), reverse=True)[:most]
        return {key: BucketUse(name_of(key), spent.rate, spent.size, spent.tokens) for key, spent in due}

    def count(self, key: str, count: BucketCount, now: float) -> None:
        """Part of what was spent of a bucket has been counted; the database said how much is left of it."""
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
        until_portion = (portion_of(spent.size) - count.tokens) / spent.rate
        spent.closed_until = now + max(until_one, min(until_portion, LONGEST_PAUSE))

    def levels(self, now: float, wall: float) -> list[BucketLevel]:
        """What the buckets hold that were counted alone, and are counted so no more; `wall` is Unix seconds at `now`."""
        shift = wall - now
        found = [
            BucketLevel(name_of(key), tokens, at + shift, full_at + shift)
            for key, (tokens, at, full_at) in self._own.levels()
            if full_at > now
        ]
        self.forget()
        return found

    def forget(self) -> None:
        """Forget what was counted alone."""
        self._own, self._known = Throttle(), {}

    def begin_alone(self, levels: Iterable[BucketLevel], now: float, wall: float) -> None:
        """From now on all buckets are counted here: they hold what the database has, less what was spent here since."""
        shift = now - wall
        self._known = {level.name: (level.tokens, level.at + shift, level.full_at + shift) for level in levels}
        self.settle_alone(now)

    def settle_alone(self, now: float) -> None:
        """Count what was spent on account while the database was not to be asked."""
        spent, self._spent = self._spent, {}
        for key, each in spent.items():
            self._recall(key)
            self._own.charge(key, each.tokens, each.rate, each.size, now)
        self._known = {name: level for name, level in self._known.items() if level[2] > now}

    def _recall(self, key: str) -> None:
        known = self._known.pop(name_of(key), None)
        if known is not None:
            self._own.put(key, known)

    def _spent_of(self, key: str, rate: float, size: float) -> Spent:
        spent = self._spent.get(key)
        if spent is None:
            if len(self._spent) >= CAPACITY:
                del self._spent[next(iter(self._spent))]
            spent = self._spent[key] = Spent(rate, size)
        else:
            spent.rate, spent.size = rate, size
        return spent
