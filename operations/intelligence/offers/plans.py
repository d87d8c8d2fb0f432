"""What packages a line should have: the cheapest set that covers its need, the packages it has now, and the difference.

The search is exact: it proves what it finds by what it rules out. A set of packages (a template may occur several times) covers the need
when the need can be divided among them so that of each package no more is taken than it holds of a kind, only at places where it works,
and of no place more than its share of the time. Whether it can is a question of flow, and a flow exists when no cut forbids it: for every
kind and every choice of places, the packages together must be able to take what is needed there. So each choice of places is a row, and
what a package takes of a row does not depend on the other packages. The search branches over the packages that may serve the row that
costs most, and drops a branch once even its cheapest end would cost no less than the two sets that are known.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from math import lcm
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.packages import PackageList
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.offers.coverage_map import NetworkCodes, network_outside
from operations.intelligence.offers.offers import (
    PACKAGE_KINDS,
    MonthlyOffer,
    NeedPart,
    OfferCatalogue,
    PackageNeed,
    monthly_cost,
    need_countries,
    package_need,
    packages_in_turn,
)
from operations.intelligence.offers.package_income import PackageSpend, package_spend
from operations.times import DayWindow
from operations.upstream.usage import UseKind, euros
from operations.vocabulary import upstream_text
from registry.free_text import FreeText

COVER_PLACE_LIMIT = 10
"""A row for each choice of places: 1,023 of ten."""

COVER_PACKAGE_LIMIT = 60
"""Choice: packages in a set; more are not put on a line in a month."""

COVER_STEP_LIMIT = 20_000
"""Choice: a second or so. A search that was ended says that it proves nothing."""


class PackageOption(NamedTuple):
    """A package that may be bought, as often as is needed."""

    id: int
    price: int
    """Micro-euros."""
    turns: int
    """How many of it, one after another, reach over the time; of each place's need one takes a share of 1/turns at most."""
    volumes: tuple[int, ...]
    """What it holds, by kind."""
    places: frozenset[int]


class PackageChoice(NamedTuple):
    """A set of packages: its price, and how many of which."""

    price: int
    counts: tuple[tuple[int, int], ...]
    """Option ids, in order, with how many of each."""

    @property
    def order(self) -> tuple[int, int, tuple[tuple[int, int], ...]]:
        """Sort key: lowest price, then fewest packages."""
        return self.price, sum(count for _, count in self.counts), self.counts


class CoverResult(NamedTuple):
    """The cheapest set in which no package is superfluous, and the next one. `proven`: nothing cheaper was left out."""

    best: PackageChoice | None
    next: PackageChoice | None
    proven: bool


class CoverRow(NamedTuple):
    """What the packages must take of one kind at some places together, and what one of each option takes of it."""

    need: int
    takes: tuple[int, ...]


def cheapest_cover(options: Sequence[PackageOption], needs: Sequence[Sequence[int]]) -> CoverResult:
    """The cheapest sets of `options` that cover `needs`, which are by kind, then by place."""
    kept = undominated_options(options)
    return CoverSearch(kept, cover_rows(kept, needs)).run()


def undominated_options(options: Iterable[PackageOption]) -> list[PackageOption]:
    """`options` without those that two others beat in every respect. Neither the cheapest set nor the second needs one: either of the two
    replaces it."""
    kept: list[PackageOption] = []
    for option in sorted(options, key=lambda one: (one.price, one.turns, [-volume for volume in one.volumes], -len(one.places), one.id)):
        if sum(is_better_option(other, option) for other in kept) < 2:
            kept.append(option)
    return kept


def is_better_option(one: PackageOption, other: PackageOption) -> bool:
    """Whether `one` costs no more, holds no less, works wherever `other` does, and lasts as long."""
    holds = all(mine >= theirs for mine, theirs in zip(one.volumes, other.volumes, strict=True))
    return holds and one.price <= other.price and one.turns <= other.turns and one.places >= other.places


def cover_rows(options: Sequence[PackageOption], needs: Sequence[Sequence[int]]) -> list[CoverRow]:
    """A row for each kind and each choice of places; in whole numbers, since all shares have one denominator."""
    whole = lcm(*(option.turns for option in options))
    made: dict[CoverRow, None] = {}
    for kind, amounts in enumerate(needs):
        places = [place for place, amount in enumerate(amounts) if amount]
        for chosen in place_subsets(places):
            takes = tuple(option_share(option, kind, amounts, chosen, whole) for option in options)
            made[CoverRow(whole * sum(amounts[place] for place in chosen), takes)] = None
    return list(made)


def place_subsets(places: Sequence[int]) -> Iterable[list[int]]:
    for bits in range(1, 1 << len(places)):
        yield list(compress(places, (bits >> index & 1 for index in range(len(places)))))


def option_share(option: PackageOption, kind: int, amounts: Sequence[int], chosen: Iterable[int], whole: int) -> int:
    """What one package takes of the need at these places: its share, up to its volume."""
    there = sum(amounts[place] for place in chosen if place in option.places)
    return min(option.volumes[kind] * whole, there * (whole // option.turns))


class CoverSearch:
    """One search under way."""

    def __init__(self, options: Sequence[PackageOption], rows: Sequence[CoverRow], nodes: int = COVER_STEP_LIMIT) -> None:
        self._options, self._rows, self._most = options, rows, nodes
        self._prices = [option.price for option in options]
        self._best: list[PackageChoice] = []
        self._nodes = 0
        self._chosen: list[int] = []

    def run(self) -> CoverResult:
        """Searches until every set was looked at or ruled out, or after so many steps that nothing is proven."""
        self._go(list(range(len(self._options))), [row.need for row in self._rows], 0)
        best, second = [*self._best, None, None][:2]
        return CoverResult(best, second, self._nodes <= self._most)

    def _go(self, allowed: Sequence[int], left: Sequence[int], price: int) -> None:
        """Visits every set of the chosen packages and any of the `allowed` ones. `left`: what each row still needs."""
        self._nodes += 1
        if self._nodes > self._most:
            return
        hardest = self._hardest(allowed, left)
        if hardest is None:
            return
        row, bound = hardest
        if row < 0:
            self._note(left, price)
        elif len(self._chosen) < COVER_PACKAGE_LIMIT and not self._too_dear(price + bound):
            self._branch(row, allowed, left, price)

    def _branch(self, row: int, allowed: Sequence[int], left: Sequence[int], price: int) -> None:
        """One of these options must be in the set: with the first; else with the second; and so on. So no set is visited twice."""
        takes, rest = self._rows[row].takes, list(allowed)
        serving = sorted((option for option in allowed if takes[option]), key=lambda option: (self._cost(option, takes, left[row]), option))
        for option in serving:
            self._chosen.append(option)
            self._go(rest, [need - one.takes[option] for need, one in zip(left, self._rows, strict=True)], price + self._prices[option])
            self._chosen.pop()
            rest.remove(option)

    def _hardest(self, allowed: Sequence[int], left: Sequence[int]) -> tuple[int, int] | None:
        """The row that costs most to serve, and its least cost; -1 when all rows are served, None when one cannot be."""
        hardest, most = -1, 0
        for number, need in enumerate(left):
            if need > 0:
                takes = self._rows[number].takes
                least = min((self._cost(option, takes, need) for option in allowed if takes[option]), default=None)
                if least is None:
                    return None
                if hardest < 0 or least > most:
                    hardest, most = number, least
        return hardest, most

    def _cost(self, option: int, takes: Sequence[int], need: int) -> int:
        """The least cost of serving a row with this option alone: a whole package, or its part of as many as are needed."""
        price, share = self._prices[option], takes[option]
        return price if share >= need else -(-price * need // share)

    def _too_dear(self, price: int) -> bool:
        """Whether two sets are known that cost `price` or less."""
        return len(self._best) == 2 and price >= self._best[1].price

    def _note(self, left: Sequence[int], price: int) -> None:
        """Records a set that covers. One with a superfluous package is dropped, since the set without it is found elsewhere."""
        counts = {option: self._chosen.count(option) for option in self._chosen}
        for option in counts:
            if all(need + row.takes[option] <= 0 for need, row in zip(left, self._rows, strict=True)):
                return
        made = PackageChoice(price, tuple(sorted((self._options[option].id, count) for option, count in counts.items())))
        self._best = sorted([*self._best, made], key=lambda one: one.order)[:2]


PlanVerdict = Literal["change", "keep", "loses_money", "unused", "mis_steered", "no_replacement", "no_sponsor", "unsolved"]

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
    network_cost: int
    """What the operator pays networks, whichever package pays."""
    is_mis_steered: bool
    """Most of its data went past packages that would have paid on another network: no package mends that."""

    @property
    def saving(self) -> int:
        """What the change saves the customer in thirty days, micro-euros; 0 where nothing should be changed."""
        if self.found.best is None or self.verdict not in ("change", "unused"):
            return 0
        return self.now - self.found.best.price - self.charged_then

    @property
    def saving_operator(self) -> int:
        """What the operator pays networks less after the change: nothing, since the same use is on the same networks."""
        return 0

    @property
    def margin(self) -> int:
        return self.now - self.network_cost

    @property
    def keeps_present(self) -> bool:
        """Whether what the line has is better for the customer than the cheapest set, or nothing is said of other sets."""
        best = self.found.best
        return best is not None and (self.verdict == "mis_steered" or self.now < best.price + self.charged_then)


COVER_NOT_SEARCHED = CoverResult(None, None, True)


def draft_plan(
    line: FleetLine, use: LineUse, week: LineUse, packages: PackageList, offers: OfferCatalogue, window: DayWindow
) -> LinePackagePlan:
    """The plan of a line before the search: its need in `window`, and what its packages and use outside them cost.

    `week`: what it used in the last seven days of these, by which it is said to be steered wrongly, or not.
    """
    single = packages.get("callUseSingleCounter", offers.single_counter)
    need = package_need(use, window, single_counter=single)
    spend = package_spend(packages, window, offers.costs)
    charged = monthly_cost(need.charged)
    sponsor = offers.sponsors.sponsor_of(line)
    verdict: PlanVerdict = "unused" if not need.parts else "no_sponsor" if sponsor is None else "unsolved"
    found = CoverResult(NO_PACKAGES_NEEDED, None, True) if verdict == "unused" else COVER_NOT_SEARCHED
    now, cost = spend.price + charged, monthly_cost(use.reseller_cost)
    astray = network_outside(week.places, spend.zones, offers.coverage) is not None
    return LinePackagePlan(
        line.iccid,
        line.account_id,
        sponsor,
        verdict,
        need,
        spend,
        now,
        charged,
        charged,
        found,
        (),
        network_cost=cost,
        is_mis_steered=astray,
    )


def finish_plans(plans: Sequence[LinePackagePlan], offers: OfferCatalogue) -> list[LinePackagePlan]:
    """The plans with the cheapest packages; the search takes a few milliseconds for each."""
    return [solve_plan(plan, offers.of_sponsor(plan.sponsor), offers) if plan.verdict == "unsolved" else plan for plan in plans]


def solve_plan(plan: LinePackagePlan, offers: Sequence[MonthlyOffer], catalogue: OfferCatalogue) -> LinePackagePlan:
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
    """Choice: calls to a list of numbers replace only calls to that list, since records do not say on which list a number is."""
    if offer.destination_id is None or offer.destination_id in plan.spend.destinations:
        return offer
    return offer._replace(volumes=tuple(0 if kind == CALLS_OUT_INDEX else volume for kind, volume in enumerate(offer.volumes)))


def working_offers(offers: Sequence[MonthlyOffer], code: tuple[int, int], catalogue: OfferCatalogue) -> frozenset[int]:
    """Which offers work on a network; networks with the same offers count as one place."""
    return frozenset(place for place, offer in enumerate(offers) if catalogue.coverage.covers([offer.zone_id], code))


def is_offered(offers: Sequence[MonthlyOffer], works: frozenset[int], part: NeedPart) -> bool:
    """Whether any offer holds this kind of use there."""
    kind = PACKAGE_KINDS.index(part.kind)
    return any(offers[place].volumes[kind] for place in works)


def search_cover(
    offers: Sequence[MonthlyOffer], parts: Sequence[NeedPart], works: OffersByNetwork, places: Sequence[frozenset[int]], need: PackageNeed
) -> CoverResult:
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
    if plan.is_mis_steered:
        return plan._replace(verdict="mis_steered")
    if saving > (one if same else 0):
        return plan._replace(verdict="change")
    return plan._replace(verdict="keep" if plan.margin >= 0 else "loses_money")


UNCOVERED_SHOWN = 3
"""Networks without cover that a row names."""

MEGABYTE_BYTES = 1_000_000


class Count(TypedDict):
    """Packages of a template."""

    template_id: int
    count: int


class PackageSet(TypedDict):
    """Packages and what the customer pays with them in thirty days, which is what the operator receives."""

    price: Annotated[float, Field(description="Same as package_income", deprecated=True)]
    charged: Annotated[float, Field(description="Same as usage_income", deprecated=True)]
    package_income: Annotated[float, Field(description="EUR in 30 days, for the packages")]
    usage_income: Annotated[float, Field(description="EUR in 30 days, for use outside packages")]
    total: Annotated[float, Field(description="EUR in 30 days: both")]
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
            description="change: best costs the customer less; keep; loses_money: as keep, and the line costs you more "
            "than it brings in; unused: nothing was used; mis_steered: its packages work on other networks there; no_replacement: "
            "something that its packages pay is in no template; no_sponsor: nobody knows whose SIM it is; unsolved: too many places or sets"
        ),
    ]
    saving: Annotated[float, Field(description="Same as saving_customer", deprecated=True)]
    saving_customer: Annotated[float, Field(description="EUR in 30 days that the customer pays less with best, and you receive less")]
    saving_operator: Annotated[float, Field(description="EUR in 30 days that you pay networks less: 0, whichever package pays")]
    network_cost: Annotated[float, Field(description="EUR in 30 days that networks charge you")]
    margin: Annotated[float, Field(description="EUR in 30 days: now.total less network_cost; below 0 the line loses money")]
    need: LineNeed
    now: PackageSet
    best: Annotated[PackageSet | None, Field(description="What costs the customer least: the cheapest set that covers the need, or now")]
    best_is_present: Annotated[bool, Field(description="Whether best is what it has: no set of the catalogue costs less")]
    next: Annotated[PackageSet | None, Field(description="The next best other set in which no package is superfluous; null: there is none")]
    proven: Annotated[bool, Field(description="Whether the search ruled everything else out")]
    uncovered: Annotated[list[Uncovered], Field(description="Three at most, largest first; it goes on being charged as now")]


class TemplateFigures(TypedDict):
    """A template that the page speaks of."""

    template_id: int
    name: Annotated[FreeText, Field(description="As the charging system calls it")]
    days: int
    data_mb: Annotated[float, Field(description="Of one package in 30 days, 10^6 bytes")]
    cost: Annotated[float, Field(description="Same as package_income", deprecated=True)]
    price: Annotated[float, Field(description="Same as package_income_30_days", deprecated=True)]
    package_income: Annotated[float, Field(description="EUR that a customer pays for one package")]
    package_income_30_days: Annotated[float, Field(description="EUR, its part of 30 days: less where it lasts longer")]


def line_plan(plan: LinePackagePlan, codes: NetworkCodes) -> LinePlan:
    """The row of a line; `codes` says by which code a network is named."""
    found, present = plan.found, package_set(plan.spend.price, plan.charged_now, plan.spend.counts)
    first, second = [
        (None if choice is None else package_set(choice.price, plan.charged_then, choice.counts)) for choice in (found.best, found.next)
    ]
    return {
        "iccid": plan.iccid,
        "account_id": plan.account_id,
        "verdict": plan.verdict,
        "saving": euros(plan.saving),
        "saving_customer": euros(plan.saving),
        "saving_operator": euros(plan.saving_operator),
        "network_cost": euros(plan.network_cost),
        "margin": euros(plan.margin),
        "need": line_need_figures(plan),
        "now": present,
        "best": present if plan.keeps_present else first,
        "best_is_present": plan.keeps_present,
        "next": first if plan.keeps_present else second,
        "proven": found.proven,
        "uncovered": uncovered_figures(plan.uncovered, codes),
    }


def uncovered_figures(parts: Iterable[NeedPart], codes: NetworkCodes) -> list[Uncovered]:
    """The largest parts; of a network that was used under several codes it is one."""
    found: dict[tuple[tuple[int, int], UseKind], NeedPart] = {}
    for part in parts:
        key = codes.shown(part.code), part.kind
        former = found.get(key)
        found[key] = part._replace(code=key[0]) if former is None else former._replace(amount=former.amount + part.amount)
    ordered = sorted(found.values(), key=lambda part: (-part.amount, part.code, part.kind))
    return [
        {
            "country": part.country or None,
            "mcc": part.code[0],
            "mnc": part.code[1],
            "operator": upstream_text(part.operator),
            "kind": part.kind,
            "amount": part.amount,
        }
        for part in ordered[:UNCOVERED_SHOWN]
    ]


def line_need_figures(plan: LinePackagePlan) -> LineNeed:
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
    packages: list[Count] = [{"template_id": template, "count": count} for template, count in counts]
    return {
        "price": euros(price),
        "charged": euros(charged),
        "package_income": euros(price),
        "usage_income": euros(charged),
        "total": euros(price + charged),
        "packages": packages,
    }


def named_templates(plans: Iterable[LinePackagePlan], offers: Sequence[MonthlyOffer]) -> list[TemplateFigures]:
    named: set[int] = set()
    for plan in plans:
        sets = [plan.spend.counts, *(chosen.counts for chosen in (plan.found.best, plan.found.next) if chosen is not None)]
        named |= {template for counts in sets for template, _ in counts}
    return [
        {
            "template_id": offer.template_id,
            "name": offer.name,
            "days": offer.days,
            "data_mb": megabytes(offer.volumes[0]),
            "cost": euros(offer.cost),
            "price": euros(offer.price),
            "package_income": euros(offer.cost),
            "package_income_30_days": euros(offer.price),
        }
        for offer in offers
        if offer.template_id in named
    ]


def megabytes(count: int) -> float:
    """Bytes as megabytes of 10^6 bytes, with three decimals."""
    return round(count / MEGABYTE_BYTES, 3)
