"""Network profiles: which networks of a sponsor a reseller may put into zones."""

from typing import Annotated

from pydantic import Field

from clients.ocs.wire.network import NetworkProfile
from operations.deps import Ctx
from operations.network.references import PROFILES
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data, listed
from operations.services.network.reseller_lists import reseller_rows
from operations.services.network.resellers import ResellerPage
from operations.services.network.upstream import reach
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

EXAMPLE: NetworkProfile = {
    "id": 412,
    "name": "Fjord SPX",
    "sponsorId": 31,
    "sponsorName": "SPX",
    "resellerId": 7001,
    "resellerName": "Fjord Mobile",
    "allowedListId": 77,
}


class ProfileQuery(ResellerPage):
    """Which profiles."""

    sponsor_id: Annotated[UpstreamId | None, Field(description="Only this sponsor's.")] = None


@operation(
    "GET",
    "/v1/network-profiles",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[Example("Which profiles can a zone use?", {}, {"data": [EXAMPLE]})],
    tool_defaults={"limit": 20},
)
async def list_network_profiles(ctx: Ctx, params: ProfileQuery) -> Data[list[NetworkProfile]]:
    """List the network profiles; each belongs to one sponsor.

    create_location_zone needs one.
    """
    upstream = await reach(ctx)
    zones = upstream.ocs.zones
    rows = await reseller_rows(upstream, PROFILES, params.reseller_id, lambda reseller: zones.list_network_profile(reseller_id=reseller))
    kept = [row for row in rows if params.sponsor_id in (None, row.get("sponsorId"))]
    return listed(ctx, sorted(kept, key=profile_id), params, profile_id)


def profile_id(row: NetworkProfile) -> int:
    """The number of a profile."""
    return row.get("id", 0)
