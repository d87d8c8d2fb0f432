"""The cheapest packages for what a stored line used, by the same search as optimize_package."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple, cast

import orjson

from clients.ocs.packages import PackageList
from clients.ocs.subscribers import Subscriber
from operations.caches.usage import DayUse, PlaceUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import CountryVisit, LineUse, last_whole_days, sum_places
from operations.intelligence.offers.offers import OfferCatalogue
from operations.intelligence.offers.plans import draft_plan, finish_plans
from operations.times import WEEK_DAYS
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import USAGE_TYPE_DATA
from storage.fleet_judgements import JudgedLine
from storage.fleet_usage import FleetUsageRow


class CheapestPackages(NamedTuple):
    """The least that packages cost a customer in 30 days, micro-euro, with what stays outside them; and their templates."""

    price: int
    templates: tuple[int, ...]


def stored_line_use(rows: Sequence[FleetUsageRow], networks: Mapping[NetworkCode, str], first: int, last: int) -> LineUse:
    """What a line used from day `first` to `last`, ordinals, as a live read tells it."""
    days: dict[int, DayUse] = {}
    places: list[PlaceUse] = []
    visits: dict[tuple[int, str], None] = {}
    for row in rows:
        if not first <= row.day <= last:
            continue
        data = row.quantity if row.kind == USAGE_TYPE_DATA else 0
        day = days.get(row.day) or DayUse(date.fromordinal(row.day), 0, 0, 0)
        days[row.day] = DayUse(day.day, day.data_bytes + data, day.reseller_cost + row.network_cost, day.subscriber_cost + row.usage_income)
        if not row.mcc:
            continue
        country = networks.get((row.mcc, row.mnc), "")
        places.append(PlaceUse(row.mcc, row.mnc, country, "", row.kind, row.quantity, row.network_cost, row.usage_income, row.covered))
        if country:
            visits[row.day, country] = None
    whole = tuple(days[day] for day in sorted(days))
    return LineUse(
        whole,
        sum_places(places),
        sum(day.reseller_cost for day in whole),
        sum(day.subscriber_cost for day in whole),
        tuple(CountryVisit(date.fromordinal(day), country) for day, country in visits),
    )


def stored_fleet_line(line: JudgedLine) -> FleetLine:
    """The line as a list shows it, as far as the search for packages looks at it."""
    facts = cast("dict[str, object]", orjson.loads(line.facts))
    imsi = facts.get("imsi")
    row = {**facts, "imsiList": [{"imsi": imsi, "iccid": line.iccid}] if isinstance(imsi, str) else []}
    return FleetLine(line.subscriber_id, line.iccid, line.account_id, line.status, cast("Subscriber", row))


def cheapest_packages(
    line: JudgedLine,
    usage: Sequence[FleetUsageRow],
    packages: PackageList,
    offers: OfferCatalogue,
    networks: Mapping[NetworkCode, str],
    now: float,
) -> CheapestPackages | None:
    """The cheapest set that covers all that the line used in four weeks; None where there is none, or the search had to be cut short."""
    window, week = last_whole_days(now), last_whole_days(now, WEEK_DAYS)
    uses = [stored_line_use(usage, networks, span.first.toordinal(), span.last.toordinal()) for span in (window, week)]
    [plan] = finish_plans([draft_plan(stored_fleet_line(line), uses[0], uses[1], packages, offers, window)], offers)
    best = plan.found.best
    if best is None or plan.uncovered or not plan.found.proven or plan.verdict == "mis_steered":
        return None
    return CheapestPackages(best.price + plan.charged_then, tuple(template for template, _ in best.counts))
