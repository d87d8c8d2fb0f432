"""What to do about lines outside their zones: steering lists, templates, prices; and the lines ranked, each with its advice."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import anyio.to_thread

from operations.deps import Ctx
from operations.intelligence.coverage.verdicts import COVERAGE_PROBLEMS, LineVerdict, UncoveredUse
from operations.intelligence.packages.coverage_map import KnownNetwork, NetworkCode
from operations.intelligence.packages.offers import OfferCatalogue, read_offers
from operations.upstream.connection import Upstream
from operations.upstream.resellers import read_reseller_list
from operations.upstream.tariffs import read_tariff_rules, tariff_offer
from registry.errors import OcsError

NetworkPrices = dict[int, float]
CoverageAction = Literal["push_steering", "change_steering_list", "offer_package", "none"]
BLAMED_LIST_LINES = 3
"""Choice: a steering list is blamed from so many lines on, of which more than half are outside; fewer say nothing of the list."""
NETWORK_OPTIONS_SHOWN = 3
NO_UNCOVERED_USE = UncoveredUse(0, 0, 0)


class CoveringPackage(NamedTuple):
    """A package that covers the network: the cheapest of those that the line's SIM can take."""

    zone_id: int
    template_id: int


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
        """The line's own list, else its account's."""
        own = one.line.row.get("steeringListId")
        return own if own is not None else self._of_accounts.get(one.line.account_id)

    def action(self, one: LineVerdict) -> CoverageAction:
        """Push the list again; where there is none, where it is gone, or where it leads most lines of the country outside, change it."""
        list_id = self.list_of(one)
        gone = list_id is None or (self._known is not None and list_id not in self._known)
        return "change_steering_list" if gone or (list_id, one.country or "") in self._blamed else "push_steering"


class PackageAdvice:
    """The packages that may be offered, by network. The lists do not say which templates are recurring."""

    def __init__(self, offers: OfferCatalogue | None) -> None:
        self._offers = offers
        self._found: dict[tuple[int, int | None], CoveringPackage | None] = {}

    def offer(self, one: LineVerdict) -> CoveringPackage | None:
        """The cheapest that covers the line's network, of those for SIMs of its sponsor. Choice: one of an unknown sponsor gets none."""
        sponsor = None if self._offers is None else self._offers.sponsor_of(one.line)
        if self._offers is None or one.network is None or sponsor is None:
            return None
        key = one.network.id, sponsor
        if key not in self._found:
            zones = self._offers.coverage.zones_with(one.network.id)
            fitting = [offer for offer in self._offers.of_sponsor(sponsor) if offer.zone_id in zones and offer.volumes[0] > 0]
            found = min(fitting, key=lambda offer: (offer.cost, offer.template_id), default=None)
            self._found[key] = None if found is None else CoveringPackage(found.zone_id, found.template_id)
        return self._found[key]


class CoverageAdvice(NamedTuple):
    """What is needed to say what to do, and what of it could not be read."""

    steering: SteeringAdvice
    packages: PackageAdvice
    prices: NetworkPrices
    unread: tuple[str, ...]


async def read_coverage_advice(ctx: Ctx, upstream: Upstream, found: Sequence[LineVerdict]) -> CoverageAdvice:
    """Lists, templates and prices, each only where a line needs it, and each dispensable."""
    verdicts, unread = {one.verdict for one in found}, list[str]()
    accounts = {account.get("id", 0): account.get("steeringListId") for account in await upstream.accounts()}
    lists: frozenset[int] | None = None
    packages, prices = PackageAdvice(None), NetworkPrices()
    if "mis_steered" in verdicts:
        try:
            rows = await read_reseller_list(upstream, "steering", None, upstream.ocs.reseller.list_steering_list)
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
    """What data costs on each network; a tariff has thousands of rules, so it is read in a thread."""
    rules = await read_tariff_rules(upstream, await upstream.reseller_id())
    offer = await anyio.to_thread.run_sync(tariff_offer, rules, ctx.now)
    return {network["networkId"]: network["dataPerMb"] for rows in offer.values() for network in rows if "dataPerMb" in network}


class UncoveredLine(NamedTuple):
    """A line that is not covered."""

    judged: LineVerdict
    outside: UncoveredUse | None
    """None: its use could not be read."""
    action: CoverageAction
    offer: CoveringPackage | None
    steering_list: int | None
    options: tuple[KnownNetwork, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Worst verdict first, then the dearest, then the lowest number: the order depends on nothing else."""
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
    """The lines that are not covered, ranked. A line that was not used in the window cost nothing."""
    rows = [uncovered_line(one, costs.get(one.line.subscriber_id, NO_UNCOVERED_USE), advice) for one in outside]
    return sorted(rows, key=lambda row: row.rank)


def uncovered_line(one: LineVerdict, outside: UncoveredUse | None, advice: CoverageAdvice) -> UncoveredLine:
    """A line with what it cost and what to do."""
    offer = advice.packages.offer(one) if one.verdict in ("outside_zone", "no_package") else None
    action: CoverageAction = "offer_package" if offer is not None else "none"
    if one.verdict == "mis_steered":
        action = advice.steering.action(one)
    cheapest = sorted(one.options, key=lambda network: (advice.prices.get(network.id, float("inf")), network.id))
    options = tuple(cheapest[:NETWORK_OPTIONS_SHOWN]) if one.verdict == "mis_steered" else ()
    return UncoveredLine(one, outside, action, offer, advice.steering.list_of(one), options)


def network_totals(found: Sequence[LineVerdict], rows: Sequence[UncoveredLine]) -> list[NetworkTotals]:
    """By network: the most mis-steered lines first, then the dearest."""
    outside = {row.judged.line.subscriber_id: row.outside for row in rows}
    groups: dict[NetworkCode, list[LineVerdict]] = {}
    for one in found:
        if one.sighting.code is not None and one.sighting.packages is not None:
            code = one.sighting.code if one.network is None else (-1, one.network.id)
            groups.setdefault(code, []).append(one)
    sums = [totals_of_network(lines, outside) for lines in groups.values()]
    return sorted(sums, key=lambda one: (-one.verdicts.count("mis_steered"), -one.outside.weight, -len(one.verdicts), one.code))


def totals_of_network(lines: Sequence[LineVerdict], outside: Mapping[int, UncoveredUse | None]) -> NetworkTotals:
    """One network."""
    costs = [cost for one in lines if (cost := outside.get(one.line.subscriber_id)) is not None]
    total = UncoveredUse(sum(cost.data_bytes for cost in costs), sum(cost.cost for cost in costs), sum(cost.charged for cost in costs))
    first = lines[0]
    return NetworkTotals(first.country, first.network, first.sighting.code or (0, 0), tuple(one.verdict for one in lines), total)
