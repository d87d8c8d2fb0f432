"""What packages a line should have: its need, the cheapest that cover it, what it has instead, and the difference."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.package import PackageList
from operations.caches.usage import LineUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import UseKind, euros
from operations.intelligence.packages.cover import COVER_PLACE_LIMIT, CoverResult, PackageChoice, PackageOption, cheapest_cover
from operations.intelligence.packages.line_packages import PackageSpend, package_spend
from operations.intelligence.packages.need import (
    PACKAGE_KINDS,
    NeedPart,
    PackageNeed,
    monthly_cost,
    need_countries,
    package_need,
    packages_in_turn,
)
from operations.intelligence.packages.offers import MonthlyOffer, OfferCatalogue
from operations.intelligence.reports.finding import upstream_text
from operations.times import DayWindow

PlanVerdict = Literal["change", "keep", "unused", "no_replacement", "no_sponsor", "unsolved"]
CALLS_OUT_INDEX = PACKAGE_KINDS.index("calls_out")
NO_PACKAGES_NEEDED = PackageChoice(0, ())
OffersByNetwork = Mapping[tuple[int, int], frozenset[int]]
"""Which offers work on a network."""


class LinePackagePlan(NamedTuple):
    """Of a line. Amounts are micro-euros in thirty days."""

    iccid: str
    account_id: int
    sponsor: int | None
    verdict: PlanVerdict
    need: PackageNeed
    spend: PackageSpend
    now: int
    """What packages in force and use outside them cost."""
    charged_now: int
    charged_then: int
    """Of that, outside packages: as it is, and with the cheapest set."""
    found: CoverResult
    uncovered: tuple[NeedPart, ...]
    """Data that no package of the catalogue covers, and calls and messages that only the line's present packages do."""

    @property
    def saving(self) -> int:
        """What a change saves; nothing where nothing is to be changed."""
        if self.found.best is None or self.verdict not in ("change", "unused"):
            return 0
        return self.now - self.found.best.price - self.charged_then


COVER_NOT_SEARCHED = CoverResult(None, None, True)


def draft_plan(line: FleetLine, use: LineUse, packages: PackageList, offers: OfferCatalogue, window: DayWindow) -> LinePackagePlan:
    """The plan of a line before the search."""
    single = packages.get("callUseSingleCounter", offers.single_counter)
    need = package_need(use, window, single_counter=single)
    spend = package_spend(packages, window, offers.costs)
    charged = monthly_cost(need.charged)
    sponsor = offers.sponsor_of(line)
    verdict: PlanVerdict = "unused" if not need.parts else "no_sponsor" if sponsor is None else "unsolved"
    found = CoverResult(NO_PACKAGES_NEEDED, None, True) if verdict == "unused" else COVER_NOT_SEARCHED
    return LinePackagePlan(line.iccid, line.account_id, sponsor, verdict, need, spend, spend.price + charged, charged, charged, found, ())


def finish_plans(plans: Sequence[LinePackagePlan], offers: OfferCatalogue) -> list[LinePackagePlan]:
    """The plans with the cheapest packages: a few milliseconds of work for each."""
    return [solve_plan(plan, offers.of_sponsor(plan.sponsor), offers) if plan.verdict == "unsolved" else plan for plan in plans]


def solve_plan(plan: LinePackagePlan, offers: Sequence[MonthlyOffer], catalogue: OfferCatalogue) -> LinePackagePlan:
    """The plan with the search's result."""
    need, usable = plan.need, [fit_offer(offer, plan) for offer in offers]
    works = {code: working_offers(usable, code, catalogue) for code in sorted({part.code for part in need.parts})}
    uncovered = tuple(part for part in need.parts if not is_offered(usable, works[part.code], part))
    covered = [part for part in need.parts if part not in uncovered]
    left = monthly_cost(need.charged - sum(part.charged for part in covered))
    plan = plan._replace(uncovered=uncovered, charged_then=left)
    if any(part.packed for part in uncovered):
        return plan._replace(verdict="no_replacement")
    places = {works[part.code]: None for part in covered}
    if len(places) > COVER_PLACE_LIMIT:
        return plan
    return decide_plan(plan._replace(found=search_cover(usable, covered, works, list(places), need)))


def fit_offer(offer: MonthlyOffer, plan: LinePackagePlan) -> MonthlyOffer:
    """Choice: calls to a list of numbers replace calls to that list only, since records do not say on which lists a number is."""
    if offer.destination_id is None or offer.destination_id in plan.spend.destinations:
        return offer
    return offer._replace(volumes=tuple(0 if kind == CALLS_OUT_INDEX else volume for kind, volume in enumerate(offer.volumes)))


def working_offers(offers: Sequence[MonthlyOffer], code: tuple[int, int], catalogue: OfferCatalogue) -> frozenset[int]:
    """Which offers work on a network: networks where the same ones do are one place."""
    return frozenset(place for place, offer in enumerate(offers) if catalogue.coverage.covers([offer.zone_id], code))


def is_offered(offers: Sequence[MonthlyOffer], works: frozenset[int], part: NeedPart) -> bool:
    """Whether any offer holds something of the kind there."""
    kind = PACKAGE_KINDS.index(part.kind)
    return any(offers[place].volumes[kind] for place in works)


def search_cover(
    offers: Sequence[MonthlyOffer], parts: Sequence[NeedPart], works: OffersByNetwork, places: Sequence[frozenset[int]], need: PackageNeed
) -> CoverResult:
    """The search over what is of use."""
    needs = [
        [sum(part.amount for part in parts if part.kind == kind and works[part.code] == place) for place in places]
        for kind in PACKAGE_KINDS
    ]
    most = [sum(amounts) for amounts in needs]
    turns = {days: packages_in_turn(need.used, days) for days in {offer.days for offer in offers}}
    options = [
        PackageOption(
            offer.template_id,
            offer.price,
            turns[offer.days],
            tuple(min(volume, whole) for volume, whole in zip(offer.volumes, most, strict=True)),  # more than is needed is no use
            frozenset(number for number, place in enumerate(places) if index in place),
        )
        for index, offer in enumerate(offers)
    ]
    return cheapest_cover([option for option in options if option.places and any(option.volumes)], needs)


def decide_plan(plan: LinePackagePlan) -> LinePackagePlan:
    """The plan with its verdict.

    Choice: where the templates are the ones the line has, a difference of less than one package is the calendar's.
    """
    best = plan.found.best
    if best is None:
        return plan._replace(verdict="unsolved")
    saving = plan.now - best.price - plan.charged_then
    same = {template for template, _ in best.counts} == {template for template, _ in plan.spend.counts}
    one = best.price // max(1, sum(count for _, count in best.counts))
    return plan._replace(verdict="change" if saving > (one if same else 0) else "keep")


UNCOVERED_SHOWN = 3
"""Networks without cover that a row names."""
MEGABYTE_BYTES = 1_000_000


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
    others: Annotated[dict[UseKind, int], Field(description="Seconds of calls and messages that packages pay at present")]
    days: Annotated[int, Field(description="Days with use among the 28")]
    countries: Annotated[list[str], Field(description="ISO 3166-1 alpha-2, most data first")]


class Uncovered(TypedDict):
    """Use that no package of the catalogue covers."""

    country: str | None
    mcc: int
    mnc: int
    operator: str
    kind: UseKind
    amount: Annotated[int, Field(description="Bytes, seconds or messages in 30 days")]


class LinePlan(TypedDict):
    """What a line needs, what it has, and what would be cheapest."""

    iccid: str
    account_id: int
    verdict: Annotated[
        PlanVerdict,
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


def line_plan(plan: LinePackagePlan) -> LinePlan:
    """A line's row."""
    found = plan.found
    return {
        "iccid": plan.iccid,
        "account_id": plan.account_id,
        "verdict": plan.verdict,
        "saving": euros(plan.saving),
        "need": line_need_figures(plan),
        "now": package_set(plan.spend.price, plan.charged_now, plan.spend.counts),
        "best": package_choice_figures(found.best, plan.charged_then),
        "next": package_choice_figures(found.next, plan.charged_then),
        "proven": found.proven,
        "uncovered": [
            uncovered_figures(part)
            for part in sorted(plan.uncovered, key=lambda part: (-part.amount, part.code, part.kind))[:UNCOVERED_SHOWN]
        ],
    }


def line_need_figures(plan: LinePackagePlan) -> LineNeed:
    """The need at a glance."""
    others: dict[UseKind, int] = {}
    for part in plan.need.parts:
        if part.kind != "data":
            others[part.kind] = others.get(part.kind, 0) + part.amount
    return {
        "data_mb": megabytes(plan.need.data_bytes),
        "others": others,
        "days": sum(plan.need.used),
        "countries": need_countries(plan.need.parts),
    }


def package_set(price: int, charged: int, counts: Iterable[tuple[int, int]]) -> PackageSet:
    """Packages with their cost."""
    packages: list[Count] = [{"template_id": template, "count": count} for template, count in counts]
    return {"price": euros(price), "charged": euros(charged), "total": euros(price + charged), "packages": packages}


def package_choice_figures(chosen: PackageChoice | None, charged: int) -> PackageSet | None:
    """A set that was found."""
    return None if chosen is None else package_set(chosen.price, charged, chosen.counts)


def uncovered_figures(part: NeedPart) -> Uncovered:
    """A part without a package."""
    mcc, mnc = part.code
    return {
        "country": part.country or None,
        "mcc": mcc,
        "mnc": mnc,
        "operator": upstream_text(part.operator),
        "kind": part.kind,
        "amount": part.amount,
    }


def named_templates(plans: Iterable[LinePackagePlan], offers: Sequence[MonthlyOffer]) -> list[TemplateFigures]:
    """The templates whose numbers the rows name."""
    named: set[int] = set()
    for plan in plans:
        sets = [plan.spend.counts, *(chosen.counts for chosen in (plan.found.best, plan.found.next) if chosen is not None)]
        named |= {template for counts in sets for template, _ in counts}
    return [template_figures(offer) for offer in offers if offer.template_id in named]


def template_figures(offer: MonthlyOffer) -> TemplateFigures:
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
    return round(count / MEGABYTE_BYTES, 3)
