"""Resellers and their lists (templates, zones, profiles, sponsors, plans): which reseller a call means, and whether what it names is there.

Lists are a minute old at most. What is foreign is not found, as what is unknown. A package template is the caller's where it is visible,
not deleted and, on a shared token, of the own reseller.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from clients.ocs.client import Ocs
from clients.ocs.templates import Template
from operations.deps import Ctx
from operations.upstream.connection import Upstream
from operations.upstream.paging import PageQuery
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError, OcsNotFound
from registry.operation import CamelInput
from storage.upstream_objects import UpstreamObjectKind, add_upstream_object, object_creator

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
    """The result of `asked`. Raises NotFound where the call named the reseller `requested` and the network refuses it."""
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
    """The id of the reseller `requested`, or of the caller's own. Raises NotFound in managed mode, where there is no other."""
    own = await upstream.reseller_id()
    if requested is None or requested == own:
        return own
    if upstream.managed:
        raise reseller_not_found()
    return requested


def record_creator(ctx: Ctx, kind: UpstreamObjectKind, id: int) -> None:
    """Notes with the answer that the caller's organisation created the object `id`."""
    ctx.at_close(add_upstream_object, kind=kind, id=id, organisation=ctx.organisation, now=ctx.now)


async def require_creator(ctx: Ctx, upstream: Upstream, kind: UpstreamObjectKind, id: int, param: str) -> None:
    """Raises NotFound, which names `param`, where the reseller is shared and another organisation created the object `id`."""
    if upstream.managed and await ctx.deps.store.read(object_creator, kind=kind, id=id) != ctx.organisation:
        raise NotFound(
            f"Your organisation created no {kind} with this id", param=param, hint=f"A shared {kind} is read-only: create one of your own"
        )


ResellerListRow = TypeVar("ResellerListRow", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class ResellerList(Generic[ResellerListRow]):
    """A list that a reseller has. `name`: what it is cached under; `id`: the member that holds a row's number; `hint`: how to find one."""

    name: str
    load: Callable[[Ocs, int], Awaitable[list[ResellerListRow]]]
    id: str
    hint: str


STEERING_LISTS = ResellerList(
    "steering", lambda ocs, reseller: ocs.reseller.list_steering_list(reseller), "id", "list_steering_lists names yours"
)
SPONSOR_LIST = ResellerList("sponsors", lambda ocs, reseller: ocs.reseller.list_sponsor(reseller), "id", "list_sponsors names yours")
VOIP_PLAN_LIST = ResellerList(
    "voip_tariffs",
    lambda ocs, reseller: ocs.tariffs.list_voip_tariffs(reseller_id=reseller),
    "id",
    "list_subscriber_voip_tariff names them",
)
MOBILE_PLAN_LIST = ResellerList(
    "subscriber_tariffs",
    lambda ocs, reseller: ocs.tariffs.list_subscriber_tariff(reseller_id=reseller),
    "roamingplanid",
    "Ask whoever runs the service which price lists your reseller sells by",
)
ZONE_LIST = ResellerList(
    "zones", lambda ocs, reseller: ocs.zones.detailed_location_zones(reseller), "zoneId", "list_location_zones names yours"
)
DESTINATION_LISTS = ResellerList(
    "destinations", lambda ocs, reseller: ocs.zones.detailed_destination_lists(reseller), "listId", "list_destination_lists names yours"
)
NETWORK_PROFILE_LIST = ResellerList(
    "profiles", lambda ocs, reseller: ocs.zones.list_network_profile(reseller_id=reseller), "id", "list_network_profiles names yours"
)


async def read_reseller_list(
    upstream: Upstream, listed: ResellerList[ResellerListRow], requested: int | None = None
) -> list[ResellerListRow]:
    """The list of the reseller `requested`, or of the caller's own, a minute old at most. The rows are shared: copy what you change.

    Raises NotFound for a reseller that the network refuses. Waits for the network.
    """
    reseller = await resolve_reseller(upstream, requested)
    key = (upstream.identity, await reseller_list_key(upstream, listed.name, reseller))
    return await read_of_reseller(requested, upstream.reads.get(key, lambda: listed.load(upstream.ocs, reseller)))


async def reseller_list_key(upstream: Upstream, name: str, reseller: int) -> str:
    """What a list is cached under: the own reseller's by its plain name."""
    return name if reseller == await upstream.reseller_id() else f"{name} of {reseller}"


async def require_listed(
    upstream: Upstream, listed: ResellerList[ResellerListRow], wanted: int, param: str, reseller: int | None = None
) -> ResellerListRow:
    """The row with the number `wanted` in the list of `reseller`, or of the own one; raises NotFound, which names `param`.

    A number that the cached list does not have may be new, so the list is read again first. Waits for the network.
    """
    owner = reseller or await upstream.reseller_id()
    name = await reseller_list_key(upstream, listed.name, owner)
    return await require_row(upstream, listed, name, wanted, param, lambda: listed.load(upstream.ocs, owner))


async def require_row(
    upstream: Upstream,
    listed: ResellerList[ResellerListRow],
    name: str,
    wanted: int,
    param: str,
    load: Callable[[], Awaitable[list[ResellerListRow]]],
) -> ResellerListRow:
    """As `require_listed`, of the list that `load` reads and that is cached under `name`."""
    key = (upstream.identity, name)
    for _ in range(2):
        rows = await upstream.reads.get(key, load)
        found = next((row for row in rows if row.get(listed.id) == wanted), None)
        if found is not None:
            return found
        upstream.reads.forget(*key)
    raise not_listed(listed.hint, param)


async def require_voip_plan(upstream: Upstream, plan_id: int, param: str) -> None:
    """Raises NotFound, which names `param`, unless the own reseller has this plan for calls over IP and did not delete it."""
    if (await require_listed(upstream, VOIP_PLAN_LIST, plan_id, param)).get("deleted"):
        raise not_listed(VOIP_PLAN_LIST.hint, param)


def not_listed(hint: str, param: str) -> NotFound:
    """Unknown, foreign and deleted rows are answered alike."""
    return NotFound(f"Your reseller has nothing with this {param}", param=param, hint=hint)


TEMPLATE_CACHE_KEY = "templates"
"""What cached answers about templates begin with: `upstream.reads.forget(upstream.identity, TEMPLATE_CACHE_KEY)` after a change."""


async def find_template(upstream: Upstream, template_id: int, param: str) -> Template:
    """The template, a minute old at most. Raises NotFound, which names `param`, for unknown, deleted and foreign ones."""
    # A refusal is not kept, so that a new template is found at once.
    key = (upstream.identity, TEMPLATE_CACHE_KEY, "one", template_id)
    return await upstream.reads.get(key, lambda: read_template(upstream, template_id, param))


async def read_template(upstream: Upstream, template_id: int, param: str) -> Template:
    """The template as it is now. Raises NotFound, which names `param`, for unknown, deleted and foreign ones. Waits for the network."""
    try:
        rows = await upstream.ocs.templates.list(template_id=template_id)
    except OcsNotFound:
        rows = []
    found = next((row for row in rows if row.get("prepaidpackagetemplateid") == template_id and not row.get("deleted")), None)
    # A shared token sees the templates of resellers below it, too; they are not the caller's.
    if found is None or (upstream.managed and template_owner(found) != await upstream.reseller_id()):
        raise NotFound(
            "Your account has no package template with this id", param=param, hint="list_package_templates names the ones you can use"
        )
    return found


def template_owner(template: Template) -> int | None:
    """The id of the reseller that `template` belongs to."""
    return template.get("resellerid") or template.get("reseller", {}).get("resellerid")


async def own_templates(upstream: Upstream) -> list[Template]:
    """Every template that the caller can use, a minute old at most. Waits for the network."""
    reseller = await upstream.reseller_id()
    key = (upstream.identity, TEMPLATE_CACHE_KEY, "all")
    rows = await upstream.reads.get(key, lambda: upstream.ocs.templates.list(reseller_id=reseller))
    return [row for row in rows if not row.get("deleted")]


def template_countries(template: Template, countries: Mapping[int | None, Sequence[str]]) -> frozenset[str]:
    """The countries in which packages of `template` work, upper case: as it says itself, else those of its zone in `countries`.

    Empty where neither tells.
    """
    listed = (country.get("countryIso2") for country in template.get("zone", {}).get("countryList", []))
    found = frozenset(code.upper() for code in listed if code)
    return found or frozenset(countries.get(template.get("locationzoneid"), ()))


async def zone_countries(upstream: Upstream) -> dict[int | None, list[str]]:
    """The countries of each zone of the caller's reseller, upper case, by zone id; two minutes old at most. Waits for the network."""
    reseller = await upstream.reseller_id()
    key = (upstream.identity, "zones", reseller)

    async def read() -> dict[int | None, list[str]]:
        zones = await upstream.reads.get(key, lambda: upstream.ocs.zones.detailed_location_zones(reseller))
        return {
            zone.get("zoneId"): sorted({code.upper() for operator in zone.get("operators", []) if (code := operator.get("countryIso2"))})
            for zone in zones
        }

    return await upstream.reads.get((*key, "countries"), read)
