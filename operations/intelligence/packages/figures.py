"""Plans of lines as answers show them."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.costs.euros import euros
from operations.intelligence.lines.use_kinds import Kind
from operations.intelligence.packages.cover import Chosen
from operations.intelligence.packages.need import Part, countries_of
from operations.intelligence.packages.offers import Offer
from operations.intelligence.packages.plan import Plan, Verdict
from operations.intelligence.upstream_text import plain

NAMED = 3
"""Networks without cover that a row names."""
MEGABYTE = 1_000_000


class Count(TypedDict):
    """Packages of a template."""

    template_id: int
    count: int


class PackageSet(TypedDict):
    """Packages and what they cost in thirty days."""

    price: Annotated[float, Field(description="EUR in 30 days, packages alone")]
    charged: Annotated[float, Field(description="EUR in 30 days, use outside packages")]
    total: Annotated[float, Field(description="EUR in 30 days")]
    packages: list[Count]


class LineNeed(TypedDict):
    """What packages are to cover in thirty days, the margin included."""

    data_mb: Annotated[float, Field(description="10^6 bytes")]
    others: Annotated[dict[Kind, int], Field(description="Seconds of calls and messages that packages pay at present")]
    days: Annotated[int, Field(description="Days with use among the 28")]
    countries: Annotated[list[str], Field(description="ISO 3166-1 alpha-2, most data first")]


class Uncovered(TypedDict):
    """Use that no package of the catalogue covers."""

    country: str | None
    mcc: int
    mnc: int
    operator: str
    kind: Kind
    amount: Annotated[int, Field(description="Bytes, seconds or messages in 30 days")]


class LinePlan(TypedDict):
    """What a line needs, what it has, and what would be cheapest."""

    iccid: str
    account_id: int
    verdict: Annotated[
        Verdict,
        Field(
            description="change; keep; unused: nothing was used; no_replacement: something that its packages pay is in no template; "
            "no_sponsor: nobody knows whose SIM it is; unsolved: too many places or packages"
        ),
    ]
    saving: Annotated[float, Field(description="EUR in 30 days; 0 where nothing is to be changed")]
    need: LineNeed
    now: PackageSet
    best: Annotated[PackageSet | None, Field(description="The cheapest set that covers the need")]
    next: Annotated[PackageSet | None, Field(description="The next best other set in which no package is superfluous; null: there is none")]
    proven: Annotated[bool, Field(description="Whether the search ruled everything else out")]
    uncovered: Annotated[list[Uncovered], Field(description="Three at most, largest first; it goes on being charged as now")]


class TemplateFigures(TypedDict):
    """A template that the page speaks of."""

    template_id: int
    name: Annotated[str, Field(description="As the charging system calls it")]
    days: int
    data_mb: Annotated[float, Field(description="Of one package in 30 days, 10^6 bytes")]
    cost: Annotated[float, Field(description="EUR, one package")]
    price: Annotated[float, Field(description="EUR of one package in 30 days: less than `cost` where it lasts longer")]


def line_plan(plan: Plan) -> LinePlan:
    """A line's row."""
    found = plan.found
    return {
        "iccid": plan.iccid,
        "account_id": plan.account_id,
        "verdict": plan.verdict,
        "saving": euros(plan.saving),
        "need": need_figures(plan),
        "now": package_set(plan.held.price, plan.charged_now, plan.held.counts),
        "best": chosen_set(found.best, plan.charged_then),
        "next": chosen_set(found.next, plan.charged_then),
        "proven": found.proven,
        "uncovered": [uncovered(part) for part in sorted(plan.uncovered, key=lambda part: (-part.amount, part.code, part.kind))[:NAMED]],
    }


def need_figures(plan: Plan) -> LineNeed:
    """The need at a glance."""
    others: dict[Kind, int] = {}
    for part in plan.need.parts:
        if part.kind != "data":
            others[part.kind] = others.get(part.kind, 0) + part.amount
    return {
        "data_mb": megabytes(plan.need.data_bytes),
        "others": others,
        "days": sum(plan.need.used),
        "countries": countries_of(plan.need.parts),
    }


def package_set(price: int, charged: int, counts: Iterable[tuple[int, int]]) -> PackageSet:
    """Packages with their cost."""
    packages: list[Count] = [{"template_id": template, "count": count} for template, count in counts]
    return {"price": euros(price), "charged": euros(charged), "total": euros(price + charged), "packages": packages}


def chosen_set(chosen: Chosen | None, charged: int) -> PackageSet | None:
    """A set that was found."""
    return None if chosen is None else package_set(chosen.price, charged, chosen.counts)


def uncovered(part: Part) -> Uncovered:
    """A part without a package."""
    mcc, mnc = part.code
    return {
        "country": part.country or None,
        "mcc": mcc,
        "mnc": mnc,
        "operator": plain(part.operator),
        "kind": part.kind,
        "amount": part.amount,
    }


def spoken_of(plans: Iterable[Plan], offers: Sequence[Offer]) -> list[TemplateFigures]:
    """The templates whose numbers the rows name."""
    named: set[int] = set()
    for plan in plans:
        sets = [plan.held.counts, *(chosen.counts for chosen in (plan.found.best, plan.found.next) if chosen is not None)]
        named |= {template for counts in sets for template, _ in counts}
    return [template_figures(offer) for offer in offers if offer.template_id in named]


def template_figures(offer: Offer) -> TemplateFigures:
    """A template at a glance."""
    return {
        "template_id": offer.template_id,
        "name": offer.name,
        "days": offer.days,
        "data_mb": megabytes(offer.volumes[0]),
        "cost": euros(offer.cost),
        "price": euros(offer.price),
    }


def megabytes(count: int) -> float:
    """Bytes as 10^6 bytes, to a thousandth."""
    return round(count / MEGABYTE, 3)
