"""What one call carries into its handler, and the handler's one way to write."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload

from registry.call import Call, CallState
from registry.caller import Caller, Restrictions
from registry.errors import OcsError, Refusal, StoreUnavailable
from registry.operation import NOTHING_DUE, Due, Input, Scope, SpendKind
from registry.policy import require_admin, require_scope
from registry.ports import AlreadyAnswered, CallRecord, Conclusion, Journal, Site, StoredAnswer, WriteList
from registry.restrictions import check_line_account, check_line_tags
from registry.versions import concluding_write, conditional_write

DepsT = TypeVar("DepsT")
AnswerT = TypeVar("AnswerT")
WriteParams = ParamSpec("WriteParams")

AnswerEncoder = Callable[[Any], bytes]


def outcome_not_stored() -> OcsError:
    """The store failed after the provider was called: nobody can say with what result."""
    return OcsError(
        "The provider was asked, and what came of it could not be stored; keep the key: it is never executed again by itself",
        code="OUTCOME_UNKNOWN",
        outcome_unknown=True,
    )


class Replacement(NamedTuple):
    """Something live that a call would replace.

    `sentence` tells whoever confirms what is replaced by what, what stops working and what the way back is. `state` is what is replaced
    as it was seen, and what comes in its place where the input does not say it: the confirm token is good for that alone.
    """

    sentence: str
    state: str
    for_admins: bool = True
    """Whether only an admin whose credential may do everything replaces it; else whoever may make the call."""


@dataclass(slots=True, kw_only=True, eq=False)
class Context(Generic[DepsT]):
    """The caller, the outside world, and `settle`, which commits a write together with claim, charge and audit row."""

    deps: DepsT
    call: Call
    caller: Caller
    now: float
    journal: Journal
    encode: AnswerEncoder
    entry: CallRecord | None = None
    reply: StoredAnswer | None = None
    organisation: str = field(init=False)
    """The organisation this call acts for; empty for calls without one."""
    operation_id: str = field(init=False)
    principal: str = field(init=False)
    request_id: str = field(init=False)
    status: int = field(init=False)
    """The declared status; a handler whose answer made nothing new may set 200 before it settles."""
    reached_upstream: bool = False
    account_seen: bool = False
    tags_seen: bool = False
    next_cursor: str | None = None
    note: str | None = None
    needed: int = 0
    personal: bool = False
    replacement: Replacement | None = None
    plain_input: Input | None = None
    due: Due | SpendKind = NOTHING_DUE
    """What the call makes due, once that was asked for: of a credential that is held to limits or approvals. A kind is OPEN."""
    seen: tuple[str, ...] = ()
    params: Input | None = None
    """The input that the call is run with, once it is."""
    entity_tag: str | None = None
    """The version of what the call is about, for its answer."""
    closing: WriteList = field(default_factory=list[Any])
    lost: WriteList = field(default_factory=list[Any])
    undoing: WriteList = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        call, caller = self.call, self.caller
        self.organisation, self.principal = caller.organisation, caller.principal
        self.operation_id, self.request_id, self.status = call.operation.id, call.request_id, call.operation.status

    @property
    def staged(self) -> bool:
        """Whether this call will send something to a provider, and has not yet."""
        return self.call.state is CallState.STAGED

    @property
    def claim_key(self) -> str | None:
        return self.call.idempotency_key

    def act_for(self, organisation: str) -> None:
        """Sets the organisation that owns the thing at hand, for a caller without one, and so the audit log. Called by access."""
        self.caller = self.call.identified = replace(self.caller, organisation=organisation)
        self.organisation = organisation

    def need(self, scope: Scope, site: Site) -> None:
        """Raises UpgradeRequired or Restricted unless the caller has `scope`; a commit that moves a SIM or money checks it again."""
        require_scope(scope, self.caller, site)
        self.needed |= int(scope)

    def need_admin(self, what: str) -> None:
        """Raises RoleRequired or Restricted for a caller who is no admin, or whose credential is restricted. `what` begins the refusal."""
        require_admin(self.caller, what)

    def confirm_replacement(self, replacement: Replacement) -> None:
        """Notes that this call would replace something live: it needs an admin and a confirm token for just that. Called by access.

        The handler must replace only what `replacement.state` was made of, by a condition in its transaction.
        """
        operation = self.call.operation
        if not operation.confirmable:
            raise RuntimeError(f"{operation.id}: declare what it replaces, so that its documents name the confirmation")
        if replacement.for_admins:
            self.need_admin("Replacing " + (operation.replaces or "this"))
        self.replacement = replacement

    def record_change(self, change: str) -> None:
        """Writes into the audit row what this call changed about who gets money and SIMs, without secrets."""
        if self.entry is None:
            raise RuntimeError(f"{self.call.operation.id}: a call that reads changes nothing")
        self.entry.change = change

    def of_account(self, account_id: int | None) -> None:
        """Notes that the thing at hand is in `account_id`. Raises Restricted where the credential is restricted to other accounts."""
        check_line_account(account_id, self.caller.restrictions)
        self.account_seen = True

    def see_state(self, state: str) -> None:
        """Notes what the thing at hand was seen to be: what a person approves is approved for that alone. Called by access."""
        self.seen = (*self.seen, state)

    def of_tags(self, tags: Iterable[str]) -> None:
        """Notes that the line at hand has these tags. Raises Restricted where the credential is restricted to others."""
        check_line_tags(tags, self.caller.restrictions)
        self.tags_seen = True

    def row_bounds(self) -> Restrictions:
        """What the credential may see: all that is shown, counted or sorted must be within. Called by access of bounded operations."""
        self.account_seen = self.tags_seen = True
        return self.caller.restrictions

    def mark_answer_private(self) -> None:
        """Keeps the stored answer for this credential alone, since it holds a secret. Called by access steps."""
        self.personal = True

    def same_as(self, plain: Input) -> None:
        """Sets the input that means the same as the one sent: the call is compared, confirmed and run by `plain`. Called by access."""
        self.plain_input = plain

    async def catch_up(self) -> None:
        """Writes the audit rows that this process has buffered, so that earlier calls are in the audit log. Waits for the database."""
        await self.journal.flush()

    @overload
    async def settle(self, answer: AnswerT, /) -> AnswerT: ...

    @overload
    async def settle(
        self,
        answer: AnswerT,
        write: Callable[Concatenate[Any, WriteParams], object],
        /,
        *args: WriteParams.args,
        **kwargs: WriteParams.kwargs,
    ) -> AnswerT: ...

    async def settle(self, answer: AnswerT, write: Callable[..., object] | None = None, /, *args: Any, **kwargs: Any) -> AnswerT:
        """Commit the write with the call's claim, charge and audit row, and return the answer that was stored for replays.

        The write is a plain function of a connection and keyword arguments. A Refusal it raises undoes everything.
        """
        assert not args, "writes take keyword arguments only"
        entry = self._begin_settle()
        self.reply = StoredAnswer(self.status, self.encode(answer))
        await self.journal.settle(entry, self.reply, None if write is None else self._versioned(write), kwargs)
        return answer

    async def settle_result(
        self, write: Callable[Concatenate[Any, WriteParams], AnswerT], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> AnswerT:
        """Like settle, for an answer that only the write itself can tell (a gapless number, the row that was there)."""
        assert not args, "writes take keyword arguments only"
        entry = self._begin_settle()

        def encode(result: AnswerT) -> StoredAnswer:
            self.reply = StoredAnswer(self.status, self.encode(result))
            return self.reply

        return await self.journal.settle_result(entry, encode, self._versioned(write), kwargs)

    def at_close(
        self, write: Callable[Concatenate[Any, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """For operations that call a provider: a write that commits together with the answer, after the provider has answered."""
        assert not args, "writes take keyword arguments only"
        self.closing.append((write, kwargs))

    def stage(self) -> None:
        """Marks the call as one that sends one thing to a provider, by `dispatch`; nothing has been done before. Called by access steps."""
        self.call.state = CallState.STAGED

    async def dispatch(
        self,
        answer: tuple[int, Any],
        write: Callable[Concatenate[Any, WriteParams], object],
        /,
        *args: WriteParams.args,
        **kwargs: WriteParams.kwargs,
    ) -> None:
        """Commits `write` right before the provider is called. `answer` (status, body): the key's answer if the process dies meanwhile."""
        assert not args, "writes take keyword arguments only"
        if self.entry is None or not self.staged:
            raise RuntimeError(f"{self.call.operation.id}: dispatch may be called once, by a call that was staged")
        status, body = answer
        await self.journal.dispatch(self.entry, StoredAnswer(status, self.encode(body)), [(self._versioned(write), kwargs)])
        self.call.state = CallState.DISPATCHED

    async def conclude(
        self, write: Callable[Concatenate[Any, WriteParams], Conclusion], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> Conclusion:
        """The commit after the provider answered: the write says what the answer is, in the transaction that keeps it under the key.

        Whatever the handler returns then, this is what its caller gets; an error among them, as a replay of it would be.
        """
        assert not args, "writes take keyword arguments only"
        if self.entry is None or self.call.state is not CallState.DISPATCHED:
            raise RuntimeError(f"{self.call.operation.id}: conclude may be called once, after dispatch")

        try:
            concluded = await self.journal.conclude(self.entry, self.encode, self._told(write), kwargs, lost=self.lost)
        except StoreUnavailable:
            self.call.state = CallState.RECORDED
            raise outcome_not_stored() from None
        except (Refusal, AlreadyAnswered):
            self.call.state = CallState.RECORDED
            raise
        self.call.state = CallState.RECORDED  # not after a fault of ours in the write: the pipeline then keeps the outcome as unknown
        self.reply = StoredAnswer(concluded.status, self.encode(concluded.body))
        return concluded

    def revise(self, concluded: Conclusion) -> None:
        """Answers the caller with `concluded`: what was unknown when the call was concluded has been found out, and is kept since."""
        self.reply = StoredAnswer(concluded.status, self.encode(concluded.body))

    def if_lost(
        self, write: Callable[Concatenate[Any, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """A write for the case that the outcome of what was dispatched cannot be stored, or a fault of ours ends the call."""
        assert not args, "writes take keyword arguments only"
        self.lost.append((write, kwargs))

    def if_unsent(
        self, write: Callable[Concatenate[Any, WriteParams], object], /, *args: WriteParams.args, **kwargs: WriteParams.kwargs
    ) -> None:
        """A write that undoes the dispatch, for the case that it surely never left: the key is free again."""
        assert not args, "writes take keyword arguments only"
        self.undoing.append((write, kwargs))

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the client how far a long call has come: `done` of `total` steps."""
        await self.call.progress(done, total, message)

    def _versioned(self, write: Callable[..., AnswerT]) -> Callable[..., AnswerT]:
        """`write` under the call's condition, where its operation is versioned."""
        versioned = self.call.operation.versioned
        return write if versioned is None else conditional_write(write, versioned, self, self.params, self._tell_version)

    def _told(self, write: Callable[..., Conclusion]) -> Callable[..., Conclusion]:
        """`write`, and the version after it: the condition was compared when what is concluded was dispatched."""
        versioned = self.call.operation.versioned
        return write if versioned is None else concluding_write(write, versioned, self, self.params, self._tell_version)

    def _tell_version(self, tag: str | None) -> None:
        self.entity_tag = tag

    def _begin_settle(self) -> CallRecord:
        if self.entry is None or self.call.state >= CallState.SETTLING:
            raise RuntimeError(f"{self.call.operation.id}: settle may be called once, by an operation that writes and calls no provider")
        self.call.state = CallState.SETTLING
        return self.entry
