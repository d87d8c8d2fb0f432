"""The status of a SIM at platform level."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

Wanted = Literal["ENABLED", "DISABLED", "Affected", "Free"]
FREED = "A profile that was downloaded before cannot be downloaded again after this"


class SimStatusChange(LineRef):
    """What the SIM becomes."""

    status: Annotated[Wanted, Field(description="ENABLED or Affected: in use. DISABLED or Free: in stock.")]


class SimStatusChanged(TypedDict):
    """What was asked for."""

    status: Wanted
    simId: int
    warning: NotRequired[str]


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/sim-status",
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    moves=True,
    operator=True,
    access=own_line,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Return a SIM to stock",
            {"iccid": "8988303700000100286", "status": "DISABLED"},
            {"data": {"status": "DISABLED", "simId": 760112, "warning": FREED}},
        )
    ],
)
async def change_sim_status(ctx: Ctx, params: SimStatusChange, line: Line) -> Data[SimStatusChanged]:
    """Take a SIM into use, or return it to stock, at platform level.

    A repair tool: DISABLED makes a downloaded profile undownloadable. modify_subscriber_status suspends a line instead.
    """
    freed = params.status in ("DISABLED", "Free")
    await line.upstream.ocs.subscriber.change_sim_status(line.sim_id, "Free" if freed else "Affected")
    changed: SimStatusChanged = {"status": params.status, "simId": line.sim_id}
    if freed:
        changed["warning"] = FREED
    return {"data": changed}
