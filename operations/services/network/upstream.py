"""The caller's way to the charging system: which credential, and what of the upstream is theirs."""

import hashlib
from typing import Literal, cast

from operations.deps import Ctx, Deps
from operations.services.network.reached import Upstream
from registry.errors import NotFound, OcsError
from storage.network.connections import find_connection
from storage.network.upstream_objects import Kind, creator_of
from storage.secrets.sealed_fields import OWN_TOKEN_FIELD


async def reach(ctx: Ctx) -> Upstream:
    """The caller's upstream. From here on the call is charged."""
    upstream = await reach_for(ctx.deps, ctx.organisation)
    ctx.reached_upstream = True
    return upstream


async def reach_for(deps: Deps, organisation: str) -> Upstream:
    """An organisation's upstream."""
    row = await deps.store.read(find_connection, organisation=organisation)
    # The service's token is for managed accounts alone: a row that is not whole gets neither it nor a line without an account.
    if row is None or row.mode is None or (row.own_token if row.mode == "own" else row.account_id) is None:
        raise OcsError("Your organisation was disconnected from its account while this call ran; nothing was done", before_execution=True)
    token = deps.ocs_token if row.own_token is None or row.mode != "own" else opened(deps, organisation, row.own_token)
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
        identity_of(token),
        deps.reads,
        organisation,
        deps.stock.parts,
    )


def identity_of(token: str) -> str:
    """What cached answers to a credential are kept under."""
    return hashlib.sha256(token.encode()).hexdigest()


def opened(deps: Deps, organisation: str, sealed: str) -> str:
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
