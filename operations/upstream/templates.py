"""Package templates that a caller may use (visible, not deleted, on a shared token of the own reseller), and the countries of zones."""

from clients.ocs.outcome import OcsNotFound
from clients.ocs.wire.network import DetailedLocationZone
from clients.ocs.wire.template import Template
from operations.upstream.connection import Upstream
from registry.errors import NotFound

TEMPLATE_CACHE_KEY = "templates"
"""What cached answers about templates begin with: `upstream.reads.forget(upstream.identity, TEMPLATE_CACHE_KEY)` after a change."""


async def find_template(upstream: Upstream, template_id: int, param: str) -> Template:
    """The template, a minute old at most; unknown, deleted and foreign ones are not found alike."""

    async def read() -> Template:  # a refusal is not kept, so that a new template is found at once
        return await read_template(upstream, template_id, param)

    return await upstream.reads.get((upstream.identity, TEMPLATE_CACHE_KEY, "one", template_id), read)


async def read_template(upstream: Upstream, template_id: int, param: str) -> Template:
    """The template as it is now."""
    try:
        rows = await upstream.ocs.templates.list(template_id=template_id)
    except OcsNotFound:
        rows = []
    found = next((row for row in rows if row.get("prepaidpackagetemplateid") == template_id and not row.get("deleted")), None)
    if found is None or not await _is_own_template(upstream, found):
        raise NotFound(
            "Your account has no package template with this id", param=param, hint="list_package_templates names the ones you can use"
        )
    return found


async def _is_own_template(upstream: Upstream, template: Template) -> bool:
    """A shared token sees the templates of resellers below it, too; they are not the caller's."""
    if not upstream.managed:
        return True
    named = template.get("resellerid") or template.get("reseller", {}).get("resellerid")
    return named == await upstream.reseller_id()


async def own_templates(upstream: Upstream) -> list[Template]:
    """Every template the caller can use, a minute old at most."""
    reseller = await upstream.reseller_id()

    async def read() -> list[Template]:
        return await upstream.ocs.templates.list(reseller_id=reseller)

    rows = await upstream.reads.get((upstream.identity, TEMPLATE_CACHE_KEY, "all"), read)
    return [row for row in rows if not row.get("deleted")]


async def zone_countries(upstream: Upstream) -> dict[int | None, list[str]]:
    """Of the caller's reseller; two minutes old at most, gone when the list of zones is forgotten. A zone may have hundreds of networks."""
    reseller = await upstream.reseller_id()
    key = (upstream.identity, "zones", reseller)

    async def read() -> dict[int | None, list[str]]:
        zones = await upstream.reads.get(key, lambda: upstream.ocs.templates.detailed_location_zones(reseller))
        return {zone.get("zoneId"): zone_country_codes(zone) for zone in zones}

    return await upstream.reads.get((*key, "countries"), read)


def zone_country_codes(zone: DetailedLocationZone) -> list[str]:
    """Where a zone has a network, as the upstream says it."""
    return sorted({code.upper() for operator in zone.get("operators", []) if (code := operator.get("countryIso2"))})
