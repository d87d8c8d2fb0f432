"""Steering lists: which networks SIMs prefer."""

from clients.ocs.wire.reseller import SteeringList
from operations.deps import Ctx
from operations.network.references import STEERING
from operations.services.network.passing import Data, listed
from operations.services.network.reseller_lists import reseller_rows
from operations.services.network.resellers import ResellerPage
from operations.services.network.upstream import reach
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation


@operation(
    "GET",
    "/v1/steering-lists",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[Example("Which steering lists are there?", {}, {"data": [{"id": 17, "resellerId": 7001, "name": "Nordic first"}]})],
    tool_defaults={"limit": 20},
)
async def list_steering_lists(ctx: Ctx, params: ResellerPage) -> Data[list[SteeringList]]:
    """List the steering lists (preferred networks) that lines can be given.

    The charging system does not show which networks a list holds. modify_subscriber_steering_list assigns one.
    """
    upstream = await reach(ctx)
    rows = await reseller_rows(upstream, STEERING, params.reseller_id, upstream.ocs.reseller.list_steering_list)
    return listed(ctx, sorted(rows, key=list_id), params, list_id)


def list_id(row: SteeringList) -> int:
    """The number of a list."""
    return row.get("id", 0)
