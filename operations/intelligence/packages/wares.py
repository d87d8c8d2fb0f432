"""The catalogue of package templates as a seller looks at it: price, data, days, where it works."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from clients.ocs.wire.template import Template
from operations.intelligence.lines.use import micro
from operations.intelligence.upstream_text import plain
from operations.services.network.live_plans import countries_by_zone
from operations.services.network.reached import Upstream
from operations.services.network.templates import own_templates


class Ware(NamedTuple):
    """A template. `price` is in micro-euros; 0: none is told."""

    id: int
    name: str
    price: int
    data_bytes: int
    days: int
    zone_id: int
    sponsor: int | None
    countries: frozenset[str]


async def wares_of(upstream: Upstream) -> dict[int, Ware]:
    """Every template that can be given to a line, by number; a minute old at most, the countries two."""
    templates = await own_templates(upstream)
    countries = {zone: frozenset(names) for zone, names in (await countries_by_zone(upstream)).items()}
    return {ware.id: ware for ware in (ware_of(template, countries) for template in templates)}


def ware_of(template: Template, countries: Mapping[int | None, frozenset[str]]) -> Ware:
    """A template with the countries of its zone."""
    zone = template.get("locationzoneid") or template.get("rdbLocationZones", {}).get("locationzoneid", 0)
    return Ware(
        template.get("prepaidpackagetemplateid", 0),
        plain(template.get("prepaidpackagetemplatename")),
        micro(template.get("cost")),
        template.get("databyte", 0),
        template.get("perioddays", 0),
        zone,
        template.get("esimSponsor"),
        countries.get(zone, frozenset()),
    )


def larger(ware: Ware, wares: Iterable[Ware]) -> Ware | None:
    """What to offer instead: in the same zone and of the same sponsor, the next one with more data, for more money and no fewer days."""
    fit = [
        other
        for other in wares
        if (other.zone_id, other.sponsor) == (ware.zone_id, ware.sponsor)
        and other.data_bytes > ware.data_bytes
        and other.price > ware.price
        and other.days >= ware.days
    ]
    return min(fit, key=lambda other: (other.data_bytes, other.price, other.id), default=None)


def covering(country: str, wares: Iterable[Ware]) -> Ware | None:
    """The cheapest package with data that works in a country."""
    fit = [ware for ware in wares if country in ware.countries and ware.data_bytes > 0 and ware.price > 0]
    return min(fit, key=lambda ware: (ware.price, ware.id), default=None)
