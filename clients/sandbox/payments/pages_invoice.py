"""The page on which an invoice's recipient reads and pays it."""

from clients.sandbox.payments.acts import pay_invoice
from clients.sandbox.payments.entities import Invoice
from clients.sandbox.payments.invoice_figures import items_of, remaining_of
from clients.sandbox.payments.pages_cards import CHOICES, USUAL, card_named
from clients.sandbox.payments.pages_layout import Away, Page, Shown, problem
from clients.sandbox.payments.pages_visit import Visit
from clients.sandbox.payments.paying import find_invoice
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.state import State

NO_INVOICE = problem("There is no such invoice", "Check the address in the mail that you got.", 404)


def show_invoice(visit: Visit) -> Shown:
    """The invoice as it stands."""
    found = find_invoice(visit.state, visit.name) if visit.name else None
    return NO_INVOICE if found is None else page(visit.state, *found)


def act_on_invoice(visit: Visit) -> Shown:
    """Pay all of it."""
    state = visit.state
    found = find_invoice(state, visit.name)
    if found is None:
        return NO_INVOICE
    account, invoice = found
    name = visit.form.get("card", "")
    card = card_named(name, owner=invoice.customer_name, email=invoice.customer_email)
    if card is None:
        return page(state, account, invoice, "Choose a test card.", status=400)
    try:
        pay_invoice(state, account, invoice.id, card)
    except Refusal as refusal:
        return page(state, account, invoice, refusal.message, chosen=name, status=refusal.status)
    return Away(f"{state.pages_url}/invoices/{visit.name}")


def page(state: State, account: str, invoice: Invoice, wrong: str = "", *, chosen: str = USUAL, status: int = 200) -> Page:
    """Its lines, what is to be paid, and the form where it can be."""
    facts = {
        "invoice": invoice,
        "lines": [(item.description or "Item", item.amount) for item in items_of(state, account, invoice)],
        "total": remaining_of(state, account, invoice)
        if invoice.status == "open"
        else sum(i.amount for i in items_of(state, account, invoice)),
        "cards": CHOICES,
        "chosen": chosen,
        "problem": wrong,
    }
    return Page("invoice.html", facts, status)
