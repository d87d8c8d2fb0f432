"""An account's balance, changed by hand."""

from typing import NamedTuple

from operations.deps import Ctx
from operations.services.network.accounts import AccountRef, OwnAccount, own_account
from operations.services.network.balances import BalanceChange, BalanceChanged, ManagedBalance, refuse_gift, sent
from operations.services.network.passing import Data
from operations.services.network.reached import AccountGone, Upstream
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, Once, operation


class AccountBalance(BalanceChange, AccountRef):
    """Which account, and how its balance changes."""


class AccountBalanceChanged(BalanceChanged):
    """Of which account."""

    accountId: int


class Held(NamedTuple):
    """The caller's own account, and what it holds where that decides."""

    account: OwnAccount
    balance: float


async def look(ctx: Ctx, params: AccountBalance) -> Held:
    """The balance changes by itself, so it is compared when the call is made and not when its answer is replayed."""
    account = await own_account(ctx, params)
    guarded = account.upstream.managed and not account.upstream.service_own and params.mode == "set"
    return Held(account, await balance_of(account.upstream) if guarded else 0.0)


async def balance_of(upstream: Upstream) -> float:
    """What the managed account holds now; a balance that nobody tells counts as nothing."""
    upstream.reads.forget(upstream.identity, "accounts")
    return next((account.get("balance", 0.0) for account in await upstream.accounts()), 0.0)


@operation(
    "PUT",
    "/v1/accounts/{accountId}/balance",
    scope=Scope.ADMIN,
    confirm=True,
    once=Once(shown=True),
    upstream=True,
    moves=True,
    operator=True,
    title="Change account balance",
    access=look,
    raises=[NotFound, ManagedBalance, AccountGone, OcsError],
    examples=[
        Example(
            "Take a fee of 12.50 from an account",
            {"accountId": 8101, "amount": -12.5, "description": "Fee for January"},
            {"data": {"accountId": 8101, "mode": "adapt", "amount": -12.5}},
        )
    ],
)
async def modify_account_balance(ctx: Ctx, params: AccountBalance, held: Held) -> Data[AccountBalanceChanged]:
    """Add to an account's balance, lower it or set it.

    A result below 0 becomes 0. For one line use modify_subscriber_balance.

    In managed mode the balance can be lowered, not raised: raising it answers 409 `managed_balance`. The service's own organisation
    is the exception.
    """
    account, upstream = held.account, held.account.upstream
    refuse_gift(upstream, params, held.balance)
    amount, put = sent(upstream, params, held.balance)
    await upstream.ocs.reseller.modify_account_balance(account.id, amount, set_balance=put, description=params.description or None)
    upstream.reads.forget(upstream.identity, "accounts")
    return {"data": {"accountId": account.id, "mode": params.mode, "amount": params.amount}}
