"""The page of the payment account: whether payers can pay us, what is still to do, and the payments that wait for a person's look."""

from collections.abc import Mapping
from functools import partial
from typing import cast
from urllib.parse import urlencode

from starlette.responses import Response

from transports.web.console.payments import PAYMENTS_A_PAGE, asked_elsewhere, code_words, money_problem, page_addresses
from transports.web.console.request import ConsoleRequest
from transports.web.pages.calls import CallOutcome
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute

ACCOUNT_PAGE = "/money/payment-account"
AWAY_OPERATIONS: Mapping[str, str] = {"begin": "operator_billing_connect_begin", "dashboard": "operator_billing_connect_dashboard_link"}
"""What leads to pages of the payment processor."""
APPROVE_REVIEW = "operator_billing_approve_fraud_review"


def account_standing(account: Mapping[str, object]) -> str:
    """How the account stands, in one word, of what is stored and what the processor said."""
    if account["status"] == "not_connected":
        return "none"
    charges, payouts, told = (bool(account[name]) for name in ("charges_enabled", "payouts_enabled", "details_submitted"))
    if not (charges or payouts or told or account["currently_due"]):
        return "silent_active" if account["status"] == "active" else "unfinished"
    if account["status"] != "active":
        return "checked" if told and not account["currently_due"] else "unfinished"
    return "works" if payouts else "no_payouts"


async def show_payment_account(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Can payers pay us, are we paid out, and what is there to do?"""
    account = await visit.read("operator_billing_connect_status")
    connected = account.problem is None and account.body["status"] != "not_connected"
    reviews = await read_reviews(visit) if connected else None
    due = cast("list[str]", account.body.get("currently_due", []))
    facts: Mapping[str, object] = {
        "account": account,
        "standing": "" if account.problem is not None else account_standing(account.body),
        "due": list(dict.fromkeys(code_words(visit, "due", due_code(name)) for name in due)),
        "fee": visit.texts.plain_number(cast(int, account.body.get("platform_fee_bps", 0)) / 100),
        "reviews": reviews,
        "why_of": partial(code_words, visit, "review"),
        "stale": not visit.signed_in_lately,
        "done": visit.query.get("done") == "approved" and problem is None,
        **page_addresses(visit, {}, next_review(reviews)),
    }
    return visit.draw("payment_account.html", facts, problem=problem or account.problem)


def due_code(name: str) -> str:
    """What the processor asks for, without whose it is: `individual.verification.document` is a document."""
    return name if name.count(".") == 0 else "tos_acceptance" if name.startswith("tos_acceptance") else name.rpartition(".")[2]


async def read_reviews(visit: ConsoleRequest) -> CallOutcome:
    after = visit.query.get("after", "")
    return await visit.read("operator_billing_list_fraud_reviews", limit=PAYMENTS_A_PAGE, **({"starting_after": after} if after else {}))


def next_review(reviews: CallOutcome | None) -> str:
    """After which review the next page begins; empty where there is none."""
    return str(reviews.rows[-1]["id"]) if reviews is not None and reviews.rows and reviews.body.get("has_more") else ""


async def post_payment_account(visit: ConsoleRequest) -> Response:
    """Leads to the pages of the processor, or lets a payment through that was held up; after a sign-in that is not old."""
    do = visit.form.get("do", "")
    if do not in (*AWAY_OPERATIONS, "approve", "again"):
        raise unknown_form()
    if do == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again(f"{CONSOLE_PATH}{ACCOUNT_PAGE}")
    if do == "approve":
        return await approve_review(visit)
    outcome = await visit.press(AWAY_OPERATIONS[do], {})
    title, button = visit.say("payouts.replace_title"), visit.say("payouts.replace_button")
    waiting = asked_elsewhere(visit, outcome) or visit.ask_first(outcome, title=title, button=button, back=ACCOUNT_PAGE)
    if waiting is not None:
        return waiting
    if outcome.problem is not None:
        return await show_payment_account(visit, money_problem(visit, outcome.problem))
    # A link on a page, and no redirect: our forms may end here alone, and the address lets in whoever opens it first.
    return visit.draw("payment_away.html", {"do": do, "link": outcome.body})


async def approve_review(visit: ConsoleRequest) -> Response:
    """Asks first, and closes then a review for good: the payment is fine."""
    title, text, button = (visit.say(f"payouts.approve_{name}") for name in ("title", "text", "button"))
    asked = visit.ask_of_ours(title=title, text=text, button=button, back=ACCOUNT_PAGE)
    if asked is not None:
        return asked
    outcome = await visit.press(APPROVE_REVIEW, {"id": visit.form.get("id", "")})
    waiting = asked_elsewhere(visit, outcome)
    if waiting is not None:
        return waiting
    if outcome.problem is not None:
        return await show_payment_account(visit, money_problem(visit, outcome.problem))
    return visit.go(f"{ACCOUNT_PAGE}?{urlencode({'done': 'approved'})}")


PAYMENT_ACCOUNT_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {ACCOUNT_PAGE: PageRoute(show_payment_account, post_payment_account)}
