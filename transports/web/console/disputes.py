"""The pages of disputes: which wait for an answer and until when, and the form that answers one to the payer's bank."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast
from urllib.parse import urlencode

from starlette.responses import Response

from operations.billing.disputes import (
    EVIDENCE_BODY_LIMIT,
    EVIDENCE_TEXT_LIMIT,
    EVIDENCE_TOTAL_LIMIT,
    UNANSWERED_DISPUTE_STATUSES,
    DisputeEvidence,
)
from operations.ledger.payment_records import CLOSED_DISPUTE_STATUSES
from registry.errors import NotFound
from transports.web.console.payments import (
    PaymentRow,
    asked_elsewhere,
    code_words,
    has_no_account,
    listed_payment,
    look_through,
    money_problem,
    page_addresses,
    whole_sums,
)
from transports.web.console.request import ConsoleRequest
from transports.web.pages.calls import filled_fields
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute

WAITING_SHOWN_AT_ONCE = 100
DISPUTE_KINDS = ("waiting", "at_bank", "closed")
EVIDENCE_FIELDS = tuple(name for name in DisputeEvidence.model_fields if name not in ("id", "submit"))
SHORT_EVIDENCE = ("customer_name", "customer_email_address", "customer_purchase_ip", "duplicate_charge_id", "service_date")
"""What is a name, a number or a day; everything else is a text, which may have several lines."""
USUAL_EVIDENCE = ("access_activity_log", "product_description", "service_date", "uncategorized_text")
EVIDENCE_BY_REASON: Mapping[str, Sequence[str]] = {
    "product_not_received": ("access_activity_log", "service_date", "product_description"),
    "product_unacceptable": ("product_description", "access_activity_log", "refund_refusal_explanation"),
    "fraudulent": ("customer_name", "customer_email_address", "customer_purchase_ip", "access_activity_log"),
    "duplicate": ("duplicate_charge_explanation", "duplicate_charge_id"),
    "credit_not_processed": ("refund_refusal_explanation", "refund_policy_disclosure"),
    "subscription_canceled": ("cancellation_rebuttal", "cancellation_policy_disclosure", "access_activity_log"),
}
"""What helps most against each reason of a payer, and is therefore asked first."""
DISPUTE_DONE_WORDS = ("draft", "submitted")
ANSWER_HOUR, ANSWER_DAY = 3600, 86_400


def dispute_kind(dispute: PaymentRow) -> str:
    """Whose turn it is: ours, the bank's, or nobody's."""
    status = str(dispute["status"])
    return "waiting" if status in UNANSWERED_DISPUTE_STATUSES else "closed" if status in CLOSED_DISPUTE_STATUSES else "at_bank"


def time_left(visit: ConsoleRequest, due: object) -> str:
    """How long there is until a moment, in words: days, at last hours."""
    if due is None:
        return visit.say("payments.no_end")
    left = cast(int, due) - visit.now
    if left <= 0:
        return visit.say("payments.too_late")
    if left < ANSWER_DAY:
        return visit.texts.count("payments.hours_left", max(1, int(left // ANSWER_HOUR)))
    return visit.texts.count("payments.days_left", int(left // ANSWER_DAY))


async def show_disputes(visit: ConsoleRequest) -> Response:
    """Which disputes wait for our answer, and until when?"""
    wanted = {"kind": visit.query["kind"]} if visit.query.get("kind") in DISPUTE_KINDS else dict[str, str]()
    after = visit.query.get("after", "")
    found = await look_through(
        visit, "operator_billing_list_disputes", lambda row: wanted.get("kind") in (None, dispute_kind(row)), after=after
    )
    waits = await look_through(
        visit, "operator_billing_list_disputes", lambda row: dispute_kind(row) == "waiting", most=WAITING_SHOWN_AT_ONCE
    )
    waiting = sorted(waits.rows, key=lambda row: cast("int | None", row["evidence_due_by"]) or float("inf"))
    facts: Mapping[str, object] = {
        "disputes": found.rows,
        "waiting": waiting,
        "verdict": disputes_verdict(visit, waiting) if found.rows or waiting else "",
        "kind_of": dispute_kind,
        "left_of": partial(time_left, visit),
        "why_of": partial(code_words, visit, "why"),
        "status_of": partial(code_words, visit, "dispute"),
        "alone": not wanted and not after and await has_no_account(visit, found),
        "wanted": wanted,
        "kinds": DISPUTE_KINDS,
        **page_addresses(visit, wanted, found.further),
    }
    return visit.draw("disputes.html", facts, problem=found.problem)


def disputes_verdict(visit: ConsoleRequest, waiting: Sequence[PaymentRow]) -> str:
    """How many wait for us, how much money that is, and when the first is lost."""
    if not waiting:
        return visit.say("payments.none_waits")
    money = whole_sums(visit.texts, ((cast(int, row["amount"]), str(row["currency"])) for row in waiting))
    return visit.texts.count("payments.waits", len(waiting), money=money, left=time_left(visit, waiting[0]["evidence_due_by"]))


async def show_dispute(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What is disputed, how long have I to answer, and with what do I answer best?"""
    id = str(visit.request.path_params["dispute"])
    dispute = await listed_payment(visit, "operator_billing_list_disputes", id)
    if dispute is None:
        raise NotFound("Your account has no dispute with this id", hint="The page Disputes shows yours")
    charge = await listed_payment(visit, "operator_billing_list_charges", str(dispute["charge"]))
    order = str(charge["order"]) if charge is not None and charge["order"] else ""
    sold = await visit.read("get_sold_order", number=order) if order.startswith("onr_") else None
    first = list(EVIDENCE_BY_REASON.get(str(dispute["reason"]), USUAL_EVIDENCE))
    typed: Mapping[str, str] = visit.form if problem is not None else {}
    others = [name for name in EVIDENCE_FIELDS if name not in first]
    done = visit.query.get("done", "") if problem is None else ""
    facts: Mapping[str, object] = {
        "dispute": dispute,
        "charge": charge,
        "sold": sold.body if sold is not None and sold.problem is None else None,
        "kind": dispute_kind(dispute),
        "left": time_left(visit, dispute["evidence_due_by"]),
        "why": code_words(visit, "why", dispute["reason"]),
        "status": code_words(visit, "dispute", dispute["status"]),
        "first": first,
        "others": others,
        "others_open": any(typed.get(name) for name in others) or (problem is not None and problem.field in others),
        "short": SHORT_EVIDENCE,
        "longest": EVIDENCE_TEXT_LIMIT,
        "longest_together": EVIDENCE_TOTAL_LIMIT,
        "typed": typed,
        "stale": not visit.signed_in_lately,
        "done": visit.say(f"payments.done_{done}") if done in DISPUTE_DONE_WORDS else "",
    }
    return visit.draw("dispute.html", facts, problem=problem)


async def post_dispute(visit: ConsoleRequest) -> Response:
    """Keeps what was typed as a draft, or asks first and sends it to the bank for good; after a sign-in that is not old."""
    id, send, do = str(visit.request.path_params["dispute"]), visit.form.get("send"), visit.form.get("do")
    if do != "again" and (do != "answer" or send not in ("draft", "submit")):
        raise unknown_form()
    evidence, page = filled_fields(visit.form, *EVIDENCE_FIELDS), f"/money/disputes/{id}"
    if do == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again(CONSOLE_PATH + page)
    if send == "submit" and evidence:  # without any, the operation says what is missing
        text = visit.say("payments.submit_text", fields=", ".join(visit.say(f"payments.evidence_{name}") for name in evidence))
        title, button = visit.say("payments.submit_title"), visit.say("payments.submit_button")
        asked = visit.ask_of_ours(title=title, text=text, button=button, back=page)
        if asked is not None:
            return asked
    outcome = await visit.press("operator_billing_submit_dispute_evidence", {"id": id, "submit": send == "submit", **evidence})
    waiting = asked_elsewhere(visit, outcome)
    if waiting is not None:
        return waiting
    if outcome.problem is not None:
        return await show_dispute(visit, money_problem(visit, outcome.problem))
    return visit.go(f"{page}?{urlencode({'done': 'submitted' if send == 'submit' else 'draft'})}")


DISPUTE_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/money/disputes": PageRoute(show_disputes),
    "/money/disputes/{dispute}": PageRoute(
        show_dispute, post_dispute, long_fields=frozenset(EVIDENCE_FIELDS).difference(SHORT_EVIDENCE), form_bytes=EVIDENCE_BODY_LIMIT
    ),
}
