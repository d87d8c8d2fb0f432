"""Messages to a line, and how long one may be: GSM 7-bit (3GPP TS 23.038 6.2.1), or UCS-2 as soon as one character is Unicode."""

import re
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from clients.ocs.subscribers import escape_sms_text
from operations.deps import Ctx
from operations.upstream.lines import Line, LineRef, own_line
from operations.upstream.paging import Data
from operations.upstream.tariffs import read_tariff_rules, render_tariff_row, rules_in_force
from operations.upstream.template_costs import euro_cents
from operations.upstream.template_terms import COST_CURRENCY
from registry.caller import Money
from registry.challenge import Challenge, describe_loss, quote_name
from registry.errors import EndOfLife, NotFound, OcsError
from registry.operation import NOTHING_DUE, Due, Example, Once, Scope, SpendKind, operation

GSM_BASIC = frozenset("@$\n\r_ !\"#%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
GSM_EXTENDED = frozenset("^{}\\[~]|")
SMS_SEPTET_LIMIT = 160
SMS_UNICODE_LIMIT = 70


class SmsLength(NamedTuple):
    """The alphabet, and the length in its units: septets, or UTF-16 code units."""

    unicode: bool
    length: int

    @property
    def most(self) -> int:
        """The most that fits into one message."""
        return SMS_UNICODE_LIMIT if self.unicode else SMS_SEPTET_LIMIT


def measure_sms(text: str) -> SmsLength:
    """A character of the extension table takes two septets; one outside the basic plane takes two units.

    Choice: what travels escaped is Unicode to the charging system, so é or £ are, too, though the GSM alphabet has them.
    """
    if escape_sms_text(text) == text and all(character in GSM_BASIC or character in GSM_EXTENDED for character in text):
        return SmsLength(False, sum(2 if character in GSM_EXTENDED else 1 for character in text))
    return SmsLength(True, len(text.encode("utf-16-le")) // 2)


SENDER_GAPS = re.compile(r"[^A-Za-z0-9]+", re.ASCII)
SMS_SENDER_LENGTH = 11


def check_sms_length(text: str) -> str:
    """Raises ValueError for more than one message, since the upstream joins none."""
    found = measure_sms(text)
    if found.length > found.most:
        alphabet = "Unicode characters, since one of them is not in the GSM alphabet's ASCII part" if found.unicode else "GSM characters"
        raise ValueError(f"the message has {found.length} of at most {found.most} {alphabet}")
    return text


class SmsMessage(LineRef):
    """What is sent, and who is shown as its sender."""

    message: Annotated[
        str,
        Field(
            min_length=1,
            max_length=160,
            pattern=r"^[^\x00-\x09\x0b\x0c\x0e-\x1f\x7f]*$",
            description="1-160 ASCII (GSM-7) or 1-70 Unicode characters.",
        ),
        AfterValidator(check_sms_length),
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


async def own_line_with_number(ctx: Ctx, params: SmsMessage) -> Line:
    """The caller's own line. Raises NotFound for a number that is not the line's."""
    line = await own_line(ctx, params)
    if params.msisdn is not None:
        current = {row.get("phoneNumber") for row in line.row.get("phoneNumberList", []) if row.get("endDate") is None}
        if params.msisdn.lstrip("+") not in current:
            raise NotFound("This line has no such number", param="msisdn", hint="Leave msisdn out: the ICCID names the line")
    return line


def sms_sender(ctx: Ctx, params: SmsMessage) -> str:
    """Who is shown as the sender."""
    return params.sender or SENDER_GAPS.sub("", ctx.caller.organisation_name)[:SMS_SENDER_LENGTH] or "Info"


async def name_message(ctx: Ctx, params: SmsMessage, _line: Line) -> Challenge:
    """What is sent to whom, and as whose."""
    text, sender = quote_name(params.message, SMS_SEPTET_LIMIT), sms_sender(ctx, params)
    loss = describe_loss("message", params.iccid, sender=sender, text=params.message)
    return Challenge(
        f"This will send one SMS to the line {params.iccid}, shown as from {quote_name(sender)}: {text}. It cannot be taken back.", (loss,)
    )


async def due_of_message(ctx: Ctx, _params: SmsMessage, line: Line) -> Due | SpendKind:
    """The highest price of a message to a line in your tariff, since the line may change its network meanwhile.

    OPEN where the tariff prices messages in several currencies. Waits for the network.
    """
    rules = await read_tariff_rules(line.upstream, await line.upstream.reseller_id())
    rows = [render_tariff_row(rule) for rule in rules_in_force(rules, ctx.now)]
    prices = [(row.get("currency") or COST_CURRENCY, row.get("mtSms", 0.0)) for row in rows]
    if len({currency for currency, _ in prices}) > 1:
        return SpendKind.OPEN
    return Due(tuple(Money(euro_cents(price), currency) for currency, price in [max(prices)])) if prices else NOTHING_DUE


@operation(
    "POST",
    "/v1/subscribers/{iccid}/sms",
    spends=due_of_message,
    irreversible=True,
    scope=Scope.ADMIN,
    confirm=True,
    once=Once(shown=True),
    upstream=True,
    moves=True,
    operator=True,
    access=own_line_with_number,
    challenge=name_message,
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
async def send_sms(ctx: Ctx, params: SmsMessage, line: Line) -> Data[MessageSent]:
    """Send one SMS to a line.

    It cannot be taken back; a repeated call sends another. Delivery is not reported.

    Without `sender` the letters and digits of the organisation's name are shown, at most 11.
    """
    await line.upstream.ocs.messages.send_mt_sms(params.message, sender_id=sms_sender(ctx, params), imsi=line.imsi)
    found = measure_sms(params.message)
    return {"data": {"sent": True, "unicode": found.unicode, "length": found.length}}
