"""The connection to the charging system: with which credential a caller reaches it, and which accounts there are the caller's."""

import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, TypeVar, cast

from pydantic import Field

from clients.ocs.client import Ocs
from clients.ocs.resellers import Account, ResellerInfo
from operations.caches.account_parts import AccountParts
from operations.caches.answers import ReadCache
from operations.deps import Ctx, Deps
from operations.vocabulary import UpstreamId
from registry.errors import Conflict, NotFound, OcsError
from registry.operation import CamelInput
from registry.policy import require_connection
from storage.account_parts import AccountPlace
from storage.directory import StoreDirectory
from storage.sealing import OWN_TOKEN_FIELD, WrongSeal
from storage.upstream_connections import find_upstream

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
        """The key under which an account's parts are remembered: of this organisation and credential."""
        return AccountPlace(self.organisation, self.identity[:CREDENTIAL_DIGEST_DIGITS], account)

    @property
    def managed(self) -> bool:
        """Whether others share the token."""
        return self.mode == "managed"

    async def reseller(self) -> ResellerInfo:
        """The reseller that the token belongs to, a minute old at most."""
        return await self.reads.get((self.identity, "reseller"), self.ocs.reseller.get_reseller_info)

    async def reseller_id(self) -> int:
        """The id of the reseller that the token belongs to. Raises OcsError where it is not told."""
        found = (await self.reseller()).get("id")
        if found is None:
            raise OcsError("The charging system did not say which reseller the credential belongs to")
        return found

    async def accounts(self) -> Sequence[Account]:
        """The caller's accounts, lowest id first, a minute old at most. Raises AccountGone where the managed one is not there."""
        resellers = await self.reads.get((self.identity, "accounts"), self.ocs.reseller.list_reseller_account)
        found = [account for reseller in resellers for account in reseller.get("account", [])]
        own = [account for account in found if not self.managed or account.get("id") == self.account_id]
        if self.managed and not own:
            raise self.account_gone()
        return sorted(own, key=lambda account: account.get("id", 0))

    async def account_resellers(self) -> dict[int, int]:
        """The reseller of each of the caller's accounts, by account id; a minute old at most. Raises AccountGone. Waits for the network."""
        own = {account.get("id") for account in await self.accounts()}
        resellers = await self.reads.get((self.identity, "accounts"), self.ocs.reseller.list_reseller_account)
        return {
            id: reseller.get("id", 0)
            for reseller in resellers
            for account in reseller.get("account", [])
            if (id := account.get("id")) is not None and id in own
        }

    def account_gone(self) -> AccountGone:
        """The refusal when the connected account is not there; only the operator of the service can change that."""
        return AccountGone(
            f"Your organisation is connected to account {self.account_id}, which the charging system does not have for this service",
            hint="Whoever runs the service connects it to an account that exists: reseller org connect",
        )

    async def owns_account(self, account_id: int) -> bool:
        """Whether the account is the caller's. In managed mode this costs no call."""
        if self.managed:
            return account_id == self.account_id
        return any(account.get("id") == account_id for account in await self.accounts())


async def require_connected(ctx: Ctx) -> None:
    """Raises OrgNotConnected where the caller's organisation has no connection. Waits for the database."""
    await require_connection(ctx.caller, StoreDirectory(ctx.deps.store), ctx.deps.site)


async def connect_upstream(ctx: Ctx) -> Upstream:
    """The caller's connection to the charging system; from here on the call is charged. Raises OcsError. Waits for the database."""
    upstream = await upstream_of_organisation(ctx.deps, ctx.organisation)
    ctx.reached_upstream = True
    return upstream


async def upstream_of_organisation(deps: Deps, organisation: str) -> Upstream:
    """The connection of `organisation`; raises OcsError where it has none, or its token is missing or cannot be opened."""
    row = await deps.store.read(find_upstream, organisation=organisation)
    # The service's token is for managed accounts alone: a row that is not whole gets neither it nor a line without an account.
    if row is None or row.mode is None or (row.own_token if row.mode == "own" else row.account_id) is None:
        raise OcsError("Your organisation was disconnected from its account while this call ran; nothing was done", before_execution=True)
    token = deps.ocs_token if row.own_token is None or row.mode != "own" else open_own_token(deps, organisation, row.own_token)
    if not token.strip():
        raise OcsError(
            "The service has no credential for the charging system, so managed accounts cannot be reached; nothing was done",
            hint="Whoever runs the service sets SERVICE_OCS_TOKEN",
            before_execution=True,
        )
    mode = cast('Literal["managed", "own"]', row.mode)  # in quotes, since making the type at every call costs as much as the query
    return Upstream(
        deps.ocs.for_token(token, organisation),
        mode,
        row.account_id,
        bool(row.service_own),
        credential_digest(token),
        deps.reads,
        organisation,
        deps.stock.parts,
    )


def credential_digest(token: str) -> str:
    """The SHA-256 of `token` in hexadecimal digits, by which answers are cached."""
    return hashlib.sha256(token.encode()).hexdigest()


def open_own_token(deps: Deps, organisation: str, sealed: str) -> str:
    """The organisation's own token. Raises OcsError where it was sealed for another row, or with a key that is gone."""
    try:
        return deps.keyring.open(sealed, org_id=organisation, field=OWN_TOKEN_FIELD)
    except (ValueError, WrongSeal):
        raise OcsError(
            "The token that your organisation was connected with can no longer be opened; nothing was done",
            hint="Connect the account again, or have whoever runs the service put the former encryption key back",
            before_execution=True,
        ) from None


class AccountRef(CamelInput):
    """Which account."""

    account_id: Annotated[UpstreamId, Field(description="Account id.")]


class OwnAccount(NamedTuple):
    """An account of the caller's, and the way to it."""

    upstream: Upstream
    id: int


async def own_account(ctx: Ctx, params: AccountRef) -> OwnAccount:
    """The access rule of operations on one account; raises NotFound for an account that is not the caller's. Waits for the network."""
    upstream = await connect_upstream(ctx)
    await require_own_account(upstream, params.account_id)
    return OwnAccount(upstream, params.account_id)


async def require_own_account(upstream: Upstream, account_id: int, param: str = "accountId") -> None:
    """Raises NotFound, which names `param`, for an account that is not the caller's. Waits for the network.

    A token of the caller's own may have got an account in the last minute, so the list is then read again.
    """
    if await upstream.owns_account(account_id):
        return
    if not upstream.managed:
        upstream.reads.forget(upstream.identity, "accounts")
        if await upstream.owns_account(account_id):
            return
    raise NotFound("Your organisation has no account with this id", param=param, hint="list_reseller_accounts names your own")


RefusableAnswer = TypeVar("RefusableAnswer")


async def name_refused_field(asked: Awaitable[RefusableAnswer], fields: Mapping[int, str]) -> RefusableAnswer:
    """The result of `asked`; its refusal names the field that its status code is about. `fields`: field by code."""
    try:
        return await asked
    except OcsError as refusal:
        refusal.param = fields.get(refusal.ocs_code or 0)
        raise
