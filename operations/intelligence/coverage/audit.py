"""Looking into a fleet for lines on networks that their packages do not cover: as few calls as the question takes."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

import anyio.to_thread

from operations.caches.usage import LineUse
from operations.deps import Ctx
from operations.intelligence.coverage.advice import NetworkTotals, UncoveredLine, network_totals, rank_uncovered_lines, read_coverage_advice
from operations.intelligence.coverage.verdicts import (
    COVERAGE_PROBLEMS,
    LineSighting,
    LineVerdict,
    UncoveredUse,
    line_verdict,
    uncovered_use,
)
from operations.intelligence.lines.fleet_lines import FleetLine, FleetReading, begin_fleet_reading, read_each_line, read_fleet
from operations.intelligence.lines.usage import USAGE_TYPE_DATA, read_line_use
from operations.intelligence.packages.coverage_map import CoverageMap, NetworkCode, network_code, read_coverage_map
from operations.intelligence.packages.line_packages import data_packages
from operations.intelligence.reports.finding import Incomplete, cached_result, missing_parts
from operations.times import WEEK_DAYS, DayWindow, utc_today, wire_seconds
from operations.upstream.connection import Upstream
from operations.upstream.lines import line_not_found
from registry.errors import OcsError


class UsageCheck(NamedTuple):
    """The verdicts after the check, and the lines whose use could not be read."""

    found: list[LineVerdict]
    missing: int


def candidates_for_check(found: Sequence[LineVerdict], last_use: Sequence[bool]) -> list[LineVerdict]:
    """Covered lines whose packages work where those of a mis-steered line do.

    Choice: only these, since each costs a call; where no line at all was met outside, none is likely to be there most of its time.
    """
    zones = {zone for one in found if one.verdict == "mis_steered" for zone in one.zones}
    return [one for one, used in zip(found, last_use, strict=True) if used and one.verdict == "covered" and not zones.isdisjoint(one.zones)]


async def check_by_use(
    ctx: Ctx, upstream: Upstream, found: list[LineVerdict], doubted: Sequence[LineVerdict], coverage: CoverageMap, seconds: float
) -> UsageCheck:
    """Hold the doubted lines against the use of the last seven days that have ended."""
    window = DayWindow(utc_today(ctx.now) - timedelta(days=WEEK_DAYS), utc_today(ctx.now) - timedelta(days=1))
    of = {one.line.subscriber_id: one for one in doubted}

    async def check(line: FleetLine) -> LineVerdict:
        use = await read_line_use(upstream, line, window, ctx.deps.weeks, ctx.now)
        return verdict_by_use(of[line.subscriber_id], use, coverage)

    try:
        reading = await read_each_line([one.line for one in doubted], check, clock=ctx.deps.clock, tell=ctx.progress, seconds=seconds)
    except OcsError:
        reading = FleetReading[LineVerdict]({}, len(doubted), 0)
    return UsageCheck([reading.found.get(one.line.subscriber_id, one) for one in found], reading.missing)


def verdict_by_use(one: LineVerdict, use: LineUse, coverage: CoverageMap) -> LineVerdict:
    """Mis-steered when more than half of the data, where the zones have a network, was used on others and came from no package."""
    beside: dict[NetworkCode, int] = {}
    whole = 0
    for place in use.places:
        code = place.mcc, place.mnc
        country = coverage.country(code)
        if place.usage_type != USAGE_TYPE_DATA or country is None or not coverage.options(one.zones, country):
            continue
        whole += place.quantity
        if not coverage.covers(one.zones, code):
            beside[code] = beside.get(code, 0) + place.quantity - place.in_package
    if sum(beside.values()) * 2 <= max(0, whole):  # records that take back what was counted can make it less than nothing
        return one
    code = max(beside, key=lambda code: (beside[code], code))
    country = coverage.country(code)
    options = tuple(coverage.options(one.zones, country or ""))
    sighting = one.sighting._replace(code=code)
    return one._replace(sighting=sighting, verdict="mis_steered", country=country, network=coverage.find(code), options=options, by="usage")


SEEN_LATELY_DAYS = 7
"""Choice: where a line was longer ago says nothing of where it is, so it is not judged and its packages are not read."""
UNCOVERED_USE_DAYS = 28
AUDIT_DAY_SECONDS = 86_400
SIGHTING_TIME_SHARE = 0.75
"""The part of its time that an answer takes for the list and for this; the rest is for what use outside packages cost."""


class CoverageAudit(NamedTuple):
    """What was found in a fleet; kept for a minute."""

    lines: int
    inactive: int
    looked: int
    verdicts: tuple[str, ...]
    """One for each active line that was looked into."""
    rows: list[UncoveredLine]
    """Ranked: mis-steered ones first, the dearest of each verdict first."""
    networks: list[NetworkTotals]
    incomplete: Incomplete | None
    window: DayWindow
    at: float
    """When it was made."""


async def coverage_audit(ctx: Ctx, upstream: Upstream, account_id: int | None, *, further: bool) -> CoverageAudit:
    """The audit of a fleet, a minute old at most, so that its pages are of one state."""

    async def load() -> CoverageAudit:
        return await make_coverage_audit(ctx, upstream, account_id)

    return await cached_result(upstream, ("coverage_audit", ctx.organisation, account_id), load, further=further)


async def make_coverage_audit(ctx: Ctx, upstream: Upstream, account_id: int | None) -> CoverageAudit:
    """Look at the active lines, then at what those that are outside used."""
    began, seconds = ctx.deps.clock.monotonic(), begin_fleet_reading()
    coverage, fleet = await read_coverage_map(upstream), await read_fleet(upstream, account_id)
    active = await anyio.to_thread.run_sync(lines_to_audit, fleet.lines, coverage)

    async def look(line: FleetLine) -> LineSighting:
        return await read_line_sighting(upstream, line, ctx.now)

    left = seconds * SIGHTING_TIME_SHARE - (ctx.deps.clock.monotonic() - began)
    looks = await read_each_line(active, look, clock=ctx.deps.clock, tell=ctx.progress, seconds=left)
    found = await anyio.to_thread.run_sync(line_verdicts, active, looks, coverage)
    doubted = await anyio.to_thread.run_sync(covered_lines_to_check, found, ctx.now)
    check = await check_by_use(ctx, upstream, found, doubted, coverage, seconds - (ctx.deps.clock.monotonic() - began))
    found = check.found
    outside = [one for one in found if one.verdict in COVERAGE_PROBLEMS]
    window = DayWindow(utc_today(ctx.now) - timedelta(days=UNCOVERED_USE_DAYS), utc_today(ctx.now) - timedelta(days=1))
    used = [one for one in outside if is_used_in_window(one.line, window)]
    costs = await read_uncovered_use(ctx, upstream, used, window, coverage, seconds - (ctx.deps.clock.monotonic() - began))
    known = {one.line.subscriber_id: costs.found.get(one.line.subscriber_id) for one in used}
    advice = await read_coverage_advice(ctx, upstream, found)
    rows = await anyio.to_thread.run_sync(rank_uncovered_lines, outside, known, advice)
    sums = await anyio.to_thread.run_sync(network_totals, found, rows)
    verdicts, inactive = tuple(one.verdict for one in found), len(fleet.lines) - len(active)
    unread = (*advice.unread, *unread_use_sentences(costs.missing, check.missing))
    incomplete = missing_parts(failed=looks.failed, left=looks.left, unlisted=fleet.incomplete, others=unread)
    return CoverageAudit(len(fleet.lines), inactive, len(found), verdicts, rows, sums, incomplete, window, ctx.now)


def unread_use_sentences(uncosted: int, unchecked: int) -> Iterator[str]:
    """Of how many lines the use could not be read, and what is not known therefore."""
    if uncosted:
        yield f"The use of {uncosted} lines could not be read: their cost is in no sum."
    if unchecked:
        yield f"The use of {unchecked} covered lines could not be read: whether they are outside most of the time is not known."


def lines_to_audit(lines: Sequence[FleetLine], coverage: CoverageMap) -> list[FleetLine]:
    """The active lines, those first whose network some zone leaves out: where the time does not suffice, the least likely ones are left."""
    active = [line for line in lines if line.status == "ACTIVE"]
    return sorted(active, key=lambda line: (coverage.outside_rank(network_code(line.row.get("lastMcc"), line.row.get("lastMnc"))), line[0]))


async def read_line_sighting(upstream: Upstream, line: FleetLine, now: float) -> LineSighting:
    """A line's network, when it was seen, and its packages: no call where the list says that it was never used, one for most."""
    row = line.row
    code, seen = network_code(row.get("lastMcc"), row.get("lastMnc")), wire_seconds(row.get("lastUsageDate"))
    if code is None and seen is None:
        return LineSighting(None, None, None)
    if code is None or not is_seen_lately(seen, now):
        single = await upstream.ocs.subscriber.get_single_subscriber(line.subscriber_id, with_sim_info=False)
        if single.get("accountId", line.account_id) != line.account_id:
            raise line_not_found()  # it was moved since the list was read
        info = single.get("networkInfo", {})
        code = network_code(info.get("lastMcc"), info.get("lastMnc")) or code
        seen = wire_seconds(info.get("time")) or seen
    if code is None or not is_seen_lately(seen, now):
        return LineSighting(code, seen, None)
    packages = data_packages(await upstream.ocs.packages.list_packages(line.subscriber_id), now)
    return LineSighting(code, seen, packages)


def is_seen_lately(seen: float | None, now: float) -> bool:
    """Whether a line was seen so lately that it is where it was."""
    return seen is not None and seen >= now - SEEN_LATELY_DAYS * AUDIT_DAY_SECONDS


def line_verdicts(lines: Sequence[FleetLine], looks: FleetReading[LineSighting], coverage: CoverageMap) -> list[LineVerdict]:
    """The verdicts, in the order of the lines."""
    return [line_verdict(line, looks.found[line.subscriber_id], coverage) for line in lines if line.subscriber_id in looks.found]


def covered_lines_to_check(found: Sequence[LineVerdict], now: float) -> list[LineVerdict]:
    """The lines that are covered, and worth a second look: see `suspects`."""
    return candidates_for_check(found, [is_seen_lately(wire_seconds(one.line.row.get("lastUsageDate")), now) for one in found])


def is_used_in_window(line: FleetLine, window: DayWindow) -> bool:
    """Whether the line was used in the window or later; what the list says spares the reading of those that were not."""
    seen = wire_seconds(line.row.get("lastUsageDate"))
    return seen is not None and utc_today(seen) >= window.first


async def read_uncovered_use(
    ctx: Ctx, upstream: Upstream, lines: Sequence[LineVerdict], window: DayWindow, coverage: CoverageMap, seconds: float
) -> FleetReading[UncoveredUse]:
    """What these lines used outside packages, the mis-steered ones first. Nothing that can be read is a gap in the answer, no refusal."""
    of = {one.line.subscriber_id: one for one in lines}

    async def cost(line: FleetLine) -> UncoveredUse:
        use = await read_line_use(upstream, line, window, ctx.deps.weeks, ctx.now)
        return uncovered_use(use, of[line.subscriber_id], coverage)

    ordered = [one.line for one in sorted(lines, key=lambda one: (COVERAGE_PROBLEMS.index(one.verdict), one.line.subscriber_id))]
    try:
        return await read_each_line(ordered, cost, clock=ctx.deps.clock, tell=ctx.progress, seconds=seconds)
    except OcsError:
        return FleetReading({}, len(ordered), 0)
