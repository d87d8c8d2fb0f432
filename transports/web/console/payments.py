"""The pages of payments: what came in, what went back, and the form that gives a charge back.

The lists of payments have no filters of their own, so a page looks through the newest of them, and says where it stopped.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import NamedTuple, cast
from urllib.parse import urlencode

from starlette.responses import Response

from operations.languages import LanguageTexts
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.request import ONCE_FIELD, SURE_FIELD, ConsoleRequest, minor_money
from transports.web.pages.calls import CallOutcome, filled_fields
from transports.web.pages.layout import minor_places
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute

PaymentRow = Mapping[str, object]
PAYMENTS_A_PAGE = 25
PAYMENTS_READ_AT_ONCE = 100
PAYMENT_PAGES_LOOKED_THROUGH = 5
"""Pages of a hundred that are looked through for what a filter asks."""
CHARGE_FILTERS = ("state", "paid", "from", "to")
CHARGE_COLUMNS = (
    "id", "created", "status", "amount", "amount_refunded", "currency", "disputed", "failure_code", "order", "invoice", "application_fee",
    "payment_intent", "refunds", "disputes",
)  # fmt: skip
REFUND_COLUMNS = ("id", "created", "status", "amount", "currency", "charge", "payment_intent", "reason", "failure_reason")
"""Of files: members of the entries of operator_billing_list_charges and operator_billing_list_refunds."""
CHARGE_STATES = ("succeeded", "partly_refunded", "refunded", "disputed", "failed", "pending")
CHARGE_PURPOSES = ("order", "invoice", "other")
REFUND_STATES = ("succeeded", "pending", "requires_action", "failed", "canceled")
REFUND_REASONS = ("requested_by_customer", "duplicate", "fraudulent")
OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
FEE_SECONDS = 60
"""A fee is as old as its charge, to the minute."""
TYPED_AMOUNT = re.compile(r"([0-9]{1,9})(?:[.,]([0-9]{1,3}))?", re.ASCII)


def typed_minor(text: str, currency: str) -> int | str:
    """An amount as people type it, in minor units; what is none stays as it is, and is refused."""
    found, places = TYPED_AMOUNT.fullmatch(text), minor_places(currency)
    if found is None or len(found[2] or "") > places:
        return text
    return int(found[1] + (found[2] or "").ljust(places, "0"))


def whole_sums(texts: LanguageTexts, parts: Iterable[tuple[int, str]]) -> str:
    """Amounts added up by currency, the largest first; a word where there is nothing."""
    sums: dict[str, int] = {}
    for amount, currency in parts:
        sums[currency] = sums.get(currency, 0) + amount
    found = [minor_money(texts, amount, currency) for currency, amount in sorted(sums.items(), key=lambda each: -each[1]) if amount]
    return " + ".join(found) or texts.say("payments.nothing")


def held_sums(texts: LanguageTexts, amounts: Sequence[PaymentRow]) -> str:
    """What a balance holds, currency by currency."""
    return whole_sums(texts, ((cast(int, each["amount"]), str(each["currency"])) for each in amounts))


def code_words(visit: ConsoleRequest, kind: str, code: object) -> str:
    """The words for a code of the payment processor; the code in plain letters where there are none."""
    return visit.texts.words.get(f"payments.{kind}_{code}", str(code).replace("_", " ").replace(".", " "))


class FoundPayments(NamedTuple):
    """The rows that fit, after which one looking goes on (empty where nothing is left), and why nothing could be read."""

    rows: Sequence[PaymentRow]
    further: str = ""
    problem: PageProblem | None = None


async def look_through(
    visit: ConsoleRequest,
    operation: str,
    fits: Callable[[PaymentRow], bool],
    *,
    after: str = "",
    most: int = PAYMENTS_A_PAGE,
    oldest: float = 0,
    only: bool = False,
) -> FoundPayments:
    """At most `most` rows of a list that fit, the newest first, of the newest five hundred behind `after`. `oldest`: Unix seconds.

    `only`: there are no more of them than `most`, so that nothing is looked for behind the last.
    """
    rows, before = list[PaymentRow](), len(visit.reads)
    for _ in range(PAYMENT_PAGES_LOOKED_THROUGH):
        listed = await visit.read(operation, limit=PAYMENTS_READ_AT_ONCE, **({"starting_after": after} if after else {}))
        del visit.reads[before + 1 :]
        if listed.problem is not None:
            return FoundPayments(rows, problem=listed.problem)
        for row in listed.rows:
            if cast(int, row["created"]) < oldest:
                return FoundPayments(rows)
            if fits(row):
                if len(rows) == most:
                    return FoundPayments(rows, after)
                rows.append(row)
                if only and len(rows) == most:
                    return FoundPayments(rows)
            after = str(row["id"])
        if not listed.body.get("has_more"):
            return FoundPayments(rows)
    return FoundPayments(rows, after)


async def listed_payment(visit: ConsoleRequest, operation: str, id: str) -> PaymentRow | None:
    """The row of a list with this id; None for one that is not among the newest five hundred."""
    found = await look_through(visit, operation, lambda row: row["id"] == id, most=1, only=True)
    return found.rows[0] if found.rows else None


async def has_no_account(visit: ConsoleRequest, found: FoundPayments) -> bool:
    """Whether a list is empty because nobody can pay us yet. What has rows is not asked about."""
    if found.rows or found.further or found.problem is not None:
        return False
    return (await visit.read("operator_billing_connect_status")).body.get("status") == "not_connected"


def page_addresses(visit: ConsoleRequest, wanted: Mapping[str, str], further: str) -> Mapping[str, str]:
    """The addresses of the first page and of the next one, with the filters; empty where there is none."""
    return {
        "first_page": f"?{urlencode(wanted)}" if visit.query.get("after") else "",
        "next_page": f"?{urlencode({**wanted, 'after': further})}" if further else "",
    }


def charge_state(charge: PaymentRow) -> str:
    """Where a charge stands, in one word."""
    if charge["status"] != "succeeded":
        return str(charge["status"])
    if charge["disputed"]:
        return "disputed"
    back = cast(int, charge["amount_refunded"])
    return "succeeded" if not back else "refunded" if back >= cast(int, charge["amount"]) else "partly_refunded"


def charge_purpose(charge: PaymentRow) -> str:
    return "order" if charge["order"] else "invoice" if charge["invoice"] else "other"


def day_of_form(text: str | None, *, later: int = 0) -> float | None:
    """The first moment of a day of a form, or of the one that is `later` days after it; None where it is no day."""
    try:
        return (datetime.combine(date.fromisoformat(text or ""), datetime.min.time(), UTC) + timedelta(days=later)).timestamp()
    except (ValueError, OverflowError):
        return None


async def show_charges(visit: ConsoleRequest) -> Response:
    """What came in, and is anything wrong with it?"""
    wanted = {name: visit.query[name] for name in CHARGE_FILTERS if visit.query.get(name)}
    since, until = day_of_form(wanted.get("from")), day_of_form(wanted.get("to"), later=1)

    def fits(row: PaymentRow) -> bool:
        created = cast(int, row["created"])
        shown = wanted.get("state") in (None, charge_state(row)) and wanted.get("paid") in (None, charge_purpose(row))
        return shown and created >= (since or 0) and (until is None or created < until)

    if is_csv_asked(visit):
        return await csv_download(visit, "charges", "operator_billing_list_charges", CHARGE_COLUMNS, {}, keep=fits)
    after = visit.query.get("after", "")
    found = await look_through(visit, "operator_billing_list_charges", fits, after=after, oldest=since or 0)
    balance = await visit.read("operator_billing_balance") if not wanted and not after else None
    facts: Mapping[str, object] = {
        "charges": found.rows,
        "verdict": charges_verdict(visit, found.rows),
        "state_of": charge_state,
        "fees": await fees_of(visit, found.rows),
        "balance": balance,
        "sums": partial(held_sums, visit.texts),
        "alone": not wanted and not after and await has_no_account(visit, found),
        "wanted": wanted,
        "why_failed": partial(code_words, visit, "failure"),
        "states": CHARGE_STATES,
        "purposes": CHARGE_PURPOSES,
        **page_addresses(visit, wanted, found.further),
    }
    return visit.draw("charges.html", facts, problem=found.problem)


def charges_verdict(visit: ConsoleRequest, charges: Sequence[PaymentRow]) -> str:
    """What the charges of a page come to, in sentences; empty where there are none."""
    if not charges:
        return ""
    paid = [row for row in charges if row["status"] == "succeeded"]
    came, back = (
        whole_sums(visit.texts, ((cast(int, row[name]), str(row["currency"])) for row in paid)) for name in ("amount", "amount_refunded")
    )
    said = [visit.texts.count("payments.came_in", len(charges), paid=came, back=back)]
    for state in ("disputed", "failed"):
        number = sum(charge_state(row) == state for row in charges)
        said += [visit.texts.count(f"payments.of_them_{state}", number)] if number else []
    return " ".join(said)


class ChargeFees(NamedTuple):
    """What the service kept of each charge, minor units by its id, as far as it was found; and why it could not be read."""

    kept: Mapping[str, int]
    problem: PageProblem | None


async def fees_of(visit: ConsoleRequest, charges: Sequence[PaymentRow]) -> ChargeFees:
    """The fees of these charges. Nothing is asked for charges that have none."""
    paid = {str(row["id"]): cast(int, row["created"]) for row in charges if row["application_fee"]}
    if not paid:
        return ChargeFees({}, None)
    found = await look_through(
        visit,
        "operator_billing_list_fees",
        lambda row: row["charge"] in paid,
        most=len(paid),
        oldest=min(paid.values()) - FEE_SECONDS,
        only=True,
    )
    kept = {str(row["charge"]): cast(int, row["amount"]) - cast(int, row["amount_refunded"]) for row in found.rows}
    return ChargeFees(kept, found.problem)


async def show_refunds(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What went back, did it arrive, and how do I give a charge back?"""
    named = visit.form.get("charge", "") if problem is not None else visit.query.get("charge", "")
    wanted = {"state": visit.query["state"]} if visit.query.get("state") in REFUND_STATES else dict[str, str]()

    def fits(row: PaymentRow) -> bool:
        return wanted.get("state") in (None, row["status"])

    if is_csv_asked(visit) and problem is None:
        return await csv_download(visit, "refunds", "operator_billing_list_refunds", REFUND_COLUMNS, {}, keep=fits)
    draw = partial(refunds_page, visit, wanted, named, fits, problem)
    return await (draw() if problem is not None else visit.draw_late("refunds.html", {}, draw))


async def refunds_page(
    visit: ConsoleRequest, wanted: Mapping[str, str], named: str, fits: Callable[[PaymentRow], bool], problem: PageProblem | None
) -> Response:
    """The refunds that fit, and of the charge `named` the form that gives it back. Waits for the payment processor."""
    after = visit.query.get("after", "")
    found = await look_through(visit, "operator_billing_list_refunds", fits, after=after)
    charge = await listed_payment(visit, "operator_billing_list_charges", named) if named else None
    unknown = problem is not None and problem.code == OUTCOME_UNKNOWN
    facts: Mapping[str, object] = {
        "refunds": found.rows,
        "verdict": refunds_verdict(visit, found.rows),
        "named": named,
        "charge": charge,
        "left": refundable_of(charge),
        "reasons": [("", visit.say("payments.no_reason")), *((code, visit.say(f"payments.reason_{code}")) for code in REFUND_REASONS)],
        "typed": visit.form if problem is not None else {},
        "unknown": unknown,
        "form_key": visit.form.get(ONCE_FIELD, "") if unknown else visit.once(),
        "stale": not visit.signed_in_lately,
        "done": visit.query.get("done") == "refunded" and problem is None,
        "alone": not wanted and not after and await has_no_account(visit, found),
        "wanted": wanted,
        "states": REFUND_STATES,
        **page_addresses(visit, wanted, found.further),
    }
    return visit.draw("refunds.html", facts, problem=problem or found.problem)


def refundable_of(charge: PaymentRow | None) -> int | None:
    """What may still be given back of a charge, minor units; None where it is not known."""
    if charge is None:
        return None
    return 0 if charge["status"] != "succeeded" else max(0, cast(int, charge["amount"]) - cast(int, charge["amount_refunded"]))


def refunds_verdict(visit: ConsoleRequest, refunds: Sequence[PaymentRow]) -> str:
    """What the refunds of a page come to, in sentences; empty where there are none."""
    if not refunds:
        return ""
    fell = [row for row in refunds if row["status"] in ("failed", "canceled")]
    made = whole_sums(visit.texts, ((cast(int, row["amount"]), str(row["currency"])) for row in refunds if row not in fell))
    said = visit.texts.count("payments.went_back", len(refunds), back=made)
    return f"{said} {visit.texts.count('payments.did_not_arrive', len(fell))}" if fell else said


async def post_refund(visit: ConsoleRequest) -> Response:
    """Asks first, and gives then back what was asked for, once; whoever signed in long ago signs in again before."""
    do, charge = visit.form.get("do"), visit.form.get("charge", "")
    if do not in ("refund", "again"):
        raise unknown_form()
    here = "/money/refunds?" + urlencode({"charge": charge})
    if do == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again(CONSOLE_PATH + here)
    amount: object = typed_minor(visit.form.get("amount", ""), visit.form.get("currency", ""))
    asked = await ask_before_refund(visit, charge, amount, here)
    if asked is not None:
        return asked
    arguments = {"charge": charge, **filled_fields(visit.form, "currency", "reason"), **({} if amount == "" else {"amount": amount})}
    outcome = await visit.press("operator_billing_create_refund", arguments)
    title, button = visit.say("payments.refund_title"), visit.say("payments.refund_button")
    waiting = asked_elsewhere(visit, outcome) or visit.ask_first(outcome, title=title, button=button, back=here)
    if waiting is not None:
        return waiting
    if outcome.problem is not None:
        return await show_refunds(visit, money_problem(visit, outcome.problem))
    return visit.go(f"{here}&done=refunded")


async def ask_before_refund(visit: ConsoleRequest, id: str, amount: object, back: str) -> Response | None:
    """The question with what is lost, or the page with an amount that cannot go back; None once the person has pressed its button."""
    if visit.form.get(SURE_FIELD) == "yes":
        return None
    charge = await listed_payment(visit, "operator_billing_list_charges", id)
    left = refundable_of(charge)
    # Nothing typed is all that is left; a nought that was typed is an amount, and a wrong one.
    if amount != "" and (not isinstance(amount, int) or not amount or (left is not None and amount > left)):
        return await show_refunds(visit, wrong_amount(visit, "payments.refund_amount"))
    given, reason = amount or left, visit.form.get("reason", "")
    currency = visit.form.get("currency", "") if charge is None else str(charge["currency"])
    whole = visit.say("shared.unknown") if charge is None else minor_money(visit.texts, cast(int, charge["amount"]), currency)
    text = visit.say(
        "payments.refund_text",
        amount=minor_money(visit.texts, given, currency) if isinstance(given, int) else visit.say("payments.all_left"),
        whole=whole,
        charge=id,
        reason=visit.say(f"payments.reason_{reason}") if reason in REFUND_REASONS else visit.say("payments.no_reason"),
    )
    title, button = visit.say("payments.refund_title"), visit.say("payments.refund_button")
    return visit.ask_of_ours(title=title, text=text, button=button, back=back)


def wrong_amount(visit: ConsoleRequest, hint: str) -> PageProblem:
    """The problem of an amount that is none, or too large; `hint`: the text on which amounts are taken."""
    return PageProblem(400, visit.say("payments.wrong_amount"), visit.say(hint), "amount")


def asked_elsewhere(visit: ConsoleRequest, outcome: CallOutcome) -> Response | None:
    """The way to the page of approvals, where a person has to approve the call; None where nobody has to."""
    if outcome.problem is None or outcome.problem.code != "approval_required":
        return None
    approval = cast(Mapping[str, object], outcome.body["approval"])
    return visit.go(f"/approvals?{urlencode({'approval': str(approval['id'])})}")


def money_problem(visit: ConsoleRequest, problem: PageProblem, amounts: str = "payments.refund_amount") -> PageProblem:
    """A problem in words for people, where the operation's are for programs. `amounts`: the text on which amounts are taken."""
    if problem.code == OUTCOME_UNKNOWN:
        return replace(problem, text=visit.say("payments.unknown"), hint=visit.say("payments.unknown_hint"))
    if problem.code == "payments_not_connected":
        return replace(problem, text=visit.say("payments.no_account"), hint=visit.say("payments.no_account_hint"))
    if problem.field == "amount":
        return replace(problem, text=visit.say("payments.wrong_amount"), hint=visit.say(amounts))
    return problem


PAYMENT_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/money/charges": PageRoute(show_charges),
    "/money/refunds": PageRoute(show_refunds, post_refund),
}
