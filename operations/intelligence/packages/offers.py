"""The packages that lines may get: templates with a price, of one sponsor each, and where they work."""

from collections.abc import Sequence
from typing import NamedTuple

from clients.ocs.wire.template import Template
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import micro_euros
from operations.intelligence.packages.coverage_map import CoverageMap, read_coverage_map
from operations.intelligence.packages.need import MONTH_DAYS
from operations.intelligence.reports.finding import upstream_text
from operations.upstream.connection import Upstream
from operations.upstream.lines import current_entry
from operations.upstream.resellers import own_templates, read_reseller_list

OFFER_SPONSORS = "sponsors"
"""What operations/network keeps the list under."""


class MonthlyOffer(NamedTuple):
    """A template, counted for thirty days.

    A package that lasts longer counts with thirty days' part of its price (rounded up) and of what it holds (rounded down): it
    is bought once for all its days, and its next months cost nothing more.
    """

    template_id: int
    name: str
    days: int
    cost: int
    """Of one package, micro-euros."""
    price: int
    """Of one package in thirty days, micro-euros."""
    volumes: tuple[int, ...]
    """Of one package in thirty days, in the order of PACKED."""
    zone_id: int
    destination_id: int | None
    sponsor_id: int | None


class OfferCatalogue(NamedTuple):
    """The whole catalogue as of now."""

    offers: Sequence[MonthlyOffer]
    unpriced: int
    """Templates whose price nobody wrote down."""
    coverage: CoverageMap
    sponsors: Sequence[tuple[str, int]]
    """IMSI prefixes with their sponsors, longest first."""
    single_counter: bool

    def sponsor_of(self, line: FleetLine) -> int | None:
        """Whose SIM it is, by the beginning of its IMSI."""
        history = current_entry(line.row.get("imsiList", ()))
        imsi = (history.get("imsi") or "") if history is not None else ""
        return next((sponsor for prefix, sponsor in self.sponsors if imsi.startswith(prefix)), None)

    @property
    def costs(self) -> dict[int, int]:
        """Of one package, micro-euros, by template."""
        return {offer.template_id: offer.cost for offer in self.offers}

    def of_sponsor(self, sponsor: int | None) -> list[MonthlyOffer]:
        """What a SIM of this sponsor can have. Choice: a template that names no sponsor fits all."""
        return [offer for offer in self.offers if offer.sponsor_id in (None, sponsor)]


async def read_offers(upstream: Upstream) -> OfferCatalogue:
    """The catalogue, a minute old at most."""
    templates, reseller = await own_templates(upstream), await upstream.reseller()
    sponsors = await read_reseller_list(upstream, OFFER_SPONSORS, None, upstream.ocs.reseller.list_sponsor)
    found = [monthly_offer(template) for template in templates]
    offers = sorted((offer for offer in found if offer is not None), key=lambda offer: offer.template_id)
    prefixes = [(str(row.get("prefix", "")), row.get("id", 0)) for row in sponsors if row.get("prefix")]
    single = bool(reseller.get("chargingInfo", {}).get("CallPackageUseSingleCounter"))
    longest_first = sorted(prefixes, key=lambda prefix: (-len(prefix[0]), prefix))
    return OfferCatalogue(offers, len(found) - len(offers), await read_coverage_map(upstream), longest_first, single)


def monthly_offer(template: Template) -> MonthlyOffer | None:
    """The template as an offer. Choice: one without days or without a price is none; a price of 0 was never filled in."""
    cost, days = micro_euros(template.get("cost")), template.get("perioddays") or 0
    if cost <= 0 or days <= 0:
        return None
    counted = max(days, MONTH_DAYS)
    return MonthlyOffer(
        template.get("prepaidpackagetemplateid", 0),
        upstream_text(template.get("prepaidpackagetemplatename")),
        days,
        cost,
        -(-cost * MONTH_DAYS // counted) if days > MONTH_DAYS else cost,
        tuple(volume * MONTH_DAYS // counted if days > MONTH_DAYS else volume for volume in offer_volumes(template)),
        template.get("locationzoneid") or template.get("rdbLocationZones", {}).get("locationzoneid", 0),
        template.get("destinationzoneid") or template.get("rdbDestinationZones", {}).get("destinationzoneid"),
        template.get("sponsors", {}).get("sponsorid"),
    )


def offer_volumes(template: Template) -> tuple[int, ...]:
    """What a package holds, in the order of PACKED."""
    held = (
        template.get("databyte"),
        template.get("mocsecond"),
        template.get("mtcsecond"),
        template.get("mosmsnumber"),
        template.get("mtsmsnumber"),
    )
    return tuple(max(0, volume or 0) for volume in held)
