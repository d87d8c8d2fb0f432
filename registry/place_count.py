"""Places for calls under way at once: counted in one process, or leased in portions of a limit that processes share."""

from collections.abc import Callable
from typing import Protocol

from registry.limit_report import PlaceGrant, PlaceUse


class Lease(Protocol):
    """What places know of the process's lease. Times are monotonic seconds."""

    alone_until: float
    used_at: float
    lease_end: float
    is_cut_off: bool

    def touch(self, now: float) -> None: ...
    def hurry(self) -> None: ...


def nothing() -> None:
    """Nobody waits."""


class PlaceCount:
    """So many places, in this process alone. `more` is called when there are more than there were."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use: int = 0
        self.more: Callable[[], None] = nothing

    def take(self) -> bool:
        """A place, if one is free."""
        if self.in_use >= self.limit:
            return False
        self.in_use += 1
        return True

    def give_back(self) -> None:
        """A call is over."""
        self.in_use -= 1

    def want(self, calls: int) -> None:
        """So many calls wait."""


class SharedPlaces(PlaceCount):
    """This process's part of a limit. The sum over all processes is never above it; what is not used is given back."""

    def __init__(self, name: str, limit: int, lease: Lease, monotonic: Callable[[], float]) -> None:
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
        """What is told about these places, and from now on kept at most; `fresh`: no place is leased yet, those in use are kept."""
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
