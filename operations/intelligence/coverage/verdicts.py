"""Whether the network that a line is on is inside the zones of its packages, and what to do where it is not."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from operations.intelligence.coverage.map import Code, CoverageMap, KnownNetwork
from operations.intelligence.fleet.reading import FleetLine
from operations.intelligence.lines.use import DATA
from operations.intelligence.packages.held import DataPackage, usable
from operations.intelligence.packages.offers import Offers
from operations.services.network.usage_weeks import LineUse

Verdict = Literal["covered", "mis_steered", "outside_zone", "no_package", "unknown", "not_seen_lately", "never_seen"]
"""`mis_steered`: outside, although the zone has another network of the country; `outside_zone`: it has none there."""
Action = Literal["push_steering", "change_steering_list", "offer_package", "none"]
PROBLEMS: tuple[Verdict, ...] = ("mis_steered", "outside_zone", "no_package", "unknown")
"""In the order in which they are shown."""
FEW = 3
"""Choice: a steering list is blamed from so many lines on, of which more than half are outside; fewer say nothing of the list."""


class Look(NamedTuple):
    """What was read of a line. `seen` is Unix seconds: of its registration, or of its last use, before which it cannot have been seen."""

    code: Code | None
    seen: float | None
    packages: Sequence[DataPackage] | None
    """None: not read, since the line was not seen lately."""


class Outside(NamedTuple):
    """Use of the network that no package paid. Costs are micro-euros: what the reseller paid for it, and what balances were charged."""

    data_bytes: int
    cost: int
    charged: int

    @property
    def weight(self) -> int:
        """What lines are ranked by: what the use cost anybody, never below 0."""
        return max(0, self.cost) + max(0, self.charged)


class PackageOffer(NamedTuple):
    """A package that covers the network: the cheapest of those that the line's SIM can take."""

    zone_id: int
    template_id: int


class Judged(NamedTuple):
    """A line and what is to be said of it."""

    line: FleetLine
    look: Look
    verdict: Verdict
    country: str | None
    network: KnownNetwork | None
    zones: tuple[int, ...]
    """Of the packages that data can be taken from."""
    options: tuple[KnownNetwork, ...]
    by: Literal["registration", "usage"] = "registration"
    """`usage`: it registered on a covered network at last, and the network here is the one where it used most data outside."""


def judged(line: FleetLine, look: Look, coverage: CoverageMap) -> Judged:
    """The verdict on one line."""
    code = look.code
    country = None if code is None else coverage.country(code)
    held = usable(look.packages or ())
    zones = tuple(sorted({package.zone_id for package in held}))
    options = tuple(coverage.options(zones, country)) if country is not None else ()
    verdict = verdict_of(look, country, zones, options, coverage)
    return Judged(line, look, verdict, country, None if code is None else coverage.find(code), zones, options)


def verdict_of(look: Look, country: str | None, zones: Sequence[int], options: Sequence[KnownNetwork], coverage: CoverageMap) -> Verdict:
    """The first that holds. A zone that the reseller does not show, or a code of no country, leaves it open."""
    if look.code is None:
        return "never_seen"
    if look.packages is None:
        return "not_seen_lately"
    if not zones:
        return "no_package"
    if coverage.covers(zones, look.code):
        return "covered"
    if country is None or not all(coverage.knows(zone) for zone in zones):
        return "unknown"
    return "mis_steered" if options else "outside_zone"


def outside_of(use: LineUse, judged: Judged, coverage: CoverageMap) -> Outside:
    """What the line used on its network without a package. Where a package paid a part, the reseller's cost is shared by quantity."""
    data_bytes = cost = charged = 0
    for place in use.places:
        if not same_network((place.mcc, place.mnc), judged, coverage):
            continue
        beside = place.quantity - place.in_package
        data_bytes += beside if place.usage_type == DATA else 0
        cost += round(place.reseller_cost * beside / place.quantity) if place.quantity else 0
        charged += place.subscriber_cost
    return Outside(data_bytes, cost, charged)


def same_network(code: Code, judged: Judged, coverage: CoverageMap) -> bool:
    """Whether a code is one of the network that the line is on."""
    return code == judged.look.code or (judged.network is not None and coverage.find(code) == judged.network)


class Steering:
    """Which steering list each line goes by, and which of them lead lines outside."""

    def __init__(self, of_accounts: Mapping[int, int | None], known: frozenset[int] | None, found: Sequence[Judged]) -> None:
        self._of_accounts, self._known = of_accounts, known
        seen: dict[tuple[int, str], list[int]] = {}
        for one in found:
            list_id = self.list_of(one)
            if list_id is not None and one.country is not None and one.verdict in ("covered", "mis_steered"):
                tally = seen.setdefault((list_id, one.country), [0, 0])
                tally[0] += 1
                tally[1] += one.verdict == "mis_steered"
        self._blamed = {key for key, (lines, outside) in seen.items() if lines >= FEW and outside * 2 > lines}

    def list_of(self, one: Judged) -> int | None:
        """The line's own list, else its account's."""
        own = one.line.row.get("steeringListId")
        return own if own is not None else self._of_accounts.get(one.line.account_id)

    def action(self, one: Judged) -> Action:
        """Push the list again; where there is none, where it is gone, or where it leads most lines of the country outside, change it."""
        list_id = self.list_of(one)
        gone = list_id is None or (self._known is not None and list_id not in self._known)
        return "change_steering_list" if gone or (list_id, one.country or "") in self._blamed else "push_steering"


class Shelf:
    """The packages that may be offered, by network. The lists do not say which templates are recurring."""

    def __init__(self, offers: Offers | None) -> None:
        self._offers = offers
        self._found: dict[tuple[int, int | None], PackageOffer | None] = {}

    def offer(self, one: Judged) -> PackageOffer | None:
        """The cheapest that covers the line's network, of those for SIMs of its sponsor. Choice: one of an unknown sponsor gets none."""
        sponsor = None if self._offers is None else self._offers.sponsor_of(one.line)
        if self._offers is None or one.network is None or sponsor is None:
            return None
        key = one.network.id, sponsor
        if key not in self._found:
            zones = self._offers.coverage.zones_with(one.network.id)
            fitting = [offer for offer in self._offers.of_sponsor(sponsor) if offer.zone_id in zones and offer.volumes[0] > 0]
            found = min(fitting, key=lambda offer: (offer.cost, offer.template_id), default=None)
            self._found[key] = None if found is None else PackageOffer(found.zone_id, found.template_id)
        return self._found[key]
