"""One call to a provider that is sent once, between two commits: by an operation, or by the worker, for whom nobody waits.

`send_once` is the only place that does it. What differs between an eSIM that is drawn, money that is moved and an invoice that is sent
is a `Sending`; who asks for it, and what becomes of a call that nobody comes back from, is a `Dispatch`:

1. The first commit, `Sending.begin`, writes a row with the process that owns it and the call that holds it. For an operation the same
   commit marks the idempotency key as dispatched, with the answer that it gives should nobody come back.
2. `Sending.send` asks the provider. Nothing is asked before the first commit is known to be there, and nothing is asked again.
3. The second commit, `Sending.settle`, writes the outcome: what the provider made, its refusal, or that nobody knows.

What surely never left is undone by `Sending.unsend`: the key is free again. Where a fault of ours, or a store that is away, comes between
the two commits, the outcome is written as unknown as soon as the store takes it. Where the process dies, recovery finds the row by its
owner and marks it unknown. Only evidence, a later word of the provider or a person settles what is unknown.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from functools import partial
from typing import Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

import anyio
import orjson

from operations.deps import Deps
from registry.call import Surface
from registry.errors import ProviderError, Refusal, StoreUnavailable
from registry.ports import AuditRecord, Conclusion
from storage.audit import append_audit_record
from storage.claims import resolve_unknown_claim
from storage.engine.sql import Connection
from storage.sealing import claim_field

SendingResult = TypeVar("SendingResult")
MadeT = TypeVar("MadeT")
WriteParams = ParamSpec("WriteParams")
DeferredWrite = Callable[[Connection], object]


class Dispatch(Protocol):
    """Who sends something once. A staged call of an operation is a `Dispatch` by itself (registry/context.py)."""

    @property
    def deps(self) -> Deps:
        """The store, the clock and the providers."""
        ...

    @property
    def organisation(self) -> str:
        """The organisation for which it is sent."""
        ...

    @property
    def operation_id(self) -> str:
        """The operation that sends it, as the ledger and the audit log name it."""
        ...

    @property
    def claim_key(self) -> str | None:
        """The idempotency key whose stored answer follows the outcome; None: there is none."""
        ...

    @property
    def principal(self) -> str:
        """Who asked for it, as the ledger names them."""
        ...

    @property
    def request_id(self) -> str:
        """The name of this dispatch: it undoes only what was begun under this name."""
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
        """The first commit: runs `write`, with its arguments. `answer`: status and body of the key's answer, should nobody come back."""
        ...

    async def conclude(
        self, write: Callable[Concatenate[Connection, WriteParams], Conclusion], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> Conclusion:
        """The second commit: runs `write`, whose result is the answer. StoreUnavailable: it is written later, or the outcome is unknown."""
        ...

    def revise(self, concluded: Conclusion) -> None:
        """Whoever waits is answered with `concluded`: what was unknown at the second commit has been found out and stored since."""
        ...

    def if_lost(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """Keeps `write` for the case that nobody comes back from the call."""
        ...

    def if_unsent(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """Keeps `write` for the case that the call surely never left."""
        ...


class LostOutcome(Enum):
    """The outcome that nobody knows."""

    UNKNOWN = "unknown"


UNKNOWN = LostOutcome.UNKNOWN
SendOutcome: TypeAlias = MadeT | Refusal | Literal[LostOutcome.UNKNOWN]
"""What the provider made, its refusal when it did nothing, or UNKNOWN."""


class Sending(Protocol[MadeT]):
    """What is sent once. All methods but `send` run in a transaction, and may run again with the same arguments."""

    @property
    def lost_answer(self) -> tuple[int, object]:
        """Status and body of the key's answer, should nobody come back from the call."""
        ...

    def begin(self, connection: Connection, *, now: float) -> object:
        """Check that it may be sent and write its row, over `connection`. `now`: Unix seconds. A Refusal that it raises leaves nothing."""
        ...

    async def send(self, waited: float) -> SendOutcome[MadeT]:
        """Ask the provider, and wait for its answer. `waited`: seconds since the first commit was begun, by the monotonic clock.

        Raises a ProviderError with `before_execution` when the call surely never left.
        """
        ...

    def settle(self, connection: Connection, *, outcome: SendOutcome[MadeT], now: float) -> Conclusion:
        """Write `outcome`, unless the row was settled meanwhile; the answer of the key. `now`: Unix seconds."""
        ...

    def unsend(self, connection: Connection, *, now: float) -> object:
        """Undo `begin`, where its row is still this call's; the row may not be there. `now`: Unix seconds, when the dispatch began."""
        ...


async def send_once(dispatch: Dispatch, sending: Sending[MadeT]) -> Conclusion:
    """Sends `sending` between two commits; the answer of its caller and its key. Raises only what came before the call."""
    clock = dispatch.deps.clock
    dispatch.if_unsent(sending.unsend, now=dispatch.now)
    began = clock.monotonic()
    await dispatch.dispatch(sending.lost_answer, sending.begin, now=clock.now())
    dispatch.if_lost(sending.settle, outcome=UNKNOWN, now=clock.now())
    outcome = await sending.send(clock.monotonic() - began)
    return await dispatch.conclude(sending.settle, outcome=outcome, now=clock.now())


class DeferredWrites:
    """Writes that the store did not take. They are made in their order, before anything else is done."""

    def __init__(self) -> None:
        self._waiting: list[tuple[DeferredWrite, Sequence[DeferredWrite]]] = []
        self._writing = anyio.Lock()

    def defer(self, write: DeferredWrite, instead: Sequence[DeferredWrite] = ()) -> None:
        """Keep `write` for later. Where a fault of ours makes `write` fail for ever, the writes of `instead` are made."""
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
    """A dispatch by the worker. Its outcome is kept in memory until the store takes it; a crash leaves it unknown."""

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
        """The first commit; nobody waits for `answer`."""
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
        """The second commit; where the store does not take it now, `write` is deferred and StoreUnavailable is raised."""
        concluding: Callable[[Connection], Conclusion] = partial(write, *args, **kwargs)
        try:
            concluded = await self.deps.store.write(concluding)
        except StoreUnavailable:
            self._open = False
            self._deferred.defer(concluding, instead=tuple(self._lost))
            raise
        self._open = False  # not after a fault of ours in the write: what came of it is unknown then
        return concluded

    def revise(self, concluded: Conclusion) -> None:
        """Nobody waits for an answer."""
        del concluded

    def if_lost(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """Keeps `write` for a fault of ours after the first commit."""
        self._lost.append(partial(write, *args, **kwargs))

    def if_unsent(
        self, write: Callable[Concatenate[Connection, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """Keeps `write` for a call that never left."""
        self._undoing.append(partial(write, *args, **kwargs))

    async def run(self, sending: Callable[[], Awaitable[SendingResult]]) -> SendingResult:
        """Run `sending` to its end, also while the worker is being stopped. Raises what `sending` raises; what was begun is undone then."""
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


def answer_unknown_key(
    connection: Connection, deps: Deps, organisation: str, operation: str, key: str, status: int, body: object, *, unknown: bool = False
) -> bool:
    """Stores `status` and `body` as the answer of the idempotency `key`, where its answer was that nobody knows; whether that was so.

    `unknown`: it stays so, in other words.
    """
    sealed = deps.keyring.seal(orjson.dumps(body).decode(), org_id=organisation, field=claim_field(operation, key))
    state: Literal["unknown", "done"] = "unknown" if unknown else "done"
    return resolve_unknown_claim(
        connection, organisation=organisation, operation=operation, key=key, state=state, status=status, body=sealed
    )


def audit_settlement(
    connection: Connection,
    deps: Deps,
    organisation: str,
    operation: str,
    outcome: str,
    *,
    now: float,
    status: int = 200,
    by: str = "reconciliation",
    surface: Surface | Literal["worker"] = "worker",
) -> None:
    """The audit row of a decision about what was unknown. `by`: the person who decided, or the worker's name for how it was found out."""
    append_audit_record(connection, AuditRecord(now, organisation, surface, operation, by, "", outcome, status, 0.0, deps.ids.new("req_")))
