"""What advice on steering is made of, beside the lines themselves: lists, tariffs, sponsors, and what was done to lines through us."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from clients.ocs.times import wire_seconds
from operations.deps import Ctx
from operations.intelligence.diagnosis.facts import DataPackage
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.money.network_moves import MovedLine, NetworkPrices
from operations.intelligence.money.network_rates import NetworkRates, read_buying_rates, read_selling_rates
from operations.intelligence.money.steering_advice import ListSighting, SteeringAdviser, SteeringEvidence, steered_list
from operations.intelligence.offers.coverage_map import CoverageMap
from operations.intelligence.offers.offers import SponsorPrefixes, read_sponsors
from operations.upstream.connection import Upstream
from operations.upstream.resellers import STEERING_LISTS, read_reseller_list
from operations.upstream.signalling import NetworkCode, network_code
from operations.upstream.usage import USAGE_TYPE_DATA
from registry.clock import DAY_SECONDS
from registry.errors import OcsError
from storage.line_steering import LINE_STEERING_KEPT_SECONDS, LineSteering, latest_line_steering

SEEN_LATELY_DAYS = 7
"""Choice: where a line was longer ago says nothing of where it is."""
LINE_STEERING_LIMIT = 20_000
"""Lines whose steering was changed through us in thirty days, the latest first; of others it is not known."""
UNREAD_LISTS = "The steering lists could not be read: whether those of the lines still exist was not checked."
UNREAD_BUYING = "The tariff could not be read: what other networks would cost is not known, so nothing is advised that would need it."
UNREAD_SELLING = "The customers' tariff could not be read: what they would pay on other networks is not known."
UNREAD_SPONSORS = "The sponsors could not be read: whose prices hold for a line is not known."


class SeenLine(NamedTuple):
    """A line on a network where it was seen lately. `at`: Unix seconds."""

    line: FleetLine
    code: NetworkCode
    at: float


def is_seen_lately(seen: float | None, now: float) -> bool:
    """Whether the line was seen so recently that it is probably still there. Both are Unix seconds."""
    return seen is not None and seen >= now - SEEN_LATELY_DAYS * DAY_SECONDS


def seen_line(line: FleetLine, now: float) -> SeenLine | None:
    """Where the list says that the line is; None where it was used longer ago, or nowhere. `now`: Unix seconds."""
    code, at = network_code(line.row.get("lastMcc"), line.row.get("lastMnc")), wire_seconds(line.row.get("lastUsageDate"))
    return None if code is None or at is None or not is_seen_lately(at, now) else SeenLine(line, code, at)


def main_networks(use: LineUse) -> dict[str, NetworkCode]:
    """By country, the network where most data was used."""
    sums: dict[str, dict[NetworkCode, int]] = {}
    for place in use.places:
        if place.usage_type == USAGE_TYPE_DATA:
            of = sums.setdefault(place.iso2, {})
            of[place.mcc, place.mnc] = of.get((place.mcc, place.mnc), 0) + place.quantity
    return {country: max(of, key=lambda code: (of[code], code)) for country, of in sums.items()}


class SteeringFacts(NamedTuple):
    """What holds for all lines, as it was read at `at`, Unix seconds; and sentences on what of it could not be read."""

    at: float
    of_accounts: Mapping[int, int | None]
    known: frozenset[int] | None
    """The steering lists that there are; None: not read."""
    sponsors: SponsorPrefixes
    prices: NetworkPrices
    steering: Mapping[str, LineSteering]
    """By ICCID."""
    unread: tuple[str, ...]

    def list_of(self, line: FleetLine) -> int | None:
        """The steering list of the line, else that of its account."""
        return steered_list(line, self.steering.get(line.iccid), self.of_accounts.get(line.account_id), self.at)

    def adviser(self, seen: Iterable[SeenLine], coverage: CoverageMap) -> SteeringAdviser:
        """The advice that follows from where the lines were seen."""
        return SteeringAdviser(SteeringEvidence(self._sightings(seen, coverage), coverage), self.known, coverage, self.prices)

    def _sightings(self, seen: Iterable[SeenLine], coverage: CoverageMap) -> Iterator[ListSighting]:
        """Where a line was before its list was changed or pushed says nothing of the list."""
        for line, code, at in seen:
            steering, network, list_id = self.steering.get(line.iccid), coverage.find(code), self.list_of(line)
            changed = 0.0 if steering is None else max(steering.assigned or 0.0, steering.pushed or 0.0)
            if network is not None and list_id is not None and changed < at:
                yield ListSighting(list_id, self.sponsors.sponsor_of(line), network.country, network.id)


async def read_steering_changes(ctx: Ctx) -> dict[str, LineSteering]:
    """What the caller's organisation did to the steering of its lines in thirty days, by ICCID."""
    since = ctx.now - LINE_STEERING_KEPT_SECONDS
    rows = await ctx.deps.store.read(latest_line_steering, organisation=ctx.organisation, since=since, most=LINE_STEERING_LIMIT)
    return {row.iccid: row for row in rows}


async def read_steering_facts(ctx: Ctx, upstream: Upstream) -> SteeringFacts:
    """What cannot be read is left out and said. Waits for the network."""
    accounts, unread = {account.get("id", 0): account.get("steeringListId") for account in await upstream.accounts()}, list[str]()
    known: frozenset[int] | None = None
    sponsors, buying, selling = SponsorPrefixes(()), NetworkRates((), ctx.now), None
    try:
        known = frozenset(row.get("id", 0) for row in await read_reseller_list(upstream, STEERING_LISTS))
    except OcsError:
        unread.append(UNREAD_LISTS)
    try:
        sponsors = await read_sponsors(upstream)
    except OcsError:
        unread.append(UNREAD_SPONSORS)
    try:
        buying = await read_buying_rates(ctx, upstream)
    except OcsError:
        unread.append(UNREAD_BUYING)
    try:
        selling = await read_selling_rates(ctx, upstream)
    except OcsError:
        unread.append(UNREAD_SELLING)
    steering = await read_steering_changes(ctx)
    return SteeringFacts(ctx.now, accounts, known, sponsors, NetworkPrices(buying, selling), steering, tuple(unread))


def moved_line(facts: SteeringFacts, line: FleetLine, use: LineUse, packages: Sequence[DataPackage]) -> MovedLine:
    """The line, with what its packages still hold, so that what it would cost on other networks can be told."""
    room: dict[int, int] = {}
    for package in packages:
        if package.usable:
            room[package.zone_id] = room.get(package.zone_id, 0) + package.left
    return MovedLine(facts.sponsors.sponsor_of(line), use.places, room)
