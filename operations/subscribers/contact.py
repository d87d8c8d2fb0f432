"""Whom a line belongs to: name, company, e-mail, and the phone number of the line."""

from typing import Annotated, Literal, NotRequired

from pydantic import AliasChoices, Field, StringConstraints, model_validator
from typing_extensions import TypedDict

from clients.ocs.subscribers import PhoneNumberRow
from operations.deps import Ctx
from operations.fleet.sync import keeps_names
from operations.fleet.wire_rows import fold_text, identifiers_text
from operations.upstream.connection import name_refused_field
from operations.upstream.lines import Line, LineRef, note_line, own_line
from operations.upstream.paging import Data
from registry.errors import EndOfLife, NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import Example, Scope, SpendKind, operation
from storage.fleet_erasure import LineCustomer, note_line_names

ContactText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")]
EMAIL_PART = r"[^@\s\x00-\x1f\x85\ufeff]+"
"""Which signs are spaces, languages see differently; those are named."""


class ContactChange(LineRef):
    """What changes; the rest stays."""

    first_name: Annotated[ContactText | None, Field(description="Replaces the whole name.")] = None
    last_name: Annotated[ContactText | None, Field(description="As firstName.")] = None
    company: Annotated[ContactText | None, Field(description="Company.")] = None
    email: Annotated[str | None, Field(max_length=254, pattern=f"^{EMAIL_PART}@{EMAIL_PART}$", description="E-mail.")] = None
    phone_number: Annotated[str | None, Field(pattern=r"^\+?[0-9]{4,15}$", description="Contact number, 4-15 digits, not the line's.")] = (
        None
    )

    @model_validator(mode="after")
    def check(self) -> "ContactChange":
        """Raises ValueError when no field would change."""
        if all(value is None for name, value in self if name != "iccid"):
            raise ValueError("give at least one of firstName, lastName, company, email, phoneNumber")
        return self

    @property
    def name(self) -> str | None:
        """The upstream has one name: both parts, or the one that is given."""
        return " ".join(part for part in (self.first_name, self.last_name) if part) or None


class ContactChanged(TypedDict, total=False):
    """What was sent upstream."""

    name: FreeText
    company: FreeText
    email: FreeText
    phoneNumber: str


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/contact",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_line,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Name a line",
            {"iccid": "8988303700000100286", "firstName": "Ingrid", "lastName": "Solberg"},
            {"data": {"name": "Ingrid Solberg"}},
        )
    ],
)
async def modify_subscriber_contact_info(ctx: Ctx, params: ContactChange, line: Line) -> Data[ContactChanged]:
    """Change the name, company, e-mail or phone number of a line's owner.

    Fields left out stay. The line's own number is changed by affect_subscriber_phone_number.

    The upstream keeps one name: firstName and lastName are joined, and either alone becomes the whole name.
    """
    given = {"name": params.name, "company": params.company, "email": params.email, "phoneNumber": params.phone_number}
    named = await keeps_names(ctx.deps, ctx.organisation)
    await line.upstream.ocs.subscriber.modify_contact_info(
        line.subscriber_id, name=params.name, phone=params.phone_number, mail=params.email, company=params.company
    )
    if named:
        told = (params.name or line.row.get("subscriberName"), params.company, params.email or line.row.get("email"), params.phone_number)
        ctx.at_close(
            note_line_names,
            organisation=ctx.organisation,
            customer=LineCustomer(line.subscriber_id, line.iccid, [each for each in (params.email, line.row.get("email")) if each]),
            search=fold_text("\n".join(text.strip() for text in told if text and not text.isspace())),
            now=ctx.now,
            keyring=ctx.deps.keyring,
        )
    changed: ContactChanged = {name: value for name, value in given.items() if value is not None}  # pyright: ignore[reportAssignmentType]  # the names are those of the answer
    return {"data": changed}


BAD_NUMBER_CODES = (2, 4)
"""A number that the charging system does not take, and one that another line has."""


class PhoneNumberChange(LineRef):
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
    def check(self) -> "PhoneNumberChange":
        """Raises ValueError when a real number is not given."""
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
    spends=SpendKind.NOTHING,
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
async def affect_subscriber_phone_number(ctx: Ctx, params: PhoneNumberChange, line: Line) -> Data[NumberChanged]:
    """Assign a phone number (MSISDN) to a line, or restore its internal one.

    The number the line had until then ends. With `fake` the charging system restores its own number and takes none.
    """
    subscribers = line.upstream.ocs.subscriber
    if params.phone_type == "real" and params.phone_number is not None:
        digits = params.phone_number.lstrip("+")
        await name_refused_field(
            subscribers.affect_real_phone_number(line.subscriber_id, digits), dict.fromkeys(BAD_NUMBER_CODES, "phoneNumber")
        )
        numbers: list[PhoneNumberRow] = [*line.row.get("phoneNumberList", []), {"phoneNumber": digits}]
        note_line(ctx, line, numbers=identifiers_text({**line.row, "phoneNumberList": numbers}, line.iccid))
        return {"data": {"phoneType": "real", "phoneNumber": digits}}
    await subscribers.affect_fake_phone_number(line.subscriber_id)
    if params.phone_number is None:
        return {"data": {"phoneType": "fake"}}
    return {"data": {"phoneType": "fake", "note": "phoneNumber was ignored: the charging system restores the line's own number"}}
