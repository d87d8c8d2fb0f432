"""Which networks a line would use in some countries."""

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from clients.ocs.failure import OcsNotFound
from operations.deps import Ctx
from operations.network.network_default import Mode, effective, list_name, stored_choice
from operations.network.network_offer import Offer, OfferedNetwork, cheapest, offer_of_tariff, offer_of_zones
from operations.network.references import STEERING
from operations.network.tariffs import rules_of
from operations.network.zones import zones_of
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data
from operations.services.network.reached import Upstream
from operations.services.network.reseller_lists import reseller_rows
from operations.services.network.resellers import ResellerId
from operations.services.network.upstream import reach, reseller_for
from operations.services.network.visible import require_steering_list
from registry.errors import NotFound, OcsError
from registry.model import CamelInput
from registry.operation import Example, operation

Decider = Literal["sim", "package", "organisation"]
Iso2 = Annotated[str, Field(pattern=r"^[A-Za-z]{2}$")]


def canonical(countries: list[str]) -> list[str]:
    """Upper case, each once, in the order given."""
    return list(dict.fromkeys(country.upper() for country in countries))


class PlanQuery(CamelInput):
    """Where, and what overrides the organisation's default."""

    countries: Annotated[
        list[Iso2], Field(min_length=1, max_length=60, description="1-60 ISO 3166-1 alpha-2 codes."), AfterValidator(canonical)
    ]
    sim_mode: Annotated[Mode | None, Field(description="Of the SIM; overrides all.")] = None
    sim_list_id: Annotated[UpstreamId | None, Field(description="With simMode custom only.")] = None
    package_mode: Annotated[Mode | None, Field(description="Of the package; overrides the default.")] = None
    package_list_id: Annotated[UpstreamId | None, Field(description="With packageMode custom only.")] = None
    reseller_id: ResellerId = None

    @model_validator(mode="after")
    def check(self) -> "PlanQuery":
        """A list if, and only if, it is used."""
        for name, mode, number in (("sim", self.sim_mode, self.sim_list_id), ("package", self.package_mode, self.package_list_id)):
            if (mode == "custom") != (number is not None):
                raise ValueError(f"{name}ListId: {name}Mode custom needs it, without that mode it means nothing")
        return self


class CountryPlan(TypedDict):
    """The networks of a country, cheapest first."""

    iso2: str
    mode: Mode
    networks: list[OfferedNetwork]


class NetworkPlan(TypedDict):
    """What would be used where. Warnings name what could not be planned as asked."""

    decidedBy: Decider
    countries: list[CountryPlan]
    warnings: list[str]


class Decision(NamedTuple):
    """The mode that counts, and what has to be said about it."""

    by: Decider
    mode: Mode
    warnings: list[str]


NETWORK: OfferedNetwork = {"networkId": 88, "operator": "Telco A", "tadigs": ["NORAA"], "dataPerMb": 0.002, "currency": "EUR"}


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
                    "countries": [{"iso2": "NO", "mode": "cheapest_available", "networks": [NETWORK]}],
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
    upstream = await reach(ctx)
    reseller = await known_reseller(upstream, params.reseller_id)
    decision = await decide(ctx, upstream, params)
    warnings, mode = list(decision.warnings), decision.mode
    offer = await priced_offer(ctx, upstream, reseller)
    if offer is None:
        warnings.append("Your reseller has no tariff at present: all networks of its zones are given, without prices")
        offer, mode = offer_of_zones(await zones_of(upstream, reseller)), "all"
    countries = [planned(country, mode, offer, warnings) for country in params.countries]
    return {"data": {"decidedBy": decision.by, "countries": countries, "warnings": warnings}}


async def known_reseller(upstream: Upstream, requested: int | None) -> int:
    """The reseller a call names; another one is asked for its lists first, so that an unknown one is told from one without a tariff."""
    reseller = await reseller_for(upstream, requested)
    if reseller != await upstream.reseller_id():
        await reseller_rows(upstream, STEERING, reseller, upstream.ocs.reseller.list_steering_list)
    return reseller


async def decide(ctx: Ctx, upstream: Upstream, params: PlanQuery) -> Decision:
    """SIM, package, organisation, in this order. Every list that is named must be the caller's to see."""
    for param, number in (("simListId", params.sim_list_id), ("packageListId", params.package_list_id)):
        if number is not None:
            await require_steering_list(upstream, number, param)
    if params.sim_mode is not None:
        return Decision("sim", params.sim_mode, await unseen(upstream, params.sim_list_id))
    if params.package_mode is not None:
        return Decision("package", params.package_mode, await unseen(upstream, params.package_list_id))
    today = await effective(ctx, *await stored_choice(ctx))
    note = [today["note"]] if "note" in today else []
    return Decision("organisation", today["mode"], note or await unseen(upstream, today.get("listId")))


async def unseen(upstream: Upstream, list_id: int | None) -> list[str]:
    """What a steering list holds is not shown, so the plan cannot follow it."""
    if list_id is None:
        return []
    name = await list_name(upstream, list_id)
    return [
        f"The steering list {list_id} ({name}) decides, and the charging system does not show its networks: all networks with an active "
        "rule are given"
    ]


async def priced_offer(ctx: Ctx, upstream: Upstream, reseller: int) -> Offer | None:
    """The networks of the tariff; nothing when there is no tariff, or an empty one."""
    try:
        rules = await rules_of(upstream, reseller)
    except OcsNotFound:
        return None
    return offer_of_tariff(rules, ctx.now) if rules else None


def planned(country: str, mode: Mode, offer: Offer, warnings: list[str]) -> CountryPlan:
    """A country's networks by mode; what is missing is added to the warnings."""
    networks = offer.get(country, [])
    if len({network.get("currency") for network in networks if "currency" in network}) > 1:
        warnings.append(f"{country}: prices are in several currencies and were compared as they are")
    found = cheapest(networks) if mode == "cheapest_available" else networks
    if not networks:
        warnings.append(f"{country}: your reseller has no network there")
    elif not found:
        warnings.append(f"{country}: your reseller has networks there, but none with a data price")
    return {"iso2": country, "mode": mode, "networks": found}
