"""An outside system as this process sees it: how many requests wait for it, and whether it answers."""

from asyncio import timeout
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Literal

from clients.circuit_breaker import BreakerVerdict, CircuitBreaker
from clients.http import FailureKind
from registry.clock import ActiveRequest, Clock
from registry.signals import ANSWER_BOUNDS, Histogram, Histograms

SystemName = Literal["charging_system", "payment_processor", "model"]
NotSentReason = Literal["crowded", "open"]
CallOutcome = Literal["ok", "refused", "failed", "not_sent", "abandoned"]
"""`refused`: it answered with an error; `failed`: it gave no answer in time, or none that can be read; `not_sent`: a call never left;
`abandoned`: its caller stopped reading."""
BREAKER_LEAST_FAILURES = 3
"""Fewer say nothing about a system. Calls that hang hold their places, so that of few places there are never more."""
WAITING_LIMIT = 256
"""Half of the connections that a server takes by default."""
PROBE_SECONDS = 3.0
"""How long a probe may take. A call that ended sooner for want of time says nothing about the system."""
UNANSWERED_KINDS: frozenset[FailureKind] = frozenset({"timeout", "refused", "dns", "tls", "network"})
"""Failures that count against the system; every answer, an error too, counts for it."""


WRITE_SECONDS = 5.0
"""Seconds that a request must have left for a write to be sent: one that is cut short leaves its outcome unknown."""


class CallProgress:
    """How far a call got. `placed` and `sent`: since when it has a place, and since when it is sent (monotonic seconds), else None.
    `failed`: whether its last attempt got no answer. `unsure`: whether some attempt may have changed something.
    """

    placed: float | None = None
    sent: float | None = None
    failed: bool | None = None
    unsure = False

    def outcome(self, *, overdue: bool) -> CallOutcome:
        """How a call ended that did not succeed. `overdue`: no answer came in time."""
        if self.sent is None:
            return "not_sent"
        return "failed" if overdue or self.failed is not False else "refused"


def seconds_for_call(request: ActiveRequest | None, total: float, *, write: bool) -> float | None:
    """Seconds that a call may take, `total` at most and no longer than the `request` that it is made for; None: too few to send it."""
    if request is None:
        return total
    seconds = min(total, request.left())
    return None if seconds <= 0 or (write and seconds < min(WRITE_SECONDS, total)) else seconds


class OutsideSystem:
    """Limits the requests that wait for a system, half of them for one organisation, and holds back calls while it does not answer.

    An empty `owner` is the service itself, which calls for everybody.

    Choice: a request that makes several calls at once counts once, since it holds one connection. Who holds none, as the worker, is
    not counted.
    """

    def __init__(
        self, name: SystemName, clock: Clock, *, most_waiting: int = WAITING_LIMIT, least_failures: int = BREAKER_LEAST_FAILURES
    ) -> None:
        self.name: SystemName = name
        self.breaker = CircuitBreaker(least=least_failures)
        self.refused = Counter[str](crowded=0, open=0)
        self.waiting = 0
        """Requests that wait for it now."""
        self.calls = Histograms(("method", "outcome"))
        """Calls that were let in, by the seconds until their end: the wait for a place, the call itself and its repetition."""
        self.queue = Histogram(ANSWER_BOUNDS)
        """Their waits for a place."""
        self.clock = clock
        self.report: Callable[[str], None] = lambda _text: None
        """Told when calls are refused from now on, and when they are sent again."""
        self._silent_since = 0.0
        self._most, self._of_one = max(1, most_waiting), max(1, most_waiting // 2)
        self._of: dict[str, int] = {}

    def enter(self, request: ActiveRequest | None, owner: str) -> NotSentReason | None:
        """Count one more call of `owner` that waits; the reason where it may not wait. After None the caller must call `leave`."""
        if self.breaker.is_open and self.breaker.verdict(owner, self.clock.monotonic()) is BreakerVerdict.REFUSE:
            return self.refuse("open")
        if request is None:
            return None
        waits = request.waits
        if waits is None:
            waits = request.waits = {}
        calls = waits.get(self.name, 0)
        if not calls:
            held = self._of.get(owner, 0)
            if self.waiting >= self._most or (held >= self._of_one and owner):
                return self.refuse("crowded")
            self.waiting += 1
            self._of[owner] = held + 1
        waits[self.name] = calls + 1
        return None

    def leave(self, request: ActiveRequest | None, owner: str) -> None:
        """One call that `enter` let wait is over."""
        if request is None or request.waits is None:
            return
        calls = request.waits[self.name] = request.waits[self.name] - 1
        if not calls:
            self.waiting -= 1
            held = self._of[owner]
            if held == 1:
                del self._of[owner]
            else:
                self._of[owner] = held - 1

    def refuse(self, reason: NotSentReason) -> NotSentReason:
        self.refused[reason] += 1
        return reason

    async def may_send(self, owner: str, probe: Callable[[], Awaitable[bool]]) -> bool:
        """Whether a call of `owner` may be sent now. `probe` asks the system first where that is not known; waits for it 3 s at most."""
        verdict = self.breaker.verdict(owner, self.clock.monotonic())
        if verdict is BreakerVerdict.SEND:
            return True
        if verdict is BreakerVerdict.REFUSE:
            self.refuse("open")
            return False
        answered: bool | None = None
        self.breaker.begin_probe(owner)
        try:
            answered = False
            with suppress(TimeoutError):
                async with timeout(PROBE_SECONDS):
                    answered = await probe()
        except BaseException:
            answered = None
            raise
        finally:
            self._judge(owner, partial(self.breaker.end_probe, owner, self.clock.monotonic(), answered=answered))
        if answered:
            return True
        self.refuse("open")
        return False

    def retry_after(self, owner: str) -> int:
        """Whole seconds after which `owner` may repeat a refused call."""
        return self.breaker.retry_after(owner, self.clock.monotonic())

    def observe(self, method: str, outcome: CallOutcome, *, began: float, placed: float | None) -> None:
        """Count a call that has ended. `method`: its name on the wire; `placed`: when it had a place, both in monotonic seconds."""
        now = self.clock.monotonic()
        self.calls.observe((method, outcome), now - began)
        self.queue.observe((now if placed is None else placed) - began)

    def ended(self, owner: str, *, failed: bool) -> None:
        """Count a call of `owner` that was sent. `failed`: it got no answer."""
        if failed or self.breaker.is_open:
            self._judge(owner, partial(self.breaker.ended, owner, self.clock.monotonic(), failed=failed))
        else:
            self.breaker.ended(owner, self.clock.monotonic(), failed=False)

    def _judge(self, owner: str, ended: Callable[[], None]) -> None:
        """Count a call by `ended`, and report it where calls are refused, or sent again, from now on."""
        breaker, name = self.breaker, self.name.replace("_", " ")
        for_all, for_one = breaker.open_for_all, breaker.is_open_for(owner)
        ended()
        now, whose = self.clock.monotonic(), f"organisation {owner}" if owner else "the service itself"
        if breaker.is_open_for(owner) and not for_one:
            self.report(f"the {name} does not answer the calls of {whose}: they are refused until it does")
        if breaker.open_for_all and not for_all:
            self._silent_since = now
            self.report(f"the {name} does not answer: calls to it are refused until it does")
        if for_all and not breaker.open_for_all:
            self.report(f"the {name} answers again, after {now - self._silent_since:.0f} s in which calls were refused")
        if for_one and not breaker.is_open_for(owner):
            self.report(f"the {name} answers the calls of {whose} again")
