"""The caller's way to the charging system: which credential, and what of the upstream is theirs."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from clients.ocs.client import Ocs
from clients.ocs.wire.reseller import Account, ResellerInfo
from operations.deps import Ctx
from operations.services.read_cache import ReadCache
from registry.errors import Conflict, NotFound, OcsError
from storage.connections import find_connection
from storage.sealed_fields import OWN_TOKEN_FIELD
from storage.upstream_objects import Kind, creator_of


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


async def reach(ctx: Ctx) -> Upstream:
    """The caller's upstream. From here on the call is charged."""
    deps = ctx.deps
    row = await deps.store.read(find_connection, organisation=ctx.organisation)
    # The service's token is for managed accounts alone: a row that is not whole gets neither it nor a line without an account.
    if row is None or row.mode is None or (row.own_token if row.mode == "own" else row.account_id) is None:
        raise OcsError("Your organisation was disconnected from its account while this call ran; nothing was done", before_execution=True)
    token = deps.ocs_token if row.own_token is None or row.mode != "own" else opened(ctx, row.own_token)
    if not token.strip():
        raise OcsError(
            "The service has no credential for the charging system, so managed accounts cannot be reached; nothing was done",
            hint="Whoever runs the service sets SERVICE_OCS_TOKEN",
            before_execution=True,
        )
    ctx.reached_upstream = True
    identity = hashlib.sha256(token.encode()).hexdigest()
    mode = cast(Literal["managed", "own"], row.mode)
    return Upstream(deps.ocs.for_token(token, ctx.organisation), mode, row.account_id, bool(row.service_own), identity, deps.reads)


def opened(ctx: Ctx, sealed: str) -> str:
    """The organisation's own token. One that was sealed for another row, or with a key that is gone, does not open."""
    from cryptography.exceptions import InvalidTag  # slow to import

    try:
        return ctx.deps.keyring.open(sealed, org_id=ctx.organisation, field=OWN_TOKEN_FIELD)
    except (ValueError, InvalidTag):
        raise OcsError(
            "The token that your organisation was connected with can no longer be opened; nothing was done",
            hint="Connect the account again, or have whoever runs the service put the former encryption key back",
            before_execution=True,
        ) from None


async def reseller_for(upstream: Upstream, requested: int | None) -> int:
    """The reseller a call names, or the caller's own. In managed mode there is no other."""
    own = await upstream.reseller_id()
    if requested is None or requested == own:
        return own
    if upstream.managed:
        raise NotFound("There is no such reseller", param="resellerId", hint="Leave resellerId out: get_reseller_info names your own")
    return requested


async def require_creator(ctx: Ctx, upstream: Upstream, kind: Kind, id: int, param: str) -> None:
    """On a shared reseller only the organisation that created an object may change it; everything else is not found."""
    if upstream.managed and await ctx.deps.store.read(creator_of, kind=kind, id=id) != ctx.organisation:
        raise NotFound(
            f"Your organisation created no {kind} with this id", param=param, hint=f"A shared {kind} is read-only: create one of your own"
        )
