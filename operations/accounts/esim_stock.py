"""How many eSIMs an account has left."""

from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.members import keeps_unknown
from clients.ocs.wire.reseller import AccountStock, SponsorStock
from operations.deps import Ctx
from operations.services.network.accounts import AccountRef, OwnAccount, own_account
from operations.services.network.passing import Data
from operations.services.network.reached import AccountGone
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

FREE, AFFECTED = 0, 2


@keeps_unknown
class EsimStock(TypedDict, total=False):
    """The eSIMs of an account by sponsor and status, and what they add up to."""

    id: int
    name: str
    sponsor: list[SponsorStock]
    free: Annotated[int, Field(description="eSIMs that can be issued")]
    affected: Annotated[int, Field(description="eSIMs in use")]
    total: Annotated[int, Field(description="eSIMs in any status")]


EXAMPLE: EsimStock = {
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
    examples=[Example("How many eSIMs can we still issue?", {"accountId": 8101}, {"data": EXAMPLE})],
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
    return {"data": with_sums(next((row for row in rows if row.get("id") == account.id), {"id": account.id, "sponsor": []}))}


def with_sums(row: AccountStock) -> EsimStock:
    """The account as the network counts it, and the sums over its sponsors."""
    statuses = [status for sponsor in row.get("sponsor", []) for status in sponsor.get("esim", {}).get("status", [])]
    sums = {
        "free": sum(status.get("count", 0) for status in statuses if status.get("statusNum") == FREE),
        "affected": sum(status.get("count", 0) for status in statuses if status.get("statusNum") == AFFECTED),
        "total": sum(status.get("count", 0) for status in statuses),
    }
    return cast(EsimStock, {**row, **sums})
