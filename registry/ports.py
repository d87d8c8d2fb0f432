"""What the pipeline needs from the outside, as Protocols: only storage knows statements, only clients know wires."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from registry.call import QuotaUsage, Surface
from registry.caller import Caller
from registry.errors import OrgRef, QuotaExceeded
from registry.versions import ChangeAuthor, ChangeLookup

T = TypeVar("T")
WriteFunction = Callable[..., T]
"""A plain function of a storage connection and keyword arguments; the registry knows nothing else about it."""
WriteArguments = Mapping[str, Any]
WriteList = list[tuple[Callable[..., object], WriteArguments]]


class StoredAnswer(NamedTuple):
    """An answer kept for replay."""

    status: int
    body: bytes


class Conclusion(NamedTuple):
    """The end of a dispatched call: the answer of the key, whether its outcome is unknown, and the word for the audit log.

    `nothing_done`: it is certain that the provider did nothing, so what the call took from limits is given back.
    """

    status: int
    body: Any
    unknown: bool
    outcome: str
    nothing_done: bool = False


class AlreadyAnswered(Exception):
    """Control flow: another call with the same key has answered already; this is its answer."""

    def __init__(self, stored: StoredAnswer) -> None:
        super().__init__("replayed")
        self.stored = stored


class QuotaPeriod(NamedTuple):
    """One quota window: its name, and when the next one starts (Unix seconds)."""

    name: str
    reset: int


class KeyLimit(NamedTuple):
    """Calls per UTC day that an API key itself is restricted to, under which name they are counted, and the refusal beyond them."""

    name: str
    calls: int
    over: QuotaExceeded


class SpendingCharge(NamedTuple):
    """What a call takes from one limit of a credential. They are charged in their order, so that no two calls wait for each other.

    `credential` is the key under whose name it is counted, `period` a UTC day or month, `subject` a currency or an operation; `amount` of
    at most `most` in minor units or calls. `limit` names the restriction, `reset` is when the next period begins (Unix seconds).
    """

    credential: str
    period: str
    subject: str
    amount: int
    most: int
    limit: str
    reset: int


@dataclass(slots=True)
class CallRecord:
    """What a call writes about itself, as plain values."""

    surface: Surface
    operation: str
    request_id: str
    organisation: str
    principal: str
    key_id: str
    scope: int
    recheck: bool
    now: float
    started: float
    idempotency_key: str | None
    fingerprint: bytes
    expires_at: int | None
    confirm: bytes | None
    cost: int
    period: QuotaPeriod
    limit: int
    over_quota: Callable[[int], QuotaExceeded]
    key_limit: KeyLimit | None = None
    confirm_fingerprint: bytes = b""
    """What the confirm token is bound to: the input and, where something live is replaced, what that was when it was seen."""
    admin: bool = False
    """The recheck asks for the role admin, too."""
    change: str | None = None
    """What the call changes of who gets money and SIMs, for the audit log."""
    unsent: bool = False
    """It ended well without sending anything to a provider: what it took from limits is given back."""
    staged: bool = False
    """Opened without being sent yet: until `dispatch` a refusal or a crash frees the key."""
    usage: QuotaUsage | None = None
    leased: bool = False
    key_leased: bool = False
    began: bool = False
    charges: tuple[SpendingCharge, ...] = ()
    """What it takes from the limits of its credential, in the commit that opens it."""
    former_keys: tuple[str, ...] = ()
    """Spellings of the key that are never claimed any more; `idempotency_key` is one of them only where it was stored as such."""

    @property
    def owner(self) -> str:
        """Whose quota and keys these are: the organisation's, or the principal's own where there is none."""
        return self.organisation or self.principal


class AuditRecord(NamedTuple):
    """One row of the audit log. Never arguments, never secrets; `change` says what it changed of who gets money and SIMs."""

    at: float
    organisation: str
    surface: str
    operation: str
    principal: str
    key_id: str
    outcome: str
    status: int
    milliseconds: float
    request_id: str
    change: str | None = None


class SessionClaims(NamedTuple):
    """What a verified session token says.

    `grant` names a login at the built-in identity provider: who it is, for which organisation and what it may do is read from our store.
    `email` is an address that an external provider has verified.
    """

    subject: str
    organisation: str | None
    grant: str | None = None
    email: str | None = None


class Directory(Protocol):
    """Who a credential belongs to, read from our own store at every call. `now` is in Unix seconds."""

    async def by_key(self, secret: str, now: float) -> Caller | None:
        """The caller of the API key `secret`; None where no live key is that. A mistyped one fails by its checksum alone."""
        ...

    async def by_session(self, claims: SessionClaims, now: float) -> Caller | None:
        """The caller of a verified session with these `claims`; one without a membership has no organisation. None: its grant has ended."""
        ...

    async def again(self, caller: Caller, now: float) -> Caller | None:
        """The `caller` of a while ago as they are now; None when their credential, or their place in the organisation, has ended."""
        ...

    async def connected(self, principal: str) -> list[OrgRef]:
        """The organisations of `principal` (a user id) that have an upstream account."""
        ...


class Sessions(Protocol):
    """Verifies session tokens; raises Unauthorized."""

    async def verify(self, token: str, surface: Surface) -> SessionClaims:
        """The claims of `token`, when it is good at this `surface`."""
        ...


class Quota(Protocol):
    """Daily quota leased in blocks, for calls that write nothing. `organisation` is the id that the calls are counted under."""

    async def take(self, organisation: str, limit: int, period: QuotaPeriod, now: float) -> QuotaUsage | None:
        """Count one call in `period`; None when its `limit` (calls) is reached. `now` is in Unix seconds."""
        ...

    def give_back(self, organisation: str, period: QuotaPeriod) -> None:
        """Count one call of `period` less: it was charged and then refused before it reached the upstream."""
        ...


class Journal(Protocol):
    """Claims, confirm tokens, charges and the audit row, committed together with what a call writes.

    `entry` is what the call writes about itself. `stored` is the answer that is kept for its idempotency key, `write` and `writes` are
    storage functions that run in the same commit, with `arguments` their keyword arguments.
    """

    async def first_known(self, organisation: str, operation: str, keys: Sequence[str], now: float) -> str | None:
        """The first of the idempotency `keys` that `organisation` has used for `operation`; None when none was. `now`: Unix seconds."""
        ...

    async def stored(self, entry: CallRecord) -> StoredAnswer | None:
        """The answer an earlier call with this key got; Conflict when its input was another or it is still running."""
        ...

    async def challenge(self, entry: CallRecord, digest: bytes, expires_at: float) -> None:
        """Keep the SHA-256 `digest` of a confirm token until `expires_at` (Unix seconds)."""
        ...

    async def charge(self, charges: Sequence[SpendingCharge], now: float) -> None:
        """Take the `charges` of a read from the limits of its credential. Raises Restricted where one is reached; `now`: Unix seconds."""
        ...

    async def settle(self, entry: CallRecord, stored: StoredAnswer, write: WriteFunction[T] | None, arguments: WriteArguments) -> T | None:
        """Open, the write and close in ONE commit. Raises AlreadyAnswered when another call won the key."""
        ...

    async def settle_result(
        self, entry: CallRecord, encode: Callable[[T], StoredAnswer], write: WriteFunction[T], arguments: WriteArguments
    ) -> T:
        """The same for an answer that only the write can tell; `encode` turns it into what is stored."""
        ...

    async def open(self, entry: CallRecord) -> None:
        """Claim, consume the confirm token and charge: one commit, before a provider is called."""
        ...

    async def dispatch(self, entry: CallRecord, lost: StoredAnswer, writes: WriteList) -> None:
        """Recheck, mark a staged call as sent and run the writes: one commit, right before the provider is called.

        `lost` is the answer of the key should nobody come back. Conflict when the claim is not ours any more; nothing may be sent then.
        """
        ...

    async def close(
        self, entry: CallRecord, stored: StoredAnswer, *, outcome: str, unknown: bool, writes: WriteList, lost: WriteList
    ) -> None:
        """Keep the answer, run the writes and record: one commit, after the provider answered.

        `outcome` is the word for the audit log; with `unknown` nobody knows whether the provider did it.
        When the store fails, `lost` is what is written as soon as it works again: the outcome is not known.
        """
        ...

    async def conclude(
        self,
        entry: CallRecord,
        encode: Callable[[Any], bytes],
        write: Callable[..., Conclusion],
        arguments: WriteArguments,
        *,
        lost: WriteList,
    ) -> Conclusion:
        """Close a dispatched call by a write that says what its answer is; `encode` turns its body into bytes.

        When the store fails, `lost` is written later.
        """
        ...

    async def release(self, entry: CallRecord, writes: WriteList, *, refund: bool) -> None:
        """Forget the claim, run the writes and, with `refund`, give the charge back: the provider has done nothing."""
        ...

    async def read(self, read: Callable[..., T], *arguments: Any) -> T:
        """What the storage function `read` finds, called with a connection and these `arguments`."""
        ...

    async def last_change(self, lookup: ChangeLookup) -> ChangeAuthor | None:
        """Who made the change that `lookup` asks for, by the audit log; None where it does not say, or may mean several."""
        ...

    def record(self, line: AuditRecord) -> None:
        """Buffer `line`, the audit row of a read or a refusal; written within a second."""
        ...

    async def flush(self) -> None:
        """Write what is buffered now."""
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """Public addresses the answers point to."""

    base_url: str
    upgrade_url: str
    connect_url: str
    docs_url: str
    mcp_url: str
    sign_in_url: str

    @property
    def path(self) -> str:
        """What stands before our paths in the public address; mostly nothing."""
        return urlsplit(self.base_url).path.rstrip("/")


@dataclass(frozen=True, slots=True, repr=False)
class SharedSecrets:
    """Credentials that are settings; empty means unset, and unset never matches."""

    internal: str = ""
    storefront: str = ""
    bridge: str = ""
