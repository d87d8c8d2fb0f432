"""Messages to a line."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from operations.services.network.sms_text import measured
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, Once, operation

NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+", re.ASCII)
SENDER_LENGTH = 11


def fits(text: str) -> str:
    """One message: the upstream joins none."""
    found = measured(text)
    if found.length > found.most:
        alphabet = "Unicode characters, since one of them is not in the GSM alphabet's ASCII part" if found.unicode else "GSM characters"
        raise ValueError(f"the message has {found.length} of at most {found.most} {alphabet}")
    return text


class Message(LineRef):
    """What is sent, and who is shown as its sender."""

    message: Annotated[
        str,
        Field(
            min_length=1,
            max_length=160,
            pattern=r"^[^\x00-\x09\x0b\x0c\x0e-\x1f\x7f]*$",
            description="1-160 ASCII (GSM-7) or 1-70 Unicode characters.",
        ),
        AfterValidator(fits),
    ]
    sender: Annotated[
        str | None,
        Field(pattern=r"^([A-Za-z0-9]{1,11}|\+?[0-9]{3,15})$", description="1-11 letters and digits, or a number; default: your name."),
    ] = None
    msisdn: Annotated[str | None, Field(pattern=r"^\+?[0-9]{6,15}$", description="The line's number, 6-15 digits, as a check.")] = None


class MessageSent(TypedDict):
    """Handed to the network; whether it arrives is not reported."""

    sent: Literal[True]
    unicode: Annotated[bool, Field(description="Whether it went out as Unicode: a character is not ASCII, or not in GSM 7-bit")]
    length: Annotated[int, Field(description="Septets, or UTF-16 units when unicode")]


async def line_with_number(ctx: Ctx, params: Message) -> Line:
    """The caller's own line; a number that is not its own is not found."""
    line = await own_line(ctx, params)
    if params.msisdn is not None:
        current = {row.get("phoneNumber") for row in line.row.get("phoneNumberList", []) if row.get("endDate") is None}
        if params.msisdn.lstrip("+") not in current:
            raise NotFound("This line has no such number", param="msisdn", hint="Leave msisdn out: the ICCID names the line")
    return line


@operation(
    "POST",
    "/v1/subscribers/{iccid}/sms",
    scope=Scope.ADMIN,
    confirm=True,
    once=Once(shown=True),
    upstream=True,
    moves=True,
    operator=True,
    access=line_with_number,
    raises=[NotFound, EndOfLife, OcsError],
    title="Send SMS",
    examples=[
        Example(
            "Tell a traveller",
            {"iccid": "8988303700000100286", "message": "Your data is used up. Reply STOP to end."},
            {"data": {"sent": True, "unicode": False, "length": 40}},
        )
    ],
)
async def send_sms(ctx: Ctx, params: Message, line: Line) -> Data[MessageSent]:
    """Send one SMS to a line.

    It cannot be taken back; a repeated call sends another. Delivery is not reported.

    Without `sender` the letters and digits of the organisation's name are shown, at most 11.
    """
    sender = params.sender or NOT_ALPHANUMERIC.sub("", ctx.caller.organisation_name)[:SENDER_LENGTH] or "Info"
    await line.upstream.ocs.messages.send_mt_sms(params.message, sender_id=sender, imsi=line.imsi)
    found = measured(params.message)
    return {"data": {"sent": True, "unicode": found.unicode, "length": found.length}}
