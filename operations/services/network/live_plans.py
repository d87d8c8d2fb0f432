"""The live catalogue: one plan per package template that the connected account can use."""

import re
import unicodedata
from collections.abc import Iterable

from clients.ocs.wire.network import DetailedLocationZone
from clients.ocs.wire.template import Template
from operations.connectivity.shapes import BYTES_PER_MB, Plan
from operations.services.network.reached import Upstream
from operations.services.network.templates import own_templates

NOT_WORDS = re.compile(r"[^a-z0-9]+")
NAMELESS = "plan"


async def live_plans(upstream: Upstream) -> dict[int, Plan]:
    """By template number, lowest first; a minute old at most, the countries two."""
    templates = await own_templates(upstream)
    countries = await countries_by_zone(upstream)
    taken: set[str] = set()
    found: dict[int, Plan] = {}
    for id, template in sorted(
        (template["prepaidpackagetemplateid"], template) for template in templates if "prepaidpackagetemplateid" in template
    ):
        name = template.get("prepaidpackagetemplatename", "").strip()
        slug = slug_of(name, id, taken)
        taken.add(slug)
        found[id] = plan_of(template, slug, name or slug, countries.get(template.get("locationzoneid"), []))
    return found


def plan_of(template: Template, slug: str, name: str, countries: list[str]) -> Plan:
    """A template as an offer without a price."""
    return {
        "id": slug,
        "object": "connectivity.plan",
        "name": name,
        "data_mb": template.get("databyte", 0) // BYTES_PER_MB,
        "unlimited": False,
        "validity_days": template.get("perioddays", 0),
        "countries": countries,
        "livemode": True,
        "price": None,
    }


def slug_of(name: str, id: int, taken: Iterable[str]) -> str:
    """`Nordic 1GB 30d` is `nordic-1gb-30d`. Choice: of equal names the lowest number has the plain one, the others add theirs."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = NOT_WORDS.sub("-", plain).strip("-")[:60].strip("-") or NAMELESS
    return f"{slug}-{id}" if slug in taken or slug == NAMELESS else slug


async def countries_by_zone(upstream: Upstream) -> dict[int | None, list[str]]:
    """Of the caller's reseller; two minutes old at most, gone when the list of zones is forgotten. A zone may have hundreds of networks."""
    reseller = await upstream.reseller_id()
    key = (upstream.identity, "zones", reseller)

    async def read() -> dict[int | None, list[str]]:
        zones = await upstream.reads.get(key, lambda: upstream.ocs.templates.detailed_location_zones(reseller))
        return {zone.get("zoneId"): countries_of(zone) for zone in zones}

    return await upstream.reads.get((*key, "countries"), read)


def countries_of(zone: DetailedLocationZone) -> list[str]:
    """Where a zone has a network, as the upstream says it."""
    return sorted({code.upper() for operator in zone.get("operators", []) if (code := operator.get("countryIso2"))})
