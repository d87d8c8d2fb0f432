"""What packages a line should have: its need, the cheapest that cover it, what it has instead, and the difference."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from clients.ocs.wire.package import PackageList
from operations.intelligence.fleet.reading import FleetLine
from operations.intelligence.packages.cover import MOST_PLACES, Chosen, Found, Option, cheapest
from operations.intelligence.packages.need import PACKED, Need, Part, monthly, need_of, turns_in
from operations.intelligence.packages.offers import Offer, Offers
from operations.intelligence.packages.spend import Held, held_in
from operations.services.network.usage_weeks import LineUse
from operations.services.network.windows import Window

Verdict = Literal["change", "keep", "unused", "no_replacement", "no_sponsor", "unsolved"]
CALLS_OUT = PACKED.index("calls_out")
NONE_NEEDED = Chosen(0, ())
Works = Mapping[tuple[int, int], frozenset[int]]
"""Which offers work on a network."""


class Plan(NamedTuple):
    """Of a line. Amounts are micro-euros in thirty days."""

    iccid: str
    account_id: int
    sponsor: int | None
    verdict: Verdict
    need: Need
    held: Held
    now: int
    """What packages in force and use outside them cost."""
    charged_now: int
    charged_then: int
    """Of that, outside packages: as it is, and with the cheapest set."""
    found: Found
    uncovered: tuple[Part, ...]
    """Data that no package of the catalogue covers, and calls and messages that only the line's present packages do."""

    @property
    def saving(self) -> int:
        """What a change saves; nothing where nothing is to be changed."""
        if self.found.best is None or self.verdict not in ("change", "unused"):
            return 0
        return self.now - self.found.best.price - self.charged_then


NOT_SOUGHT = Found(None, None, True)


def drafted(line: FleetLine, use: LineUse, packages: PackageList, offers: Offers, window: Window) -> Plan:
    """The plan of a line before the search."""
    single = packages.get("callUseSingleCounter", offers.single_counter)
    need = need_of(use, window, single_counter=single)
    held = held_in(packages, window, offers.costs)
    charged = monthly(need.charged)
    sponsor = offers.sponsor_of(line)
    verdict: Verdict = "unused" if not need.parts else "no_sponsor" if sponsor is None else "unsolved"
    found = Found(NONE_NEEDED, None, True) if verdict == "unused" else NOT_SOUGHT
    return Plan(line.iccid, line.account_id, sponsor, verdict, need, held, held.price + charged, charged, charged, found, ())


def finished(plans: Sequence[Plan], offers: Offers) -> list[Plan]:
    """The plans with the cheapest packages: a few milliseconds of work for each."""
    return [solved(plan, offers.of_sponsor(plan.sponsor), offers) if plan.verdict == "unsolved" else plan for plan in plans]


def solved(plan: Plan, offers: Sequence[Offer], catalogue: Offers) -> Plan:
    """The plan with the search's result."""
    need, usable = plan.need, [fitted(offer, plan) for offer in offers]
    works = {code: working(usable, code, catalogue) for code in sorted({part.code for part in need.parts})}
    uncovered = tuple(part for part in need.parts if not covers(usable, works[part.code], part))
    covered = [part for part in need.parts if part not in uncovered]
    left = monthly(need.charged - sum(part.charged for part in covered))
    plan = plan._replace(uncovered=uncovered, charged_then=left)
    if any(part.packed for part in uncovered):
        return plan._replace(verdict="no_replacement")
    places = {works[part.code]: None for part in covered}
    if len(places) > MOST_PLACES:
        return plan
    return judged(plan._replace(found=found_for(usable, covered, works, list(places), need)))


def fitted(offer: Offer, plan: Plan) -> Offer:
    """Choice: calls to a list of numbers replace calls to that list only, since records do not say on which lists a number is."""
    if offer.destination_id is None or offer.destination_id in plan.held.destinations:
        return offer
    return offer._replace(volumes=tuple(0 if kind == CALLS_OUT else volume for kind, volume in enumerate(offer.volumes)))


def working(offers: Sequence[Offer], code: tuple[int, int], catalogue: Offers) -> frozenset[int]:
    """Which offers work on a network: networks where the same ones do are one place."""
    return frozenset(place for place, offer in enumerate(offers) if catalogue.coverage.covers([offer.zone_id], code))


def covers(offers: Sequence[Offer], works: frozenset[int], part: Part) -> bool:
    """Whether any offer holds something of the kind there."""
    kind = PACKED.index(part.kind)
    return any(offers[place].volumes[kind] for place in works)


def found_for(offers: Sequence[Offer], parts: Sequence[Part], works: Works, places: Sequence[frozenset[int]], need: Need) -> Found:
    """The search over what is of use."""
    needs = [[sum(part.amount for part in parts if part.kind == kind and works[part.code] == place) for place in places] for kind in PACKED]
    most = [sum(amounts) for amounts in needs]
    turns = {days: turns_in(need.used, days) for days in {offer.days for offer in offers}}
    options = [
        Option(
            offer.template_id,
            offer.price,
            turns[offer.days],
            tuple(min(volume, whole) for volume, whole in zip(offer.volumes, most, strict=True)),  # more than is needed is no use
            frozenset(number for number, place in enumerate(places) if index in place),
        )
        for index, offer in enumerate(offers)
    ]
    return cheapest([option for option in options if option.places and any(option.volumes)], needs)


def judged(plan: Plan) -> Plan:
    """The plan with its verdict.

    Choice: where the templates are the ones the line has, a difference of less than one package is the calendar's.
    """
    best = plan.found.best
    if best is None:
        return plan._replace(verdict="unsolved")
    saving = plan.now - best.price - plan.charged_then
    same = {template for template, _ in best.counts} == {template for template, _ in plan.held.counts}
    one = best.price // max(1, sum(count for _, count in best.counts))
    return plan._replace(verdict="change" if saving > (one if same else 0) else "keep")
