"""What the provider of a SIM says of its profile."""

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.subscriber import ProviderStatus
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

EXAMPLE: ProviderStatus = {
    "simId": 760112,
    "status": "Enable",
    "start": "2026-11-02T07:12:44",
    "profileType": "P1",
    "statusModification": "Executed-Success",
}


@operation(
    "GET",
    "/v1/subscribers/{iccid}/sim-status",
    upstream=True,
    operator=True,
    title="Get profile history",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[Example("Did the customer install the eSIM?", {"iccid": "8988303700000100286"}, {"data": [EXAMPLE]})],
)
async def get_sim_provider_status(ctx: Ctx, params: LineRef, line: Line) -> Data[list[ProviderStatus] | None]:
    """Get the life of an eSIM profile: released, downloaded, installed, enabled.

    Newest first; null when its provider has said nothing. The SIM's own FREE or AFFECTED is in get_subscriber.
    """
    try:
        rows = await line.upstream.ocs.subscriber.get_sim_provider_status(line.sim_id)
    except OcsNotFound:  # Choice: a provider that does not know the profile has said nothing of it
        rows = []
    return {"data": rows or None}
