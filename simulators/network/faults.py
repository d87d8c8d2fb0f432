"""Faults on purpose: what the next calls of a method meet instead of, or after, their effect."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import cast

from simulators.network.dispatch import CallOutcome
from simulators.network.wire import NULL_PAYLOAD, RequestFields, WireMembers, invalid_request, read_flag, read_positive, read_text

FAULT_DELAY_LIMIT = 600
LIMIT_EXCEEDED = 100
ABSENT_VALUES = (None, False)  # a delay of 0.0 is one of them
FAULT_FLAGS = ("drop_after", "drop_before", "malformed", "empty", "has_more", "null_lists", "commit")
FAULT_KINDS = ("code", "delay", "drop_after", "drop_before", "malformed", "empty", "status", "burst", "has_more", "null_lists", "untold")


@dataclass(frozen=True, slots=True)
class NetworkFault:
    """One trouble of one method (`*` is every method). `times` None is for ever; `commit`: the call takes effect all the same."""

    method: str
    code: int | None = None
    delay: float = 0.0
    drop_after: bool = False
    drop_before: bool = False
    malformed: bool = False
    empty: bool = False
    status: int | None = None
    burst: int | None = None
    has_more: bool = False
    null_lists: bool = False
    untold: str | None = None
    commit: bool = False
    times: int | None = 1

    @property
    def kinds(self) -> list[str]:
        """The names of the members that are set."""
        return [name for name in FAULT_KINDS if getattr(self, name) not in ABSENT_VALUES]

    @property
    def before(self) -> bool:
        """Whether the call has no effect."""
        return self.drop_before or ((self.code is not None or self.status is not None) and not self.commit)

    @property
    def dropped(self) -> bool:
        """Whether there is no answer."""
        return self.drop_before or self.drop_after

    def of(self, outcome: CallOutcome) -> CallOutcome:
        """The outcome that is answered instead of `outcome`."""
        if self.code is not None:
            return CallOutcome(self.code, "injected fault")
        payload = outcome.payload
        if self.null_lists:
            payload = without_lists(payload)
        if self.untold is not None:
            payload = without_member(payload, self.untold)
        if self.has_more and isinstance(payload, dict):
            payload = {**cast(WireMembers, payload), "hasMore": True}
        return outcome._replace(payload=payload)

    def as_json(self) -> WireMembers:
        members: WireMembers = asdict(self)
        return {name: members[name] for name in ("method", *self.kinds, "commit", "times")}


def without_lists(payload: object) -> object:
    if isinstance(payload, list):
        return NULL_PAYLOAD
    if not isinstance(payload, dict):
        return payload
    return {name: None if isinstance(value, list) else value for name, value in cast(WireMembers, payload).items()}


def without_member(payload: object, name: str) -> object:
    if isinstance(payload, list):
        return [without_member(each, name) for each in cast("list[object]", payload)]
    if not isinstance(payload, dict):
        return payload
    return {member: without_member(value, name) for member, value in cast(WireMembers, payload).items() if member != name}


def read_network_fault(value: object) -> NetworkFault:
    """A fault of the control API; absent `times` is once, and for ever with a burst limit. Null is for ever."""
    fields = RequestFields(value, "fault")
    lasting = fields.given(("burst",)) or fields.has_key("times")
    fault = NetworkFault(
        method=fields.need("method", read_text),
        code=fields.maybe("code", read_positive),
        delay=fields.maybe("delay", _read_fault_delay) or 0.0,
        status=fields.maybe("status", read_error_status),
        burst=fields.maybe("burst", read_positive),
        untold=fields.maybe("untold", read_text),
        times=fields.maybe("times", read_positive) or (None if lasting else 1),
        **{name: fields.maybe(name, read_flag) or False for name in FAULT_FLAGS},
    )
    fields.done()
    if not fault.kinds:
        raise invalid_request(f"fault does nothing: give one of {', '.join(FAULT_KINDS)}")
    return fault


def read_error_status(value: object, path: str) -> int:
    found = read_positive(value, path)
    if not 400 <= found <= 599:
        raise invalid_request(f"{path} must be from 400 to 599")
    return found


def _read_fault_delay(value: object, path: str) -> float:
    if type(value) not in (int, float) or not 0 <= cast(float, value) <= FAULT_DELAY_LIMIT:
        raise invalid_request(f"{path} must be seconds from 0 to {FAULT_DELAY_LIMIT}")
    return float(cast(float, value))


@dataclass(slots=True)
class NetworkFaults:
    """Faults in the order in which they were given; the first that fits a call is its own."""

    clock: Callable[[], float]
    queue: list[NetworkFault] = field(default_factory=list[NetworkFault])
    _calls: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def add(self, fault: NetworkFault) -> None:
        self.queue.append(fault)

    def clear(self) -> None:
        self.queue.clear()
        self._calls.clear()

    def take(self, method: str) -> NetworkFault | None:
        """The fault that a call of `method` meets, or None. A fault with `times` is used up by one."""
        for place, fault in enumerate(self.queue):
            if fault.method not in ("*", method) or not self._strikes(fault):
                continue
            if fault.times == 1:
                del self.queue[place]
            elif fault.times is not None:
                self.queue[place] = replace(fault, times=fault.times - 1)
            return replace(fault, code=LIMIT_EXCEEDED) if fault.burst is not None else fault
        return None

    def _strikes(self, fault: NetworkFault) -> bool:
        """A burst limit strikes only what comes after its calls of one second."""
        if fault.burst is None:
            return True
        second = int(self.clock())
        former, calls = self._calls.get(fault.method, (second, 0))
        count = calls + 1 if former == second else 1
        self._calls[fault.method] = (second, count)
        return count > fault.burst
