"""Whose a line was when it was seen: its history is shown to that account, and not to those that it is moved to."""

import anyio

from operations.deps import Ctx
from registry.errors import OcsError
from storage.network.country_ring import around
from storage.network.line_owner import drawn_unseen
from storage.network.observations import Sighting

PATIENCE_SECONDS = 3.0
OWNER = "bridge"


async def account_at(ctx: Ctx, seen: Sighting) -> int | None:
    """The account of the line at a sighting, None when nobody can say.

    The charging system is asked about a new country, and about the first one since an eSIM was drawn from another account than before.

    Choice: it knows the present owner alone. So a sighting older than one that we have is of the account that both its neighbours were
    of, and of nobody where the line changed hands between them; a repeat is of the account that was seen there before.
    """
    if seen.country is None:
        return None
    before, after = await ctx.deps.store.read(around, iccid=seen.iccid, country=seen.country, occurred_at=seen.occurred_at)
    if after is not None:
        return after.account_id if before is None or before.account_id == after.account_id else None
    if before is None or before.country != seen.country or await drawn_since(ctx, seen, before.account_id):
        return await present_account(ctx, seen.iccid)
    return before.account_id


async def drawn_since(ctx: Ctx, seen: Sighting, account: int | None) -> bool:
    """Whether the line changed hands since the sighting before: its new intent must not go without what is its own."""
    return await ctx.deps.store.read(drawn_unseen, iccid=seen.iccid, account=account, at=seen.occurred_at)


async def present_account(ctx: Ctx, iccid: str) -> int | None:
    """Who has the line now, as the service's own token sees it.

    Choice: the push is taken whatever comes of this. A line of a reseller's own token is unknown here, and a trouble upstream must not
    make the bridge send all its pushes again; what is of nobody is shown to no account that shares the service's token.
    """
    token = ctx.deps.ocs_token
    if not token.strip():
        return None
    with anyio.move_on_after(PATIENCE_SECONDS):
        try:
            row = await ctx.deps.ocs.for_token(token, OWNER).subscriber.get_single_subscriber(iccid, by="iccid")
        except OcsError:  # OcsNotFound is one
            return None
        return row.get("accountId")
    return None
