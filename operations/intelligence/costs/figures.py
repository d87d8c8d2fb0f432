"""Bills as answers show them: a few networks by name and the rest as one, so that what is shown still adds up."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.costs.euros import euros
from operations.intelligence.costs.fleet_bill import CountryBill
from operations.intelligence.costs.line_bill import NOTHING, Bill, Cost, Network, summed
from operations.intelligence.lines.use_kinds import Kind

NAMED = 3
"""Networks that a line or a country shows by name."""
Euros = Annotated[float, Field(description="EUR, exact to a millionth")]


class CostFigures(TypedDict):
    """What use cost the reseller, and what was charged for it outside packages."""

    cost: Euros
    charged: Euros


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
    share_percent: Annotated[float, Field(description="Of the fleet's cost")]
    networks: Annotated[list[NetworkCost], Field(description="The three dearest")]
    rest: OtherNetworks | None


class OtherCountries(CostFigures):
    """Countries that are not named, together."""

    countries: int


class LineCost(CostFigures):
    """What a line cost. Networks, `rest` and `unattributed` add up to it; so do `kinds` and `unattributed`."""

    iccid: str
    account_id: int
    margin: Annotated[float, Field(description="EUR: charged less cost. What packages were sold for is in neither")]
    share_percent: Annotated[float, Field(description="Of the fleet's cost")]
    networks: Annotated[list[NetworkCost], Field(description="The three dearest")]
    rest: OtherNetworks | None
    kinds: Annotated[dict[Kind, float], Field(description="Cost by kind of use, EUR")]
    unattributed: Annotated[
        CostFigures | None, Field(description="The charging system's totals less its records, where they differ; null: they agree")
    ]


def figures(cost: Cost) -> CostFigures:
    """Both amounts."""
    return {"cost": euros(cost.reseller), "charged": euros(cost.charged)}


def margin(cost: Cost) -> float:
    """What is left of what was charged."""
    return euros(cost.charged - cost.reseller)


def difference(cost: Cost) -> CostFigures | None:
    """What has no record, where there is such."""
    return None if cost == NOTHING else figures(cost)


def percent(part: int, whole: int) -> float:
    """A share, to a tenth of a percent; 0 of nothing."""
    return round(100 * part / whole, 1) if whole > 0 else 0.0


def network_costs(networks: Sequence[tuple[Network, Cost]]) -> list[NetworkCost]:
    """The dearest by name."""
    named = networks[:NAMED]
    return [
        {"country": one.country or None, "mcc": one.mcc, "mnc": one.mnc, "operator": one.operator, **figures(cost)} for one, cost in named
    ]


def other_networks(networks: Sequence[tuple[Network, Cost]]) -> OtherNetworks | None:
    """The others as one."""
    rest = networks[NAMED:]
    return {"networks": len(rest), **figures(summed(cost for _, cost in rest))} if rest else None


def line_cost(bill: Bill, fleet: Cost) -> LineCost:
    """A line's row."""
    return {
        "iccid": bill.iccid,
        "account_id": bill.account_id,
        **figures(bill.total),
        "margin": margin(bill.total),
        "share_percent": percent(bill.total.reseller, fleet.reseller),
        "networks": network_costs(bill.networks),
        "rest": other_networks(bill.networks),
        "kinds": kind_costs(bill.kinds),
        "unattributed": difference(bill.unattributed),
    }


def kind_costs(kinds: Sequence[tuple[Kind, Cost]]) -> dict[Kind, float]:
    """Cost by kind; kinds that cost nothing are left out."""
    return {kind: euros(cost.reseller) for kind, cost in kinds if cost.reseller}


def country_cost(bill: CountryBill, fleet: Cost) -> CountryCost:
    """A country's row."""
    return {
        "country": bill.country or None,
        **figures(bill.total),
        "share_percent": percent(bill.total.reseller, fleet.reseller),
        "networks": network_costs(bill.networks),
        "rest": other_networks(bill.networks),
    }


def other_countries(bills: Sequence[CountryBill]) -> OtherCountries | None:
    """The others as one."""
    return {"countries": len(bills), **figures(summed(bill.total for bill in bills))} if bills else None
