"""The reseller behind the credential."""

from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.numbers import balance_amount
from clients.ocs.wire.members import Json, keeps_unknown
from clients.ocs.wire.reseller import ChargingInfo, ResellerInfo, TrafficInfo
from operations.deps import Ctx
from operations.services.network.passing import Data
from operations.services.network.public_urls import without_secrets
from operations.services.network.reached import Upstream
from operations.services.network.resellers import ResellerQuery, of_reseller
from operations.services.network.upstream import reach, reseller_for
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation


@keeps_unknown
class ResellerProfile(TypedDict, total=False):
    """A reseller; in managed mode id, name and the balance of your own account."""

    id: int
    name: str
    parentId: Annotated[int, Field(description="-1 for a top reseller")]
    balance: Annotated[str, Field(description='EUR with a decimal comma, such as "1530,20"')]
    balanceAmount: Annotated[float | None, Field(description="The balance as a number, EUR")]
    cdrFolder: str
    trafficInfo: TrafficInfo
    chargingInfo: ChargingInfo
    contactInfo: dict[str, object]


@operation(
    "GET",
    "/v1/reseller",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Who are we, and what is our balance?",
            {},
            {"data": {"id": 7001, "name": "Fjord Mobile", "balance": "412,50", "balanceAmount": 412.5}},
        )
    ],
)
async def get_reseller_info(ctx: Ctx, params: ResellerQuery) -> Data[ResellerProfile]:
    """Get the reseller you belong to, and the balance.

    `balanceAmount` is the balance as a number, in EUR. In managed mode it is your own account's.

    With a token of your own the answer has all the network says of the reseller: relay flags, price lists, contact.
    """
    upstream = await reach(ctx)
    if upstream.managed:
        await reseller_for(upstream, params.reseller_id)
        return {"data": await managed_profile(upstream)}
    info = await of_reseller(params.reseller_id, upstream.ocs.reseller.get_reseller_info(reseller_id=params.reseller_id))
    return {"data": own_profile(info)}


async def managed_profile(upstream: Upstream) -> ResellerProfile:
    """What an organisation on the service's reseller may know of it: everything else is shared with strangers."""
    info = await upstream.reseller()
    upstream.reads.forget(upstream.identity, "accounts")  # balances fall with every session
    amount = next((account.get("balance") for account in await upstream.accounts()), None)
    profile: ResellerProfile = {"balanceAmount": amount}
    if "id" in info:
        profile["id"] = info["id"]
    if "name" in info:
        profile["name"] = info["name"]
    if amount is not None:
        profile["balance"] = f"{amount:.2f}".replace(".", ",")
    return profile


def own_profile(info: ResellerInfo) -> ResellerProfile:
    """All of it, and the balance as a number."""
    shown = without_secrets(cast(Json, info))
    return cast(ResellerProfile, {**cast(dict[str, Json], shown), "balanceAmount": balance_amount(info.get("balance"))})
