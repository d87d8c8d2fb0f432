"""The accounts that hold lines."""

from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.members import keeps_unknown
from clients.ocs.wire.reseller import ResellerAccounts
from operations.deps import Ctx
from operations.services.network.passing import Data, listed
from operations.services.network.reached import AccountGone, Upstream
from operations.services.network.resellers import ResellerPage, of_reseller
from operations.services.network.upstream import reach, reseller_for
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation


@keeps_unknown
class AccountRow(TypedDict, total=False):
    """An account with its reseller."""

    id: int
    name: str
    balance: Annotated[float, Field(description="EUR")]
    packageOnly: Annotated[bool, Field(description="Whether the account has no balance to spend")]
    steeringListId: int
    resellerId: int
    resellerName: str


OF_RESELLER = {"id": "resellerId", "name": "resellerName"}
EXAMPLE: AccountRow = {
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
    examples=[Example("Which accounts do we have, and what is left on them?", {}, {"data": [EXAMPLE]})],
    tool_defaults={"limit": 20},
)
async def list_reseller_accounts(ctx: Ctx, params: ResellerPage) -> Data[list[AccountRow]]:
    """List your accounts with their balances.

    In managed mode there is one. Balances are in EUR.
    """
    upstream = await reach(ctx)
    # Choice: in managed mode even the own reseller needs no look-up unless it is named, so the list costs one call.
    requested = None if params.reseller_id is None else await reseller_for(upstream, params.reseller_id)
    resellers = await of_reseller(requested, upstream.ocs.reseller.list_reseller_account(reseller_id=requested))
    rows = account_rows(upstream, resellers)
    if upstream.managed and not rows:
        raise upstream.account_gone()
    return listed(ctx, rows, params, account_id)


def account_rows(upstream: Upstream, resellers: list[ResellerAccounts]) -> list[AccountRow]:
    """The caller's accounts in one list, lowest id first."""
    rows = [
        cast(AccountRow, {**account, **{spoken: reseller[name] for name, spoken in OF_RESELLER.items() if name in reseller}})
        for reseller in resellers
        for account in reseller.get("account", [])
        if not upstream.managed or account.get("id") == upstream.account_id
    ]
    return sorted(rows, key=account_id)


def account_id(row: AccountRow) -> int:
    """The number of an account."""
    return row.get("id", 0)
