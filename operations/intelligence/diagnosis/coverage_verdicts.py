"""Lines on networks that their packages do not cover: the verdict about each line, what to do about it, and the audit of a fleet.

Verdicts are made when a line is judged, and stored; the audit of a fleet counts and ranks what is stored.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Literal, NamedTuple, cast

import anyio.to_thread
import orjson

from operations.deps import Ctx
from operations.fleet.wire_rows import stored_packages
from operations.intelligence.diagnosis.facts import DataPackage, data_packages
from operations.intelligence.diagnosis.steering_facts import SEEN_LATELY_DAYS, SteeringFacts, moved_line, read_steering_facts
from operations.intelligence.lines.fleet_lines import FleetLine, FleetResult
from operations.intelligence.lines.fleet_view import FleetView
from operations.intelligence.lines.stored_use import FleetNetworks, listed_line, stored_line_use
from operations.intelligence.lines.usage import CALENDAR_DAYS, LineUse, last_whole_days
from operations.intelligence.money.advice import LineAdvice
from operations.intelligence.money.package_advice import PackageAdviser
from operations.intelligence.money.steering_advice import SteeredLine, SteeringAdviser, SteeringEvidence, sightings_of_fleet
from operations.intelligence.offers.coverage_map import CoverageMap, KnownNetwork, NetworkCodes, network_outside, read_coverage_map
from operations.intelligence.offers.offers import read_offers
from operations.times import DayWindow
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import USAGE_TYPE_DATA
from registry.clock import DAY_SECONDS
from registry.errors import OcsError
from storage.fleet_coverage import (
    UNCOVERED_VERDICTS,
    CoverageFigure,
    CoverageGroup,
    FleetCoverage,
    StoredUncovered,
    UncoveredOrder,
    UncoveredVerdict,
    fleet_coverage,
    stored_uncovered,
)
from storage.fleet_judgements import JudgedLine
from storage.fleets import BACKFILL
from storage.line_steering import LineSteering

CoverageVerdict = Literal["covered", UncoveredVerdict, "not_seen_lately", "never_seen"]
"""`mis_steered`: outside, although the zone has another network of the country; `outside_zone`: it has none there."""
COVERAGE_PROBLEMS: tuple[CoverageVerdict, ...] = UNCOVERED_VERDICTS
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


class CoveredNetwork(NamedTuple):
    """A network where the line would be covered. `rate`: micro-euros that the operator pays for a MiB there; None: not known."""

    network: KnownNetwork
    rate: int | None


class UncoveredLine(NamedTuple):
    """A line that is not covered."""

    judged: LineVerdict
    outside: UncoveredUse | None
    use: LineUse | None
    """All of it, on which `outside` and advice rest. Both are None where some of its days have not been read yet."""
    steering_list: int | None
    options: tuple[CoveredNetwork, ...]


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
    ctx: Ctx, view: FleetView, verdicts: Iterable[str], coverage: CoverageMap
) -> tuple[CoverageAdviser, list[str]]:
    """The advice, and sentences on what of it could not be read. Each part is read only if a line needs it. Waits for the network."""
    upstream, met, unread = view.upstream, set(verdicts), list[str]()
    accounts = {account.get("id", 0): account.get("steeringListId") for account in await upstream.accounts()}
    facts, steering, packages = None, None, None
    if "mis_steered" in met:
        facts = await read_steering_facts(ctx, upstream)
        unread += facts.unread
        sightings = await sightings_of_fleet(ctx, view.fleet.state.id, accounts, coverage, account=view.account)
        evidence = await anyio.to_thread.run_sync(SteeringEvidence, sightings, coverage)
        steering = SteeringAdviser(evidence, facts.known, coverage, facts.prices)
    if not met.isdisjoint({"outside_zone", "no_package"}):
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
    lines: int
    covered: int
    mis_steered: int
    outside: UncoveredUse


JUDGED_VERDICTS = frozenset[str](("covered", *COVERAGE_PROBLEMS))
"""Of lines that were seen lately, which are held against the zones of their packages."""


def network_totals(groups: Iterable[CoverageGroup], coverage: CoverageMap) -> list[NetworkTotals]:
    """Totals by network, whose codes are counted together: most mis-steered lines first, then highest cost."""
    found: dict[NetworkCode, NetworkTotals] = {}
    for group in groups:
        if group.verdict not in JUDGED_VERDICTS:
            continue
        code = group.mcc, group.mnc
        network = coverage.find(code)
        key = code if network is None else (-1, network.id)
        known = found.get(key) or NetworkTotals(coverage.country(code), network, code, 0, 0, 0, UncoveredUse(0, 0, 0))
        found[key] = add_lines_on_network(known, group)
    return sorted(found.values(), key=lambda one: (-one.mis_steered, -one.outside.weight, -one.lines, one.code))


def add_lines_on_network(known: NetworkTotals, group: CoverageGroup) -> NetworkTotals:
    outside = known.outside
    return known._replace(
        lines=known.lines + group.lines,
        covered=known.covered + (group.lines if group.verdict == "covered" else 0),
        mis_steered=known.mis_steered + (group.lines if group.verdict == "mis_steered" else 0),
        outside=UncoveredUse(
            outside.data_bytes + group.data_bytes, outside.network_cost + group.network_cost, outside.usage_income + group.usage_income
        ),
    )


def verdict_by_use(one: LineVerdict, use: LineUse, coverage: CoverageMap) -> LineVerdict:
    """Mis-steered if its use says so, and then on the network where it used most data outside."""
    code = network_outside(use.places, one.zones, coverage)
    if code is None:
        return one
    country = coverage.country(code)
    options = tuple(coverage.options(one.zones, country or ""))
    sighting = one.sighting._replace(code=code)
    return one._replace(sighting=sighting, verdict="mis_steered", country=country, network=coverage.find(code), options=options, by="usage")


UNCOVERED_USE_DAYS = CALENDAR_DAYS
CoverageRank = tuple[int, int, int]
"""Where a line stands among those that are not covered: index of its verdict, what its use outside cost, less than 0, and its number."""


def rank_at(order: UncoveredOrder, place: int) -> CoverageRank:
    """The rank of the line at a place of the order: the worst verdict first, then the highest cost, then the lowest number."""
    return order.verdicts[place], -order.weights[place], order.numbers[place]


def place_behind(order: UncoveredOrder, rank: CoverageRank | None) -> int:
    """The place of the first line behind `rank`; of the first of all without one."""
    return 0 if rank is None else bisect_right(range(len(order.numbers)), rank, key=partial(rank_at, order))


class CoverageAudit(NamedTuple):
    """What was found in a fleet, with the use of `window`."""

    inactive: int
    verdicts: Mapping[str, int]
    """How many active lines have each verdict."""
    outside: UncoveredUse
    order: UncoveredOrder
    networks: list[NetworkTotals]
    window: DayWindow
    adviser: CoverageAdviser
    codes: NetworkCodes
    """By which code each network is named: that which most lines were seen with."""


async def make_coverage_audit(ctx: Ctx, view: FleetView) -> FleetResult[CoverageAudit]:
    """The audit of the lines in `view`, counted by the database; what advice needs beside it is read live. Waits for the network."""
    coverage = await read_coverage_map(view.upstream)
    since = ctx.now - SEEN_LATELY_DAYS * DAY_SECONDS
    found = await ctx.deps.store.read(fleet_coverage, fleet=view.fleet.state.id, account=view.account, since=since)
    verdicts = verdict_counts(found.groups)
    adviser, unread = await read_coverage_adviser(ctx, view, verdicts, coverage)
    audit = await anyio.to_thread.run_sync(audit_of_groups, found, verdicts, adviser, last_whole_days(ctx.now, UNCOVERED_USE_DAYS))
    return view.result(ctx, audit, sampled=sum(verdicts.values()), missing=view.known.progress.unread, others=unread)


def verdict_counts(groups: Iterable[CoverageGroup]) -> dict[str, int]:
    """How many lines have each verdict, without those that were not judged yet."""
    found: dict[str, int] = {}
    for group in groups:
        if group.verdict:
            found[group.verdict] = found.get(group.verdict, 0) + group.lines
    return found


def audit_of_groups(found: FleetCoverage, verdicts: Mapping[str, int], adviser: CoverageAdviser, window: DayWindow) -> CoverageAudit:
    outside = [group for group in found.groups if group.verdict in COVERAGE_PROBLEMS]
    total = UncoveredUse(
        sum(group.data_bytes for group in outside),
        sum(group.network_cost for group in outside),
        sum(group.usage_income for group in outside),
    )
    codes = (code for group in found.groups if group.mcc for code in repeat((group.mcc, group.mnc), group.lines))
    return CoverageAudit(
        found.inactive,
        verdicts,
        total,
        found.order,
        network_totals(found.groups, adviser.coverage),
        window,
        adviser,
        NetworkCodes(adviser.coverage, codes),
    )


async def read_uncovered_lines(ctx: Ctx, view: FleetView, audit: CoverageAudit, numbers: Sequence[int]) -> list[UncoveredLine]:
    """The lines with these subscriber ids as they are stored now, in this order, without those that are covered by now."""
    window = audit.window
    stored = await ctx.deps.store.read(
        stored_uncovered,
        fleet=view.fleet.state.id,
        account=view.account,
        numbers=numbers,
        first=window.first.toordinal(),
        last=window.last.toordinal(),
    )
    return await anyio.to_thread.run_sync(uncovered_lines, stored, numbers, audit, ctx.now)


def uncovered_lines(stored: StoredUncovered, numbers: Sequence[int], audit: CoverageAudit, now: float) -> list[UncoveredLine]:
    networks = {(row.mcc, row.mnc): row for row in stored.networks}
    return [uncovered_line(stored, number, networks, audit, now) for number in numbers if number in stored.lines]


def uncovered_line(stored: StoredUncovered, number: int, networks: FleetNetworks, audit: CoverageAudit, now: float) -> UncoveredLine:
    line, figure, window = stored.lines[number], stored.figures[number], audit.window
    first, last = window.first.toordinal(), window.last.toordinal()
    held = data_packages(stored_packages(stored.packages[number]), now)
    judged = stored_verdict(line, figure, held, audit.adviser.coverage)
    listed, options = audit.adviser.list_of(judged), audit.adviser.options(judged)
    if line.rank == BACKFILL and line.due > 0 and line.usage_first > first:
        return UncoveredLine(judged, None, None, listed, options)
    outside = UncoveredUse(figure.outside_bytes, figure.outside_cost, figure.outside_income)
    return UncoveredLine(judged, outside, stored_line_use(stored.usage[number], networks, first, last), listed, options)


class CoverageSigns(NamedTuple):
    """What a stored verdict is made of; see LineVerdict."""

    seen: float | None
    zones: tuple[int, ...]
    by: Literal["registration", "usage"]


def coverage_signs(text: str) -> CoverageSigns:
    found = cast("dict[str, object]", orjson.loads(text))
    zones = tuple(cast("list[int]", found["zones"]))
    return CoverageSigns(cast("float | None", found["seen"]), zones, "usage" if found["by"] == "usage" else "registration")


def stored_verdict(line: JudgedLine, figure: CoverageFigure, held: Sequence[DataPackage], coverage: CoverageMap) -> LineVerdict:
    """The verdict as it is stored, with what the zones of today say of its network."""
    signs, code = coverage_signs(figure.coverage_signs), (figure.mcc, figure.mnc)
    country = coverage.country(code)
    options = () if country is None else tuple(coverage.options(signs.zones, country))
    sighting = LineSighting(code, signs.seen, held)
    verdict = cast("CoverageVerdict", figure.coverage)
    return LineVerdict(listed_line(line), sighting, verdict, country, coverage.find(code), signs.zones, options, signs.by)
