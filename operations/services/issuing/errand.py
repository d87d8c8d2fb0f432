"""Something that is sent to a provider once, between two commits: by a call, or by the worker, which nobody called."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import anyio

from operations.deps import Deps
from registry.errors import ProviderError, StoreUnavailable
from registry.ports import Conclusion
from storage.connection import Connection

T = TypeVar("T")
W = ParamSpec("W")
Debt = Callable[[Connection], object]


class Errand(Protocol):
    """What the ledger and the payment attempts need of whoever sends. A staged call is one (registry/context.py)."""

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
        """The errand's own name: what it did not begin it does not take back."""
        ...

    @property
    def now(self) -> float:
        """When it began, Unix seconds."""
        ...

    async def dispatch(
        self, answer: tuple[int, object], write: Callable[Concatenate[Connection, W], object], /, *args: W.args, **kwargs: W.kwargs
    ) -> None:
        """The commit before it is sent."""
        ...

    async def conclude(self, write: Callable[Concatenate[Connection, W], Conclusion], /, *args: W.args, **kwargs: W.kwargs) -> Conclusion:
        """The commit of what came of it."""
        ...

    def if_lost(self, write: Callable[Concatenate[Connection, W], object], /, *args: W.args, **kwargs: W.kwargs) -> None:
        """A write for the case that nobody comes back from it."""
        ...

    def if_unsent(self, write: Callable[Concatenate[Connection, W], object], /, *args: W.args, **kwargs: W.kwargs) -> None:
        """A write for the case that it surely never left."""
        ...


class Debts:
    """Writes that the store would not take: they are paid, in order, before anything else is done."""

    def __init__(self) -> None:
        self._owed: list[tuple[Debt, Sequence[Debt]]] = []
        self._paying = anyio.Lock()

    def owe(self, debt: Debt, instead: Sequence[Debt] = ()) -> None:
        """It is still to be written; `instead` is, should a fault of ours make it impossible for ever."""
        self._owed.append((debt, instead))

    async def pay(self, deps: Deps) -> None:
        """Write what is owed; StoreUnavailable when that is still not possible."""
        async with self._paying:  # in order, whoever pays
            while self._owed:
                debt, instead = self._owed[0]
                try:
                    await deps.store.write(debt)
                except (StoreUnavailable, anyio.get_cancelled_exc_class()):
                    raise
                except BaseException:  # what waits behind it would wait for ever
                    self._owed[:1] = [(each, ()) for each in instead]
                    raise
                del self._owed[0]


class WorkerErrand:
    """One thing that the worker sends. What came of it is kept in memory until the store takes it; a crash leaves it unknown."""

    claim_key: str | None = None
    principal = "worker"

    def __init__(self, deps: Deps, debts: Debts, *, organisation: str, operation_id: str) -> None:
        self.deps, self.organisation, self.operation_id = deps, organisation, operation_id
        self.request_id, self.now = deps.ids.new("req_"), deps.clock.now()
        self._debts = debts
        self._lost: list[Debt] = []
        self._undoing: list[Debt] = []
        self._open = False

    async def dispatch(
        self, answer: tuple[int, object], write: Callable[Concatenate[Connection, W], object], /, *args: W.args, **kwargs: W.kwargs
    ) -> None:
        """The commit before it is sent; nobody waits for an answer."""
        del answer
        try:
            await self.deps.store.write(partial(write, *args, **kwargs))
        except StoreUnavailable:
            await self._write(self._undoing)  # the commit may be there though nobody heard: it would stay under way while we live
            raise
        self._open = True

    async def conclude(self, write: Callable[Concatenate[Connection, W], Conclusion], /, *args: W.args, **kwargs: W.kwargs) -> Conclusion:
        """The commit of what came of it; what the store does not take now is owed."""
        concluding: Callable[[Connection], Conclusion] = partial(write, *args, **kwargs)
        try:
            concluded = await self.deps.store.write(concluding)
        except StoreUnavailable:
            self._open = False
            self._debts.owe(concluding, instead=tuple(self._lost))
            raise
        self._open = False  # not after a fault of ours in the write: what came of it is unknown then
        return concluded

    def if_lost(self, write: Callable[Concatenate[Connection, W], object], /, *args: W.args, **kwargs: W.kwargs) -> None:
        """A fault of ours after the dispatch."""
        self._lost.append(partial(write, *args, **kwargs))

    def if_unsent(self, write: Callable[Concatenate[Connection, W], object], /, *args: W.args, **kwargs: W.kwargs) -> None:
        """It never left."""
        self._undoing.append(partial(write, *args, **kwargs))

    async def run(self, sending: Callable[[], Awaitable[T]]) -> T:
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

    async def _write(self, writes: list[Debt]) -> None:
        self._open = False
        for write in writes:
            self._debts.owe(write)
        try:
            await self._debts.pay(self.deps)
        except StoreUnavailable:
            return
