"""The pages on which people pay: a checkout, and an invoice."""

import re
from collections.abc import Mapping

from simulators.processor.call import ProcessorRefusal
from simulators.processor.cards import CARD_CHOICES, USUAL_CARD, find_named_card
from simulators.processor.checkout import complete_checkout, enter_promotion, find_checkout_session, session_total
from simulators.processor.entities import CheckoutSession, Invoice
from simulators.processor.invoices import find_invoice_by_slug, invoice_lines, invoice_remaining, pay_invoice_by_card
from simulators.processor.pages import PageAnswer, PageRedirect, PageRoutes, PageVisit, ProcessorPage, problem_page
from simulators.processor.state import ProcessorState

EMAIL_ADDRESS = re.compile(r"[^\s@]{1,64}@[^\s@]+\.[^\s@]+")
SESSION_PLACEHOLDER = "{CHECKOUT_SESSION_ID}"
NO_CHECKOUT_PAGE = problem_page("There is no such checkout", "Go back to the shop and begin anew.", 404)
EMPTY_FORM: Mapping[str, str] = {}
NO_INVOICE_PAGE = problem_page("There is no such invoice", "Check the address in the mail that you got.", 404)


def _show_checkout_page(visit: PageVisit) -> PageAnswer:
    found = find_checkout_session(visit.state, visit.name)
    return NO_CHECKOUT_PAGE if found is None else _checkout_page(found[1])


def _submit_checkout_page(visit: PageVisit) -> PageAnswer:
    found = find_checkout_session(visit.state, visit.name)
    if found is None:
        return NO_CHECKOUT_PAGE
    account, session = found
    if visit.do == "back" and session.cancel_url:
        return PageRedirect(session.cancel_url)
    if session.status != "open":
        return _checkout_page(session)
    email = session.email or visit.form.get("email", "")
    card = find_named_card(visit.form.get("card", ""), email=email)
    if not EMAIL_ADDRESS.fullmatch(email) or len(email) > 254:
        return _checkout_page(session, "Type in the e-mail address that the receipt goes to.", visit.form, 400)
    if card is None:
        return _checkout_page(session, "Choose a test card.", visit.form, 400)
    try:
        if visit.form.get("promotion"):
            enter_promotion(visit.state, account, session.id, visit.form["promotion"])
        complete_checkout(visit.state, account, session.id, card)
    except ProcessorRefusal as refusal:
        return _checkout_page(session, refusal.message, visit.form, refusal.status)
    return PageRedirect(session.success_url.replace(SESSION_PLACEHOLDER, session.id))


def _checkout_page(session: CheckoutSession, wrong: str = "", form: Mapping[str, str] = EMPTY_FORM, status: int = 200) -> ProcessorPage:
    if session.status != "open":
        how = "It was paid." if session.status == "complete" else "It took too long."
        return problem_page("This checkout is over", f"{how} Go back to the shop.", 410 if session.status == "expired" else 200)
    facts = {
        "session": session,
        "lines": [(line["description"] or line["name"], line["unit_amount"] * line["quantity"]) for line in session.lines],
        "total": session_total(session),
        "given": {"email": form.get("email", ""), "promotion": form.get("promotion", ""), "card": form.get("card", USUAL_CARD)},
        "cards": CARD_CHOICES,
        "problem": wrong,
    }
    return ProcessorPage("checkout.html", facts, status, leads_to=(session.success_url, session.cancel_url))


def _show_invoice_page(visit: PageVisit) -> PageAnswer:
    found = find_invoice_by_slug(visit.state, visit.name) if visit.name else None
    return NO_INVOICE_PAGE if found is None else invoice_page(visit.state, *found)


def _submit_invoice_page(visit: PageVisit) -> PageAnswer:
    state = visit.state
    found = find_invoice_by_slug(state, visit.name)
    if found is None:
        return NO_INVOICE_PAGE
    account, invoice = found
    name = visit.form.get("card", "")
    card = find_named_card(name, owner=invoice.customer_name, email=invoice.customer_email)
    if card is None:
        return invoice_page(state, account, invoice, "Choose a test card.", status=400)
    try:
        pay_invoice_by_card(state, account, invoice.id, card)
    except ProcessorRefusal as refusal:
        return invoice_page(state, account, invoice, refusal.message, chosen=name, status=refusal.status)
    return PageRedirect(f"{state.pages_url}/invoices/{visit.name}")


def invoice_page(
    state: ProcessorState, account: str, invoice: Invoice, wrong: str = "", *, chosen: str = USUAL_CARD, status: int = 200
) -> ProcessorPage:
    """Its lines, what is to be paid, and the form where it can be."""
    facts = {
        "invoice": invoice,
        "lines": [(item.description or "Item", item.amount) for item in invoice_lines(state, account, invoice)],
        "total": invoice_remaining(state, account, invoice)
        if invoice.status == "open"
        else sum(i.amount for i in invoice_lines(state, account, invoice)),
        "cards": CARD_CHOICES,
        "chosen": chosen,
        "problem": wrong,
    }
    return ProcessorPage("invoice.html", facts, status)


PAYMENT_PAGES: PageRoutes = {
    "invoices": {"GET": _show_invoice_page, "POST": _submit_invoice_page},
    "checkout": {"GET": _show_checkout_page, "POST": _submit_checkout_page},
}
