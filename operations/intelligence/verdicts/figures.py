"""What answers about a whole fleet need of a line, made of its stored facts: its churn score, its anomalies, where it is, how it was used.

The same functions make them that look at a line live, so that both say the same of the same facts.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import orjson

from clients.ocs.packages import PackageList
from operations.fleet.wire_rows import day_start, ordinal
from operations.intelligence.churn_risk import (
    QUIET_CALENDAR_DAYS,
    QUIET_LINE_DAYS,
    SUPPLY_CHECK_DAYS,
    churn_signs,
    score_churn,
    silent_days,
)
from operations.intelligence.diagnosis.coverage_verdicts import (
    COVERAGE_PROBLEMS,
    LineSighting,
    UncoveredUse,
    line_verdict,
    uncovered_use,
    verdict_by_use,
)
from operations.intelligence.diagnosis.facts import data_packages
from operations.intelligence.diagnosis.steering_facts import is_seen_lately, main_networks
from operations.intelligence.lines.fleet_lines import FleetLine, is_in_stock, line_state
from operations.intelligence.lines.stored_use import FleetNetworks, stored_line_use
from operations.intelligence.lines.usage import CALENDAR_DAYS, LineCalendar, LineUse, last_whole_days, line_calendar
from operations.intelligence.offers.coverage_map import CoverageMap
from operations.intelligence.offers.offers import SponsorPrefixes
from operations.intelligence.offers.upsell import profile_text, usage_profile
from operations.intelligence.usage_anomalies import find_anomalies
from operations.intelligence.verdicts.cheapest import StoredLinePlan
from operations.intelligence.verdicts.country_stays import CountrySighting, entry_columns
from operations.intelligence.verdicts.facts import VerdictFacts
from operations.times import WEEK_DAYS
from operations.upstream.signalling import NetworkCode
from operations.vocabulary import network_country
from storage.fleet_figures import LineFigures

NO_OUTSIDE_USE = UncoveredUse(0, 0, 0)


class ChurnFigures(NamedTuple):
    """The score in tenths of a point, -1: none; and JSON of what it is made of."""

    tenths: int
    signs: str


class AnomalyFigures(NamedTuple):
    """Days that could be compared, and JSON of what stands out."""

    line_days: int
    found: str


class PlaceFigures(NamedTuple):
    """The verdict on where a line is, '' without one; its network, the use there that no package paid, and JSON of its signs."""

    verdict: str
    code: NetworkCode
    outside: UncoveredUse
    signs: str


NO_CHURN, NO_ANOMALIES = ChurnFigures(-1, ""), AnomalyFigures(0, "")
NO_PLACE = PlaceFigures("", (0, 0), NO_OUTSIDE_USE, "")


class MainNetwork(NamedTuple):
    """Where a line is for the most part, and since when that holds (Unix seconds); 0: it was not seen lately."""

    code: NetworkCode
    at: float


NOWHERE = MainNetwork((0, 0), 0.0)


class LineInView:
    """A stored line at one moment, with what it used in the days that have ended."""

    def __init__(
        self,
        line: FleetLine,
        facts: VerdictFacts,
        packages: PackageList,
        networks: FleetNetworks,
        pushed: Sequence[CountrySighting] = (),
    ) -> None:
        self.line, self.facts, self.packages, self.now = line, facts, packages, facts.now
        self.pushed, self._networks = pushed, networks

    def use(self, days: int) -> LineUse:
        """What it used in the last `days` days that have ended."""
        window = last_whole_days(self.now, days)
        return stored_line_use(self.facts.usage, self._networks, window.first.toordinal(), window.last.toordinal())

    def calendar(self, days: int) -> LineCalendar:
        return line_calendar(self.line, self.use(days), last_whole_days(self.now, days))


def line_figures(seen: LineInView, search: StoredLinePlan, coverage: CoverageMap, sponsors: SponsorPrefixes) -> LineFigures:
    """The figures of a line."""
    line, month = seen.line, seen.use(CALENDAR_DAYS)
    in_use = line_state(line, last_whole_days(seen.now).first) == "in_use"
    calendar = line_calendar(line, month, last_whole_days(seen.now))
    churn = line_churn(seen, calendar) if in_use else NO_CHURN
    odd = line_anomalies(line, calendar) if in_use else NO_ANOMALIES
    main = main_network(seen) if line.status == "ACTIVE" else NOWHERE
    place = place_figures(seen, month, coverage) if line.status == "ACTIVE" else NO_PLACE
    sponsor, plan = sponsors.sponsor_of(line), search.plan
    return LineFigures(
        ordinal(seen.now),
        churn.tenths,
        churn.signs,
        odd.line_days,
        odd.found,
        place.verdict,
        *place.code,
        *place.outside,
        place.signs,
        -1 if sponsor is None else sponsor,
        *main.code,
        main.at,
        "" if is_in_stock(line) else month_profile(seen, month),
        plan.verdict,
        plan.saving,
        plan.now,
        plan.spend.price,
        plan.network_cost,
        *entry_columns(seen.facts, seen.pushed),
    )


def line_churn(seen: LineInView, calendar: LineCalendar) -> ChurnFigures:
    """The churn score of a line in use; `calendar`: its last four weeks."""
    silent = silent_days(seen.line, calendar)
    if silent >= QUIET_LINE_DAYS:
        calendar = seen.calendar(QUIET_CALENDAR_DAYS)
    used, signs = churn_signs(seen.line, calendar, None if silent < SUPPLY_CHECK_DAYS else seen.packages, seen.now)
    score = score_churn(signs)
    factors = [[factor["name"], factor["value"], factor["weight"]] for factor in score.factors]
    return ChurnFigures(round(10 * score.points), orjson.dumps([used.isoformat(), factors]).decode())


def line_anomalies(line: FleetLine, calendar: LineCalendar) -> AnomalyFigures:
    """What stands out in the last four weeks of a line in use."""
    found = find_anomalies(line, calendar)
    rows = [{name: value for name, value in one.items() if name != "iccid"} for one in found.anomalies]
    return AnomalyFigures(found.line_days, orjson.dumps(rows).decode() if rows else "")


def place_figures(seen: LineInView, month: LineUse, coverage: CoverageMap) -> PlaceFigures:
    """Whether the packages of an active line work where it is; `month`: its use of 28 days."""
    row, lately = seen.facts.line, max(seen.facts.line.last_used, seen.facts.line.sighted)
    code = (row.mcc, row.mnc) if row.mcc else None
    held = data_packages(seen.packages, seen.now) if code is not None and is_seen_lately(lately or None, seen.now) else None
    one = line_verdict(seen.line, LineSighting(code, lately or None, held), coverage)
    if one.verdict == "covered" and is_seen_lately(row.last_used or None, seen.now):
        one = verdict_by_use(one, seen.use(WEEK_DAYS), coverage)
    outside = uncovered_use(month, one, coverage) if one.verdict in COVERAGE_PROBLEMS else NO_OUTSIDE_USE
    signs = {"seen": one.sighting.seen, "zones": one.zones, "by": one.by}
    return PlaceFigures(one.verdict, one.sighting.code or (0, 0), outside, orjson.dumps(signs).decode())


def main_network(seen: LineInView) -> MainNetwork:
    """The network where an active line used most data of a week in the country where it is, else the one that saw it last."""
    row = seen.facts.line
    if not row.mcc or not is_seen_lately(row.last_used or None, seen.now):
        return NOWHERE
    code = main_networks(seen.use(WEEK_DAYS)).get(network_country(f"{row.mcc:03d}", str(row.mnc)) or "")
    if code is None:
        return MainNetwork((row.mcc, row.mnc), row.last_used)
    return MainNetwork(code, day_start(seen.facts.today - WEEK_DAYS))


def month_profile(seen: LineInView, month: LineUse) -> str:
    """JSON of how the line was used in four weeks; '' where it was not."""
    return profile_text(usage_profile(month, last_whole_days(seen.now).first + timedelta(days=CALENDAR_DAYS // 2)))
