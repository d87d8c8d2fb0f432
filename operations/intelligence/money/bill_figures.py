"""Bills as answers show them: EUR, exact to a millionth, the dearest networks by name and the others as one, so that all adds up."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.money.advice import AdviceFigures, LineAdvice, advice_figures
from operations.intelligence.money.bills import NO_MONEY, PARETO_PERCENT, BillNetwork, CountryBill, FleetBill, LineBill, UseMoney, sum_money
from operations.intelligence.offers.coverage_map import NetworkCodes
from operations.upstream.usage import UseKind, euros

NETWORKS_SHOWN = 3
"""Networks that a line or a country shows by name."""
Euros = Annotated[float, Field(description="EUR, exact to a millionth")]


class CostFigures(TypedDict):
    """What use cost you, and what customers were charged for it outside packages."""

    cost: Annotated[float, Field(description="Same as network_cost", deprecated=True)]
    charged: Annotated[float, Field(description="Same as usage_income", deprecated=True)]
    network_cost: Annotated[float, Field(description="EUR that networks charge you, exact to a millionth")]
    usage_income: Annotated[float, Field(description="EUR that customers were charged outside packages")]


class NetworkCost(CostFigures):
    """What use of a network cost."""

    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2; null: the codes do not tell")]
    mcc: int
    mnc: int
    operator: Annotated[str, Field(description="As the charging system calls it")]


class OtherNetworks(CostFigures):
    """Networks that are not named, together."""

    networks: int


class CountryCost(CostFigures):
    """What use in a country cost. Networks and `rest` add up to it."""

    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2; null: the codes do not tell")]
    share_percent: Annotated[float, Field(description="Of the fleet's network cost")]
    networks: Annotated[list[NetworkCost], Field(description="The three dearest")]
    rest: OtherNetworks | None


class OtherCountries(CostFigures):
    """Countries that are not named, together."""

    countries: int


class LineCost(CostFigures, AdviceFigures):
    """What a line cost and brought in. Networks, `rest` and `unattributed` add up to it; so do `kinds` and `unattributed`."""

    iccid: str
    account_id: int
    margin: Annotated[float, Field(description="usage_income less network_cost; use margin_with_packages", deprecated=True)]
    package_income: Annotated[
        float | None, Field(description="EUR: of each package's price the part of its life in the days; null: packages not read")
    ]
    margin_with_packages: Annotated[
        float | None, Field(description="EUR: package_income and usage_income less network_cost; null: packages not read")
    ]
    share_percent: Annotated[float, Field(description="Of the fleet's network cost")]
    networks: Annotated[list[NetworkCost], Field(description="The three dearest")]
    rest: OtherNetworks | None
    kinds: Annotated[dict[UseKind, float], Field(description="Network cost by kind of use, EUR")]
    unattributed: Annotated[
        CostFigures | None, Field(description="The charging system's totals less its records, where they differ; null: they agree")
    ]


def cost_figures(cost: UseMoney) -> CostFigures:
    paid, charged = euros(cost.network_cost), euros(cost.usage_income)
    return {"cost": paid, "charged": charged, "network_cost": paid, "usage_income": charged}


def known_euros(micro: int | None) -> float | None:
    return None if micro is None else euros(micro)


def unattributed_figures(cost: UseMoney) -> CostFigures | None:
    """The part of the cost that no usage record explains; None where the records explain all."""
    return None if cost == NO_MONEY else cost_figures(cost)


def cost_percent(part: int, whole: int) -> float:
    """`part` of `whole` in percent, with one decimal; 0 where `whole` is 0."""
    return round(100 * part / whole, 1) if whole > 0 else 0.0


def network_costs(networks: Sequence[tuple[BillNetwork, UseMoney]]) -> list[NetworkCost]:
    named = networks[:NETWORKS_SHOWN]
    return [
        {"country": one.country or None, "mcc": one.mcc, "mnc": one.mnc, "operator": one.operator, **cost_figures(cost)}
        for one, cost in named
    ]


def other_networks(networks: Sequence[tuple[BillNetwork, UseMoney]]) -> OtherNetworks | None:
    rest = networks[NETWORKS_SHOWN:]
    return {"networks": len(rest), **cost_figures(sum_money(cost for _, cost in rest))} if rest else None


def line_cost(bill: LineBill, fleet: UseMoney, advice: LineAdvice, codes: NetworkCodes) -> LineCost:
    return {
        "iccid": bill.iccid,
        "account_id": bill.account_id,
        **cost_figures(bill.total),
        "margin": euros(bill.total.usage_income - bill.total.network_cost),
        "package_income": known_euros(bill.package_income),
        "margin_with_packages": known_euros(bill.margin),
        "share_percent": cost_percent(bill.total.network_cost, fleet.network_cost),
        "networks": network_costs(bill.networks),
        "rest": other_networks(bill.networks),
        "kinds": kind_costs(bill.kinds),
        "unattributed": unattributed_figures(bill.unattributed),
        **advice_figures(bill.iccid, advice, codes),
    }


def kind_costs(kinds: Sequence[tuple[UseKind, UseMoney]]) -> dict[UseKind, float]:
    return {kind: euros(cost.network_cost) for kind, cost in kinds if cost.network_cost}


def country_cost(bill: CountryBill, fleet: UseMoney) -> CountryCost:
    return {
        "country": bill.country or None,
        **cost_figures(bill.total),
        "share_percent": cost_percent(bill.total.network_cost, fleet.network_cost),
        "networks": network_costs(bill.networks),
        "rest": other_networks(bill.networks),
    }


def other_countries(bills: Sequence[CountryBill]) -> OtherCountries | None:
    return {"countries": len(bills), **cost_figures(sum_money(bill.total for bill in bills))} if bills else None


class Pareto(TypedDict):
    """How few lines make most of the cost."""

    percent: int
    lines: Annotated[int, Field(description="The fewest lines that make so many percent of the network cost")]
    cost: Annotated[float, Field(description="Same as network_cost", deprecated=True)]
    network_cost: Annotated[float, Field(description="EUR, theirs together")]


def pareto_figures(bill: FleetBill) -> Pareto:
    cost = euros(bill.pareto_cost)
    return {"percent": PARETO_PERCENT, "lines": bill.pareto, "cost": cost, "network_cost": cost}
