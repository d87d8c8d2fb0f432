"""Access to the charging system: with which credential a caller reaches it, and which accounts there are the caller's."""

import hashlib
from collections.abc import Awaitable, Mapping
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar, cast

from pydantic import Field

from operations.deps import Ctx, Deps
from operations.upstream.connection import Upstream
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError
from registry.model import CamelInput
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import find_upstream


async def connect_upstream(ctx: Ctx) -> Upstream:
    """The caller's upstream. From here on the call is charged."""
    upstream = await upstream_of_organisation(ctx.deps, ctx.organisation)
    ctx.reached_upstream = True
    return upstream


async def upstream_of_organisation(deps: Deps, organisation: str) -> Upstream:
    """An organisation's upstream."""
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
    """What cached answers to a credential are kept under."""
    return hashlib.sha256(token.encode()).hexdigest()


def open_own_token(deps: Deps, organisation: str, sealed: str) -> str:
    """The organisation's own token. One that was sealed for another row, or with a key that is gone, does not open."""
    from cryptography.exceptions import InvalidTag  # slow to import

    try:
        return deps.keyring.open(sealed, org_id=organisation, field=OWN_TOKEN_FIELD)
    except (ValueError, InvalidTag):
        raise OcsError(
            "The token that your organisation was connected with can no longer be opened; nothing was done",
            hint="Connect the account again, or have whoever runs the service put the former encryption key back",
            before_execution=True,
        ) from None


class AccountRef(CamelInput):
    """Which account."""

    account_id: Annotated[UpstreamId, Field(description="Account id.")]


class HasAccountId(Protocol):
    """An input with an account."""

    @property
    def account_id(self) -> int: ...


class OwnAccount(NamedTuple):
    """An account of the caller's, and the way to it."""

    upstream: Upstream
    id: int


async def own_account(ctx: Ctx, params: HasAccountId) -> OwnAccount:
    """The access rule of every operation on one account."""
    upstream = await connect_upstream(ctx)
    await require_own_account(upstream, params.account_id)
    return OwnAccount(upstream, params.account_id)


async def require_own_account(upstream: Upstream, account_id: int, param: str = "accountId") -> None:
    """Refuse an account that is not the caller's. An own token may have got one in the last minute: the list is then read afresh."""
    if await upstream.owns_account(account_id):
        return
    if not upstream.managed:
        upstream.reads.forget(upstream.identity, "accounts")
        if await upstream.owns_account(account_id):
            return
    raise NotFound("Your organisation has no account with this id", param=param, hint="list_reseller_accounts names your own")


async def visible_accounts(upstream: Upstream) -> set[int | None]:
    """Whose entries the caller sees.

    Choice: with a token of their own also those of nobody, since the service's token, which tells whose a line is, may not see theirs.
    """
    if upstream.managed:
        return {upstream.account_id}
    return {None, *(account.get("id") for account in await upstream.accounts())}


RefusableAnswer = TypeVar("RefusableAnswer")


async def name_refused_field(asked: Awaitable[RefusableAnswer], fields: Mapping[int, str]) -> RefusableAnswer:
    """What was asked for; a refusal names the field that its status code is about. `fields`: field by code."""
    try:
        return await asked
    except OcsError as refusal:
        refusal.param = fields.get(refusal.ocs_code or 0)
        raise
