"""What four weeks of a fleet add up to: countries, segments, packages, what could be sold, trends. Small groups are shown as one."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from statistics import median
from typing import Literal, NamedTuple

from operations.intelligence.fleet.lines import issued_on
from operations.intelligence.lines.habits import Habits, Segment, segment
from operations.intelligence.market.small_groups import may_show, merged
from operations.intelligence.market.survey import DAYS, Market
from operations.intelligence.packages.uptake import Sales, Upsell, offer, sales, together
from operations.intelligence.packages.wares import Ware

Other = Literal["other"]
Figure = Literal["data_bytes", "lines_in_use", "lines_issued", "packages_sold"]
OTHER: Other = "other"


class Place(NamedTuple):
    """A country, or the small ones together: lines with use, those that were there on most of their days, days and data.

    None where those at home, or those that are not, are too few to be told.
    """

    country: str
    lines: int
    home_lines: int | None
    days: int
    data_bytes: int


class Kind(NamedTuple):
    """A segment, or the small ones together."""

    segment: Segment | Other
    lines: int
    data_bytes: int


class Sold(NamedTuple):
    """A template, or the small ones together."""

    ware: Ware | None
    template_id: int | None
    sales: Sales
    revenue: int


class Chance(NamedTuple):
    """Lines that something could be sold to, and for how much in all, in micro-euros."""

    kind: Upsell | Other
    lines: int
    potential: int


class Trend(NamedTuple):
    """A figure, and what it was before."""

    figure: Figure
    days: int
    now: int
    before: int


def places(market: Market) -> list[Place]:
    """By country, most lines first."""
    groups, rows = defaultdict[str, set[int]](set), defaultdict[str, Counter[str]](Counter)
    for line, seen in market.seen.items():
        for rank, stay in enumerate(seen.habits.stays):
            groups[stay.iso2].add(line)
            rows[stay.iso2].update(home=not rank, days=stay.days, data=stay.data_bytes)
    shown, other = merged(groups)
    found = [place(country, groups[country], [rows[country]]) for country in shown]
    rest = {line for country in other for line in groups[country]}
    return [*found, place(OTHER, rest, [rows[country] for country in other])] if other else found


def place(country: str, lines: set[int], rows: Iterable[Counter[str]]) -> Place:
    """One row."""
    total = Counter[str]()
    for row in rows:
        total.update(row)
    home = total["home"] if may_show(total["home"]) and may_show(len(lines) - total["home"]) else None
    return Place(country, len(lines), home, total["days"], total["data"])


def kinds(market: Market) -> list[Kind]:
    """Every line that was read is in one segment."""
    used = [seen.habits.data_bytes for seen in market.seen.values() if seen.habits.data_bytes]
    half = median(used) if used else 0.0
    status = {line.subscriber_id: line.status for line in market.lines}
    groups = defaultdict[Segment, set[int]](set)
    for line, seen in market.seen.items():
        groups[segment(seen.habits, status[line], half)].add(line)
    shown, other = merged(groups)
    found = [Kind(key, len(groups[key]), data_of(market, groups[key])) for key in shown]
    rest = {line for key in other for line in groups[key]}
    return [*found, Kind(OTHER, len(rest), data_of(market, rest))] if other else found


def data_of(market: Market, lines: Iterable[int]) -> int:
    """The data of some lines."""
    return sum(market.seen[line].habits.data_bytes for line in lines)


def sold(market: Market) -> list[Sold]:
    """By template, what most lines have first."""
    found = sales(market.packages, market.window.first, DAYS)
    shown, other = merged({number: row.lines for number, row in found.items()})
    rows = [sold_row(market.wares, number, found[number]) for number in shown]
    if not other:
        return rows
    revenue = sum(sold_row(market.wares, number, found[number]).revenue for number in other)
    return [*rows, Sold(None, None, together(found[number] for number in other), revenue)]


def sold_row(wares: Mapping[int, Ware], number: int, row: Sales) -> Sold:
    """A template with its price in the catalogue, which one that was deleted does not have."""
    ware = wares.get(number)
    return Sold(ware, number, row, 0 if ware is None else row.sold * ware.price)


def chances(market: Market) -> list[Chance]:
    """What could be sold, the most valuable first."""
    groups, prices = defaultdict[Upsell, set[int]](set), Counter[Upsell]()
    for line, packages in market.packages.items():
        found = offer(packages, market.seen[line].habits, market.wares, market.window.first)
        if found is not None:
            groups[found.kind].add(line)
            prices[found.kind] += found.price
    shown, other = merged(groups)
    rows = sorted((Chance(kind, len(groups[kind]), prices[kind]) for kind in shown), key=lambda row: -row.potential)
    rest = {line for kind in other for line in groups[kind]}
    return [*rows, Chance(OTHER, len(rest), sum(prices[kind] for kind in other))] if other else rows


def trends(market: Market) -> list[Trend]:
    """The second half of the days against the first, and these 28 days against the 28 before where that needs no more calls."""
    all_habits: list[Habits] = [seen.habits for seen in market.seen.values()]
    half, first = DAYS // 2, market.window.first
    sums = sales(market.packages, first, DAYS).values()
    issued = Counter(half_of(issued_on(line), market) for line in market.lines)
    return [
        Trend("data_bytes", half, sum(row.late_bytes for row in all_habits), sum(row.early_bytes for row in all_habits)),
        Trend("lines_in_use", half, sum(row.late_used for row in all_habits), sum(row.early_used for row in all_habits)),
        Trend("lines_issued", DAYS, issued["now"], issued["before"]),
        Trend("packages_sold", DAYS, sum(row.sold for row in sums), sum(row.sold_before for row in sums)),
    ]


def half_of(day: date | None, market: Market) -> str:
    """Whether a day is one of the 28, of the 28 before, or neither."""
    first, last = market.window
    if day is None or day > last or day < first - timedelta(days=DAYS):
        return ""
    return "now" if day >= first else "before"
