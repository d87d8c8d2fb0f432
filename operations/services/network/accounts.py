"""Accounts of the caller: in managed mode the one, with an own token those it sees."""

from typing import Annotated, NamedTuple, Protocol

from pydantic import Field

from operations.deps import Ctx
from operations.services.network.reached import Upstream
from operations.services.network.upstream import reach
from registry.errors import NotFound
from registry.model import CamelInput

UpstreamId = Annotated[int, Field(ge=1, le=9007199254740991)]


class AccountRef(CamelInput):
    """Which account."""

    account_id: Annotated[UpstreamId, Field(description="Account id.")]


class NamesAccount(Protocol):
    """An input with an account."""

    @property
    def account_id(self) -> int: ...


class OwnAccount(NamedTuple):
    """An account of the caller's, and the way to it."""

    upstream: Upstream
    id: int


async def own_account(ctx: Ctx, params: NamesAccount) -> OwnAccount:
    """The access rule of every operation on one account."""
    upstream = await reach(ctx)
    await require_account(upstream, params.account_id)
    return OwnAccount(upstream, params.account_id)


async def require_account(upstream: Upstream, account_id: int, param: str = "accountId") -> None:
    """Refuse an account that is not the caller's. An own token may have got one in the last minute: the list is then read afresh."""
    if await upstream.owns_account(account_id):
        return
    if not upstream.managed:
        upstream.reads.forget(upstream.identity, "accounts")
        if await upstream.owns_account(account_id):
            return
    raise NotFound("Your organisation has no account with this id", param=param, hint="list_reseller_accounts names your own")
