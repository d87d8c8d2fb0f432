"""Sponsors: whose IMSI ranges the SIMs roam with."""

from clients.ocs.wire.reseller import Sponsor
from operations.deps import Ctx
from operations.services.network.passing import Data, listed
from operations.services.network.resellers import ResellerPage, of_reseller
from operations.services.network.upstream import reach, reseller_for
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation


@operation(
    "GET",
    "/v1/sponsors",
    upstream=True,
    raises=[NotFound, OcsError],
    examples=[Example("Which sponsors do our SIMs roam with?", {}, {"data": [{"id": 31, "prefix": 90170, "name": "SPX"}]})],
    tool_defaults={"limit": 20},
)
async def list_sponsors(ctx: Ctx, params: ResellerPage) -> Data[list[Sponsor]]:
    """List the sponsors whose IMSI ranges your SIMs roam with.

    A network profile and a package template belong to one sponsor each.
    """
    upstream = await reach(ctx)
    reseller = await reseller_for(upstream, params.reseller_id)
    kept = upstream.reads.get((upstream.identity, "sponsors", reseller), lambda: upstream.ocs.reseller.list_sponsor(reseller))
    rows = await of_reseller(params.reseller_id, kept)
    return listed(ctx, sorted(rows, key=sponsor_id), params, sponsor_id)


def sponsor_id(row: Sponsor) -> int:
    """The number of a sponsor."""
    return row.get("id", 0)
