"""Judging lines from the read model: verdicts are made of stored facts and stored, each with the moment when time alone may change them."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import anyio.to_thread
import orjson

from clients.ocs.packages import PackageList
from operations.deps import Deps
from operations.fleet.line_news import store_judgements
from operations.fleet.line_reading import older_days
from operations.fleet.wire_rows import ENDING_SECONDS, day_start, line_supply_at, ordinal, stored_packages
from operations.intelligence.lines.stored_use import FleetNetworks, countries_of, stored_fleet_line
from operations.intelligence.offers.coverage_map import CoverageMap, read_coverage_map
from operations.intelligence.offers.offers import OfferCatalogue, read_offers
from operations.intelligence.verdicts.cheapest import StoredLinePlan
from operations.intelligence.verdicts.country_stays import CountrySighting
from operations.intelligence.verdicts.facts import DAY, LineIdentity, VerdictFacts, packages_of_rows, refused_of_text, series_of_rows
from operations.intelligence.verdicts.figures import LineInView, line_figures
from operations.intelligence.verdicts.rules import CAUSE_PLACES, LineVerdicts, find_verdicts, is_judged
from operations.upstream.connection import upstream_of_organisation
from operations.upstream.lines import series_continues
from registry.errors import OcsError
from storage.country_entries import CountryEntry, sightings_of_line
from storage.engine.sql import Connection, runs_in_thread
from storage.fleet_judgements import EndingPackage, JudgedLine, LineJudgement, lines_to_judge, numbered_lines_to_judge
from storage.fleet_packages import FleetPackageRow, packages_of_line
from storage.fleet_problems import ProblemState
from storage.fleet_usage import KEPT_USAGE_DAYS, FleetNetworkRow, FleetUsageRow, networks_of_fleet, usage_of_line
from storage.fleets import CHANGED, RADIO, FleetState

JUDGED_AT_ONCE = 40
ASKED_EVERY_SECONDS = DAY
"""How often a line whose verdict hangs on it is asked for whether a network sees it."""
JUDGED_SPREAD_SECONDS = 4 * 3600
"""Lines are judged anew each day within so many seconds after midnight, each at its own time."""
CONTEXT_SECONDS, CONTEXTS_LIMIT = 3600.0, 200


class StoredLine(NamedTuple):
    """What is stored of a line."""

    line: JudgedLine
    packages: list[FleetPackageRow]
    usage: list[FleetUsageRow]
    pushed: list[CountryEntry]
    """The countries that it came into by locations that were pushed to us, whosever it was then."""


class StoredLines(NamedTuple):
    """Lines to judge, and the networks of their fleet."""

    lines: list[StoredLine]
    networks: list[FleetNetworkRow]


@runs_in_thread
def read_lines_to_judge(connection: Connection, *, fleet: int, now: float, most: int, numbers: Sequence[int] | None) -> StoredLines:
    """What is stored of the lines with the subscriber ids `numbers`, or of at most `most` that are due at `now`, Unix seconds."""
    if numbers is None:
        lines = lines_to_judge(connection, fleet=fleet, now=now, most=most)
    else:
        lines = numbered_lines_to_judge(connection, fleet=fleet, numbers=numbers)
    if not lines:
        return StoredLines([], [])
    today = ordinal(now)
    found = [
        StoredLine(
            line,
            packages_of_line(connection, fleet=fleet, subscriber_id=line.subscriber_id),
            usage_of_line(connection, fleet=fleet, subscriber_id=line.subscriber_id, first=today - KEPT_USAGE_DAYS, last=today),
            sightings_of_line(connection, iccid=line.iccid),
        )
        for line in lines
    ]
    return StoredLines(found, networks_of_fleet(connection, fleet=fleet))


class FleetContext(NamedTuple):
    """What verdicts on every line of a fleet need beside it, read at `at`, Unix seconds."""

    at: float
    coverage: CoverageMap
    offers: OfferCatalogue
    managed: bool


class LineJudge:
    """Makes and stores verdicts. One per process: it keeps the zones of the fleets that it judges for an hour."""

    def __init__(self, *, in_threads: bool = True) -> None:
        """`in_threads`: whether lines are judged beside the event loop; not where everything must happen in one order."""
        self._in_threads = in_threads
        self._contexts: OrderedDict[tuple[int, str], FleetContext] = OrderedDict()

    async def __call__(self, deps: Deps, fleet: FleetState, numbers: Sequence[int] | None) -> int:
        """Judges the lines with these subscriber ids, or some that are due; how many. Waits for the database, hourly for the network."""
        now = deps.clock.now()
        found = await deps.store.read(read_lines_to_judge, fleet=fleet.id, now=now, most=JUDGED_AT_ONCE, numbers=numbers)
        if not found.lines:
            return 0
        context = await self._context(deps, fleet, now)
        judging = partial(judge_stored_lines, found, context, now)
        judgements = await anyio.to_thread.run_sync(judging) if self._in_threads else judging()
        await deps.store.write(store_judgements, fleet=fleet.id, judgements=judgements, now=now, ids=deps.ids)
        return len(judgements)

    async def _context(self, deps: Deps, fleet: FleetState, now: float) -> FleetContext:
        key = fleet.id, fleet.identity  # a number may be given again
        known = self._contexts.get(key)
        if known is not None and now - known.at < CONTEXT_SECONDS:
            return known
        try:
            upstream = await upstream_of_organisation(deps, fleet.organisation)
            made = FleetContext(now, await read_coverage_map(upstream), await read_offers(upstream), upstream.managed)
        except OcsError:
            if known is None:
                raise
            return known
        self._contexts[key] = made
        self._contexts.move_to_end(key)
        if len(self._contexts) > CONTEXTS_LIMIT:
            self._contexts.popitem(last=False)
        return made


def judge_stored_lines(found: StoredLines, context: FleetContext, now: float) -> list[LineJudgement]:
    """What is found of each line at `now`, Unix seconds. It takes milliseconds a line, so it runs in a thread."""
    networks: FleetNetworks = {(row.mcc, row.mnc): row for row in found.networks}
    return [judge_stored_line(each, context, networks, now) for each in found.lines]


def judge_stored_line(found: StoredLine, context: FleetContext, networks: FleetNetworks, now: float) -> LineJudgement:
    """What is found of a line at `now`, Unix seconds, and when it is to be judged again."""
    line, packages = found.line, stored_packages(found.packages)
    supply, told = line_supply_at(packages, now), stored_fleet_line(line)
    plan = StoredLinePlan(told, found.usage, packages, context.offers, networks, now)
    facts = stored_facts(found, plan, context, networks, now)
    judged = find_verdicts(facts)
    rank, due = line.rank, line.due
    # What a list has shown to be read later is not forgotten for it: nothing else tells of it again.
    if judged.open and line.asked < now - ASKED_EVERY_SECONDS and (due <= 0 or (due > now and rank > CHANGED)):
        rank, due = RADIO, now
    return LineJudgement(
        line.subscriber_id,
        line.version,
        supply.state,
        supply.ends,
        supply.data_left,
        supply.data_limit,
        next_judgement(facts, supply.changes),
        rank,
        due,
        line_figures(
            LineInView(told, facts, packages, networks, pushed_sightings(found, context)), plan, context.coverage, context.offers.sponsors
        ),
        problem_states(judged),
        line.iccid,
        line.read,
        # What nobody has asked for yet may show problems that are not new.
        line.read > 0 and older_days(line, now) is None and (not judged.open or line.asked > 0),
        ending_package(found.packages, packages, now),
    )


def ending_package(rows: Sequence[FleetPackageRow], packages: PackageList, now: float) -> EndingPackage | None:
    """The last of the packages that can still be used, where it ends soon after `now` (Unix seconds) and no series makes another."""
    if any(series_continues(series) for series in packages.get("recurring", [])):
        return None
    usable = [row for row in rows if not row.series and row.active and (row.data_limit == 0 or row.data_used < row.data_limit)]
    last = max((row for row in usable if row.ends > now), key=lambda row: (row.ends, row.id), default=None)
    waits = any(row.ends == 0 for row in usable)  # it has not begun: it will follow
    return None if last is None or waits or last.ends - now > ENDING_SECONDS else EndingPackage(last.id, last.template_id, last.ends)


def pushed_sightings(found: StoredLine, context: FleetContext) -> list[CountrySighting]:
    """Where pushes saw the line while it was in its present account; of a caller with its own token nobody could say whose it was."""
    accounts = {found.line.account_id} if context.managed else {found.line.account_id, None}
    return [CountrySighting(each.country, each.occurred_at, "push") for each in found.pushed if each.account_id in accounts]


def stored_facts(found: StoredLine, plan: StoredLinePlan, context: FleetContext, networks: FleetNetworks, now: float) -> VerdictFacts:
    """The facts of a stored line at `now`, Unix seconds."""
    line = found.line
    identity = LineIdentity(*(getattr(line, name) for name in LineIdentity._fields))
    every = packages_of_rows(found.packages)
    return VerdictFacts(
        now=now,
        line=identity,
        packages=[package for package in every if package.limit > 0],
        all_packages=every,
        series=series_of_rows(found.packages),
        usage=found.usage,
        refused=refused_of_text(line.radio),
        coverage=context.coverage,
        networks=countries_of(networks),
        find_cheapest=plan.cheapest,
    )


def next_judgement(facts: VerdictFacts, changes: float) -> float:
    """When the line is to be judged again though nothing is told of it, Unix seconds; 0.0: never."""
    if not is_judged(facts):
        return changes
    if not facts.usage and not facts.all_packages and not facts.series:
        return changes
    spread = facts.line.subscriber_id * 2_654_435_761 % JUDGED_SPREAD_SECONDS
    tomorrow = day_start(facts.today + 1) + spread
    return min(tomorrow, changes) if changes > 0 else tomorrow


def problem_states(judged: LineVerdicts) -> list[ProblemState]:
    return [
        ProblemState(
            verdict.cause,
            CAUSE_PLACES[verdict.cause],
            verdict.found.since,
            verdict.found.money,
            orjson.dumps(dict(verdict.found.evidence)).decode(),
        )
        for verdict in judged.verdicts
    ]
