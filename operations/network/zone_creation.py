"""Making a location zone."""

from typing import Annotated

from pydantic import AfterValidator, FailFast, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.network.references import ZONES, require_profile
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data
from operations.services.network.reached import Upstream
from operations.services.network.refused_field import naming_field
from operations.services.network.upstream import reach
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Example, operation
from storage.network.upstream_objects import add_upstream_object

SAME_NETWORKS = 10002
AT_FAULT = {4: "locationZoneName", 10001: "tadigList", SAME_NETWORKS: "tadigList", 10003: "tadigList", 10004: "tadigList"}
REUSE = "Use the zone in details.existingLZ (its Id is the locationZoneId), or name other networks"

Tadig = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{3,12}$")]


def canonical(tadigs: list[str]) -> list[str]:
    """Upper case, each once, in the order given."""
    return list(dict.fromkeys(tadig.upper() for tadig in tadigs))


class NewZone(CamelInput):
    """The zone to make."""

    location_zone_name: Annotated[
        str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="Unique; 1-120 characters.")
    ]
    tadig_list: Annotated[
        list[Tadig],
        FailFast(),
        Field(min_length=1, max_length=2000, description="Networks by TADIG code, such as NORAA."),
        AfterValidator(canonical),
    ]
    network_profile_id: Annotated[UpstreamId, Field(description="Id of list_network_profiles.")]


class ZoneMade(TypedDict):
    """The new zone."""

    id: int
    name: str


async def profile_there(ctx: Ctx, params: NewZone) -> Upstream:
    """A profile that the caller's reseller has."""
    upstream = await reach(ctx)
    await require_profile(upstream, params.network_profile_id)
    return upstream


@operation(
    "POST",
    "/v1/location-zones",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    status=201,
    access=profile_there,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "A zone of two networks",
            {"locationZoneName": "Norway and Sweden", "tadigList": ["NORAA", "SWEAA"], "networkProfileId": 412},
            {"data": {"id": 2327, "name": "Norway and Sweden"}},
        )
    ],
)
async def create_location_zone(ctx: Ctx, params: NewZone, upstream: Upstream) -> Data[ZoneMade]:
    """Make a location zone of some networks of a network profile.

    Names and sets of networks are unique: on code 10002 use the zone in `details.existingLZ`.

    Refusals with 10001, 10003 and 10004 list the codes at fault in `details.invalidTadigs`.
    """
    try:
        making = upstream.ocs.zones.create_location_zone(params.network_profile_id, params.location_zone_name, params.tadig_list)
        made = await naming_field(making, AT_FAULT)
    except OcsError as error:
        if error.ocs_code == SAME_NETWORKS:
            error.hint = REUSE
        raise
    upstream.reads.forget(upstream.identity, ZONES)
    id = made.get("Id", 0)  # the client refuses an answer without it
    ctx.at_close(add_upstream_object, kind="zone", id=id, organisation=ctx.organisation, now=ctx.now)
    return {"data": {"id": id, "name": made.get("name") or params.location_zone_name}}
