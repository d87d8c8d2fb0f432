"""What a credential reaches: the charging system, and what of it is the caller's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clients.ocs.client import Ocs
from clients.ocs.wire.reseller import Account, ResellerInfo
from operations.services.network.account_parts import AccountParts
from operations.services.network.read_cache import ReadCache
from registry.errors import Conflict, OcsError
from storage.network.account_parts import AccountPlace

DIGEST_DIGITS = 32


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
        return AccountPlace(self.organisation, self.identity[:DIGEST_DIGITS], account)

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
