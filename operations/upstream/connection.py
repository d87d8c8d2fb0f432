"""What a credential reaches: the charging system, what of it is the caller's, and what of its answers is kept for a minute."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from clients.ocs.client import Ocs
from clients.ocs.wire.reseller import Account, ResellerInfo
from operations.upstream.account_parts import AccountParts
from registry.clock import Clock
from registry.errors import Conflict, OcsError
from storage.account_parts import AccountPlace

CachedAnswer = TypeVar("CachedAnswer")
READ_CACHE_SECONDS = 60.0
READ_CACHE_LIMIT = 4096


class ReadCache:
    """Answers by who asked (a credential's digest) and what was asked. Tenancy is decided by the reader, never here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[object, ...], tuple[float, object]] = {}

    async def get(self, key: tuple[object, ...], load: Callable[[], Awaitable[CachedAnswer]]) -> CachedAnswer:
        """The kept answer while it is fresh, else a new one; a failure is not kept."""
        now = self._clock.monotonic()
        found = self._kept.get(key)
        if found is not None and found[0] > now:
            return cast(CachedAnswer, found[1])
        value = await load()
        self._let_go(now)
        self._kept.pop(key, None)  # so that the order is that of age
        self._kept[key] = (now + READ_CACHE_SECONDS, value)
        return value

    def _let_go(self, now: float) -> None:
        """What has expired, since some answers take hundreds of megabytes; and the oldest when there are too many."""
        while self._kept:
            oldest = next(iter(self._kept))
            if self._kept[oldest][0] > now and len(self._kept) < READ_CACHE_LIMIT:
                return
            del self._kept[oldest]

    def forget(self, *beginning: object) -> None:
        """Drop every answer whose key begins so: after a write of ours that changes it."""
        count = len(beginning)
        for key in [key for key in self._kept if key[:count] == beginning]:
            del self._kept[key]


CREDENTIAL_DIGEST_DIGITS = 32


class AccountGone(Conflict):
    """The account that the organisation is connected to is not there, or not the reseller's any more."""

    code = "account_not_found"


@dataclass(frozen=True, slots=True)
class Upstream:
    """Managed: the service's reseller token, and of what it sees only `account_id` is the caller's. Own: the caller's token."""

    ocs: Ocs
    mode: Literal["managed", "own"]
    account_id: int | None
    service_own: bool
    identity: str
    """The credential's digest: what cached answers are kept under."""
    reads: ReadCache
    organisation: str
    parts: AccountParts
    """Where the lines of large accounts are."""

    def place(self, account: int) -> AccountPlace:
        """What is remembered of an account's parts is remembered for this organisation and credential."""
        return AccountPlace(self.organisation, self.identity[:CREDENTIAL_DIGEST_DIGITS], account)

    @property
    def managed(self) -> bool:
        """Whether others share the token."""
        return self.mode == "managed"

    async def reseller(self) -> ResellerInfo:
        """Whose token this is."""
        return await self.reads.get((self.identity, "reseller"), self.ocs.reseller.get_reseller_info)

    async def reseller_id(self) -> int:
        """The number that several methods ask for."""
        found = (await self.reseller()).get("id")
        if found is None:
            raise OcsError("The charging system did not say which reseller the credential belongs to")
        return found

    async def accounts(self) -> Sequence[Account]:
        """The caller's accounts, lowest id first: in managed mode the one."""
        resellers = await self.reads.get((self.identity, "accounts"), self.ocs.reseller.list_reseller_account)
        found = [account for reseller in resellers for account in reseller.get("account", [])]
        own = [account for account in found if not self.managed or account.get("id") == self.account_id]
        if self.managed and not own:
            raise self.account_gone()
        return sorted(own, key=lambda account: account.get("id", 0))

    def account_gone(self) -> AccountGone:
        """Only whoever connected the organisation can mend this."""
        return AccountGone(
            f"Your organisation is connected to account {self.account_id}, which the charging system does not have for this service",
            hint="Whoever runs the service connects it to an account that exists: reseller org connect",
        )

    async def owns_account(self, account_id: int) -> bool:
        """In managed mode it costs no call."""
        if self.managed:
            return account_id == self.account_id
        return any(account.get("id") == account_id for account in await self.accounts())
