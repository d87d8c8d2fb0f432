"""The accounts that hold lines: which there are, what is left on them, how many eSIMs they can still issue."""

from typing import Annotated, NamedTuple, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.resellers import AccountStock, ResellerAccounts, SponsorStock
from clients.ocs.wire_schema import keeps_unknown
from operations.deps import Ctx
from operations.upstream.balances import BalanceChange, BalanceChanged, ManagedBalance, balance_write, due_of_balance, refuse_managed_raise
from operations.upstream.connection import AccountGone, AccountRef, OwnAccount, Upstream, connect_upstream, own_account
from operations.upstream.paging import Data, member_number, paged_data
from operations.upstream.resellers import ResellerPage, read_of_reseller, resolve_reseller
from registry.challenge import Challenge, describe_loss, name_losses
from registry.errors import NotFound, OcsError, OcsNotFound
from registry.free_text import FreeText
from registry.operation import Due, Example, Once, Scope, operation


@keeps_unknown
class AccountRow(TypedDict, total=False):
    """An account with its reseller."""

    id: int
    name: FreeText
    balance: Annotated[float, Field(description="EUR")]
    packageOnly: Annotated[bool, Field(description="Whether the account has no balance to spend")]
    steeringListId: int
    resellerId: int
    resellerName: FreeText


ACCOUNT_RESELLER_FIELDS = {"id": "resellerId", "name": "resellerName"}
ACCOUNT_EXAMPLE: AccountRow = {
    "id": 8101,
    "name": "Demo Retail",
    "balance": 412.5,
    "packageOnly": False,
    "steeringListId": 17,
    "resellerId": 7001,
    "resellerName": "Fjord Mobile",
}


@operation(
    "GET",
    "/v1/accounts",
    upstream=True,
    operator=True,
    title="List accounts",
    raises=[NotFound, AccountGone, OcsError],
    examples=[Example("Which accounts do we have, and what is left on them?", {}, {"data": [ACCOUNT_EXAMPLE]})],
    tool_defaults={"limit": 20},
)
async def list_reseller_accounts(ctx: Ctx, params: ResellerPage) -> Data[list[AccountRow]]:
    """List your accounts with their balances.

    In managed mode there is one. Balances are in EUR.
    """
    upstream = await connect_upstream(ctx)
    # Choice: in managed mode even the own reseller needs no look-up unless it is named, so the list costs one call.
    requested = None if params.reseller_id is None else await resolve_reseller(upstream, params.reseller_id)
    resellers = await read_of_reseller(requested, upstream.ocs.reseller.list_reseller_account(reseller_id=requested))
    rows = own_account_rows(upstream, resellers)
    if upstream.managed and not rows:
        raise upstream.account_gone()
    return paged_data(ctx, rows, params, member_number("id"))


def own_account_rows(upstream: Upstream, resellers: list[ResellerAccounts]) -> list[AccountRow]:
    """The caller's accounts in one list."""
    return [
        cast(AccountRow, {**account, **{spoken: reseller[name] for name, spoken in ACCOUNT_RESELLER_FIELDS.items() if name in reseller}})
        for reseller in resellers
        for account in reseller.get("account", [])
        if not upstream.managed or account.get("id") == upstream.account_id
    ]


class AccountBalanceChange(BalanceChange, AccountRef):
    """Which account, and how its balance changes."""


class AccountBalanceChanged(BalanceChanged):
    """Of which account."""

    accountId: int


class AccountWithBalance(NamedTuple):
    """The caller's own account, and what it holds where that decides."""

    account: OwnAccount
    balance: float


async def account_with_balance(ctx: Ctx, params: AccountBalanceChange) -> AccountWithBalance:
    """The balance changes by itself, so it is compared when the call is made and not when its answer is replayed."""
    account = await own_account(ctx, params)
    upstream = account.upstream
    if not upstream.managed or upstream.service_own or params.mode != "set":
        return AccountWithBalance(account, 0.0)
    upstream.reads.forget(upstream.identity, "accounts")
    # A balance that is not told counts as 0.
    return AccountWithBalance(account, next((each.get("balance", 0.0) for each in await upstream.accounts()), 0.0))


async def name_balance(_ctx: Ctx, params: AccountBalanceChange, held: AccountWithBalance) -> Challenge:
    """The account by name, and what its balance becomes. It may wait for the network."""
    account = next((each for each in await held.account.upstream.accounts() if each.get("id") == params.account_id), None)
    name, balance = ("", None) if account is None else (account.get("name") or "", account.get("balance"))
    result = params.amount if params.mode == "set" else None if balance is None else max(balance + params.amount, 0.0)
    details = {
        "account": str(params.account_id),
        "balance_now": None if balance is None else f"{balance:.2f} EUR",
        "balance_then": None if result is None else f"{result:.2f} EUR",
    }
    loss = describe_loss("money", name or str(params.account_id), **details)
    what = f"to {params.amount:.2f} EUR" if params.mode == "set" else f"by {params.amount:+.2f} EUR"
    return Challenge(f"This will change the balance of an account {what}: {name_losses((loss,))}.", (loss,))


async def due_of_account_balance(_ctx: Ctx, params: AccountBalanceChange, held: AccountWithBalance) -> Due:
    """How much the balance changes, at most.

    Raises ManagedBalance: what is refused anyway takes nothing. Waits for the network.
    """
    upstream, balance = held.account.upstream, held.balance
    refuse_managed_raise(upstream, params, balance)
    if params.mode == "set":
        balance = next((each.get("balance", 0.0) for each in await upstream.accounts() if each.get("id") == held.account.id), 0.0)
    return due_of_balance(params, balance)


@operation(
    "PUT",
    "/v1/accounts/{accountId}/balance",
    spends=due_of_account_balance,
    scope=Scope.ADMIN,
    confirm=True,
    once=Once(shown=True),
    upstream=True,
    moves=True,
    operator=True,
    title="Change account balance",
    access=account_with_balance,
    challenge=name_balance,
    raises=[NotFound, ManagedBalance, AccountGone, OcsError],
    examples=[
        Example(
            "Take a fee of 12.50 from an account",
            {"accountId": 8101, "amount": -12.5, "description": "Fee for January"},
            {"data": {"accountId": 8101, "mode": "adapt", "amount": -12.5}},
        )
    ],
)
async def modify_account_balance(ctx: Ctx, params: AccountBalanceChange, held: AccountWithBalance) -> Data[AccountBalanceChanged]:
    """Add to an account's balance, lower it or set it.

    A result below 0 becomes 0. For one line use modify_subscriber_balance.

    In managed mode the balance can be lowered, not raised: raising it answers 409 `managed_balance`. The service's own organisation
    is the exception.
    """
    account, upstream = held.account, held.account.upstream
    refuse_managed_raise(upstream, params, held.balance)
    amount, put = balance_write(upstream, params, held.balance)
    await upstream.ocs.reseller.modify_account_balance(account.id, amount, set_balance=put, description=params.description or None)
    upstream.reads.forget(upstream.identity, "accounts")
    return {"data": {"accountId": account.id, "mode": params.mode, "amount": params.amount}}


STOCK_FREE_CODE, STOCK_AFFECTED_CODE = 0, 2


@keeps_unknown
class EsimStock(TypedDict, total=False):
    """The eSIMs of an account by sponsor and status, and what they add up to."""

    id: int
    name: FreeText
    sponsor: list[SponsorStock]
    free: Annotated[int, Field(description="eSIMs that can be issued")]
    affected: Annotated[int, Field(description="eSIMs in use")]
    total: Annotated[int, Field(description="eSIMs in any status")]


ESIM_STOCK_EXAMPLE: EsimStock = {
    "id": 8101,
    "name": "Demo Retail",
    "sponsor": [
        {
            "id": 31,
            "name": "SPX",
            "esim": {
                "status": [
                    {"statusNum": 0, "statusStr": "Free", "count": 9},
                    {"statusNum": 2, "statusStr": "Affected", "count": 131},
                ]
            },
        }
    ],
    "free": 9,
    "affected": 131,
    "total": 140,
}


@operation(
    "GET",
    "/v1/accounts/{accountId}/esim-status",
    upstream=True,
    operator=True,
    title="Count eSIMs of an account",
    access=own_account,
    raises=[NotFound, AccountGone, OcsError],
    examples=[Example("How many eSIMs can we still issue?", {"accountId": 8101}, {"data": ESIM_STOCK_EXAMPLE})],
)
async def esim_status_per_account(ctx: Ctx, params: AccountRef, account: OwnAccount) -> Data[EsimStock]:
    """Count an account's eSIMs: free, in use, in all.

    Only free ones can be issued. list_subscribers names the lines.
    """
    try:
        rows = await account.upstream.ocs.reseller.esim_status_per_account(account_id=account.id)
    except OcsNotFound:
        if account.upstream.managed:
            raise account.upstream.account_gone() from None
        raise NotFound(
            "Your organisation has no account with this id", param="accountId", hint="list_reseller_accounts names your own"
        ) from None
    return {"data": with_stock_sums(next((row for row in rows if row.get("id") == account.id), {"id": account.id, "sponsor": []}))}


def with_stock_sums(row: AccountStock) -> EsimStock:
    """The account as the network counts it, and the sums over its sponsors."""
    statuses = [status for sponsor in row.get("sponsor", []) for status in sponsor.get("esim", {}).get("status", [])]
    sums = {
        "free": sum(status.get("count", 0) for status in statuses if status.get("statusNum") == STOCK_FREE_CODE),
        "affected": sum(status.get("count", 0) for status in statuses if status.get("statusNum") == STOCK_AFFECTED_CODE),
        "total": sum(status.get("count", 0) for status in statuses),
    }
    return cast(EsimStock, {**row, **sums})
