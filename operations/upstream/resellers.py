"""Resellers and their lists (templates, zones, profiles, sponsors, plans): which reseller a call means, and whether what it names is there.

Lists are a minute old at most. What is foreign is not found, as what is unknown. A package template is the caller's where it is visible,
not deleted and, on a shared token, of the own reseller.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, TypeVar, cast

from pydantic import Field

from clients.ocs.outcome import OcsNotFound
from clients.ocs.templates import Template
from clients.ocs.zones import DetailedLocationZone
from operations.deps import Ctx
from operations.upstream.connection import Upstream
from operations.upstream.paging import PageQuery
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError
from registry.model import CamelInput
from storage.upstream_objects import UpstreamObjectKind, object_creator

ResellerAnswer = TypeVar("ResellerAnswer")
OCS_INVALID_RESELLER = 10

ResellerId = Annotated[UpstreamId | None, Field(description="Absent: your own.")]


class ResellerQuery(CamelInput):
    """Which reseller."""

    reseller_id: ResellerId = None


class ResellerPage(PageQuery):
    """Which reseller, and which part of its list."""

    reseller_id: ResellerId = None


async def read_of_reseller(requested: int | None, asked: Awaitable[ResellerAnswer]) -> ResellerAnswer:
    """The answer; a reseller that the caller named and the network refuses is not found."""
    try:
        return await asked
    except OcsError as error:
        if requested is not None and (isinstance(error, OcsNotFound) or error.ocs_code == OCS_INVALID_RESELLER):
            raise reseller_not_found() from None
        raise


def reseller_not_found() -> NotFound:
    """Unknown and foreign resellers are answered alike."""
    return NotFound("There is no such reseller", param="resellerId", hint="Leave resellerId out: get_reseller_info names your own")


async def resolve_reseller(upstream: Upstream, requested: int | None) -> int:
    """The reseller a call names, or the caller's own. In managed mode there is no other."""
    own = await upstream.reseller_id()
    if requested is None or requested == own:
        return own
    if upstream.managed:
        raise reseller_not_found()
    return requested


async def require_creator(ctx: Ctx, upstream: Upstream, kind: UpstreamObjectKind, id: int, param: str) -> None:
    """On a shared reseller only the organisation that created an object may change it; everything else is not found."""
    if upstream.managed and await ctx.deps.store.read(object_creator, kind=kind, id=id) != ctx.organisation:
        raise NotFound(
            f"Your organisation created no {kind} with this id", param=param, hint=f"A shared {kind} is read-only: create one of your own"
        )


ResellerListRow = TypeVar("ResellerListRow")


async def read_reseller_list(
    upstream: Upstream, name: str, requested: int | None, load: Callable[[int], Awaitable[list[ResellerListRow]]]
) -> list[ResellerListRow]:
    """A list of the reseller that a call names, or of the caller's own. The rows are shared: copy what you change."""
    reseller = await resolve_reseller(upstream, requested)
    key = (upstream.identity, await reseller_list_key(upstream, name, reseller))
    return await read_of_reseller(requested, upstream.reads.get(key, lambda: load(reseller)))


async def reseller_list_key(upstream: Upstream, name: str, reseller: int) -> str:
    """What a list is kept under: the own reseller's by its plain name."""
    return name if reseller == await upstream.reseller_id() else f"{name} of {reseller}"


VOIP_PLAN_LIST = "voip_tariffs"
"""The list of these plans, as it is kept."""
VOIP_PLAN_HINT = "list_subscriber_voip_tariff names them"
ResellerRows = Sequence[Mapping[str, object]]


async def require_in_reseller_list(
    upstream: Upstream, name: str, load: Callable[[], Awaitable[ResellerRows]], wanted: int, *, id: str, param: str, hint: str
) -> Mapping[str, object]:
    """The row with this number. One that a kept list does not have may be new, so the list is read afresh before it is not found."""
    key = (upstream.identity, name)
    for _ in range(2):
        rows = await upstream.reads.get(key, load)
        found = next((row for row in rows if row.get(id) == wanted), None)
        if found is not None:
            return found
        upstream.reads.forget(*key)
    raise NotFound(f"Your reseller has nothing with this {param}", param=param, hint=hint)


async def require_steering_list(upstream: Upstream, list_id: int, param: str) -> Mapping[str, object]:
    """A steering list by its number."""
    reseller = await upstream.reseller_id()
    return await require_in_reseller_list(
        upstream,
        "steering",
        lambda: upstream.ocs.reseller.list_steering_list(reseller),
        list_id,
        id="id",
        param=param,
        hint="list_steering_lists names yours",
    )


async def require_voip_plan(upstream: Upstream, plan_id: int, param: str) -> None:
    """A plan for calls over IP that is not deleted."""
    reseller = await upstream.reseller_id()
    found = await require_in_reseller_list(
        upstream,
        VOIP_PLAN_LIST,
        lambda: upstream.ocs.tariffs.list_voip_tariffs(reseller_id=reseller),
        plan_id,
        id="id",
        param=param,
        hint=VOIP_PLAN_HINT,
    )
    if found.get("deleted"):
        raise voip_plan_not_found(param)


def voip_plan_not_found(param: str) -> NotFound:
    """Unknown, foreign and deleted plans are answered alike."""
    return NotFound(f"Your reseller has nothing with this {param}", param=param, hint=VOIP_PLAN_HINT)


ZONE_LIST, DESTINATION_LISTS, NETWORK_PROFILE_LIST, STEERING_LISTS, SPONSOR_LIST = (
    "zones",
    "destinations",
    "profiles",
    "steering",
    "sponsors",
)


async def require_zone(upstream: Upstream, zone_id: int, param: str, reseller: int | None = None) -> DetailedLocationZone:
    """A location zone of the reseller that is named, or of the own one."""
    owner = reseller or await upstream.reseller_id()
    found = await require_in_reseller_list(
        upstream,
        await reseller_list_key(upstream, ZONE_LIST, owner),
        lambda: upstream.ocs.zones.detailed_location_zones(owner),
        zone_id,
        id="zoneId",
        param=param,
        hint="list_location_zones names yours",
    )
    return cast(DetailedLocationZone, found)


async def require_destination_list(upstream: Upstream, list_id: int, param: str = "destinationListId") -> None:
    """A destination list by its number."""
    reseller = await upstream.reseller_id()
    await require_in_reseller_list(
        upstream,
        DESTINATION_LISTS,
        lambda: upstream.ocs.zones.detailed_destination_lists(reseller),
        list_id,
        id="listId",
        param=param,
        hint="list_destination_lists names yours",
    )


async def require_network_profile(upstream: Upstream, profile_id: int) -> None:
    """A network profile by its number."""
    reseller = await upstream.reseller_id()
    await require_in_reseller_list(
        upstream,
        NETWORK_PROFILE_LIST,
        lambda: upstream.ocs.zones.list_network_profile(reseller_id=reseller),
        profile_id,
        id="id",
        param="networkProfileId",
        hint="list_network_profiles names yours",
    )


async def require_sponsor(upstream: Upstream, sponsor_id: int, param: str = "sponsorId") -> None:
    """A sponsor by its number."""
    reseller = await upstream.reseller_id()
    await require_in_reseller_list(
        upstream,
        SPONSOR_LIST,
        lambda: upstream.ocs.reseller.list_sponsor(reseller),
        sponsor_id,
        id="id",
        param=param,
        hint="list_sponsors names yours",
    )


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
        zones = await upstream.reads.get(key, lambda: upstream.ocs.zones.detailed_location_zones(reseller))
        return {zone.get("zoneId"): zone_country_codes(zone) for zone in zones}

    return await upstream.reads.get((*key, "countries"), read)


def zone_country_codes(zone: DetailedLocationZone) -> list[str]:
    """Where a zone has a network, as the upstream says it."""
    return sorted({code.upper() for operator in zone.get("operators", []) if (code := operator.get("countryIso2"))})
