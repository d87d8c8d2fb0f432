"""What an invoice comes to."""

from clients.sandbox.payments.entities import Invoice, InvoiceItem
from clients.sandbox.payments.state import State


def items_of(state: State, account: str, invoice: Invoice) -> list[InvoiceItem]:
    """Its lines, in order."""
    rows = state.book(account).items
    return [rows[id] for id in invoice.items]


def total_of(state: State, account: str, invoice: Invoice) -> int:
    """The sum of its lines; below nothing is nothing (the rest would be the customer's credit)."""
    return sum(item.amount for item in items_of(state, account, invoice))


def due_of(state: State, account: str, invoice: Invoice) -> int:
    """What there is to pay, before any payment."""
    return max(0, total_of(state, account, invoice))


def remaining_of(state: State, account: str, invoice: Invoice) -> int:
    """What is still to be paid."""
    return due_of(state, account, invoice) - invoice.amount_paid
