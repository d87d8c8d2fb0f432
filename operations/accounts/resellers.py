"""The reseller behind the credential: its profile, what the network relays to its own system, its sponsors."""

import re
from typing import Annotated, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.resellers import ChargingInfo, ResellerInfo, Sponsor, TrafficInfo
from clients.ocs.wire_schema import Json, balance_amount, keeps_unknown
from operations.deps import Ctx
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.paging import Data, member_number, paged_data
from operations.upstream.resellers import SPONSOR_LIST, ResellerPage, ResellerQuery, read_of_reseller, read_reseller_list, resolve_reseller
from registry.errors import NotFound, OcsError
from registry.free_text import FREE_TEXT, FreeText
from registry.operation import Example, operation


@keeps_unknown
class ResellerProfile(TypedDict, total=False):
    """A reseller; in managed mode id, name and the balance of your own account."""

    id: int
    name: FreeText
    parentId: Annotated[int, Field(description="-1 for a top reseller")]
    balance: Annotated[str, Field(description='EUR with a decimal comma, such as "1530,20"')]
    balanceAmount: Annotated[float | None, Field(description="The balance as a number, EUR")]
    cdrFolder: str
    trafficInfo: TrafficInfo
    chargingInfo: ChargingInfo
    contactInfo: dict[str, Annotated[object, FREE_TEXT]]


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
    upstream = await connect_upstream(ctx)
    if upstream.managed:
        await resolve_reseller(upstream, params.reseller_id)
        return {"data": await managed_reseller_profile(upstream)}
    info = await read_of_reseller(params.reseller_id, upstream.ocs.reseller.get_reseller_info(reseller_id=params.reseller_id))
    return {"data": own_reseller_profile(info)}


async def managed_reseller_profile(upstream: Upstream) -> ResellerProfile:
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


def own_reseller_profile(info: ResellerInfo) -> ResellerProfile:
    """All of it, and the balance as a number."""
    shown = redact_urls(cast(Json, info))
    return cast(ResellerProfile, {**cast(dict[str, Json], shown), "balanceAmount": balance_amount(info.get("balance"))})


JSON_DEPTH_LIMIT = 100
URL_PATTERN = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)([^\s/?#]*@)?([^\s?#]*)([?#]\S*)?")


def redact_urls(value: Json, depth: int = 0) -> Json:
    """The value with every URL in it shortened to address and path.

    Choice: queries go as a whole, since nobody can tell which of their names holds the secret.
    """
    if isinstance(value, str):
        return URL_PATTERN.sub(shorten_url, value)
    if depth > JSON_DEPTH_LIMIT:
        raise OcsError("The charging system's answer is nested too deeply to be passed on")
    if isinstance(value, list):
        return [redact_urls(part, depth + 1) for part in value]
    if isinstance(value, dict):
        return {name: redact_urls(part, depth + 1) for name, part in value.items()}
    return value


def shorten_url(found: "re.Match[str]") -> str:
    """Scheme, host and path; marks where something was left out."""
    scheme, user, rest, tail = (cast("str | None", part) for part in found.groups())
    return f"{scheme}{'***@' if user else ''}{rest}{'?***' if tail else ''}"


RESELLER_MEMBERS = frozenset(
    {"id", "name", "parentId", "balance", "cdrFolder", "trafficInfo", "chargingInfo", "contactInfo", "notifications"}
)


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
    upstream = await connect_upstream(ctx)
    if upstream.managed:
        await resolve_reseller(upstream, params.reseller_id)
        return {"data": {"relay": relay_flags(await upstream.reseller()), "notifications": [], "source": "not_reported"}}
    info = await read_of_reseller(params.reseller_id, upstream.ocs.reseller.get_reseller_info(reseller_id=params.reseller_id))
    return {"data": webhook_config_of(info)}


def relay_flags(info: ResellerInfo) -> Relay:
    """The flags; what is not said is off."""
    flags = info.get("trafficInfo", {})
    return {
        "lu": flags.get("relayLU", False),
        "gy": flags.get("relayGy", False),
        "voip": flags.get("relayVoIP", False),
        "callSms": flags.get("relayCallSms", False),
    }


def webhook_config_of(info: ResellerInfo) -> WebhookConfig:
    """The documented answer has flags only; what newer servers add is shown without secrets."""
    members = cast(dict[str, Json], redact_urls(cast(Json, info)))
    told = members.get("notifications")
    config: WebhookConfig = {"relay": relay_flags(info), "notifications": [], "source": "not_reported"}
    if isinstance(told, list):
        config["notifications"], config["source"] = list[object](told), "upstream"
    other: dict[str, object] = {name: value for name, value in members.items() if name not in RESELLER_MEMBERS}
    if other:
        config["other"] = other
    return config


@operation(
    "GET",
    "/v1/sponsors",
    upstream=True,
    raises=[NotFound, OcsError],
    examples=[Example("Which sponsors do our SIMs roam with?", {}, {"data": [{"id": 31, "prefix": 90170, "name": "SPX"}]})],
    tool_defaults={"limit": 20},
)
async def list_sponsors(ctx: Ctx, params: ResellerPage) -> Data[list[Sponsor]]:
    """List the sponsors whose IMSI ranges your SIMs roam with.

    A network profile and a package template belong to one sponsor each.
    """
    upstream = await connect_upstream(ctx)
    return paged_data(ctx, await read_reseller_list(upstream, SPONSOR_LIST, params.reseller_id), params, member_number("id"))
