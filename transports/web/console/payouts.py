"""The page of payouts: what goes to our bank and when, a payout by hand, and the schedule of the others."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast, get_args

from starlette.responses import Response

from clients.payments.records import PayoutInterval, Weekday
from transports.web.console.payments import (
    OUTCOME_UNKNOWN,
    PaymentRow,
    asked_elsewhere,
    has_no_account,
    held_sums,
    look_through,
    money_problem,
    page_addresses,
    typed_minor,
    whole_sums,
    wrong_amount,
)
from transports.web.console.request import ONCE_FIELD, ConsoleRequest, PageRead, digest_of, minor_money
from transports.web.console.shops import typed_whole
from transports.web.pages.calls import CallOutcome
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute

PAYOUT_STATES = ("pending", "in_transit", "paid", "failed", "canceled")
PAYOUT_FAILURES = ("failed", "canceled")
PAYOUT_DONE_WORDS = ("paid", "scheduled")
SCHEDULE_PARTS = ("interval", "weekday", "month_day")


async def show_payouts(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What is paid out to our bank, did it arrive, and when is the next?"""
    draw = partial(payouts_page, visit, problem)
    return await (draw() if problem is not None else visit.draw_late("payouts.html", {}, draw))


async def payouts_page(visit: ConsoleRequest, problem: PageProblem | None) -> Response:
    """The payouts, with both forms. Waits for the payment processor."""
    wanted = {"state": visit.query["state"]} if visit.query.get("state") in PAYOUT_STATES else dict[str, str]()
    after = visit.query.get("after", "")
    found = await look_through(
        visit, "operator_billing_list_payouts", lambda row: wanted.get("state") in (None, row["status"]), after=after
    )
    alone = not wanted and not after and await has_no_account(visit, found)
    asked = {} if alone else {"balance": "operator_billing_balance", "account": "operator_billing_connect_status"}
    asked |= {} if alone else {"schedule": "operator_billing_get_payout_schedule"}
    read = await visit.read_together(**{name: PageRead(operation, {}) for name, operation in asked.items()})
    do = visit.form.get("do", "") if problem is not None else ""
    unknown = problem is not None and problem.code == OUTCOME_UNKNOWN
    facts: Mapping[str, object] = {
        "payouts": found.rows,
        "verdict": "" if alone else payouts_verdict(visit, found.rows, read["schedule"]),
        "alone": alone,
        "read": read,
        "sums": partial(held_sums, visit.texts),
        "why_off": "" if alone else why_no_payout(visit, read["account"]),
        "currency": "" if alone else first_currency(read["balance"], read["account"]),
        "do": do,
        "typed": visit.form if do == "pay" else {},
        "chosen": schedule_shown(visit, read.get("schedule"), typed=do == "schedule"),
        "shown": "" if alone else digest_of(schedule_parts(read["schedule"].body)),
        "intervals": [(code, visit.say(f"payouts.interval_{code}")) for code in get_args(PayoutInterval)],
        "weekdays": [("", "–"), *((code, visit.say(f"payouts.{code}")) for code in get_args(Weekday))],
        "unknown": unknown,
        "form_key": visit.form.get(ONCE_FIELD, "") if unknown else visit.once(),
        "stale": not visit.signed_in_lately,
        "done": visit.query.get("done", "") if problem is None and visit.query.get("done") in PAYOUT_DONE_WORDS else "",
        "wanted": wanted,
        "states": PAYOUT_STATES,
        **page_addresses(visit, wanted, found.further),
    }
    return visit.draw("payouts.html", facts, problem=problem or found.problem)


def payouts_verdict(visit: ConsoleRequest, payouts: Sequence[PaymentRow], schedule: CallOutcome) -> str:
    """What the payouts of a page come to, and when the next is made, in sentences."""
    fell = [row for row in payouts if row["status"] in PAYOUT_FAILURES]
    said: list[str] = []
    if payouts:
        sums = whole_sums(visit.texts, ((cast(int, row["amount"]), str(row["currency"])) for row in payouts if row not in fell))
        said.append(visit.texts.count("payouts.went_out", len(payouts), money=sums))
    said += [visit.texts.count("payouts.came_back", len(fell))] if fell else []
    if schedule.problem is None:
        said.append(schedule_words(visit, schedule.body))
    return " ".join(said)


def schedule_words(visit: ConsoleRequest, schedule: Mapping[str, object]) -> str:
    """When the account is paid out by itself, in a sentence."""
    weekday = visit.say(f"payouts.{schedule['weekday']}") if schedule["weekday"] else ""
    return visit.say(f"payouts.by_{schedule['interval']}", weekday=weekday, day=schedule["month_day"])


def why_no_payout(visit: ConsoleRequest, account: CallOutcome) -> str:
    """Why nothing can be paid out by hand now; empty where it can."""
    refused = visit.may("operator_billing_create_manual_payout")
    if refused or account.problem is not None:
        return refused or cast(PageProblem, account.problem).text
    return "" if account.body["status"] == "active" else visit.say("payouts.not_active")


def first_currency(balance: CallOutcome, account: CallOutcome) -> str:
    """What is most likely paid out: the first currency of the balance, else that of the account."""
    held = cast(Sequence[Mapping[str, str]], balance.body.get("available") or ())
    return held[0]["currency"] if held else str(account.body.get("default_currency", ""))


def schedule_parts(schedule: Mapping[str, object]) -> Mapping[str, object]:
    """What a form shows of the schedule, and changes."""
    return {name: schedule.get(name) for name in SCHEDULE_PARTS}


def schedule_shown(visit: ConsoleRequest, schedule: CallOutcome | None, *, typed: bool) -> Mapping[str, object]:
    """The schedule as the form shows it: as it was typed in one that was refused, else as it is."""
    if typed:
        return {name: visit.form.get(name, "") for name in SCHEDULE_PARTS}
    return {name: value or "" for name, value in schedule_parts({} if schedule is None else schedule.body).items()}


async def post_payouts(visit: ConsoleRequest) -> Response:
    """Pays out by hand, once, or sets when that happens by itself; whoever signed in long ago signs in again before."""
    do = visit.form.get("do")
    if do == "again" or (do in ("pay", "schedule") and not visit.signed_in_lately):
        return await visit.sign_in_again(f"{CONSOLE_PATH}/money/payouts")
    match do:
        case "pay":
            return await pay_out_by_hand(visit)
        case "schedule":
            return await set_schedule(visit)
        case _:
            raise unknown_form()


async def pay_out_by_hand(visit: ConsoleRequest) -> Response:
    """Asks first, and pays then out what was asked for."""
    currency = visit.form.get("currency", "").upper()
    amount, title, button = (
        typed_minor(visit.form.get("amount", ""), currency),
        visit.say("payouts.pay_title"),
        visit.say("payouts.pay_button"),
    )
    if not isinstance(amount, int) or not amount:
        return await show_payouts(visit, wrong_amount(visit, "payouts.amount_hint"))
    text = visit.say("payouts.pay_text", amount=minor_money(visit.texts, amount, currency))
    asked = visit.ask_of_ours(title=title, text=text, button=button, back="/money/payouts")
    if asked is not None:
        return asked
    outcome = await visit.press("operator_billing_create_manual_payout", {"amount": amount, "currency": currency})
    waiting = asked_elsewhere(visit, outcome) or visit.ask_first(outcome, title=title, button=button, back="/money/payouts")
    if waiting is not None:
        return waiting
    if outcome.problem is not None:
        return await show_payouts(visit, money_problem(visit, outcome.problem, "payouts.amount_hint"))
    return visit.go("/money/payouts?done=paid")


async def set_schedule(visit: ConsoleRequest) -> Response:
    """Sets the schedule, unless somebody else has set it since the form was shown."""
    interval, weekday, day = (visit.form.get(name, "") for name in SCHEDULE_PARTS)
    wanted: dict[str, object] = {"interval": interval}
    if interval == "weekly" and weekday:
        wanted["weekday"] = weekday
    if interval == "monthly" and day:
        wanted["month_day"] = typed_whole(day)
    now = await visit.read("operator_billing_get_payout_schedule")
    problem = now.problem
    if problem is None and {name: value for name, value in schedule_parts(now.body).items() if value is not None} != wanted:
        problem = visit.changed_since(schedule_parts(now.body))
        if problem is None:
            outcome = await visit.press("operator_billing_update_payout_schedule", wanted)
            waiting = asked_elsewhere(visit, outcome)
            if waiting is not None:
                return waiting
            problem = outcome.problem
    return visit.go("/money/payouts?done=scheduled") if problem is None else await show_payouts(visit, money_problem(visit, problem))


PAYOUT_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/money/payouts": PageRoute(show_payouts, post_payouts)}
