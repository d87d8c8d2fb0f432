"""What may still be changed of an invoice, and by whom: a draft's texts, until it is handed over or sent."""

from collections.abc import Mapping
from typing import Literal

from operations.invoicing.invoice.whole import current_invoice
from registry.errors import BadRequest, Conflict
from registry.policy import stamp
from storage.connection import Connection
from storage.money.invoices import Invoice, edit_invoice

DAY = 86_400
DUE_DAYS = 30
"""Choice: due 30 days after it was sent, where nobody said otherwise."""
MOST_DUE_DAYS = 730
GIVEN_BACK = (
    "operator_billing_create_refund gives money back, where it was paid through the processor; "
    "operator_billing_list_charges names the charge: look for the total and the time of payment"
)
EDITABLE = ("recipient_name", "recipient_email", "notes", "due_at")
Given = Mapping[str, str | int | None]
Wish = Literal["draft", "sent"] | None


class NotEditable(Conflict):
    """The invoice has left draft, or is about to."""

    code = "invoice_not_editable"


def judged(row: Invoice, given: Given, wish: Wish, now: float) -> Invoice:
    """The row as it is to be; refused where it may not become so.

    Choice: a field that says what is there already changes nothing, so that a call that is repeated is no attempt to edit.
    """
    changes = {name: value for name, value in given.items() if value != getattr(row, name)}
    if wish == "sent" and row.status in ("paid", "void"):
        raise NotEditable(f"status: the invoice is {row.status}, and is not sent any more", param="status", hint=way_on(row))
    if wish == "draft" and row.status != "draft":
        raise NotEditable(f"status: the invoice is {row.status}, and does not become a draft again", param="status", hint=way_on(row))
    if changes and (row.status != "draft" or row.sending):
        first = next(iter(changes))
        raise NotEditable(f"{first}: the invoice is {state_of(row)}, and only drafts are edited", param=first, hint=way_on(row))
    wanted = row._replace(**changes)
    if wanted.due_at is not None and ("due_at" in changes or wish == "sent") and not row.sending and row.status == "draft":
        require_due(wanted.due_at, now)
    return wanted


def state_of(row: Invoice) -> str:
    """Its status, and whether it is on its way."""
    return "being handed to the payment processor" if row.status == "draft" and row.sending else row.status


def way_on(row: Invoice) -> str:
    """What can be done instead."""
    if row.status == "paid":
        return GIVEN_BACK
    if row.status == "void":
        return "create_invoice makes another one of the same period"
    if row.status == "draft":
        return 'Send {"status": "sent"} again to have it completed, or void_invoice to call it off'
    return "void_invoice voids it, and create_invoice makes another one of the same period"


def require_due(due_at: int, now: float) -> None:
    """A day to pay by is to come, and is not far away."""
    latest = int(now) + MOST_DUE_DAYS * DAY
    if not now < due_at <= latest:
        when = stamp(due_at) if due_at <= latest else "too far away"
        raise BadRequest(
            f"due_at: {due_at} ({when}) must be in the future, and at most {MOST_DUE_DAYS} days away: at most {latest}",
            param="due_at",
            hint=f"Unix seconds; now it is {int(now)}. null lets it be {DUE_DAYS} days after sending",
        )


def due_at_of(row: Invoice, now: float) -> int:
    """When it is to be paid, if it is sent now."""
    return int(now) + DUE_DAYS * DAY if row.due_at is None else row.due_at


def edit(connection: Connection, *, row: Invoice, given: Given, wish: Wish, now: float) -> Invoice:
    """Change what is given, on the row as it is then; two that edit at once are applied one after the other."""
    while True:
        found = current_invoice(connection, row)
        wanted = judged(found, given, wish, now)
        changed = wanted if wanted == found else edit_invoice(connection, row=wanted, now=now)
        if changed is not None:
            return changed


def changed_meanwhile() -> Conflict:
    """Somebody else changed the draft between our reading and our writing."""
    return Conflict("The invoice was changed while it was about to be sent; nothing was sent", hint="Read it again, and send it again")
