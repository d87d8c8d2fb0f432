"""Which of a month's SIMs an invoice is to bill: named ones, or those of accounts at the charging system."""

from collections.abc import Sequence
from typing import Protocol

from operations.deps import Ctx
from operations.services.network.accounts import require_account
from operations.services.network.fleet import lines_of
from operations.services.network.upstream import reach
from registry.errors import Conflict
from registry.policy import require_connection
from storage.people.directory import StoreDirectory


class AccountNotReadWhole(Conflict):
    """Some lines of an account stay out of reach, so nobody can say what the account has to be billed."""

    code = "account_not_read_whole"


class NamesSims(Protocol):
    """An input that may name SIMs, or accounts."""

    @property
    def iccids(self) -> list[str] | None: ...
    @property
    def account_ids(self) -> list[int] | None: ...


async def own_accounts(ctx: Ctx, params: NamesSims) -> None:
    """The access rule: accounts that are named are the caller's. Without any the charging system is not asked."""
    if params.account_ids is None:
        return
    await require_connection(ctx.caller, StoreDirectory(ctx.deps.store), ctx.deps.site)
    upstream = await reach(ctx)
    for account in params.account_ids:
        await require_account(upstream, account, "account_ids")


async def sims_of(ctx: Ctx, params: NamesSims) -> tuple[str, ...] | None:
    """The ICCIDs to bill; nothing: all of the month."""
    if params.account_ids is None:
        return None if params.iccids is None else tuple(dict.fromkeys(params.iccids))
    return await sims_of_accounts(ctx, params.account_ids)


async def sims_of_accounts(ctx: Ctx, accounts: Sequence[int]) -> tuple[str, ...]:
    """Every ICCID that the accounts' lines have or had: what a line used before its SIM was replaced is billed with it."""
    fleet = await lines_of(await reach(ctx), list(dict.fromkeys(accounts)))
    if fleet.incomplete:
        raise AccountNotReadWhole(
            "account_ids: the charging system does not show every line of these accounts, so their bill would lack some; nothing was made",
            param="account_ids",
            hint="Name the SIMs in iccids, at most 1000 at once",
        )
    found = (past.get("iccid") for row in fleet.rows for past in row.get("imsiList", ()))
    return tuple(dict.fromkeys(iccid for iccid in found if iccid))
