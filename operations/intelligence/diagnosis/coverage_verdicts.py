"""Lines on networks that their packages do not cover: the verdict about each line, what to do about it, and the search of a fleet.

A search makes as few calls of the charging system as the question takes.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Literal, NamedTuple

import anyio.to_thread

from clients.ocs.times import wire_seconds
from operations.deps import Ctx
from operations.intelligence.diagnosis.facts import DataPackage, data_packages
from operations.intelligence.diagnosis.steering_facts import SeenLine, SteeringFacts, is_seen_lately, moved_line, read_steering_facts
from operations.intelligence.lines.fleet_lines import (
    READING_SECONDS,
    FleetLine,
    FleetReading,
    FleetResult,
    last_use_day,
    read_each_line,
    read_fleet,
)
from operations.intelligence.lines.usage import LineUse, read_line_use
from operations.intelligence.money.advice import LineAdvice
from operations.intelligence.money.package_advice import PackageAdviser
from operations.intelligence.money.steering_advice import SteeredLine, SteeringAdviser
from operations.intelligence.offers.coverage_map import CoverageMap, KnownNetwork, NetworkCodes, network_outside, read_coverage_map
from operations.intelligence.offers.offers import read_offers
from operations.times import WEEK_DAYS, DayWindow, utc_today
from operations.upstream.connection import Upstream
from operations.upstream.signalling import NetworkCode, network_code
from operations.upstream.usage import USAGE_TYPE_DATA
from registry.clock import limit_reading_time, seconds_left
from registry.errors import NotFound, OcsError
from storage.line_steering import LineSteering

CoverageVerdict = Literal["covered", "mis_steered", "outside_zone", "no_package", "unknown", "not_seen_lately", "never_seen"]
"""`mis_steered`: outside, although the zone has another network of the country; `outside_zone`: it has none there."""
COVERAGE_PROBLEMS: tuple[CoverageVerdict, ...] = ("mis_steered", "outside_zone", "no_package", "unknown")
"""In the order in which they are shown."""


class LineSighting(NamedTuple):
    """What was read of a line. `seen` is Unix seconds: of its registration, or of its last use, before which it cannot have been seen."""

    code: NetworkCode | None
    seen: float | None
    packages: Sequence[DataPackage] | None
    """None: not read, since the line was not seen lately."""


class UncoveredUse(NamedTuple):
    """Use of the network that no package paid. Micro-euros: what the operator paid for it, and what balances were charged."""

    data_bytes: int
    network_cost: int
    usage_income: int

    @property
    def weight(self) -> int:
        """The value that lines are ranked by: what the use cost anybody, at least 0."""
        return max(0, self.network_cost) + max(0, self.usage_income)


class LineVerdict(NamedTuple):
    """A line, its network and the verdict. `options`: other networks of the country that its zones hold."""

    line: FleetLine
    sighting: LineSighting
    verdict: CoverageVerdict
    country: str | None
    network: KnownNetwork | None
    zones: tuple[int, ...]
    """Of the packages that data can be taken from."""
    options: tuple[KnownNetwork, ...]
    by: Literal["registration", "usage"] = "registration"
    """`usage`: it registered on a covered network at last, and the network here is the one where it used most data outside."""


def line_verdict(line: FleetLine, sighting: LineSighting, coverage: CoverageMap) -> LineVerdict:
    code = sighting.code
    country = None if code is None else coverage.country(code)
    zones = tuple(sorted({package.zone_id for package in sighting.packages or () if package.usable}))
    options = tuple(coverage.options(zones, country)) if country is not None else ()
    verdict = coverage_verdict(sighting, country, zones, options, coverage)
    return LineVerdict(line, sighting, verdict, country, None if code is None else coverage.find(code), zones, options)


def coverage_verdict(
    sighting: LineSighting, country: str | None, zones: Sequence[int], options: Sequence[KnownNetwork], coverage: CoverageMap
) -> CoverageVerdict:
    """The first verdict that applies; `unknown` where a zone is not the reseller's to see, or the network's country is not known."""
    if sighting.code is None:
        return "never_seen"
    if sighting.packages is None:
        return "not_seen_lately"
    if not zones:
        return "no_package"
    if coverage.covers(zones, sighting.code):
        return "covered"
    if country is None or not all(coverage.knows(zone) for zone in zones):
        return "unknown"
    return "mis_steered" if options else "outside_zone"


def uncovered_use(use: LineUse, judged: LineVerdict, coverage: CoverageMap) -> UncoveredUse:
    """The use on the line's network that no package paid. Where a package paid a part, the reseller's cost is divided by quantity."""
    data_bytes = cost = charged = 0
    for place in use.places:
        if not is_same_network((place.mcc, place.mnc), judged, coverage):
            continue
        beside = place.quantity - place.in_package
        data_bytes += beside if place.usage_type == USAGE_TYPE_DATA else 0
        cost += round(place.reseller_cost * beside / place.quantity) if place.quantity else 0
        charged += place.subscriber_cost
    return UncoveredUse(data_bytes, cost, charged)


def is_same_network(code: NetworkCode, judged: LineVerdict, coverage: CoverageMap) -> bool:
    """Whether `code` is a code of the network that the line is on."""
    return code == judged.sighting.code or (judged.network is not None and coverage.find(code) == judged.network)


NETWORK_OPTIONS_SHOWN = 3
NO_UNCOVERED_USE = UncoveredUse(0, 0, 0)
NO_USE = LineUse((), (), 0, 0)


class CoveredNetwork(NamedTuple):
    """A network where the line would be covered. `rate`: micro-euros that the operator pays for a MiB there; None: not known."""

    network: KnownNetwork
    rate: int | None


class UncoveredLine(NamedTuple):
    """A line that is not covered."""

    judged: LineVerdict
    outside: UncoveredUse | None
    use: LineUse | None
    """All of it, on which `outside` and advice rest. Both are None where it could not be read."""
    steering_list: int | None
    options: tuple[CoveredNetwork, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key: worst verdict, then highest cost, then lowest number, so that the order is always the same."""
        return COVERAGE_PROBLEMS.index(self.judged.verdict), -(self.outside or NO_UNCOVERED_USE).weight, self.judged.line.subscriber_id


class CoverageAdviser(NamedTuple):
    """Says what to do for a line that is not covered. What could not be read, or no line needs, is None."""

    coverage: CoverageMap
    of_accounts: Mapping[int, int | None]
    facts: SteeringFacts | None
    steering: SteeringAdviser | None
    packages: PackageAdviser | None

    def list_of(self, one: LineVerdict) -> int | None:
        """The steering list of the line, else that of its account."""
        if self.facts is not None:
            return self.facts.list_of(one.line)
        own = one.line.row.get("steeringListId")
        return own if own is not None else self.of_accounts.get(one.line.account_id)

    def options(self, one: LineVerdict) -> tuple[CoveredNetwork, ...]:
        """The networks of a mis-steered line, cheapest data first; those whose price is not known come last."""
        if self.facts is None or one.verdict != "mis_steered":
            return ()
        sponsor, buying = self.facts.sponsors.sponsor_of(one.line), self.facts.prices.buying
        found = [CoveredNetwork(network, buying.rate(network.id, sponsor, "data")) for network in one.options]
        ordered = sorted(found, key=lambda option: (option.rate is None, option.rate or 0, option.network.id))
        return tuple(ordered[:NETWORK_OPTIONS_SHOWN])

    def advise(self, row: UncoveredLine, steering: Mapping[str, LineSteering], now: float) -> LineAdvice:
        """The advice at `now`, Unix seconds. `steering`: what was done through us until then, by ICCID."""
        one = row.judged
        if one.verdict == "unknown":
            return LineAdvice("none", "unknown_network")
        if one.verdict != "mis_steered" and self.packages is not None:
            return self.packages.advise(one.line, one.network, row.use)
        if one.verdict != "mis_steered":
            return LineAdvice("none", "not_read")
        if self.facts is None or self.steering is None or one.network is None or one.country is None:
            return LineAdvice("none", "price_not_known")
        steered = SteeredLine(
            self.facts.sponsors.sponsor_of(one.line),
            self.facts._replace(steering=steering).list_of(one.line),
            one.country,
            one.network,
            one.sighting.seen or 0.0,
            one.zones,
            None if row.use is None else moved_line(self.facts, one.line, row.use, one.sighting.packages or ()),
            is_mis_steered=True,
        )
        return self.steering.advise(steered, steering.get(one.line.iccid), now)


async def read_coverage_adviser(
    ctx: Ctx, upstream: Upstream, found: Sequence[LineVerdict], coverage: CoverageMap
) -> tuple[CoverageAdviser, list[str]]:
    """The advice, and sentences on what of it could not be read. Each part is read only if a line needs it. Waits for the network."""
    verdicts, unread = {one.verdict for one in found}, list[str]()
    accounts = {account.get("id", 0): account.get("steeringListId") for account in await upstream.accounts()}
    facts, steering, packages = None, None, None
    if "mis_steered" in verdicts:
        facts = await read_steering_facts(ctx, upstream)
        unread += facts.unread
        seen = [
            SeenLine(one.line, one.sighting.code, one.sighting.seen or 0.0)
            for one in found
            if one.sighting.code is not None and one.sighting.packages is not None
        ]
        steering = await anyio.to_thread.run_sync(facts.adviser, seen, coverage)
    if verdicts & {"outside_zone", "no_package"}:
        try:
            packages = PackageAdviser(await read_offers(upstream))
        except OcsError:
            unread.append("The package templates could not be read: no packages are offered.")
    return CoverageAdviser(coverage, accounts, facts, steering, packages), unread


class NetworkTotals(NamedTuple):
    """The lines on one network that were seen lately."""

    country: str | None
    network: KnownNetwork | None
    code: NetworkCode
    verdicts: tuple[str, ...]
    outside: UncoveredUse


def rank_uncovered_lines(
    outside: Sequence[LineVerdict], uses: Mapping[int, LineUse | None], adviser: CoverageAdviser
) -> list[UncoveredLine]:
    """The lines that are not covered, ranked. A line without use in the window cost nothing."""
    rows = [uncovered_line(one, uses.get(one.line.subscriber_id, NO_USE), adviser) for one in outside]
    return sorted(rows, key=lambda row: row.rank)


def uncovered_line(one: LineVerdict, use: LineUse | None, adviser: CoverageAdviser) -> UncoveredLine:
    outside = None if use is None else uncovered_use(use, one, adviser.coverage)
    return UncoveredLine(one, outside, use, adviser.list_of(one), adviser.options(one))


def network_totals(found: Sequence[LineVerdict], rows: Sequence[UncoveredLine]) -> list[NetworkTotals]:
    """Totals by network: most mis-steered lines first, then highest cost."""
    outside = {row.judged.line.subscriber_id: row.outside for row in rows}
    groups: dict[NetworkCode, list[LineVerdict]] = {}
    for one in found:
        if one.sighting.code is not None and one.sighting.packages is not None:
            code = one.sighting.code if one.network is None else (-1, one.network.id)
            groups.setdefault(code, []).append(one)
    sums = [totals_of_network(lines, outside) for lines in groups.values()]
    return sorted(sums, key=lambda one: (-one.verdicts.count("mis_steered"), -one.outside.weight, -len(one.verdicts), one.code))


def totals_of_network(lines: Sequence[LineVerdict], outside: Mapping[int, UncoveredUse | None]) -> NetworkTotals:
    costs = [cost for one in lines if (cost := outside.get(one.line.subscriber_id)) is not None]
    total = UncoveredUse(
        sum(cost.data_bytes for cost in costs), sum(cost.network_cost for cost in costs), sum(cost.usage_income for cost in costs)
    )
    first = lines[0]
    return NetworkTotals(first.country, first.network, first.sighting.code or (0, 0), tuple(one.verdict for one in lines), total)


async def check_by_use(
    ctx: Ctx, upstream: Upstream, found: list[LineVerdict], doubted: Sequence[LineVerdict], coverage: CoverageMap, seconds: float
) -> tuple[list[LineVerdict], int]:
    """The verdicts, and how many could not be checked: `doubted` lines are compared with their use of the last seven days that have ended.

    Waits for the network, at most `seconds`.
    """
    window = DayWindow(utc_today(ctx.now) - timedelta(days=WEEK_DAYS), utc_today(ctx.now) - timedelta(days=1))
    of = {one.line.subscriber_id: one for one in doubted}

    async def check(line: FleetLine) -> LineVerdict:
        use = await read_line_use(ctx, upstream, line, window)
        return verdict_by_use(of[line.subscriber_id], use, coverage)

    try:
        reading = await read_each_line(ctx, [one.line for one in doubted], check, seconds=seconds)
    except OcsError:
        reading = FleetReading[LineVerdict]({}, len(doubted), 0)
    return [reading.found.get(one.line.subscriber_id, one) for one in found], reading.missing


def verdict_by_use(one: LineVerdict, use: LineUse, coverage: CoverageMap) -> LineVerdict:
    """Mis-steered if its use says so, and then on the network where it used most data outside."""
    code = network_outside(use.places, one.zones, coverage)
    if code is None:
        return one
    country = coverage.country(code)
    options = tuple(coverage.options(one.zones, country or ""))
    sighting = one.sighting._replace(code=code)
    return one._replace(sighting=sighting, verdict="mis_steered", country=country, network=coverage.find(code), options=options, by="usage")


UNCOVERED_USE_DAYS = 28
SIGHTING_TIME_SHARE = 0.75
"""The part of its time that an answer takes for the list and for this; the rest is for what use outside packages cost."""


class CoverageAudit(NamedTuple):
    """What was found in a fleet, with the use of `window`."""

    inactive: int
    verdicts: tuple[str, ...]
    """One for each active line that was looked into."""
    rows: list[UncoveredLine]
    """Ranked: mis-steered ones first, the dearest of each verdict first."""
    networks: list[NetworkTotals]
    window: DayWindow
    adviser: CoverageAdviser
    codes: NetworkCodes
    """By which code each network is named: that which most lines were seen with."""


async def make_coverage_audit(ctx: Ctx, upstream: Upstream, account_id: int | None) -> FleetResult[CoverageAudit]:
    """Reads the active lines, then the use of those that are outside their zones; the audit is made of what was read in time."""
    limit_reading_time()
    began, seconds = ctx.deps.clock.monotonic(), seconds_left(READING_SECONDS)
    coverage, fleet = await read_coverage_map(upstream), await read_fleet(upstream, account_id)
    active = await anyio.to_thread.run_sync(lines_to_audit, fleet.lines, coverage)
    left = seconds * SIGHTING_TIME_SHARE - (ctx.deps.clock.monotonic() - began)
    looks = await read_each_line(ctx, active, partial(read_line_sighting, upstream, now=ctx.now), seconds=left)
    found = await anyio.to_thread.run_sync(line_verdicts, active, looks, coverage)
    doubted = await anyio.to_thread.run_sync(covered_lines_to_check, found, ctx.now)
    left = seconds - (ctx.deps.clock.monotonic() - began)
    found, unchecked = await check_by_use(ctx, upstream, found, doubted, coverage, left)
    outside = [one for one in found if one.verdict in COVERAGE_PROBLEMS]
    window = DayWindow(utc_today(ctx.now) - timedelta(days=UNCOVERED_USE_DAYS), utc_today(ctx.now) - timedelta(days=1))
    used = [one for one in outside if (day := last_use_day(one.line)) is not None and day >= window.first]
    uses = await read_uncovered_use(ctx, upstream, used, window, seconds - (ctx.deps.clock.monotonic() - began))
    known = {one.line.subscriber_id: uses.found.get(one.line.subscriber_id) for one in used}
    adviser, unread = await read_coverage_adviser(ctx, upstream, found, coverage)
    rows = await anyio.to_thread.run_sync(rank_uncovered_lines, outside, known, adviser)
    sums = await anyio.to_thread.run_sync(network_totals, found, rows)
    verdicts, inactive = tuple(one.verdict for one in found), len(fleet.lines) - len(active)
    codes = NetworkCodes(coverage, (one.sighting.code for one in found if one.sighting.code is not None))
    audit = CoverageAudit(inactive, verdicts, rows, sums, window, adviser, codes)
    return looks.result(ctx, audit, fleet, others=[*unread, *unread_use_sentences(uses.missing, unchecked)])


def unread_use_sentences(uncosted: int, unchecked: int) -> Iterator[str]:
    """How many lines' use could not be read, and what is unknown because of it."""
    if uncosted:
        yield f"The use of {uncosted} lines could not be read: their cost is in no sum."
    if unchecked:
        yield f"The use of {unchecked} covered lines could not be read: whether they are outside most of the time is not known."


def lines_to_audit(lines: Sequence[FleetLine], coverage: CoverageMap) -> list[FleetLine]:
    """The active lines. Those on a network that some zone lacks come first, so that lack of time leaves out the least likely ones."""
    active = [line for line in lines if line.status == "ACTIVE"]
    return sorted(active, key=lambda line: (coverage.outside_rank(network_code(line.row.get("lastMcc"), line.row.get("lastMnc"))), line[0]))


async def read_line_sighting(upstream: Upstream, line: FleetLine, *, now: float) -> LineSighting:
    """The network of `line`, when it was seen there, and its packages: no call if the list shows no use, else one for most."""
    row = line.row
    code, seen = network_code(row.get("lastMcc"), row.get("lastMnc")), wire_seconds(row.get("lastUsageDate"))
    if code is None and seen is None:
        return LineSighting(None, None, None)
    if code is None or not is_seen_lately(seen, now):
        single = await upstream.ocs.subscriber.get_single_subscriber(line.subscriber_id, with_sim_info=False)
        if single.get("accountId", line.account_id) != line.account_id:
            raise NotFound("The line was moved since the list was read")
        info = single.get("networkInfo", {})
        code = network_code(info.get("lastMcc"), info.get("lastMnc")) or code
        seen = wire_seconds(info.get("time")) or seen
    if code is None or not is_seen_lately(seen, now):
        return LineSighting(code, seen, None)
    packages = data_packages(await upstream.ocs.packages.list_packages(line.subscriber_id), now)
    return LineSighting(code, seen, packages)


def line_verdicts(lines: Sequence[FleetLine], looks: FleetReading[LineSighting], coverage: CoverageMap) -> list[LineVerdict]:
    return [line_verdict(line, looks.found[line.subscriber_id], coverage) for line in lines if line.subscriber_id in looks.found]


def covered_lines_to_check(found: Sequence[LineVerdict], now: float) -> list[LineVerdict]:
    """The covered lines that were used lately and whose packages work where those of a mis-steered line do.

    Choice: only these, since each costs a call; where no line at all was met outside, none is likely to be there most of its time.
    """
    zones = {zone for one in found if one.verdict == "mis_steered" for zone in one.zones}
    near = [one for one in found if one.verdict == "covered" and not zones.isdisjoint(one.zones)]
    return [one for one in near if is_seen_lately(wire_seconds(one.line.row.get("lastUsageDate")), now)]


async def read_uncovered_use(
    ctx: Ctx, upstream: Upstream, lines: Sequence[LineVerdict], window: DayWindow, seconds: float
) -> FleetReading[LineUse]:
    """What `lines` used in `window`, mis-steered lines first. Waits for the network, at most `seconds`.

    A line that cannot be read is counted as missing, and is no refusal.
    """

    async def read(line: FleetLine) -> LineUse:
        return await read_line_use(ctx, upstream, line, window)

    ordered = [one.line for one in sorted(lines, key=lambda one: (COVERAGE_PROBLEMS.index(one.verdict), one.line.subscriber_id))]
    try:
        return await read_each_line(ctx, ordered, read, seconds=seconds)
    except OcsError:
        return FleetReading({}, len(ordered), 0)
