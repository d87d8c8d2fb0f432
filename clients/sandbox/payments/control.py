"""The control API: what a test, or a person who plays, does to the processor beside its wire."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, cast

from clients.sandbox.payments.control_acts import ACTS, read
from clients.sandbox.payments.control_faults import Called, Faults, Ordered
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.state import State

PATHS = [
    *(f"{method} /control/{path}" for method, path in ACTS),
    *(f"{method} /control/faults" for method in ("GET", "POST", "DELETE")),
    "GET /control/calls",
]


class House(Protocol):
    """The processor, as this API knows it."""

    faults: Faults

    @property
    def calls(self) -> Iterable[Called]:
        """The newest calls, oldest first."""
        ...

    def turn(self, *, writes: bool) -> AbstractAsyncContextManager[State]:
        """The state, for nobody else at the same time."""
        ...


async def control(house: House, method: str, path: str, body: object) -> object:
    """One request; `path` is below /control. A refusal says what to do instead."""
    noun, slash, id = path.strip("/").partition("/")
    if noun == "faults" and not slash:
        return faults(house, method, body)
    if (method, noun, slash) == ("GET", "calls", ""):
        return {"calls": [call._asdict() for call in house.calls]}
    act = ACTS.get((method, f"{noun}/{{id}}" if id else noun))
    if act is None:
        raise Refusal(f"no {method} /control/{path.strip('/')}; there are: {'; '.join(PATHS)}", status=404)
    async with house.turn(writes=method != "GET") as state:
        return act(state, id, body)


def faults(house: House, method: str, body: object) -> Members:
    """One fault or a list of them goes behind the others; DELETE ends them all."""
    queue = house.faults.queue
    if method == "DELETE":
        queue.clear()
    elif method == "POST":
        wanted = cast("list[object]", body) if isinstance(body, list) else [body]
        queue.extend(read(Ordered, {"faults": wanted}).faults)
    return {"faults": [fault.model_dump(exclude_defaults=True) for fault in queue]}
