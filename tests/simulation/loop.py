"""An asyncio loop of one thread and no outside: time jumps to the next timer, and a seed decides which ready callback runs first."""

import heapq
import threading
from asyncio import Handle, Task, TimerHandle
from asyncio.base_events import BaseEventLoop
from asyncio.tasks import _unregister_task
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from random import Random
from typing import Any, NoReturn, TypeVar

from registry.errors import StoreUnavailable
from tests.simulation.process import Crashed, owner_of

T = TypeVar("T")
MOST_STEPS = 400_000


class Deadlock(Exception):
    """The main task waits for something that will never come: no callback is ready and no timer runs."""


class Livelock(Exception):
    """More steps than any honest episode takes."""


class SimTask(Task[T]):
    """A task that sets keep in the order of its making: the order of memory addresses differs from run to run."""

    number = 0

    def __hash__(self) -> int:
        return self.number

    __eq__ = object.__eq__


class SimHandle(Handle):
    """A handle that asks nobody whether the loop debugs: an episode makes a thousand."""

    __slots__ = ()

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], loop: BaseEventLoop, context: Context | None) -> None:
        self._context = copy_context() if context is None else context
        self._loop, self._callback, self._args = loop, callback, args
        self._cancelled, self._repr, self._source_traceback = False, None, None


class SimTimer(SimHandle, TimerHandle):
    """The same for a timer."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], loop: BaseEventLoop, context: Context | None
    ) -> None:
        SimHandle.__init__(self, callback, args, loop, context)
        self._when, self._scheduled = when, False


class SimLoop(BaseEventLoop):
    """Deterministic: the same seed gives the same interleaving."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._draw = rng.random
        self._now = 0.0
        self._soon: list[Handle] = []
        self._later: list[tuple[float, float, int, TimerHandle]] = []
        self._made = 0
        self._thread = threading.get_ident()
        self.steps = 0
        self.faults: list[BaseException] = []
        self.set_exception_handler(self._note)

    def time(self) -> float:
        """Virtual seconds since the loop began; never goes back."""
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Handle:
        handle = SimHandle(callback, args, self, context)
        self._soon.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Handle:
        if threading.get_ident() != self._thread:
            raise RuntimeError("a thread works for the simulation: threads make it unrepeatable")
        return self.call_soon(callback, *args, context=context)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> TimerHandle:
        timer = SimTimer(when, callback, args, self, context)
        self._made += 1
        heapq.heappush(self._later, (when, self._draw(), self._made, timer))
        return timer

    def create_task(
        self, coro: Coroutine[Any, Any, T] | Generator[Any, None, T], *, name: object = None, context: Context | None = None
    ) -> Task[T]:
        self._made += 1
        task: SimTask[T] = SimTask(coro, loop=self, name=str(self._made) if name is None else str(name), context=context)
        _unregister_task(task)  # the list of all tasks is for other loops; here it would fill with the dead of former episodes
        task.number = self._made
        owner = owner_of(context)
        if owner is not None:
            owner.tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> Any:
        """Here and now: the simulation has no threads."""
        future = self.create_future()
        future.set_result(func(*args))
        return future

    async def getaddrinfo(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("the simulation has no network: a name was to be looked up")

    async def create_connection(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("the simulation has no network: a connection was to be opened")

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        """It is dropped when its time comes."""

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def _run_once(self) -> None:
        if not self._soon:
            self._jump()
        batch, self._soon = self._soon, []
        if len(batch) > 1:
            self._shuffle(batch)
        self.steps += len(batch)
        if self.steps > MOST_STEPS:
            raise Livelock(f"{self.steps} steps until {self._now:.3f} s: the episode does not end")
        for handle in batch:
            if not handle._cancelled:
                handle._run()
        handle = None

    def _shuffle(self, batch: list[Handle]) -> None:
        draw = self._draw
        for last in range(len(batch) - 1, 0, -1):
            other = int(draw() * (last + 1))
            batch[last], batch[other] = batch[other], batch[last]

    def _jump(self) -> None:
        """Let the time pass until the next timer that somebody still wants."""
        later = self._later
        while later:
            when, _, _, timer = heapq.heappop(later)
            if timer.cancelled():
                continue
            self._now = max(self._now, when)
            self._soon.append(timer)
            while later and later[0][0] <= self._now:
                self._soon.append(heapq.heappop(later)[3])
            return
        raise Deadlock("nothing is ready and nothing is planned: somebody waits for a thread, a socket, or for ever")

    def _note(self, loop: object, context: dict[str, Any]) -> None:
        """Faults that nobody was there to hear of; an episode must have none. What a crash broke off is none."""
        error = context.get("exception")
        if isinstance(error, Crashed) or (isinstance(error, BaseExceptionGroup) and broke_off(error)):
            return
        self.faults.append(error if isinstance(error, BaseException) else RuntimeError(str(context.get("message"))))


def broke_off(errors: BaseExceptionGroup[BaseException]) -> bool:
    """Whether a crash ended what several tasks did together, some of which had met a store that was away."""
    crashed, others = errors.split(Crashed)
    return crashed is not None and (others is None or others.split(StoreUnavailable)[1] is None)
