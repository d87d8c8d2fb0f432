"""Lines on networks that their packages do not cover: the verdict about each line, what to do about it, and the search of a fleet.

A search makes as few calls of the charging system as the question takes.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Literal, NamedTuple

import anyio.to_thread
from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.times import wire_seconds
from operations.deps import Ctx
from operations.intelligence.diagnosis.facts import DataPackage, data_packages
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
from operations.intelligence.offers.coverage_map import CoverageMap, KnownNetwork, read_coverage_map
from operations.intelligence.offers.offers import OfferCatalogue, read_offers
from operations.times import WEEK_DAYS, DayWindow, utc_today
from operations.upstream.connection import Upstream
from operations.upstream.resellers import STEERING_LISTS, read_reseller_list
from operations.upstream.signalling import NetworkCode, network_code
from operations.upstream.tariffs import read_tariff_rules, tariff_offer
from operations.upstream.usage import USAGE_TYPE_DATA
from registry.clock import DAY_SECONDS, limit_reading_time, seconds_left
from registry.errors import NotFound, OcsError

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
    """Use of the network that no package paid. Costs are micro-euros: what the reseller paid for it, and what balances were charged."""

    data_bytes: int
    cost: int
    charged: int

    @property
    def weight(self) -> int:
        """The value that lines are ranked by: what the use cost anybody, at least 0."""
        return max(0, self.cost) + max(0, self.charged)


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


NetworkPrices = dict[int, float]
CoverageAction = Literal["push_steering", "change_steering_list", "offer_package", "none"]
BLAMED_LIST_LINES = 3
"""Choice: a steering list is blamed from so many lines on, of which more than half are outside; fewer say nothing of the list."""
NETWORK_OPTIONS_SHOWN = 3
NO_UNCOVERED_USE = UncoveredUse(0, 0, 0)


class OfferedPackage(TypedDict):
    """The cheapest package that covers the network."""

    zone_id: int
    template_id: Annotated[
        int, Field(description="For assign_package, or assign_recurring_package: the lists do not say which are recurring")
    ]


class SteeringAdvice:
    """Which steering list each line goes by, and which of them lead lines outside."""

    def __init__(self, of_accounts: Mapping[int, int | None], known: frozenset[int] | None, found: Sequence[LineVerdict]) -> None:
        self._of_accounts, self._known = of_accounts, known
        seen: dict[tuple[int, str], list[int]] = {}
        for one in found:
            list_id = self.list_of(one)
            if list_id is not None and one.country is not None and one.verdict in ("covered", "mis_steered"):
                tally = seen.setdefault((list_id, one.country), [0, 0])
                tally[0] += 1
                tally[1] += one.verdict == "mis_steered"
        self._blamed = {key for key, (lines, outside) in seen.items() if lines >= BLAMED_LIST_LINES and outside * 2 > lines}

    def list_of(self, one: LineVerdict) -> int | None:
        """The steering list of the line, else that of its account."""
        own = one.line.row.get("steeringListId")
        return own if own is not None else self._of_accounts.get(one.line.account_id)

    def action(self, one: LineVerdict) -> CoverageAction:
        """What to do for a mis-steered line: push its list again, or change the list where it is missing, deleted or to blame."""
        list_id = self.list_of(one)
        gone = list_id is None or (self._known is not None and list_id not in self._known)
        return "change_steering_list" if gone or (list_id, one.country or "") in self._blamed else "push_steering"


class PackageAdvice:
    """The packages that may be offered, by network. The lists do not say which templates are recurring."""

    def __init__(self, offers: OfferCatalogue | None) -> None:
        self._offers = offers
        self._found: dict[tuple[int, int | None], OfferedPackage | None] = {}

    def offer(self, one: LineVerdict) -> OfferedPackage | None:
        """The cheapest offer for SIMs of the line's sponsor that covers its network. Choice: none where the sponsor is unknown."""
        sponsor = None if self._offers is None else self._offers.sponsor_of(one.line)
        if self._offers is None or one.network is None or sponsor is None:
            return None
        key = one.network.id, sponsor
        if key not in self._found:
            zones = self._offers.coverage.zones_with(one.network.id)
            fitting = [offer for offer in self._offers.of_sponsor(sponsor) if offer.zone_id in zones and offer.volumes[0] > 0]
            found = min(fitting, key=lambda offer: (offer.cost, offer.template_id), default=None)
            self._found[key] = None if found is None else {"zone_id": found.zone_id, "template_id": found.template_id}
        return self._found[key]


class CoverageAdvice(NamedTuple):
    """What is needed to say what to do, and what of it could not be read."""

    steering: SteeringAdvice
    packages: PackageAdvice
    prices: NetworkPrices
    unread: tuple[str, ...]


async def read_coverage_advice(ctx: Ctx, upstream: Upstream, found: Sequence[LineVerdict]) -> CoverageAdvice:
    """Steering lists, templates and prices, each read only if a line needs it. What cannot be read is left out. Waits for the network."""
    verdicts, unread = {one.verdict for one in found}, list[str]()
    accounts = {account.get("id", 0): account.get("steeringListId") for account in await upstream.accounts()}
    lists: frozenset[int] | None = None
    packages, prices = PackageAdvice(None), NetworkPrices()
    if "mis_steered" in verdicts:
        try:
            rows = await read_reseller_list(upstream, STEERING_LISTS)
            lists = frozenset(row.get("id", 0) for row in rows)
        except OcsError:
            unread.append("The steering lists could not be read: whether those of the lines still exist was not checked.")
        try:
            prices = await read_network_prices(ctx, upstream)
        except OcsError:
            unread.append("The tariff could not be read: the networks that lines could be on are not in the order of their prices.")
    if verdicts & {"outside_zone", "no_package"}:
        try:
            packages = PackageAdvice(await read_offers(upstream))
        except OcsError:
            unread.append("The package templates could not be read: no packages are offered.")
    steering = await anyio.to_thread.run_sync(SteeringAdvice, accounts, lists, found)
    return CoverageAdvice(steering, packages, prices, tuple(unread))


async def read_network_prices(ctx: Ctx, upstream: Upstream) -> NetworkPrices:
    """The data price of each network. A tariff has thousands of rules, so they are handled in a thread."""
    rules = await read_tariff_rules(upstream, await upstream.reseller_id())
    offer = await anyio.to_thread.run_sync(tariff_offer, rules, ctx.now)
    return {network["networkId"]: network["dataPerMb"] for rows in offer.values() for network in rows if "dataPerMb" in network}


class UncoveredLine(NamedTuple):
    """A line that is not covered."""

    judged: LineVerdict
    outside: UncoveredUse | None
    """None: its use could not be read."""
    action: CoverageAction
    offer: OfferedPackage | None
    steering_list: int | None
    options: tuple[KnownNetwork, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key: worst verdict, then highest cost, then lowest number, so that the order is always the same."""
        return COVERAGE_PROBLEMS.index(self.judged.verdict), -(self.outside or NO_UNCOVERED_USE).weight, self.judged.line.subscriber_id


class NetworkTotals(NamedTuple):
    """The lines on one network that were seen lately."""

    country: str | None
    network: KnownNetwork | None
    code: NetworkCode
    verdicts: tuple[str, ...]
    outside: UncoveredUse


def rank_uncovered_lines(
    outside: Sequence[LineVerdict], costs: Mapping[int, UncoveredUse | None], advice: CoverageAdvice
) -> list[UncoveredLine]:
    """The lines that are not covered, ranked. A line without use in the window cost nothing."""
    rows = [uncovered_line(one, costs.get(one.line.subscriber_id, NO_UNCOVERED_USE), advice) for one in outside]
    return sorted(rows, key=lambda row: row.rank)


def uncovered_line(one: LineVerdict, outside: UncoveredUse | None, advice: CoverageAdvice) -> UncoveredLine:
    offer = advice.packages.offer(one) if one.verdict in ("outside_zone", "no_package") else None
    action: CoverageAction = "offer_package" if offer is not None else "none"
    if one.verdict == "mis_steered":
        action = advice.steering.action(one)
    cheapest = sorted(one.options, key=lambda network: (advice.prices.get(network.id, float("inf")), network.id))
    options = tuple(cheapest[:NETWORK_OPTIONS_SHOWN]) if one.verdict == "mis_steered" else ()
    return UncoveredLine(one, outside, action, offer, advice.steering.list_of(one), options)


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
    total = UncoveredUse(sum(cost.data_bytes for cost in costs), sum(cost.cost for cost in costs), sum(cost.charged for cost in costs))
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
    """Mis-steered if more than half of the data, in countries where its zones have a network, was used on other networks without a
    package."""
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
    costs = await read_uncovered_use(ctx, upstream, used, window, coverage, seconds - (ctx.deps.clock.monotonic() - began))
    known = {one.line.subscriber_id: costs.found.get(one.line.subscriber_id) for one in used}
    advice = await read_coverage_advice(ctx, upstream, found)
    rows = await anyio.to_thread.run_sync(rank_uncovered_lines, outside, known, advice)
    sums = await anyio.to_thread.run_sync(network_totals, found, rows)
    verdicts, inactive = tuple(one.verdict for one in found), len(fleet.lines) - len(active)
    unread = (*advice.unread, *unread_use_sentences(costs.missing, unchecked))
    return looks.result(ctx, CoverageAudit(inactive, verdicts, rows, sums, window), fleet, others=unread)


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


def is_seen_lately(seen: float | None, now: float) -> bool:
    """Whether the line was seen so recently that it is probably still there."""
    return seen is not None and seen >= now - SEEN_LATELY_DAYS * DAY_SECONDS


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
    ctx: Ctx, upstream: Upstream, lines: Sequence[LineVerdict], window: DayWindow, coverage: CoverageMap, seconds: float
) -> FleetReading[UncoveredUse]:
    """What `lines` used outside packages in `window`, mis-steered lines first. Waits for the network, at most `seconds`.

    A line that cannot be read is counted as missing, and is no refusal.
    """
    of = {one.line.subscriber_id: one for one in lines}

    async def cost(line: FleetLine) -> UncoveredUse:
        use = await read_line_use(ctx, upstream, line, window)
        return uncovered_use(use, of[line.subscriber_id], coverage)

    ordered = [one.line for one in sorted(lines, key=lambda one: (COVERAGE_PROBLEMS.index(one.verdict), one.line.subscriber_id))]
    try:
        return await read_each_line(ctx, ordered, cost, seconds=seconds)
    except OcsError:
        return FleetReading({}, len(ordered), 0)
