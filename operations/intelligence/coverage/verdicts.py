"""Whether the network that a line is on is inside the zones of its packages, and what it used there without a package."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from operations.caches.usage import LineUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import USAGE_TYPE_DATA
from operations.intelligence.packages.coverage_map import CoverageMap, KnownNetwork, NetworkCode
from operations.intelligence.packages.line_packages import DataPackage, usable_packages

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
        """What lines are ranked by: what the use cost anybody, never below 0."""
        return max(0, self.cost) + max(0, self.charged)


class LineVerdict(NamedTuple):
    """A line and what is to be said of it."""

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
    """The verdict on one line."""
    code = sighting.code
    country = None if code is None else coverage.country(code)
    held = usable_packages(sighting.packages or ())
    zones = tuple(sorted({package.zone_id for package in held}))
    options = tuple(coverage.options(zones, country)) if country is not None else ()
    verdict = coverage_verdict(sighting, country, zones, options, coverage)
    return LineVerdict(line, sighting, verdict, country, None if code is None else coverage.find(code), zones, options)


def coverage_verdict(
    sighting: LineSighting, country: str | None, zones: Sequence[int], options: Sequence[KnownNetwork], coverage: CoverageMap
) -> CoverageVerdict:
    """The first that holds. A zone that the reseller does not show, or a code of no country, leaves it open."""
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
    """What the line used on its network without a package. Where a package paid a part, the reseller's cost is shared by quantity."""
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
    """Whether a code is one of the network that the line is on."""
    return code == judged.sighting.code or (judged.network is not None and coverage.find(code) == judged.network)
