"""Whom a line belongs to."""

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")]
NO_SPACE = r"[^@\s\x00-\x1f\x85\ufeff]+"
"""Which signs are spaces, languages see differently; those are named."""


class Contact(LineRef):
    """What changes; the rest stays."""

    first_name: Annotated[Words | None, Field(description="Replaces the whole name.")] = None
    last_name: Annotated[Words | None, Field(description="As firstName.")] = None
    company: Annotated[Words | None, Field(description="Company.")] = None
    email: Annotated[str | None, Field(max_length=254, pattern=f"^{NO_SPACE}@{NO_SPACE}$", description="E-mail.")] = None
    phone_number: Annotated[str | None, Field(pattern=r"^\+?[0-9]{4,15}$", description="Contact number, 4-15 digits, not the line's.")] = (
        None
    )

    @model_validator(mode="after")
    def check(self) -> "Contact":
        """Something has to change."""
        if all(value is None for name, value in self if name != "iccid"):
            raise ValueError("give at least one of firstName, lastName, company, email, phoneNumber")
        return self

    @property
    def name(self) -> str | None:
        """The upstream has one name: both parts, or the one that is given."""
        return " ".join(part for part in (self.first_name, self.last_name) if part) or None


class ContactChanged(TypedDict, total=False):
    """What was sent upstream."""

    name: str
    company: str
    email: str
    phoneNumber: str


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/contact",
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
async def modify_subscriber_contact_info(ctx: Ctx, params: Contact, line: Line) -> Data[ContactChanged]:
    """Change the name, company, e-mail or phone number of a line's owner.

    Fields left out stay. The line's own number is changed by affect_subscriber_phone_number.

    The upstream keeps one name: firstName and lastName are joined, and either alone becomes the whole name.
    """
    given = {"name": params.name, "company": params.company, "email": params.email, "phoneNumber": params.phone_number}
    await line.upstream.ocs.subscriber.modify_contact_info(
        line.subscriber_id, name=params.name, phone=params.phone_number, mail=params.email, company=params.company
    )
    changed: ContactChanged = {name: value for name, value in given.items() if value is not None}  # pyright: ignore[reportAssignmentType]  # the names are those of the answer
    return {"data": changed}
