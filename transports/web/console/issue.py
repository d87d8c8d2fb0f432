"""The pages Issue: what was asked for, what is sold by name, how many eSIMs are left, and the ledger, where people settle what is unknown.

No page shows what installs an eSIM. Pages that wait for the charging system stand behind links that say so.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from markupsafe import Markup, escape
from starlette.responses import Response

from operations.ledger.intents import Intent, IntentStatus
from operations.subscribers.issuance_list import ListedIssuance
from operations.vocabulary import Currency
from registry.clock import rfc3339_utc
from storage.issuance import IssuanceState
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.payments import day_of_form
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.console.shops import UNCOMPARED_PLAN, WRONG_PLAN, typed_cents, typed_countries, typed_whole
from transports.web.pages.calls import filled_fields
from transports.web.pages.request import PageProblem, unknown_form
from transports.web.site import PageRoute

INTENTS_A_PAGE, PRODUCTS_A_PAGE, ISSUANCES_A_PAGE, PLANS_TO_CHOOSE = 25, 25, 25, 100
UNSETTLED_SHOWN = 20
"""Of each state that somebody has to look at."""
WAITING_STATES: Sequence[IssuanceState] = ("manual_reconciliation_required", "rollback_unknown", "outcome_unknown")
INTENT_FILTERS, LEDGER_FILTERS = ("status", "from", "to", "label"), ("state", "iccid")
LEDGER_COLUMNS = (
    "idempotency_key", "state", "iccid", "account_id", "package_template_id", "package_id", "intent", "order", "error", "settle_from",
    "created_at", "updated_at",
)  # fmt: skip
"""Of files: members of the entries of list_issuances, which names a row by its idempotency_key."""
TEST_PLAN = "test_"
INTENT_ERRORS = ("OUTCOME_UNKNOWN", "MANUAL_RECONCILIATION_REQUIRED", "package_adapting", "package_not_adapted", "no_inventory", "released")
"""Of an intent: the errors that have a sentence of their own."""
ISSUE_DONE = ("issued", "made", "settled")


def done_on(visit: ConsoleRequest) -> str:
    """What the form before this page has done."""
    done = visit.query.get("done", "") if visit.request.method == "GET" else ""
    return visit.say(f"issue.done_{done}") if done in ISSUE_DONE else ""


def page_asked(visit: ConsoleRequest, limit: int, **wanted: object) -> Mapping[str, object]:
    """Which part of a list the address asks for."""
    after = visit.query.get("after", "")
    return {"limit": limit, **wanted, **({"starting_after": after} if after else {})}


def next_address(visit: ConsoleRequest, last: str, wanted: Mapping[str, object] | None = None) -> str:
    """Where the following page of a list is, with its filters; nothing without a last row."""
    return f"{visit.path}?{urlencode({**(wanted or {}), 'after': last})}" if last else ""


def intent_sentence(visit: ConsoleRequest, intent: Intent) -> str:
    """Where an intent stands, in a sentence of the reader's language."""
    error = intent["error"]
    if intent.get("rolled_back"):
        return visit.say("issue.is_rolled_back")
    if error is not None and error["code"] in INTENT_ERRORS:
        return visit.say(f"issue.is_{error['code'].lower()}")
    return visit.say(f"issue.is_{intent['status']}")


async def show_intents(visit: ConsoleRequest) -> Response:
    """Which eSIMs were asked for by name, and which of them are not there yet?"""
    wanted = {name: visit.query[name] for name in INTENT_FILTERS if visit.query.get(name)}
    days = {"since": day_of_form(wanted.get("from")), "until": day_of_form(wanted.get("to"), later=1)}
    labelled = {"metadata_value": wanted["label"].strip()} if wanted.get("label", "").strip() else {}
    asked = {**filled_fields(wanted, "status"), **labelled, **{name: moment for name, moment in days.items() if moment is not None}}
    found = await visit.read("list_connectivity_intents", **page_asked(visit, INTENTS_A_PAGE, **asked, activation_codes=False))
    intents = cast("list[Intent]", found.rows)
    facts: Mapping[str, object] = {
        "intents": intents,
        "sentences": {intent["id"]: intent_sentence(visit, intent) for intent in intents},
        "open": sum(intent["status"] in ("requires_plan", "processing") for intent in intents),
        "statuses": get_args(IntentStatus),
        "wanted": wanted,
        "first_page": f"/issue?{urlencode(wanted)}" if wanted else "/issue",
        "after": visit.query.get("after", ""),
        "next_page": next_address(visit, intents[-1]["id"] if intents and found.body.get("has_more") else "", wanted),
    }
    return visit.draw("issue_intents.html", facts, problem=found.problem)


async def show_new_esim(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Which plan is an eSIM issued for, and what does that cost me?"""
    found = await visit.read("list_connectivity_plans", limit=PLANS_TO_CHOOSE)
    facts: Mapping[str, object] = {
        "plans": found,
        "chosen": visit.form.get("plan", "") or visit.query.get("plan", ""),
        "typed": visit.form if problem is not None else {},
    }
    return visit.draw("issue_new.html", facts, problem=problem)


async def post_new_esim(visit: ConsoleRequest) -> Response:
    """Issues an eSIM; a live one after a question, since it comes out of the stock."""
    plan, note = visit.form.get("plan", ""), visit.form.get("note", "")
    if plan and not plan.startswith(TEST_PLAN):
        title, text = visit.say("issue.sure_title"), visit.say("issue.sure_text", plan=plan)
        question = visit.ask_of_ours(title=title, text=text, button=visit.say("issue.sure_button"), back="/issue/new")
        if question is not None:
            return question
    arguments = {**filled_fields(visit.form, "plan"), **({"metadata": {"note": note}} if note else {})}
    outcome = await visit.press("create_connectivity_intent", arguments)
    if outcome.problem is not None:
        return await show_new_esim(visit, outcome.problem)
    return visit.go(f"/issue/intents/{outcome.body['id']}?done=issued")


async def show_intent(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What is this eSIM for, where does it stand, and does it need me?"""
    found = await visit.read("get_connectivity_intent", id=visit.request.path_params["intent"])
    if found.problem is not None:
        return visit.draw("refused.html", {}, problem=found.problem)
    intent = cast(Intent, found.body)
    waits = intent["status"] == "requires_plan"
    facts: Mapping[str, object] = {
        "intent": {name: value for name, value in intent.items() if name != "esim"},
        "iccid": intent["esim"]["iccid"] if intent["esim"] is not None else "",
        "sentence": intent_sentence(visit, intent),
        "plans": await visit.read("list_connectivity_plans", limit=PLANS_TO_CHOOSE) if waits else None,
        "done": done_on(visit),
        "typed": visit.form if problem is not None else {},
    }
    return visit.draw("issue_intent.html", facts, problem=problem)


async def post_intent(visit: ConsoleRequest) -> Response:
    """Gives an intent that waits its plan, after a question: its eSIM is issued at once."""
    intent, plan = visit.request.path_params["intent"], visit.form.get("plan", "")
    if visit.form.get("do") != "confirm":
        raise unknown_form()
    title, text = visit.say("issue.sure_title"), visit.say("issue.sure_text", plan=plan)
    question = visit.ask_of_ours(title=title, text=text, button=visit.say("issue.sure_button"), back=f"/issue/intents/{intent}")
    if question is not None:
        return question
    outcome = await visit.press("confirm_connectivity_intent", {"id": intent, "plan": plan})
    if outcome.problem is not None:
        return await show_intent(visit, outcome.problem)
    return visit.go(f"/issue/intents/{intent}?done=issued")


class ProductCheck(NamedTuple):
    """A product, and whether its template gives what it promises now: right, wrong or unknown; `codes` say how the two differ."""

    product: Mapping[str, object]
    kind: str
    codes: Sequence[str]


def check_product(product: Mapping[str, object]) -> ProductCheck:
    codes = [each["code"] for each in cast("list[dict[str, str]]", product.get("warnings", []))]
    kind = "wrong" if not WRONG_PLAN.isdisjoint(codes) else "right" if UNCOMPARED_PLAN.isdisjoint(codes) else "unknown"
    return ProductCheck(product, kind, codes)


async def show_products(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Which plans of our own can be issued, and does the template of each give what it promises now?"""
    found = await visit.read("list_connectivity_products", **page_asked(visit, PRODUCTS_A_PAGE))
    checks = [check_product(row) for row in found.rows]
    facts: Mapping[str, object] = {
        "checks": checks,
        "wrong": sum(check.kind == "wrong" for check in checks),
        "unknown": sum(check.kind == "unknown" for check in checks),
        "currencies": [(code, code) for code in get_args(Currency)],
        "after": visit.query.get("after", ""),
        "next_page": next_address(visit, str(found.rows[-1]["id"]) if found.rows and found.body.get("has_more") else ""),
        "typed": visit.form if problem is not None else {},
    }
    return visit.draw("issue_products.html", facts, problem=problem or found.problem)


async def post_products(visit: ConsoleRequest) -> Response:
    """Defines a product. It cannot be changed later, and the page says so beside the button."""
    numbers = {name: typed_whole(visit.form.get(name, "")) for name in ("data_mb", "validity_days", "package_template_id")}
    given = {
        **filled_fields(visit.form, "name", "currency"),
        **numbers,
        "countries": typed_countries(visit.form.get("countries", "")),
        "price_cents": typed_cents(visit.form.get("price_cents", "")),
        "adapt": "adapt" in visit.form,
    }
    outcome = await visit.press("create_connectivity_product", given)
    if outcome.problem is not None:
        field = outcome.problem.field.partition(".")[0]
        return await show_products(visit, PageProblem(outcome.problem.status, outcome.problem.text, outcome.problem.hint, field))
    return visit.go(f"/issue/products/{outcome.body['id']}?done=made")


async def show_product(visit: ConsoleRequest) -> Response:
    """What does this product promise, and does its template stand to it now?"""
    found = await visit.read("get_connectivity_product", id=visit.request.path_params["product"])
    if found.problem is not None:
        return visit.draw("refused.html", {}, problem=found.problem)
    return visit.draw("issue_product.html", {"check": check_product(found.body), "done": done_on(visit)})


async def show_stock(visit: ConsoleRequest) -> Response:
    """How many eSIMs are left in each account, and for how many days?"""
    count_now = visit.query.get("count") == "now"
    levels = await visit.read("get_alerts")
    rows = cast("list[dict[str, object]]", levels.body.get("levels", [])) if levels.problem is None else []
    stock = sorted((row for row in rows if row["kind"] == "stock"), key=lambda row: (row["days_left"] is None, row["days_left"] or 0.0))
    days = [cast(float, row["days_left"]) for row in stock if row["days_left"] is not None]
    known: Mapping[str, object] = {
        "levels": levels,
        "stock": stock,
        "first_end": min(days, default=None),
        "settings": levels.body.get("settings", {}),
    }

    async def counted() -> Response:
        return visit.draw("issue_stock.html", {**known, "counted": await visit.read("fleet_health") if count_now else None})

    return await (visit.draw_late("issue_stock.html", known, counted) if count_now else counted())


class WaitingIssuance(NamedTuple):
    """A row that somebody has to look at, and why it cannot be settled here now; empty: it can."""

    row: ListedIssuance
    why_not: str


def waiting_issuance(visit: ConsoleRequest, row: ListedIssuance) -> WaitingIssuance:
    if row["settle_from"] is None:
        return WaitingIssuance(row, visit.say("issue.only_operators"))
    early = rfc3339_utc(visit.now) < row["settle_from"]
    told = Markup(escape(visit.texts.words["issue.too_early"])).format(moment=visit.moment(row["settle_from"]))
    return WaitingIssuance(row, told if early else "")


async def show_ledger(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Of which eSIMs does nobody know whether they were drawn, and what became of all the others?"""
    wanted = {name: visit.query[name] for name in LEDGER_FILTERS if visit.query.get(name)}
    if is_csv_asked(visit) and problem is None:
        return await csv_download(visit, "issuances", "list_issuances", LEDGER_COLUMNS, wanted, named_by="idempotency_key")
    found = await visit.read_together(
        rows=PageRead("list_issuances", page_asked(visit, ISSUANCES_A_PAGE, **wanted)),
        **{state: PageRead("list_issuances", {"state": state, "limit": UNSETTLED_SHOWN}) for state in WAITING_STATES},
    )
    rows = cast("list[ListedIssuance]", found["rows"].rows)
    unsettled = [waiting_issuance(visit, cast(ListedIssuance, row)) for state in WAITING_STATES for row in found[state].rows]
    facts: Mapping[str, object] = {
        "rows": rows,
        "waiting": [each for each in unsettled if not each.why_not or each.row["state"] != "outcome_unknown"],
        "looking": [each for each in unsettled if each.why_not and each.row["state"] == "outcome_unknown"],
        "more_waiting": any(found[state].body.get("has_more") for state in WAITING_STATES),
        "states": get_args(IssuanceState),
        "wanted": wanted,
        "after": visit.query.get("after", ""),
        "first_page": f"/issue/ledger?{urlencode(wanted)}" if wanted else "/issue/ledger",
        "next_page": next_address(visit, rows[-1]["idempotency_key"] if rows and found["rows"].body.get("has_more") else "", wanted),
        "done": done_on(visit),
        "typed": visit.form if problem is not None else {},
    }
    return visit.draw("issue_ledger.html", facts, problem=problem or found["rows"].problem)


async def post_ledger(visit: ConsoleRequest) -> Response:
    """Asks first, and says then for good whether an eSIM was drawn."""
    if visit.form.get("do") != "settle":
        raise unknown_form()
    said = {**filled_fields(visit.form, "outcome", "iccid"), "reason": visit.form.get("reason", "")}
    arguments = {"idempotencyKey": visit.form.get("about", ""), **said}
    outcome = await visit.press("settle_issuance", arguments)
    title, button = visit.say("issue.settle_title"), visit.say("issue.settle_button")
    question = visit.ask_first(outcome, title=title, button=button, back="/issue/ledger")
    if question is not None:
        return question
    if outcome.problem is not None:
        return await show_ledger(visit, outcome.problem)
    return visit.go("/issue/ledger?done=settled")


ISSUE_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/issue": PageRoute(show_intents),
    "/issue/new": PageRoute(show_new_esim, post_new_esim),
    "/issue/intents/{intent}": PageRoute(show_intent, post_intent),
    "/issue/products": PageRoute(show_products, post_products),
    "/issue/products/{product}": PageRoute(show_product),
    "/issue/stock": PageRoute(show_stock),
    "/issue/ledger": PageRoute(show_ledger, post_ledger),
}
