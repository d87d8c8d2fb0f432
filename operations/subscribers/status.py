"""Whether a line may be used."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

Wanted = Literal["ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED", "END_OF_LIFE"]


def canonical(value: object) -> object:
    """TERMINATED is another word for the end of life."""
    return "END_OF_LIFE" if value == "TERMINATED" else value


class StatusChange(LineRef):
    """What the line becomes."""

    status: Annotated[Wanted, BeforeValidator(canonical), Field(description="New status; only ACTIVE lines can be used.")]
    irreversible: Annotated[bool, Field(description="true for END_OF_LIFE, which is final.")] = False

    @model_validator(mode="after")
    def check(self) -> "StatusChange":
        """What cannot be undone is said twice."""
        if self.status == "END_OF_LIFE" and not self.irreversible:
            raise ValueError(
                "status END_OF_LIFE is final: the line can never be used again. "
                "Send irreversible: true to do it, or SUSPENDED to pause the line"
            )
        return self


class StatusChanged(TypedDict):
    """What applies now."""

    status: Wanted


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/status",
    scope=Scope.WRITE,
    upstream=True,
    moves=True,
    operator=True,
    access=own_line,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Pause a line", {"iccid": "8988303700000100286", "status": "SUSPENDED"}, {"data": {"status": "SUSPENDED"}})],
)
async def modify_subscriber_status(ctx: Ctx, params: StatusChange, line: Line) -> Data[StatusChanged]:
    """Activate, suspend, deactivate or end a line.

    SUSPENDED and INACTIVE can be undone with ACTIVE; END_OF_LIFE cannot. modify_package_status pauses one package only.

    TERMINATED is taken as END_OF_LIFE. A line that has ended answers 409 `subscriber_end_of_life`.
    """
    await line.upstream.ocs.subscriber.modify_status(line.subscriber_id, params.status)
    return {"data": {"status": params.status}}
