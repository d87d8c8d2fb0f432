"""One call to a provider that is sent once, between two commits: by an operation, or by the worker, for whom nobody waits."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import anyio

from operations.deps import Deps
from registry.errors import ProviderError, StoreUnavailable
from registry.ports import Conclusion
from storage.engine.connection import Connection

SendingResult = TypeVar("SendingResult")
WriteParams = ParamSpec("WriteParams")
DeferredWrite = Callable[[Connection], object]


class Dispatch(Protocol):
    """One call that is sent once. A staged call of an operation is a `Dispatch` by itself (registry/context.py)."""

    @property
    def deps(self) -> Deps:
        """The outside world."""
        ...

    @property
    def organisation(self) -> str:
        """For whom."""
        ...

    @property
    def operation_id(self) -> str:
        """By which operation, for the ledger and the audit log."""
        ...

    @property
    def claim_key(self) -> str | None:
        """The idempotency key whose stored answer follows what comes of it."""
        ...

    @property
    def principal(self) -> str:
        """Who asked for it."""
        ...

    @property
    def request_id(self) -> str:
        """Names this dispatch: it takes back only what was begun under this name."""
        ...

    @property
    def now(self) -> float:
        """When it began, Unix seconds."""
        ...

    async def dispatch(
        self,
        answer: tuple[int, object],
        write: Callable[Concatenate[Connection, WriteParams], object],
        /,
        *args: WriteParams.args,
        **kwargs: WriteParams.kwargs,
    ) -> None:
        """The commit before it is sent."""
        ...

    async def conclude(
        self, write: Callable[Concatenate[Connection, WriteParams], Conclusion], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> Conclusion:
        """The commit of what came of it."""
        ...

    def if_lost(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """A write for the case that nobody comes back from it."""
        ...

    def if_unsent(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """A write for the case that it surely never left."""
        ...


class DeferredWrites:
    """Writes that the store would not take. They are made in order, before anything else is done."""

    def __init__(self) -> None:
        self._waiting: list[tuple[DeferredWrite, Sequence[DeferredWrite]]] = []
        self._writing = anyio.Lock()

    def defer(self, write: DeferredWrite, instead: Sequence[DeferredWrite] = ()) -> None:
        """Keep `write` for later. Where a fault of ours makes it impossible for ever, the writes of `instead` take its place."""
        self._waiting.append((write, instead))

    async def write_all(self, deps: Deps) -> None:
        """Make the deferred writes, oldest first. Raises StoreUnavailable while the store does not take them."""
        async with self._writing:  # in order, whoever writes
            while self._waiting:
                write, instead = self._waiting[0]
                try:
                    await deps.store.write(write)
                except (StoreUnavailable, anyio.get_cancelled_exc_class()):
                    raise
                except BaseException:  # what waits behind it would wait for ever
                    self._waiting[:1] = [(each, ()) for each in instead]
                    raise
                del self._waiting[0]


class BackgroundDispatch:
    """A dispatch by the worker. What came of it is kept in memory until the store takes it; a crash leaves it unknown."""

    claim_key: str | None = None
    principal = "worker"

    def __init__(self, deps: Deps, deferred: DeferredWrites, *, organisation: str, operation_id: str) -> None:
        self.deps, self.organisation, self.operation_id = deps, organisation, operation_id
        self.request_id, self.now = deps.ids.new("req_"), deps.clock.now()
        self._deferred = deferred
        self._lost: list[DeferredWrite] = []
        self._undoing: list[DeferredWrite] = []
        self._open = False

    async def dispatch(
        self,
        answer: tuple[int, object],
        write: Callable[Concatenate[Connection, WriteParams], object],
        /,
        *args: WriteParams.args,
        **kwargs: WriteParams.kwargs,
    ) -> None:
        """The commit before it is sent; nobody waits for an answer."""
        del answer
        try:
            await self.deps.store.write(partial(write, *args, **kwargs))
        except StoreUnavailable:
            await self._write(self._undoing)  # the commit may be there though nobody heard: it would stay under way while we live
            raise
        self._open = True

    async def conclude(
        self, write: Callable[Concatenate[Connection, WriteParams], Conclusion], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> Conclusion:
        """The commit of what came of it; what the store does not take now is deferred."""
        concluding: Callable[[Connection], Conclusion] = partial(write, *args, **kwargs)
        try:
            concluded = await self.deps.store.write(concluding)
        except StoreUnavailable:
            self._open = False
            self._deferred.defer(concluding, instead=tuple(self._lost))
            raise
        self._open = False  # not after a fault of ours in the write: what came of it is unknown then
        return concluded

    def if_lost(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """A fault of ours after the dispatch."""
        self._lost.append(partial(write, *args, **kwargs))

    def if_unsent(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """It never left."""
        self._undoing.append(partial(write, *args, **kwargs))

    async def run(self, sending: Callable[[], Awaitable[SendingResult]]) -> SendingResult:
        """Send it; whoever stops the worker waits until it is over. Raises what the sending raises, with what was begun undone."""
        with anyio.CancelScope(shield=True):
            try:
                return await sending()
            except ProviderError as refusal:
                if self._open and refusal.before_execution:
                    await self._write(self._undoing)
                raise
            finally:
                if self._open:
                    await self._write(self._lost)
        raise RuntimeError("a scope that nobody cancels has ended early")

    async def _write(self, writes: list[DeferredWrite]) -> None:
        self._open = False
        for write in writes:
            self._deferred.defer(write)
        try:
            await self._deferred.write_all(self.deps)
        except StoreUnavailable:
            return
