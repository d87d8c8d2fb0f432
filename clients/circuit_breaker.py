"""A circuit breaker: whether calls are sent to an outside system that has stopped answering. Pure: time and events are its arguments.

Each organisation has its own state. One whose calls fail is refused until a probe of it is answered; nobody else is. Only where most calls
of most organisations fail is it open for all, and even then not for one whose own calls succeed: a few that let their calls fail
on purpose close nothing for others.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum

WINDOW_SECONDS = 10
"""Seconds that count."""
PROBE_PAUSE_SECONDS = 1.0
"""Between a probe that was not answered and the next one."""
BREAKER_OWNERS_LIMIT = 4096


class BreakerVerdict(Enum):
    """What to do with a call."""

    SEND = "send"
    PROBE = "probe"
    """First ask whether the system answers."""
    REFUSE = "refuse"


class CallWindow:
    """How many calls ended in the last ten seconds, and how many of them failed."""

    __slots__ = ("_calls", "_failures", "_second", "calls", "failures")

    def __init__(self) -> None:
        self._calls, self._failures = [0] * WINDOW_SECONDS, [0] * WINDOW_SECONDS
        self._second = 0
        self.calls = self.failures = 0

    def add(self, second: int, *, failed: bool) -> None:
        if second != self._second:
            self.pass_to(second)
        place = self._second % WINDOW_SECONDS
        self._calls[place] += 1
        self.calls += 1
        if failed:
            self._failures[place] += 1
            self.failures += 1

    def pass_to(self, second: int) -> None:
        """Forget what is older than the window. Time that goes back counts as no time."""
        passed = second - self._second
        if passed <= 0:
            return
        for each in range(self._second + 1, self._second + 1 + min(passed, WINDOW_SECONDS)):
            place = each % WINDOW_SECONDS
            self.calls -= self._calls[place]
            self.failures -= self._failures[place]
            self._calls[place] = self._failures[place] = 0
        self._second = second

    def clear(self) -> None:
        self._calls, self._failures = [0] * WINDOW_SECONDS, [0] * WINDOW_SECONDS
        self.calls = self.failures = 0

    @property
    def fails(self) -> bool:
        """More than half of the calls failed."""
        return 2 * self.failures > self.calls


@dataclass(slots=True, eq=False)
class OwnerState:
    """One organisation: its calls, and its probe."""

    window: CallWindow = field(default_factory=CallWindow)
    open: bool = False
    probes: int = 0
    """Under way."""
    probes_after: float = 0.0


class CircuitBreaker:
    """The states of all organisations, and one for them together. Times are monotonic seconds; fewer than `least` failures open nothing.

    An organisation that was refused goes on as soon as one probe of it was answered; so does everybody when it was open for all.
    """

    def __init__(self, *, least: int = 3) -> None:
        self._least = least
        self._owners: OrderedDict[str, OwnerState] = OrderedDict()
        self._all = CallWindow()
        self.is_open = False
        """For all, or for some: `verdict` knows for whom."""
        self.open_for_all = False
        self.open_owners = 0
        """How many organisations are refused for their own failures."""
        self.opened = {"all": 0, "organisation": 0}
        """How often it was opened."""

    def verdict(self, name: str, now: float) -> BreakerVerdict:
        """What to do with a call that organisation `name` would send at `now`."""
        if not self.is_open:
            return BreakerVerdict.SEND
        owner = self._owners.get(name)
        if owner is None:
            return BreakerVerdict.PROBE if self.open_for_all else BreakerVerdict.SEND
        owner.window.pass_to(int(now))
        if not owner.open:
            if not self.open_for_all or (owner.window.calls and not owner.window.fails):
                return BreakerVerdict.SEND
            if not owner.window.failures:
                return BreakerVerdict.PROBE  # nothing is known of it
        return BreakerVerdict.PROBE if not owner.probes and now >= owner.probes_after else BreakerVerdict.REFUSE

    def is_open_for(self, name: str) -> bool:
        """Whether this organisation is refused for its own failures."""
        owner = self._owners.get(name)
        return owner is not None and owner.open

    def retry_after(self, name: str, now: float) -> int:
        """Seconds after which a refused organisation may be let through."""
        owner = self._owners.get(name)
        return 1 if owner is None or owner.probes else max(1, round(owner.probes_after - now))

    def ended(self, name: str, now: float, *, failed: bool) -> None:
        """A call that was sent was answered, whatever the answer; or it failed: it could not connect, or ran out of time."""
        second = int(now)
        owner = self._owners.get(name) or self._new(name)
        owner.window.add(second, failed=failed)
        self._all.add(second, failed=failed)
        if failed:
            self._judge(owner, second)
        elif self.is_open and (self.open_for_all or owner.open):
            self._close(owner)

    def begin_probe(self, name: str) -> None:
        """A call waits for a probe."""
        owner = self._owners.get(name) or self._new(name)
        owner.probes += 1

    def end_probe(self, name: str, now: float, *, answered: bool | None) -> None:
        """The probe of `name` is over. `answered`: whether the system answered; None: its caller gave up."""
        owner = self._owners.get(name) or self._new(name)
        owner.probes = max(0, owner.probes - 1)
        if answered is not None:
            self.ended(name, now, failed=not answered)
        if answered is False:
            owner.probes_after = now + PROBE_PAUSE_SECONDS

    def _judge(self, owner: OwnerState, second: int) -> None:
        """Open for the owner, or for all, where the last ten seconds are bad enough."""
        if not owner.open and owner.window.failures >= self._least and owner.window.fails:
            owner.open = True
            self.open_owners += 1
            self.opened["organisation"] += 1
        self._judge_all(second)
        self.is_open = self.open_for_all or self.open_owners > 0

    def _judge_all(self, second: int) -> None:
        if self.open_for_all or self._all.failures < self._least or not self._all.fails:
            return
        calling = failing = 0
        for each in self._owners.values():
            each.window.pass_to(second)
            calling += each.window.calls > 0
            failing += each.window.fails
        if failing >= min(2, calling) and 2 * failing >= calling:
            self.open_for_all = True
            self.opened["all"] += 1

    def _close(self, owner: OwnerState) -> None:
        """The system answers: failures before that no longer count."""
        if owner.open:
            owner.open = False
            self.open_owners -= 1
            owner.window.clear()
        if self.open_for_all:
            self.open_for_all = False
            self._all.clear()
        self.is_open = self.open_owners > 0

    def _new(self, name: str) -> OwnerState:
        if len(self._owners) >= BREAKER_OWNERS_LIMIT:
            _, oldest = self._owners.popitem(last=False)
            self.open_owners -= oldest.open
            self.is_open = self.open_for_all or self.open_owners > 0
        owner = self._owners[name] = OwnerState()
        return owner
