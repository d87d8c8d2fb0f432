"""The page on which one buyer pays once."""

import re
from collections.abc import Mapping

from clients.sandbox.payments.acts import complete_checkout
from clients.sandbox.payments.entities import Session
from clients.sandbox.payments.pages_cards import CHOICES, USUAL, card_named
from clients.sandbox.payments.pages_layout import Away, Page, Shown, problem
from clients.sandbox.payments.pages_visit import Visit
from clients.sandbox.payments.paying import enter_promotion, find_session
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.render_shop import total_of

ADDRESS = re.compile(r"[^\s@]{1,64}@[^\s@]+\.[^\s@]+")
SESSION_HERE = "{CHECKOUT_SESSION_ID}"
NO_SESSION = problem("There is no such checkout", "Go back to the shop and begin anew.", 404)
EMPTY: Mapping[str, str] = {}


def show_checkout(visit: Visit) -> Shown:
    """What is bought."""
    found = find_session(visit.state, visit.name)
    return NO_SESSION if found is None else page(found[1])


def act_on_checkout(visit: Visit) -> Shown:
    """Pay, or go back to the shop."""
    found = find_session(visit.state, visit.name)
    if found is None:
        return NO_SESSION
    account, session = found
    if visit.do == "back" and session.cancel_url:
        return Away(session.cancel_url)
    if session.status != "open":
        return page(session)
    email = session.email or visit.form.get("email", "")
    card = card_named(visit.form.get("card", ""), email=email)
    if not ADDRESS.fullmatch(email) or len(email) > 254:
        return page(session, "Type in the e-mail address that the receipt goes to.", visit.form, 400)
    if card is None:
        return page(session, "Choose a test card.", visit.form, 400)
    try:
        if visit.form.get("promotion"):
            enter_promotion(visit.state, account, session.id, visit.form["promotion"])
        complete_checkout(visit.state, account, session.id, card)
    except Refusal as refusal:
        return page(session, refusal.message, visit.form, refusal.status)
    return Away(session.success_url.replace(SESSION_HERE, session.id))


def page(session: Session, wrong: str = "", form: Mapping[str, str] = EMPTY, status: int = 200) -> Page:
    """Its lines and the form, while it is open."""
    if session.status != "open":
        how = "It was paid." if session.status == "complete" else "It took too long."
        return problem("This checkout is over", f"{how} Go back to the shop.", 410 if session.status == "expired" else 200)
    facts = {
        "session": session,
        "lines": [(line["description"] or line["name"], line["unit_amount"] * line["quantity"]) for line in session.lines],
        "total": total_of(session),
        "given": {"email": form.get("email", ""), "promotion": form.get("promotion", ""), "card": form.get("card", USUAL)},
        "cards": CHOICES,
        "problem": wrong,
    }
    return Page("checkout.html", facts, status, leads_to=(session.success_url, session.cancel_url))
