"""Lines that happen to be on a covered network now, and use most of their data on networks that their packages do not cover."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from operations.deps import Ctx
from operations.intelligence.coverage.map import Code, CoverageMap
from operations.intelligence.coverage.verdicts import Judged
from operations.intelligence.fleet.reading import FleetLine, Reading, read_each
from operations.intelligence.lines.use import DATA, use_of
from operations.services.network.reached import Upstream
from operations.services.network.usage_weeks import LineUse
from operations.services.network.windows import WEEK, Window, today
from registry.errors import OcsError


class Checked(NamedTuple):
    """The verdicts after the check, and the lines whose use could not be read."""

    found: list[Judged]
    missing: int


def suspects(found: Sequence[Judged], last_use: Sequence[bool]) -> list[Judged]:
    """Covered lines whose packages work where those of a mis-steered line do.

    Choice: only these, since each costs a call; where no line at all was met outside, none is likely to be there most of its time.
    """
    zones = {zone for one in found if one.verdict == "mis_steered" for zone in one.zones}
    return [one for one, used in zip(found, last_use, strict=True) if used and one.verdict == "covered" and not zones.isdisjoint(one.zones)]


async def checked(
    ctx: Ctx, upstream: Upstream, found: list[Judged], doubted: Sequence[Judged], coverage: CoverageMap, seconds: float
) -> Checked:
    """Hold the doubted lines against the use of the last seven days that have ended."""
    window = Window(today(ctx.now) - timedelta(days=WEEK), today(ctx.now) - timedelta(days=1))
    of = {one.line.subscriber_id: one for one in doubted}

    async def check(line: FleetLine) -> Judged:
        use = await use_of(upstream, line, window, ctx.deps.weeks, ctx.now)
        return by_use(of[line.subscriber_id], use, coverage)

    try:
        reading = await read_each([one.line for one in doubted], check, clock=ctx.deps.clock, tell=ctx.progress, seconds=seconds)
    except OcsError:
        reading = Reading[Judged]({}, len(doubted), 0)
    return Checked([reading.found.get(one.line.subscriber_id, one) for one in found], reading.missing)


def by_use(one: Judged, use: LineUse, coverage: CoverageMap) -> Judged:
    """Mis-steered when more than half of the data, where the zones have a network, was used on others and came from no package."""
    beside: dict[Code, int] = {}
    whole = 0
    for place in use.places:
        code = place.mcc, place.mnc
        country = coverage.country(code)
        if place.usage_type != DATA or country is None or not coverage.options(one.zones, country):
            continue
        whole += place.quantity
        if not coverage.covers(one.zones, code):
            beside[code] = beside.get(code, 0) + place.quantity - place.in_package
    if sum(beside.values()) * 2 <= max(0, whole):  # records that take back what was counted can make it less than nothing
        return one
    code = max(beside, key=lambda code: (beside[code], code))
    country = coverage.country(code)
    options = tuple(coverage.options(one.zones, country or ""))
    look = one.look._replace(code=code)
    return one._replace(look=look, verdict="mis_steered", country=country, network=coverage.find(code), options=options, by="usage")
