"""What would lower what a line costs: another steering list, a push of its own, or for its customer a package."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from operations.intelligence.diagnosis.facts import DataPackage
from operations.intelligence.diagnosis.steering_facts import SteeringFacts, moved_line, seen_line
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.money.advice import LineAdvice
from operations.intelligence.money.package_advice import PackageAdviser
from operations.intelligence.money.steering_advice import SteeredLine, SteeringAdviser
from operations.intelligence.offers.coverage_map import CoverageMap, network_outside
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import USAGE_TYPE_DATA
from storage.line_steering import LineSteering


class CostedLine(NamedTuple):
    """A line, its use in some days, and its packages that hold data; None: they could not be read."""

    line: FleetLine
    use: LineUse
    week: LineUse
    """The last seven days of these."""
    packages: Sequence[DataPackage] | None

    @property
    def zones(self) -> tuple[int, ...]:
        """Of the packages that data can be taken from."""
        return tuple(sorted({package.zone_id for package in self.packages or () if package.usable}))


class CostAdviser(NamedTuple):
    """Says what would lower what a line costs. `packages`: None where the catalogue could not be read."""

    coverage: CoverageMap
    facts: SteeringFacts
    steering: SteeringAdviser
    packages: PackageAdviser | None

    def advise(self, costed: CostedLine, steering: Mapping[str, LineSteering], now: float) -> LineAdvice:
        """Steering first, since that lowers what the operator pays; a line that is steered wrongly is offered no package besides.

        `steering`: what was done through us until `now`, Unix seconds, by ICCID.
        """
        if costed.packages is None:
            return LineAdvice("none", "not_read")
        if costed.line.status != "ACTIVE":
            return LineAdvice("none", "not_active")
        astray = network_outside(costed.week.places, costed.zones, self.coverage)
        advice = self._steer(costed, astray, steering, now)
        if advice.action != "none" or astray is not None or self.packages is None:
            return advice
        outside = dearest_outside(costed.use)
        if outside is None:
            return advice
        if self.coverage.covers(costed.zones, outside):
            return LineAdvice("none", "has_package")  # it was bought since that use
        offer = self.packages.advise(costed.line, self.coverage.find(outside), costed.use)
        return offer if offer.why == "cheaper_package" else advice

    def _steer(self, costed: CostedLine, astray: NetworkCode | None, steering: Mapping[str, LineSteering], now: float) -> LineAdvice:
        line, seen = costed.line, seen_line(costed.line, now)
        code = astray or dearest_network(costed.use)
        network = None if code is None else self.coverage.find(code)
        if network is None:
            return LineAdvice("none", "price_not_known")
        if seen is None or self.coverage.country(seen.code) != network.country:
            return LineAdvice("none", "not_there_now")
        steered = SteeredLine(
            self.facts.sponsors.sponsor_of(line),
            self.facts._replace(steering=steering).list_of(line),
            network.country,
            network,
            seen.at,
            costed.zones,
            moved_line(self.facts, line, costed.use, costed.packages or ()),
            is_mis_steered=astray is not None,
        )
        return self.steering.advise(steered, steering.get(line.iccid), now)

    def unpriced(self, costed: CostedLine) -> set[int]:
        """The networks that the line used and that have no active rule in the tariff for it."""
        sponsor, buying = self.facts.sponsors.sponsor_of(costed.line), self.facts.prices.buying
        used = {place[:2] for place in costed.use.places if place.usage_type == USAGE_TYPE_DATA}
        networks = [network for code in used if (network := self.coverage.find(code)) is not None]
        return {network.id for network in networks if buying.rate(network.id, sponsor, "data") is None}


def dearest_network(use: LineUse) -> NetworkCode | None:
    """The network that cost the operator most; None where nothing was used."""
    sums: dict[NetworkCode, int] = {}
    for place in use.places:
        sums[place.mcc, place.mnc] = sums.get((place.mcc, place.mnc), 0) + place.reseller_cost
    return max(sums, key=lambda code: (sums[code], code), default=None)


def dearest_outside(use: LineUse) -> NetworkCode | None:
    """The network whose use outside packages cost the customer most; None where nothing was charged."""
    charged = [place for place in use.places if place.subscriber_cost > 0]
    found = max(charged, key=lambda place: (place.subscriber_cost, place.mcc, place.mnc), default=None)
    return None if found is None else (found.mcc, found.mnc)
