"""A process that can die: its tasks end at once, its ports fail, and whoever waited for its answer never learns."""

from __future__ import annotations

from asyncio import AbstractEventLoop, CancelledError, Future, Task
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class Crashed(BaseException):
    """The process has died: nothing catches this, and no clean-up of its own can reach the outside."""


class Gone(Exception):
    """What a client of the process sees: the connection broke, and nobody knows what became of the call."""


OWNER: ContextVar[Process | None] = ContextVar("simulated_process", default=None)


def owner_of(context: Context | None) -> Process | None:
    """The process whose code makes a task."""
    return OWNER.get() if context is None else context.get(OWNER)


class Process:
    """One run of the service's code, from start to crash or stop."""

    def __init__(self, loop: AbstractEventLoop, name: str) -> None:
        self._loop, self.name = loop, name
        self.alive = True
        self.died: Future[None] = loop.create_future()
        self.tasks: list[Task[Any]] = []
        self._asked: list[Future[Any]] = []
        self._context = copy_context()
        self._context.run(OWNER.set, self)

    def spawn(self, work: Coroutine[Any, Any, T]) -> Task[T]:
        return self._loop.create_task(work, context=self._context.copy())

    async def request(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns, to a client outside; Gone when the process dies first."""
        if not self.alive:
            work.close()
            raise Gone(self.name)
        answer: Future[T] = self._loop.create_future()
        self._asked.append(answer)
        self.spawn(work).add_done_callback(partial(self._answer, answer))
        try:
            return await answer
        finally:
            self._asked.remove(answer)

    def crash(self) -> None:
        """Die now, whatever is under way."""
        if not self.alive:
            return
        self.alive = False
        if not self.died.done():  # whoever waited may have been cancelled
            self.died.set_result(None)
        for task in self.tasks:
            if not task.done():
                task.cancel()
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(Gone(self.name))

    def die(self) -> NoReturn:
        self.crash()
        raise Crashed(self.name)

    def check(self) -> None:
        """A port's first act: a dead process reaches nothing."""
        if not self.alive:
            raise Crashed(self.name)

    def _answer(self, answer: Future[T], task: Task[T]) -> None:
        error = CancelledError() if task.cancelled() else task.exception()
        if answer.done():
            return
        if error is None:
            answer.set_result(task.result())
        elif isinstance(error, Exception):
            answer.set_exception(error)
        else:
            answer.set_exception(Gone(self.name))
