"""Changing a draft, and sending it."""

from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from operations.deps import Ctx
from operations.invoicing.invoice.edit import EDITABLE, Given, NotEditable, Wish, edit
from operations.invoicing.invoice.issuing import issue
from operations.invoicing.invoice.sending import NotAsDrafted, hand_over
from operations.invoicing.invoice.whole import find_of_month
from operations.invoicing.invoice_shape import DRAFT, ID, InvoiceRef, ShownInvoice, no_such_invoice, shown_invoice
from operations.services.payments.connect import account_of
from operations.services.people.addresses import Email
from operations.vocabulary import without_default
from registry.errors import BadRequest, NotFound
from registry.limits import Scope
from registry.operation import Example, operation
from registry.payments_errors import PaymentsError, PaymentsRefused
from registry.ports import Site
from storage.connection import Connection
from storage.money.invoices import Invoice

REFUSED = {
    "paid": "An invoice becomes paid when the payment processor tells of the payment, and in no other way",
    "void": "void_invoice (DELETE on the same path) voids an invoice",
}


def legible(text: str) -> str:
    """Something that a reader sees."""
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise ValueError("must hold more than space")
    return text


# Choice: control characters are refused. Marks that turn the direction of text are kept as they were sent, and left out wherever the
# name is shown: on the document, and to the payment processor.
RecipientName = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="Who is billed, 1-200 characters; null removes."),
    AfterValidator(legible),
]
Notes = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]+$",
        description="Printed on the invoice, 1-2000 characters, lines end with \\n; null removes.",
    ),
]


class InvoiceChange(InvoiceRef):
    """What to change; what is left out stays, null removes."""

    null_clears: ClassVar[frozenset[str]] = frozenset({"recipient_name", "recipient_email", "notes", "due_at"})

    status: Annotated[
        Literal["draft", "sent"],
        Field(description="`sent` sends a draft; `draft` changes nothing.", json_schema_extra=without_default),
    ] = "draft"
    recipient_name: RecipientName | None = None
    recipient_email: Annotated[Email | None, Field(description="Where it is sent, at most 254 characters; null removes.")] = None
    notes: Notes | None = None
    due_at: Annotated[
        int | None,
        Field(ge=0, le=2**40, description="Day to pay by, Unix seconds, within 730 days; null or never set: 30 days after it is sent."),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _status_they_may_set(cls, given: object) -> object:
        if isinstance(given, dict) and "status" in given:
            status = given["status"]  # pyright: ignore[reportUnknownVariableType]  # JSON: the fields give it its types
            if status is None:
                raise BadRequest("status: null; an invoice always has one", param="status", hint="Leave it out to keep it")
            if isinstance(status, str) and status in REFUSED:
                raise BadRequest(f"status: {status} cannot be set", param="status", hint=REFUSED[status])
        return given  # pyright: ignore[reportUnknownVariableType]  # JSON: the fields give it its types

    @property
    def wish(self) -> Wish:
        """The status that was given."""
        return self.status if "status" in self.model_fields_set else None

    @property
    def texts(self) -> Given:
        """What was given of the fields that a draft may change."""
        return {name: getattr(self, name) for name in EDITABLE if name in self.model_fields_set}


class Editing(NamedTuple):
    """An invoice of the caller's. `account` is where it is handed over, if it is to be."""

    row: Invoice
    month: int
    account: str


async def invoice_to_update(ctx: Ctx, params: InvoiceChange) -> Editing:
    """The invoice; a foreign one is not found. What may be done with it is judged after the replay."""
    found = await ctx.deps.store.read(find_of_month, invoice=params.id, organisation=ctx.organisation)
    if found is None:
        raise no_such_invoice("id")
    account = ""
    # Choice: what comes to nothing is not handed to the processor, which would call it paid at once.
    if params.wish == "sent" and found.row.status == "draft" and found.row.total_cents:
        account = await account_for(ctx, found.row)
        if account:
            ctx.stage()
    return Editing(found.row, found.month, account)


async def account_for(ctx: Ctx, row: Invoice) -> str:
    """Where an invoice is handed over: it stays with the account that it went to. Empty: it is sent without the processor."""
    if row.sending:
        return row.connect_account or ""
    connected = await account_of(ctx)
    return connected.account if connected is not None and connected.status == "active" else ""


@operation(
    "PATCH",
    "/v1/invoices/{id}",
    scope=Scope.WRITE,
    moves=True,
    title="Update or send invoice",
    access=invoice_to_update,
    raises=[NotFound, NotEditable, NotAsDrafted, PaymentsError, PaymentsRefused],
    examples=[
        Example(
            "Say who is billed",
            {"id": ID, "recipient_name": "Fjord Ferries AS", "recipient_email": "accounts@fjord.example"},
            {**DRAFT, "recipient_name": "Fjord Ferries AS", "recipient_email": "accounts@fjord.example"},
        ),
    ],
)
async def update_invoice(ctx: Ctx, params: InvoiceChange, editing: Editing) -> ShownInvoice:
    """Change recipient, notes or due date of a draft, or send it with status sent.

    Only drafts change: afterwards 409 invoice_not_editable. Sending again changes nothing. OUTCOME_UNKNOWN: send again, without key.

    With an active account at the payment processor, `sent` makes an invoice there, which mails it to the recipient; `payment_url` is
    where it is paid, and the platform fee is kept from the payment. It needs `recipient_name` and `recipient_email`. Without such an
    account, or where the total is 0, the invoice is only marked as sent, and reaching the recipient is up to you. The PDF is made once
    at this moment, and figures, recipient and number stay for ever. `paid` is recorded when the processor tells of it; to void an
    invoice call void_invoice.
    """
    given = params.texts
    if ctx.staged:
        return (await hand_over(ctx, editing.row, given, account=editing.account, month=editing.month)).body
    if params.wish == "sent" and editing.row.status == "draft":
        return await issue(ctx, editing.row, given)
    return await ctx.settle_result(write, row=editing.row, given=given, wish=params.wish, now=ctx.now, site=ctx.deps.site)


def write(connection: Connection, *, row: Invoice, given: Given, wish: Wish, now: float, site: Site) -> ShownInvoice:
    """The draft with its changes."""
    return shown_invoice(edit(connection, row=row, given=given, wish=wish, now=now), site)
