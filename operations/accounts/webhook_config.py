"""What the network relays to a customer's own system, and whom it notifies."""

from typing import Annotated, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.members import Json
from clients.ocs.wire.reseller import ResellerInfo
from operations.deps import Ctx
from operations.services.network.passing import Data
from operations.services.network.public_urls import without_secrets
from operations.services.network.resellers import ResellerQuery, of_reseller
from operations.services.network.upstream import reach, reseller_for
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

DOCUMENTED = frozenset({"id", "name", "parentId", "balance", "cdrFolder", "trafficInfo", "chargingInfo", "contactInfo", "notifications"})


class Relay(TypedDict):
    """Which live traffic goes through the reseller's own system."""

    lu: Annotated[bool, Field(description="Location updates")]
    gy: Annotated[bool, Field(description="Live data charging")]
    voip: Annotated[bool, Field(description="Calls over IP")]
    callSms: Annotated[bool, Field(description="Calls and SMS")]


class WebhookConfig(TypedDict):
    """Relays and notifications."""

    relay: Relay
    notifications: Annotated[
        list[object], Field(description="Of package_usage, es2_status and low_credit: type, url without its secrets, thresholds in percent")
    ]
    source: Annotated[
        Literal["upstream", "not_reported"], Field(description="not_reported: the network does not tell which notifications are set up")
    ]
    other: NotRequired[Annotated[dict[str, object], Field(description="What this network says beyond its documentation")]]


@operation(
    "GET",
    "/v1/reseller/webhook-config",
    upstream=True,
    title="Get webhook configuration",
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Are location updates relayed?",
            {},
            {
                "data": {
                    "relay": {"lu": True, "gy": False, "voip": False, "callSms": False},
                    "notifications": [],
                    "source": "not_reported",
                }
            },
        )
    ],
)
async def get_webhook_config(ctx: Ctx, params: ResellerQuery) -> Data[WebhookConfig]:
    """Tell which live traffic the network relays, and whom it notifies.

    It is set up by the network's provider, not here. Your own event endpoints are in list_connectivity_webhook_endpoints.

    In managed mode notification addresses are left out: they belong to the service.
    """
    upstream = await reach(ctx)
    if upstream.managed:
        await reseller_for(upstream, params.reseller_id)
        return {"data": {"relay": relay_of(await upstream.reseller()), "notifications": [], "source": "not_reported"}}
    info = await of_reseller(params.reseller_id, upstream.ocs.reseller.get_reseller_info(reseller_id=params.reseller_id))
    return {"data": config_of(info)}


def relay_of(info: ResellerInfo) -> Relay:
    """The flags; what is not said is off."""
    flags = info.get("trafficInfo", {})
    return {
        "lu": flags.get("relayLU", False),
        "gy": flags.get("relayGy", False),
        "voip": flags.get("relayVoIP", False),
        "callSms": flags.get("relayCallSms", False),
    }


def config_of(info: ResellerInfo) -> WebhookConfig:
    """The documented answer has flags only; what newer servers add is shown without secrets."""
    members = cast(dict[str, Json], without_secrets(cast(Json, info)))
    told = members.get("notifications")
    config: WebhookConfig = {"relay": relay_of(info), "notifications": [], "source": "not_reported"}
    if isinstance(told, list):
        config["notifications"], config["source"] = list[object](told), "upstream"
    other: dict[str, object] = {name: value for name, value in members.items() if name not in DOCUMENTED}
    if other:
        config["other"] = other
    return config
