"""Replacing a live connection to the charging system: what an admin is asked to confirm, and what the audit log says of it."""

import hashlib
from typing import NamedTuple

from operations.deps import Ctx
from operations.services.network.reached import Upstream
from operations.services.network.upstream import identity_of, opened
from registry.context import Replacement
from registry.errors import OcsError, Refusal
from storage.network.connections import UpstreamRow, find_connection

REPLACES = "your organisation's live connection to the charging system"
OUT_OF_REACH = (
    "What you have at the former one (lines, packages, templates) is then out of reach here: products, shop plans and schedules that use "
    "it fail, and eSIMs whose outcome is not known yet can no longer be settled."
)


class Reach(NamedTuple):
    """What a connection reaches: a managed account, or the reseller of an own token, which may not be known."""

    mode: str | None
    account: int | None = None
    reseller: int | None = None

    @property
    def in_words(self) -> str:
        """As a sentence names it. Never by a name: those are written by others, and models read this."""
        if self.mode == "managed":
            return f"the managed account {self.account}"
        return (
            "the reseller of the token in use (unknown, it cannot be asked)" if self.reseller is None else f"the reseller {self.reseller}"
        )

    @property
    def in_short(self) -> str:
        """As the audit log names it."""
        if self.mode == "managed":
            return f"managed account {self.account}"
        return "none" if self.mode is None else "own token" + (f", reseller {self.reseller}" if self.reseller is not None else "")


async def connection_of(ctx: Ctx) -> UpstreamRow:
    """The caller's connection as it is stored now."""
    row = await ctx.deps.store.read(find_connection, organisation=ctx.organisation)
    if row is None:
        raise LookupError("a caller's organisation is never removed")
    return row


async def reach_of(ctx: Ctx, row: UpstreamRow) -> Reach:
    """What a connection reaches; one read at the charging system, whose failure is no reason to keep a token that may be dead."""
    if row.mode != "own" or row.own_token is None:
        return Reach(row.mode, row.account_id)
    try:
        return Reach("own", None, await reseller_of(ctx, opened(ctx.deps, ctx.organisation, row.own_token)))
    except Refusal:
        return Reach("own")


async def reseller_of(ctx: Ctx, token: str) -> int:
    """Whose token it is; kept for a minute, as all that is read with it."""
    deps, identity = ctx.deps, identity_of(token)
    return await Upstream(
        deps.ocs.for_token(token, ctx.organisation), "own", None, False, identity, deps.reads, ctx.organisation, deps.stock.parts
    ).reseller_id()


def same_token(ctx: Ctx, row: UpstreamRow, token: str) -> bool:
    """Whether the stored token is this one. One that opens no more is not."""
    if row.mode != "own" or row.own_token is None:
        return False
    try:
        return identity_of(opened(ctx.deps, ctx.organisation, row.own_token)) == identity_of(token)
    except OcsError:
        return False


def state_of_connection(row: UpstreamRow, *target: object) -> str:
    """What a confirmation is bound to: the connection as it was seen, and where it goes. A token's sealed text is its own each time."""
    parts = (row.mode, row.account_id, row.own_token, *target)
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def to_own_token(row: UpstreamRow, before: Reach, after: Reach) -> Replacement:
    """The question before a token of the organisation's own takes over."""
    if before.mode == "own" and before.reseller == after.reseller:
        text = f"This will replace the token with which your organisation reaches {after.in_words} by another one of the same reseller."
    else:
        text = f"This will move your organisation from {before.in_words} to {after.in_words}. {OUT_OF_REACH}"
    if before.mode == "own":
        back = "The token in use is kept sealed for 24 hours, in which an admin can go back once with onboarding_restore_ocs_token"
        back += "; then it is erased, and must be entered again."
    else:
        back = "onboarding_start_managed_account leads back while that account stays assigned to your organisation."
    return Replacement(f"{text} {back}", state_of_connection(row, after.reseller))


def to_managed(row: UpstreamRow, before: Reach, after: Reach) -> Replacement:
    """The question before a managed account takes over."""
    text = f"This will move your organisation from {before.in_words} to {after.in_words}. {OUT_OF_REACH}"
    if before.mode == "own":
        back = "The token in use, and one that it replaced, are erased at once: the only way back is to enter the token again."
    else:
        back = "Only whoever runs the service can lead back, by assigning the former account again."
    return Replacement(f"{text} {back}", state_of_connection(row, after.account))


def to_former_token(row: UpstreamRow, before: Reach, after: Reach, former: str) -> Replacement:
    """The question before the former token takes over again."""
    text = f"This will move your organisation back from {before.in_words} to {after.in_words}. {OUT_OF_REACH}"
    if before.reseller == after.reseller:
        text = f"This will go back to the token with which your organisation reached {after.in_words} before."
    back = "The token in use is erased at once, and this cannot be undone: the only way to it is to enter it again."
    return Replacement(f"{text} {back}", state_of_connection(row, former))


def change_of(before: Reach, after: Reach) -> str:
    """The audit log's words for it."""
    return f"{before.in_short} -> {after.in_short}"
