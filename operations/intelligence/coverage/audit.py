"""Looking into a fleet for lines on networks that their packages do not cover: as few calls as the question takes."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

import anyio.to_thread

from operations.deps import Ctx
from operations.intelligence.coverage.advice import advice_of
from operations.intelligence.coverage.map import CoverageMap, code_of, coverage_of
from operations.intelligence.coverage.rows import NetworkSum, Row, rows_of, sums_of
from operations.intelligence.coverage.usage import checked, suspects
from operations.intelligence.coverage.verdicts import PROBLEMS, Judged, Look, Outside, judged, outside_of
from operations.intelligence.finding import Incomplete, gaps
from operations.intelligence.fleet.reading import FleetLine, Reading, fleet_of, read_each, reading_seconds
from operations.intelligence.kept_finding import kept_finding
from operations.intelligence.lines.use import use_of
from operations.intelligence.packages.held import data_packages
from operations.services.network.lines import no_such_line
from operations.services.network.reached import Upstream
from operations.services.network.utc_moment import seconds_of
from operations.services.network.windows import Window, today
from registry.errors import OcsError

FRESH_DAYS = 7
"""Choice: where a line was longer ago says nothing of where it is, so it is not judged and its packages are not read."""
USE_DAYS = 28
DAY = 86_400
LOOKING = 0.75
"""The part of its time that an answer takes for the list and for this; the rest is for what use outside packages cost."""


class Audit(NamedTuple):
    """What was found in a fleet; kept for a minute."""

    lines: int
    inactive: int
    looked: int
    verdicts: tuple[str, ...]
    """One for each active line that was looked into."""
    rows: list[Row]
    """Ranked: mis-steered ones first, the dearest of each verdict first."""
    networks: list[NetworkSum]
    incomplete: Incomplete | None
    window: Window
    at: float
    """When it was made."""


async def audit_of(ctx: Ctx, upstream: Upstream, account_id: int | None, *, further: bool) -> Audit:
    """The audit of a fleet, a minute old at most, so that its pages are of one state."""

    async def load() -> Audit:
        return await audited(ctx, upstream, account_id)

    return await kept_finding(upstream, ("coverage_audit", ctx.organisation, account_id), load, further=further)


async def audited(ctx: Ctx, upstream: Upstream, account_id: int | None) -> Audit:
    """Look at the active lines, then at what those that are outside used."""
    began, seconds = ctx.deps.clock.monotonic(), reading_seconds()
    coverage, fleet = await coverage_of(upstream), await fleet_of(upstream, account_id)
    active = await anyio.to_thread.run_sync(by_suspicion, fleet.lines, coverage)

    async def look(line: FleetLine) -> Look:
        return await look_at(upstream, line, ctx.now)

    left = seconds * LOOKING - (ctx.deps.clock.monotonic() - began)
    looks = await read_each(active, look, clock=ctx.deps.clock, tell=ctx.progress, seconds=left)
    found = await anyio.to_thread.run_sync(all_judged, active, looks, coverage)
    doubted = await anyio.to_thread.run_sync(doubts, found, ctx.now)
    check = await checked(ctx, upstream, found, doubted, coverage, seconds - (ctx.deps.clock.monotonic() - began))
    found = check.found
    outside = [one for one in found if one.verdict in PROBLEMS]
    window = Window(today(ctx.now) - timedelta(days=USE_DAYS), today(ctx.now) - timedelta(days=1))
    used = [one for one in outside if used_since(one.line, window)]
    costs = await costs_of(ctx, upstream, used, window, coverage, seconds - (ctx.deps.clock.monotonic() - began))
    known = {one.line.subscriber_id: costs.found.get(one.line.subscriber_id) for one in used}
    advice = await advice_of(ctx, upstream, found)
    rows = await anyio.to_thread.run_sync(rows_of, outside, known, advice)
    sums = await anyio.to_thread.run_sync(sums_of, found, rows)
    verdicts, inactive = tuple(one.verdict for one in found), len(fleet.lines) - len(active)
    unread = (*advice.unread, *unread_use(costs.missing, check.missing))
    incomplete = gaps(failed=looks.failed, left=looks.left, unlisted=fleet.incomplete, others=unread)
    return Audit(len(fleet.lines), inactive, len(found), verdicts, rows, sums, incomplete, window, ctx.now)


def unread_use(uncosted: int, unchecked: int) -> Iterator[str]:
    """Of how many lines the use could not be read, and what is not known therefore."""
    if uncosted:
        yield f"The use of {uncosted} lines could not be read: their cost is in no sum."
    if unchecked:
        yield f"The use of {unchecked} covered lines could not be read: whether they are outside most of the time is not known."


def by_suspicion(lines: Sequence[FleetLine], coverage: CoverageMap) -> list[FleetLine]:
    """The active lines, those first whose network some zone leaves out: where the time does not suffice, the least likely ones are left."""
    active = [line for line in lines if line.status == "ACTIVE"]
    return sorted(active, key=lambda line: (coverage.suspicion(code_of(line.row.get("lastMcc"), line.row.get("lastMnc"))), line[0]))


async def look_at(upstream: Upstream, line: FleetLine, now: float) -> Look:
    """A line's network, when it was seen, and its packages: no call where the list says that it was never used, one for most."""
    row = line.row
    code, seen = code_of(row.get("lastMcc"), row.get("lastMnc")), seconds_of(row.get("lastUsageDate"))
    if code is None and seen is None:
        return Look(None, None, None)
    if code is None or not fresh(seen, now):
        single = await upstream.ocs.subscriber.get_single_subscriber(line.subscriber_id, with_sim_info=False)
        if single.get("accountId", line.account_id) != line.account_id:
            raise no_such_line()  # it was moved since the list was read
        info = single.get("networkInfo", {})
        code = code_of(info.get("lastMcc"), info.get("lastMnc")) or code
        seen = seconds_of(info.get("time")) or seen
    if code is None or not fresh(seen, now):
        return Look(code, seen, None)
    packages = data_packages(await upstream.ocs.packages.list_packages(line.subscriber_id), now)
    return Look(code, seen, packages)


def fresh(seen: float | None, now: float) -> bool:
    """Whether a line was seen so lately that it is where it was."""
    return seen is not None and seen >= now - FRESH_DAYS * DAY


def all_judged(lines: Sequence[FleetLine], looks: Reading[Look], coverage: CoverageMap) -> list[Judged]:
    """The verdicts, in the order of the lines."""
    return [judged(line, looks.found[line.subscriber_id], coverage) for line in lines if line.subscriber_id in looks.found]


def doubts(found: Sequence[Judged], now: float) -> list[Judged]:
    """The lines that are covered, and worth a second look: see `suspects`."""
    return suspects(found, [fresh(seconds_of(one.line.row.get("lastUsageDate")), now) for one in found])


def used_since(line: FleetLine, window: Window) -> bool:
    """Whether the line was used in the window or later; what the list says spares the reading of those that were not."""
    seen = seconds_of(line.row.get("lastUsageDate"))
    return seen is not None and today(seen) >= window.first


async def costs_of(
    ctx: Ctx, upstream: Upstream, lines: Sequence[Judged], window: Window, coverage: CoverageMap, seconds: float
) -> Reading[Outside]:
    """What these lines used outside packages, the mis-steered ones first. Nothing that can be read is a gap in the answer, no refusal."""
    of = {one.line.subscriber_id: one for one in lines}

    async def cost(line: FleetLine) -> Outside:
        use = await use_of(upstream, line, window, ctx.deps.weeks, ctx.now)
        return outside_of(use, of[line.subscriber_id], coverage)

    ordered = [one.line for one in sorted(lines, key=lambda one: (PROBLEMS.index(one.verdict), one.line.subscriber_id))]
    try:
        return await read_each(ordered, cost, clock=ctx.deps.clock, tell=ctx.progress, seconds=seconds)
    except OcsError:
        return Reading({}, len(ordered), 0)
