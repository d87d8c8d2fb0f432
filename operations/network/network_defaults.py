"""Which networks new assignments use: an organisation's own choice, the plan that follows from it, and the steering lists."""

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, NotRequired, cast

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from clients.ocs.zones import DetailedLocationZone
from operations.deps import Ctx
from operations.network.zones import canonical_codes, operator_country, read_zones, render_zone_network
from operations.upstream.connection import Upstream, connect_upstream, require_connected
from operations.upstream.paging import Data, member_number, paged_data
from operations.upstream.resellers import STEERING_LISTS, ResellerId, ResellerPage, read_reseller_list, require_listed, resolve_reseller
from operations.upstream.steering_lists import SteeringList, find_steering_list, render_steering_list
from operations.upstream.tariffs import NetworkOffer, OfferedNetwork, networks_by_country, read_tariff_rules, tariff_offer
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError, OcsNotFound, OrgNotConnected
from registry.free_text import FreeText
from registry.operation import CamelInput, Example, Nothing, Scope, SpendKind, operation
from registry.versions import ObjectVersion, Versioned
from storage.engine.sql import Connection
from storage.network_defaults import find_network_default, put_network_default
from storage.organisations import lock_organisation

NetworkMode = Literal["cheapest_available", "all", "custom"]


class NetworkChoice(CamelInput):
    """The choice to keep."""

    mode: Annotated[NetworkMode, Field(description="custom: the steering list listId.")]
    list_id: Annotated[UpstreamId | None, Field(description="Id of list_steering_lists, with custom only.")] = None

    @model_validator(mode="after")
    def check(self) -> "NetworkChoice":
        """Raises ValueError unless a list is given if, and only if, the mode uses one."""
        if (self.mode == "custom") != (self.list_id is not None):
            raise ValueError("listId: the mode custom needs it, the other modes take none")
        return self


class Chosen(TypedDict):
    """A choice."""

    mode: NetworkMode
    listId: NotRequired[int]


class Effective(Chosen):
    """What applies today, to new assignments only."""

    listName: NotRequired[FreeText]
    note: NotRequired[Annotated[str, Field(description="Why it is not what was chosen")]]


class StoredDefault(Chosen):
    """The stored choice, and what comes of it."""

    effective: Effective


async def stored_network_choice(ctx: Ctx) -> tuple[NetworkMode, int | None]:
    """Mode and list of the organisation, or the defaults for those who chose nothing."""
    stored = await ctx.deps.store.read(find_network_default, organisation=ctx.organisation)
    return ("cheapest_available", None) if stored is None else (cast(NetworkMode, stored.mode), stored.list_id)


def render_network_choice(mode: NetworkMode, list_id: int | None) -> Chosen:
    return {"mode": mode} if list_id is None else {"mode": mode, "listId": list_id}


def read_network_choice_version(connection: Connection, ctx: Ctx, params: object, hold: bool) -> ObjectVersion:
    del params
    if hold:  # a row need not be there to be held
        lock_organisation(connection, organisation=ctx.organisation)
    found = find_network_default(connection, organisation=ctx.organisation)
    return ObjectVersion(["cheapest_available", None] if found is None else found, alone=True)


NETWORK_CHOICE_VERSION = Versioned("network default", read_network_choice_version, "get_network_default", ("set_network_default",))


@operation(
    "GET",
    "/v1/network-default",
    versioned=NETWORK_CHOICE_VERSION,
    raises=[OcsError],
    examples=[
        Example(
            "What do new assignments use?",
            {},
            {
                "data": {
                    "mode": "custom",
                    "listId": 17,
                    "effective": {"mode": "custom", "listId": 17, "listName": "Nordic first"},
                }
            },
        )
    ],
)
async def get_network_default(ctx: Ctx, params: Nothing) -> Data[StoredDefault]:
    """Show which networks new assignments use by default, and what applies today.

    set_network_default changes it; plan_network_default shows the networks of a country.

    Where nothing was chosen it is cheapest_available.
    """
    mode, list_id = await stored_network_choice(ctx)
    return {"data": {**render_network_choice(mode, list_id), "effective": await effective_network_choice(ctx, mode, list_id)}}


async def effective_network_choice(ctx: Ctx, mode: NetworkMode, list_id: int | None) -> Effective:
    """The choice with its list's name. A deleted list leaves the default. Waits for the network."""
    if list_id is None:
        return {"mode": mode}
    if ctx.caller.connection is None:
        return {"mode": mode, "listId": list_id, "note": "Your organisation has no connected account, so the list could not be looked up"}
    name = await steering_list_name(await connect_upstream(ctx), list_id)
    if name is None:
        return {"mode": "cheapest_available", "note": f"Your reseller has no steering list {list_id} any more: choose again"}
    return {"mode": mode, "listId": list_id, "listName": name}


async def steering_list_name(upstream: Upstream, list_id: int) -> str | None:
    row = await find_steering_list(upstream, list_id)
    return None if row is None else row.get("name", "")


async def require_choice_list(ctx: Ctx, params: NetworkChoice) -> None:
    """Raises NotFound unless the caller's reseller has the list; other modes need no account."""
    if params.list_id is not None:
        await require_connected(ctx)
        await require_listed(await connect_upstream(ctx), STEERING_LISTS, params.list_id, "listId")


@operation(
    "PUT",
    "/v1/network-default",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    access=require_choice_list,
    versioned=NETWORK_CHOICE_VERSION,
    raises=[NotFound, OrgNotConnected, OcsError],
    examples=[Example("Prefer one list", {"mode": "custom", "listId": 17}, {"data": {"mode": "custom", "listId": 17}})],
)
async def set_network_default(ctx: Ctx, params: NetworkChoice, granted: None) -> Data[Chosen]:
    """Choose which networks new assignments use by default.

    Stored here only: no SIM is touched, nothing is written upstream.

    With custom the list is looked up once, so that it is one of yours.
    """
    return await ctx.settle(
        {"data": render_network_choice(params.mode, params.list_id)},
        put_network_default,
        organisation=ctx.organisation,
        mode=params.mode,
        list_id=params.list_id,
        now=ctx.now,
    )


NetworkDecider = Literal["sim", "package", "organisation"]
PlanCountryCode = Annotated[str, Field(pattern=r"^[A-Za-z]{2}$")]


class PlanQuery(CamelInput):
    """Where, and what overrides the organisation's default."""

    countries: Annotated[
        list[PlanCountryCode],
        Field(min_length=1, max_length=60, description="1-60 ISO 3166-1 alpha-2 codes."),
        AfterValidator(canonical_codes),
    ]
    sim_mode: Annotated[NetworkMode | None, Field(description="Of the SIM; overrides all.")] = None
    sim_list_id: Annotated[UpstreamId | None, Field(description="With simMode custom only.")] = None
    package_mode: Annotated[NetworkMode | None, Field(description="Of the package; overrides the default.")] = None
    package_list_id: Annotated[UpstreamId | None, Field(description="With packageMode custom only.")] = None
    reseller_id: ResellerId = None

    @model_validator(mode="after")
    def check(self) -> "PlanQuery":
        """Raises ValueError unless a list is given if, and only if, its mode uses one."""
        for name, mode, number in (("sim", self.sim_mode, self.sim_list_id), ("package", self.package_mode, self.package_list_id)):
            if (mode == "custom") != (number is not None):
                raise ValueError(f"{name}ListId: {name}Mode custom needs it, without that mode it means nothing")
        return self


class CountryPlan(TypedDict):
    """The networks of a country, cheapest first."""

    iso2: str
    mode: NetworkMode
    networks: list[OfferedNetwork]


class NetworkPlan(TypedDict):
    """What would be used where. Warnings name what could not be planned as asked."""

    decidedBy: NetworkDecider
    countries: list[CountryPlan]
    warnings: list[FreeText]


class NetworkDecision(NamedTuple):
    """The mode that counts, and what has to be said about it."""

    by: NetworkDecider
    mode: NetworkMode
    warnings: list[str]


PLAN_NETWORK_EXAMPLE: OfferedNetwork = {"networkId": 88, "operator": "Telco A", "tadigs": ["NORAA"], "dataPerMb": 0.002, "currency": "EUR"}


@operation(
    "POST",
    "/v1/network-default/plan",
    upstream=True,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Where is data cheapest in Norway?",
            {"countries": ["NO"]},
            {
                "data": {
                    "decidedBy": "organisation",
                    "countries": [{"iso2": "NO", "mode": "cheapest_available", "networks": [PLAN_NETWORK_EXAMPLE]}],
                    "warnings": [],
                }
            },
        )
    ],
)
async def plan_network_default(ctx: Ctx, params: PlanQuery) -> Data[NetworkPlan]:
    """Plan which networks a line would use in some countries, with data prices.

    Changes nothing. The SIM's mode overrides the package's, which overrides the organisation's default. Read the warnings.

    cheapest_available gives the networks with the lowest data price, all every network with an active rule. custom follows a
    steering list, whose networks the charging system does not show: all are given, with a warning. Without a tariff all networks
    of the reseller's zones are given, with a warning.
    """
    upstream = await connect_upstream(ctx)
    reseller = await resolve_reseller(upstream, params.reseller_id)
    if reseller != await upstream.reseller_id():  # so that an unknown reseller differs from one without a tariff
        await read_reseller_list(upstream, STEERING_LISTS, reseller)
    decision = await decide_network_mode(ctx, upstream, params)
    warnings, mode = list(decision.warnings), decision.mode
    offer = await read_tariff_offer(ctx, upstream, reseller)
    if offer is None:
        warnings.append("Your reseller has no tariff at present: all networks of its zones are given, without prices")
        offer, mode = zone_offer(await read_zones(upstream, reseller)), "all"
    countries = [plan_country(country, mode, offer, warnings) for country in params.countries]
    return {"data": {"decidedBy": decision.by, "countries": countries, "warnings": warnings}}


async def decide_network_mode(ctx: Ctx, upstream: Upstream, params: PlanQuery) -> NetworkDecision:
    """The mode of the SIM, else the package, else the organisation. Raises NotFound unless the caller may see each list that is named."""
    for param, number in (("simListId", params.sim_list_id), ("packageListId", params.package_list_id)):
        if number is not None:
            await require_listed(upstream, STEERING_LISTS, number, param)
    if params.sim_mode is not None:
        return NetworkDecision("sim", params.sim_mode, await hidden_list_warnings(upstream, params.sim_list_id))
    if params.package_mode is not None:
        return NetworkDecision("package", params.package_mode, await hidden_list_warnings(upstream, params.package_list_id))
    today = await effective_network_choice(ctx, *await stored_network_choice(ctx))
    note = [today["note"]] if "note" in today else []
    return NetworkDecision("organisation", today["mode"], note or await hidden_list_warnings(upstream, today.get("listId")))


async def hidden_list_warnings(upstream: Upstream, list_id: int | None) -> list[str]:
    """The warning that the plan cannot follow a steering list, since its networks are not shown."""
    if list_id is None:
        return []
    name = await steering_list_name(upstream, list_id)
    return [
        f"The steering list {list_id} ({name}) decides, and the charging system does not show its networks: all networks with an active "
        "rule are given"
    ]


async def read_tariff_offer(ctx: Ctx, upstream: Upstream, reseller: int) -> NetworkOffer | None:
    """The networks of the tariff; None without a tariff, or with an empty one. Waits for the network."""
    try:
        rules = await read_tariff_rules(upstream, reseller)
    except OcsNotFound:
        return None
    return tariff_offer(rules, ctx.now) if rules else None


def plan_country(country: str, mode: NetworkMode, offer: NetworkOffer, warnings: list[str]) -> CountryPlan:
    """A country's networks by `mode`; appends what is missing to `warnings`."""
    networks = offer.get(country, [])
    if len({network.get("currency") for network in networks if "currency" in network}) > 1:
        warnings.append(f"{country}: prices are in several currencies and were compared as they are")
    found = cheapest_networks(networks) if mode == "cheapest_available" else networks
    if not networks:
        warnings.append(f"{country}: your reseller has no network there")
    elif not found:
        warnings.append(f"{country}: your reseller has networks there, but none with a data price")
    return {"iso2": country, "mode": mode, "networks": found}


def zone_offer(zones: Iterable[DetailedLocationZone]) -> NetworkOffer:
    """The networks of the zones by country, which is what is known without a tariff."""
    networks: dict[tuple[str, int], OfferedNetwork] = {}
    for operator in (row for zone in zones for row in zone.get("operators", [])):
        found = render_zone_network(operator)
        networks[operator_country(operator), found["networkId"]] = {
            "networkId": found["networkId"],
            "operator": found["operatorName"],
            "tadigs": found["tadigs"],
        }
    return networks_by_country(networks)


def cheapest_networks(networks: list[OfferedNetwork]) -> list[OfferedNetwork]:
    """The networks with the lowest price, which may be several; none without a price."""
    lowest = min((network["dataPerMb"] for network in networks if "dataPerMb" in network), default=None)
    return [] if lowest is None else [network for network in networks if network.get("dataPerMb") == lowest]


@operation(
    "GET",
    "/v1/steering-lists",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Which steering lists are there?",
            {},
            {"data": [{"id": 17, "resellerId": 7001, "name": "Nordic first", "networks": None, "networksKnown": False}]},
        )
    ],
    tool_defaults={"limit": 20},
)
async def list_steering_lists(ctx: Ctx, params: ResellerPage) -> Data[list[SteeringList]]:
    """List the steering lists (preferred networks) that lines can be given.

    The charging system does not show which networks a list holds. modify_subscriber_steering_list assigns one.

    By its documentation the charging system tells a list's name only: `networks` is then null, `networksKnown` is false, and whoever made
    the list knows what it holds. From a charging system that tells more, `networks` has them.
    """
    upstream = await connect_upstream(ctx)
    rows = await read_reseller_list(upstream, STEERING_LISTS, params.reseller_id)
    return paged_data(ctx, [render_steering_list(row) for row in rows], params, member_number("id"))
