"""Schemathesis close to the application: the loop runs in the thread that asks, and what its settings say of an operation is found once."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any

from schemathesis.config import ChecksConfig, GenerationConfig, PhasesConfig, ProjectConfig
from schemathesis.python import asgi
from schemathesis.schemas import APIOperation

Operation = APIOperation[Any, Any, Any, Any]


class Task:
    """Work that goes on as long as others are called."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
        self._loop, self._task = loop, loop.create_task(work)

    def done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    def result(self) -> None:
        """Waits for its end, as long as nobody asks on the loop itself; raises what it failed with."""
        if not self._task.done():
            self._loop.run_until_complete(self._task)
        self._task.result()


class Portal:
    """The way to the loop. That of anyio has a thread of its own, and each call waits twice until the other thread has its turn."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def call(self, work: Callable[..., Any], *given: object) -> Any:
        """What the work returns; meanwhile everything else on the loop goes on."""

        async def whole() -> object:
            found = work(*given)
            return await found if inspect.isawaitable(found) else found

        return self._loop.run_until_complete(whole())

    def start_task_soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Task:
        """Begin something that does not end with a call."""
        return Task(self._loop, work())

    def close(self) -> None:
        """Nobody calls any more."""
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class Client(asgi.ASGIClient):
    """A client that looks for no proxy and no password in the environment: there is no network between it and the application."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.trust_env = False


@contextmanager
def loop_of_the_caller() -> Generator[None]:
    """Schemathesis calls applications through a portal of ours; afterwards none of them is left."""
    before, client = asgi._PORTAL, asgi.get_client
    ours = asgi._PORTAL = Portal()
    asgi.get_client = Client
    try:
        yield
    finally:
        try:
            asgi.shutdown_lifespans()
        finally:
            asgi._PORTAL, asgi.get_client = before, client
            ours.close()


class Project(ProjectConfig):
    """Settings that do not change any more. Schemathesis asks a dozen times for each call, and looks through all operations each time."""

    __slots__ = ("_found",)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._found: dict[tuple[str, str | None, str | None], Any] = {}

    def _once(self, find: Callable[[], Any], what: str, operation: Operation | None, phase: str | None) -> Any:
        asked = (what, None if operation is None else operation.label, phase)
        if asked not in self._found:
            self._found[asked] = find()
        return self._found[asked]

    def phases_for(self, *, operation: Operation | None) -> PhasesConfig:
        return self._once(lambda: super(Project, self).phases_for(operation=operation), "phases", operation, None)

    def generation_for(self, *, operation: Operation | None = None, phase: str | None = None) -> GenerationConfig:
        return self._once(lambda: super(Project, self).generation_for(operation=operation, phase=phase), "generation", operation, phase)

    def checks_config_for(self, *, operation: Operation | None = None, phase: str | None = None) -> ChecksConfig:
        return self._once(lambda: super(Project, self).checks_config_for(operation=operation, phase=phase), "checks", operation, phase)
