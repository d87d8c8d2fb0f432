"""Whether a package would cost a customer less than what is paid without it, and which works where a line cannot be used."""

from collections.abc import Sequence
from datetime import date, timedelta

from operations.caches.usage import DayUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.money.advice import LEAST_SAVING, LineAdvice, Saving
from operations.intelligence.offers.coverage_map import KnownNetwork
from operations.intelligence.offers.offers import MonthlyOffer, OfferCatalogue
from operations.upstream.usage import USAGE_TYPE_DATA

LONGEST_PACKAGE_DAYS = 3650


class PackageAdviser:
    """Says which template a line may be offered. The lists do not say which templates are recurring."""

    def __init__(self, offers: OfferCatalogue) -> None:
        self._offers = offers
        self._fitting: dict[tuple[int, int], Sequence[MonthlyOffer]] = {}

    def offer(self, template_id: int | None) -> MonthlyOffer | None:
        return next((offer for offer in self._offers.offers if offer.template_id == template_id), None)

    def advise(self, line: FleetLine, network: KnownNetwork | None, use: LineUse | None) -> LineAdvice:
        """A package that works on `network` and costs the customer less than what is charged without it: the one that saves most.

        Where nothing was charged for data, the line cannot be used without a package: then it is the cheapest one that works there, and
        there is nothing to compare with.
        """
        sponsor = self._offers.sponsors.sponsor_of(line)
        if use is None:
            return LineAdvice("none", "not_read")
        fitting = () if network is None or sponsor is None else self._fitting_offers(network.id, sponsor)
        if not fitting:
            return LineAdvice("none", "no_package_fits")
        if not any(place.subscriber_cost > 0 for place in use.places if place.usage_type == USAGE_TYPE_DATA):
            return LineAdvice("offer_package", "not_covered", template_id=fitting[0].template_id)
        found = max(fitting, key=lambda offer: (self._saving(offer, use), -offer.cost, -offer.template_id))
        saving = self._saving(found, use)
        if saving < LEAST_SAVING:
            return LineAdvice("none", "dearer")
        return LineAdvice("offer_package", "cheaper_package", Saving(0, saving), template_id=found.template_id)

    def _fitting_offers(self, network_id: int, sponsor: int) -> Sequence[MonthlyOffer]:
        """Those with data that work on the network, cheapest first."""
        key = network_id, sponsor
        if key not in self._fitting:
            zones = self._offers.coverage.zones_with(network_id)
            fitting = [offer for offer in self._offers.of_sponsor(sponsor) if offer.zone_id in zones and offer.volumes[0] > 0]
            self._fitting[key] = sorted(fitting, key=lambda offer: (offer.cost, offer.template_id))
        return self._fitting[key]

    def _saving(self, offer: MonthlyOffer, use: LineUse) -> int:
        """What the customer would pay less, had packages of `offer` paid for the data where they work; negative where one is too small."""
        covers = self._offers.coverage.covers
        data = [place for place in use.places if place.usage_type == USAGE_TYPE_DATA]
        there = [place for place in data if covers([offer.zone_id], (place.mcc, place.mnc))]
        outside, charged = sum(place.quantity - place.in_package for place in there), sum(place.subscriber_cost for place in there)
        count = packages_in_days(use.days, offer.days, offer.volumes[0], outside)
        return -offer.cost if count is None else charged - count * offer.cost


def packages_in_days(days: Sequence[DayUse], length: int, volume: int, needed: int) -> int | None:
    """How many packages of `length` days, one after another, reach over all `days`; None if one of them could not hold its part.

    Choice: how the `needed` bytes are spread over the days is not known, so a package holds all use of its days, or all that is needed.
    """
    count, ends, used = 0, date.min, 0
    for day in sorted(days):
        if day.day >= ends:
            count, ends, used = count + 1, day.day + timedelta(days=min(length, LONGEST_PACKAGE_DAYS)), 0
        used += day.data_bytes
        if min(used, needed) > volume:
            return None
    return count
