"""The packages that lines may get: templates with a price, of one sponsor each, and where they work."""

from collections.abc import Sequence
from typing import NamedTuple

from clients.ocs.wire.template import Template
from operations.intelligence.coverage.map import CoverageMap, coverage_of
from operations.intelligence.fleet.reading import FleetLine
from operations.intelligence.lines.use import micro
from operations.intelligence.packages.need import MONTH
from operations.intelligence.upstream_text import plain
from operations.services.network.line_history import current
from operations.services.network.reached import Upstream
from operations.services.network.reseller_lists import reseller_rows
from operations.services.network.templates import own_templates

SPONSORS = "sponsors"
"""What operations/network keeps the list under."""


class Offer(NamedTuple):
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


class Offers(NamedTuple):
    """The whole catalogue as of now."""

    offers: Sequence[Offer]
    unpriced: int
    """Templates whose price nobody wrote down."""
    coverage: CoverageMap
    sponsors: Sequence[tuple[str, int]]
    """IMSI prefixes with their sponsors, longest first."""
    single_counter: bool

    def sponsor_of(self, line: FleetLine) -> int | None:
        """Whose SIM it is, by the beginning of its IMSI."""
        history = current(line.row.get("imsiList", ()))
        imsi = (history.get("imsi") or "") if history is not None else ""
        return next((sponsor for prefix, sponsor in self.sponsors if imsi.startswith(prefix)), None)

    @property
    def costs(self) -> dict[int, int]:
        """Of one package, micro-euros, by template."""
        return {offer.template_id: offer.cost for offer in self.offers}

    def of_sponsor(self, sponsor: int | None) -> list[Offer]:
        """What a SIM of this sponsor can have. Choice: a template that names no sponsor fits all."""
        return [offer for offer in self.offers if offer.sponsor_id in (None, sponsor)]


async def offers_of(upstream: Upstream) -> Offers:
    """The catalogue, a minute old at most."""
    templates, reseller = await own_templates(upstream), await upstream.reseller()
    sponsors = await reseller_rows(upstream, SPONSORS, None, upstream.ocs.reseller.list_sponsor)
    found = [offer_of(template) for template in templates]
    offers = sorted((offer for offer in found if offer is not None), key=lambda offer: offer.template_id)
    prefixes = [(str(row.get("prefix", "")), row.get("id", 0)) for row in sponsors if row.get("prefix")]
    single = bool(reseller.get("chargingInfo", {}).get("CallPackageUseSingleCounter"))
    longest_first = sorted(prefixes, key=lambda prefix: (-len(prefix[0]), prefix))
    return Offers(offers, len(found) - len(offers), await coverage_of(upstream), longest_first, single)


def offer_of(template: Template) -> Offer | None:
    """The template as an offer. Choice: one without days or without a price is none; a price of 0 was never filled in."""
    cost, days = micro(template.get("cost")), template.get("perioddays") or 0
    if cost <= 0 or days <= 0:
        return None
    counted = max(days, MONTH)
    return Offer(
        template.get("prepaidpackagetemplateid", 0),
        plain(template.get("prepaidpackagetemplatename")),
        days,
        cost,
        -(-cost * MONTH // counted) if days > MONTH else cost,
        tuple(volume * MONTH // counted if days > MONTH else volume for volume in volumes_of(template)),
        template.get("locationzoneid") or template.get("rdbLocationZones", {}).get("locationzoneid", 0),
        template.get("destinationzoneid") or template.get("rdbDestinationZones", {}).get("destinationzoneid"),
        template.get("sponsors", {}).get("sponsorid"),
    )


def volumes_of(template: Template) -> tuple[int, ...]:
    """What a package holds, in the order of PACKED."""
    held = (
        template.get("databyte"),
        template.get("mocsecond"),
        template.get("mtcsecond"),
        template.get("mosmsnumber"),
        template.get("mtsmsnumber"),
    )
    return tuple(max(0, volume or 0) for volume in held)
