"""A line's phone number."""

from typing import Annotated, Literal, NotRequired

from pydantic import AliasChoices, Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from operations.services.network.refused_field import naming_field
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

AT_FAULT = (2, 4)
"""A number that the charging system does not take, and one that another line has."""


class Number(LineRef):
    """Which kind of number, and which."""

    phone_type: Annotated[Literal["real", "fake"], Field(description="real assigns phoneNumber, fake restores the line's internal one.")]
    phone_number: Annotated[
        str | None,
        Field(
            validation_alias=AliasChoices("phoneNumber", "msisdn"),
            pattern=r"^\+?[1-9][0-9]{5,14}$",
            description="MSISDN (E.164), 6-15 digits; needed for real.",
        ),
    ] = None

    @model_validator(mode="after")
    def check(self) -> "Number":
        """A real number has to be named."""
        if self.phone_type == "real" and self.phone_number is None:
            raise ValueError("phoneNumber is required when phoneType is real, for example +4790000001")
        return self


class NumberChanged(TypedDict):
    """What was asked for. `phoneNumber` is without plus."""

    phoneType: Literal["real", "fake"]
    phoneNumber: NotRequired[str]
    note: NotRequired[str]


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/phone-number",
    scope=Scope.WRITE,
    upstream=True,
    access=own_line,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Assign a number",
            {"iccid": "8988303700000100286", "phoneType": "real", "phoneNumber": "+4790000001"},
            {"data": {"phoneType": "real", "phoneNumber": "4790000001"}},
        ),
        Example("Restore the internal number", {"iccid": "8988303700000100286", "phoneType": "fake"}, {"data": {"phoneType": "fake"}}),
    ],
)
async def affect_subscriber_phone_number(ctx: Ctx, params: Number, line: Line) -> Data[NumberChanged]:
    """Assign a phone number (MSISDN) to a line, or restore its internal one.

    The number the line had until then ends. With `fake` the charging system restores its own number and takes none.
    """
    subscribers = line.upstream.ocs.subscriber
    if params.phone_type == "real" and params.phone_number is not None:
        digits = params.phone_number.lstrip("+")
        await naming_field(subscribers.affect_real_phone_number(line.subscriber_id, digits), dict.fromkeys(AT_FAULT, "phoneNumber"))
        return {"data": {"phoneType": "real", "phoneNumber": digits}}
    await subscribers.affect_fake_phone_number(line.subscriber_id)
    if params.phone_number is None:
        return {"data": {"phoneType": "fake"}}
    return {"data": {"phoneType": "fake", "note": "phoneNumber was ignored: the charging system restores the line's own number"}}
