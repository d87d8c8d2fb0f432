"""The pages of invoices: which there are and what is owed on them, one of them to the cent with its document, and a new one of a month.

Every amount is the one that the invoice was made with; what the pages add up are such amounts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from operations.invoicing.invoices import InvoiceStatus, LineItem, ShownInvoice, WholeInvoice
from operations.vocabulary import Currency
from registry.clock import DAY_SECONDS
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.request import VERSION_FIELD, ConsoleRequest, PageRead, digest_of
from transports.web.console.shops import differing, typed_cents, typed_whole
from transports.web.pages.calls import CallOutcome, filled_fields
from transports.web.pages.request import PageProblem, problem_of, unknown_form
from transports.web.site import PageRoute

INVOICES_A_PAGE = 50
WALKED_PAGES, WALKED_INVOICES = 10, 100
"""How many pages of the list, and how many invoices of each, are looked through for those that a page is about."""
INVOICE_LINES_A_PAGE = 50
PERIODS_TO_CHOOSE = 24
INVOICE_FILTERS: Mapping[str, str] = {"status": "status", "period": "period_id", "recipient": "recipient"}
"""The fields of the filter bar, and the filters of list_invoices that they are."""
INVOICE_COLUMNS = (
    "id", "invoice_number", "status", "period_id", "recipient_name", "recipient_email", "currency", "subtotal_cents", "tax_cents",
    "platform_fee_cents", "total_cents", "issued_at", "due_at", "paid_at", "created_at",
)  # fmt: skip
"""Of a file: members of the entries of list_invoices."""
OWING_STATES = ("draft", "sent", "paid")
"""The states of an invoice that is to be paid, or was."""
INVOICE_DONE_WORDS = ("created", "edited", "sent", "voided")
RECIPIENT_FIELDS = ("recipient_name", "recipient_email", "notes")
DOCUMENT_HEADERS = ("Content-Disposition", "Content-Security-Policy", "Cache-Control", "Referrer-Policy")


class InvoiceWalk(NamedTuple):
    """Invoices, the newest first. `older` is the last one that was looked at, where there are more behind it."""

    rows: Sequence[ShownInvoice]
    older: str
    problem: PageProblem | None


class OwedMoney(NamedTuple):
    """How many invoices are in a state, and what they come to in each currency, in words."""

    state: str
    invoices: int
    money: str


async def walk_invoices(visit: ConsoleRequest, asked: Mapping[str, str], start: str = "") -> InvoiceWalk:
    """The invoices that are asked for, after the one with the id `start`, as far as a page looks. `asked`: of list_invoices."""
    before, rows, older = len(visit.reads), list[ShownInvoice](), ""
    after: dict[str, object] = {"starting_after": start} if start else {}
    for _ in range(WALKED_PAGES):
        listed = await visit.read("list_invoices", limit=WALKED_INVOICES, **asked, **after)
        if listed.problem is not None:
            return InvoiceWalk(rows, "", listed.problem)
        rows += cast("list[ShownInvoice]", listed.rows)
        older = rows[-1]["id"] if listed.rows and listed.body.get("has_more") else ""
        if not older:
            break
        after = {"starting_after": older}
    del visit.reads[before + 1 :]  # the first of them shows a program how the others are asked
    return InvoiceWalk(rows, older, None)


def summed_money(visit: ConsoleRequest, invoices: Sequence[ShownInvoice]) -> str:
    """The sum of the totals, in words: one for each currency; nothing of none."""
    sums: Counter[str] = Counter()
    for row in invoices:
        sums[row["currency"]] += row["total_cents"]
    return money_words(visit, sums)


def money_words(visit: ConsoleRequest, sums: Mapping[str, int]) -> str:
    """Sums by currency, in minor units, as the reader's language writes them."""
    return ", ".join(visit.texts.money(amount, currency) for currency, amount in sorted(sums.items()))


def owed_by_state(visit: ConsoleRequest, invoices: Sequence[ShownInvoice]) -> list[OwedMoney]:
    """What the invoices of each state come to; a state that none is in is left out, and so are those that are void."""
    found = [(state, [row for row in invoices if row["status"] == state]) for state in OWING_STATES]
    return [OwedMoney(state, len(rows), summed_money(visit, rows)) for state, rows in found if rows]


def named_month(visit: ConsoleRequest, year: int, month: int) -> str:
    return f"{visit.texts.words['format.months'].split()[month - 1]} {year}"


def named_periods(visit: ConsoleRequest, periods: CallOutcome) -> dict[str, str]:
    """The month of each period by its id, in words, the newest first."""
    return {str(row["id"]): named_month(visit, cast(int, row["year"]), cast(int, row["month"])) for row in periods.rows}


def is_overdue(visit: ConsoleRequest, row: ShownInvoice) -> bool:
    """Whether an invoice was to be paid by now, and is not."""
    return row["status"] == "sent" and row["due_at"] is not None and row["due_at"] < visit.now


async def show_invoices(visit: ConsoleRequest) -> Response:
    """Which invoices are there, and what is still owed on them?"""
    wanted = {name: visit.query[name] for name in INVOICE_FILTERS if visit.query.get(name)}
    asked = {INVOICE_FILTERS[name]: value for name, value in wanted.items()}
    if is_csv_asked(visit):
        return await csv_download(visit, "invoices", "list_invoices", INVOICE_COLUMNS, asked)
    start, after = visit.query.get("from", ""), visit.query.get("after", "")
    walk = await walk_invoices(visit, asked, start)
    periods = await visit.read("list_invoice_periods", limit=PERIODS_TO_CHOOSE)
    begin = next((place for place, row in enumerate(walk.rows, 1) if row["id"] == after), 0)
    shown = walk.rows[begin : begin + INVOICES_A_PAGE]
    kept = {**wanted, **({"from": start} if start else {})}
    facts: Mapping[str, object] = {
        "invoices": shown,
        "found": len(walk.rows),
        "owed": owed_by_state(visit, walk.rows),
        "overdue": {row["id"] for row in walk.rows if is_overdue(visit, row)},
        "months": named_periods(visit, periods),
        "states": get_args(InvoiceStatus),
        "wanted": wanted,
        "looked": len(walk.rows),
        "next_page": f"?{urlencode({**kept, 'after': shown[-1]['id']})}" if len(walk.rows) > begin + INVOICES_A_PAGE else "",
        "first_page": f"?{urlencode(wanted)}" if start or after else "",
        "older_page": f"?{urlencode({**wanted, 'from': walk.older})}" if walk.older else "",
    }
    return visit.draw("invoices.html", facts, problem=walk.problem)


def comparable_invoice(invoice: Mapping[str, object]) -> Mapping[str, object]:
    """What of an invoice can change, and what it comes to: what the form that voids it was made from."""
    return {name: invoice[name] for name in ("status", "total_cents", "currency", "due_at", *RECIPIENT_FIELDS)}


def goes_through_processor(invoice: Mapping[str, object], config: CallOutcome) -> bool:
    """Whether the payment processor would mail this draft. What comes to nothing is never handed to it."""
    return bool(invoice["total_cents"]) and config.body.get("payments_connect_status") == "active"


def lacks_recipient(invoice: Mapping[str, object]) -> bool:
    return not (invoice["recipient_name"] and invoice["recipient_email"])


def state_words(visit: ConsoleRequest, invoice: WholeInvoice, config: CallOutcome) -> str:
    """What the state of an invoice means and what happens next, in words."""
    state: str = invoice["status"]
    if state == "draft":
        mailed = goes_through_processor(invoice, config)
        return visit.say("invoices.next_draft_lacks" if mailed and lacks_recipient(invoice) else f"invoices.next_draft_{mailed}")
    if state == "sent":
        return visit.say(f"invoices.next_sent_{bool(invoice['payments_invoice_id'])}")
    return visit.say(f"invoices.next_{state}")


def recipient_words(visit: ConsoleRequest, invoice: ShownInvoice) -> str:
    """The name of who is billed, or their address."""
    return invoice["recipient_name"] or invoice["recipient_email"] or visit.say("invoices.nobody_named")


def invoice_sentence(visit: ConsoleRequest, invoice: WholeInvoice) -> str:
    """Who is asked for how much, for which month, and by when."""
    texts, period = visit.texts, invoice["period"]
    money = texts.money(invoice["total_cents"], invoice["currency"])
    who = recipient_words(visit, invoice)
    sentence = visit.say(
        f"invoices.says_{invoice['status']}", who=who, money=money, month=named_month(visit, period["year"], period["month"])
    )
    if invoice["status"] == "sent" and invoice["due_at"] is not None:
        late = "invoices.overdue_since" if is_overdue(visit, invoice) else "invoices.due_by"
        return f"{sentence} {visit.say(late, day=texts.day(invoice['due_at']))}"
    return sentence


def why_not(visit: ConsoleRequest, invoice: WholeInvoice, config: CallOutcome) -> Mapping[str, str]:
    """Why each button of an invoice is off; empty where the person may press it."""
    state: str = invoice["status"]
    lacking = state == "draft" and goes_through_processor(invoice, config) and lacks_recipient(invoice)
    of_state = "" if state == "draft" else visit.say(f"invoices.is_{state}")
    return {
        "edit": visit.may("update_invoice") or of_state,
        "send": visit.may("update_invoice") or of_state or (visit.say("invoices.lacks_recipient") if lacking else ""),
        "void": visit.may("void_invoice") or (visit.say(f"invoices.no_void_{state}") if state in ("paid", "void") else ""),
        "paid": visit.say(f"invoices.no_paid_{bool(invoice['payments_invoice_id'])}"),
    }


async def show_invoice(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Who is to pay how much for what by this invoice, and what happens next?"""
    id, after = visit.request.path_params["invoice"], visit.query.get("after", "")
    lines: dict[str, object] = {"limit": INVOICE_LINES_A_PAGE, **({"starting_after": after} if after else {})}
    found = await visit.read_together(invoice=PageRead("get_invoice", {"id": id, **lines}), config=PageRead("get_billing_config", {}))
    if found["invoice"].problem is not None:
        return visit.draw("refused.html", {}, problem=found["invoice"].problem)
    visit.reads.append(PageRead("get_invoice_document", {"id": id}))  # the link asks it
    invoice, cursor = cast(WholeInvoice, found["invoice"].body), found["invoice"].next_cursor
    done = visit.query.get("done", "") if visit.request.method != "POST" else ""
    facts: Mapping[str, object] = {
        "invoice": invoice,
        "sentence": invoice_sentence(visit, invoice),
        "next": state_words(visit, invoice, found["config"]),
        "overdue": is_overdue(visit, invoice),
        "off": why_not(visit, invoice, found["config"]),
        "month": named_month(visit, invoice["period"]["year"], invoice["period"]["month"]),
        "due_day": due_day(invoice["due_at"]),
        "pay_page": invoice["payment_url"] if (invoice["payment_url"] or "").startswith(("https://", "http://")) else None,
        "version": found["invoice"].version,
        "shown": digest_of(comparable_invoice(found["invoice"].body)),
        "done": visit.say(f"invoices.done_{done}") if done in INVOICE_DONE_WORDS else "",
        "typed": visit.form if problem is not None and visit.form.get("do") == "edit" else {},
        "next_lines": f"?{urlencode({'after': cursor})}" if cursor else "",
        "first_lines": bool(after),
    }
    return visit.draw("invoice.html", facts, problem=problem)


def due_day(due_at: int | None) -> str:
    """The day to pay by as a field for days has it; empty where none is set."""
    return "" if due_at is None else datetime.fromtimestamp(due_at, UTC).date().isoformat()


async def show_invoice_document(visit: ConsoleRequest) -> Response:
    """The document of an invoice: its PDF, or a draft as a page that is looked at; as the operation gives it."""
    wanted = {"id": visit.request.path_params["invoice"]}
    reply = await visit.context.call(visit, "get_invoice_document", wanted, caller=visit.acting, draws_page=True)
    if reply.refusal is not None:
        return visit.draw("refused.html", {}, problem=problem_of(reply.refusal))
    kept = {name: value for name, value in reply.headers.items() if name in DOCUMENT_HEADERS}
    return Response(reply.body, 200, {**kept, "x-content-type-options": "nosniff"}, reply.media_type)


async def post_invoice(visit: ConsoleRequest) -> Response:
    """Changes what a draft says, sends it, or voids the invoice; none of it where somebody has changed it since it was shown."""
    do = visit.form.get("do", "")
    if do not in ("edit", "send", "void"):
        raise unknown_form()
    now = await visit.read("get_invoice", id=visit.request.path_params["invoice"], limit=1)
    if now.problem is not None:
        return visit.draw("refused.html", {}, problem=now.problem)
    invoice = cast(WholeInvoice, now.body)
    if do == "edit":
        return await edit_draft(visit, invoice)
    return await (send_draft(visit, invoice, now.version) if do == "send" else void_shown_invoice(visit, invoice))


async def edit_draft(visit: ConsoleRequest, now: WholeInvoice) -> Response:
    """Stores what was typed of a draft and differs; a field that was emptied is taken away."""
    try:
        due_at = typed_due(visit.form.get("due_at", ""), now["due_at"])
    except ValueError:
        return await show_invoice(visit, due_problem(visit, PageProblem(400, "")))
    texts = {name: visit.form[name].replace("\r\n", "\n").strip() or None for name in RECIPIENT_FIELDS if name in visit.form}
    changes = differing({**texts, "due_at": due_at}, cast(Mapping[str, object], now))
    outcome = await visit.press("update_invoice", {"id": now["id"], **changes}) if changes else None
    if outcome is not None and outcome.problem is not None:
        problem = outcome.problem
        return await show_invoice(visit, due_problem(visit, problem) if problem.field == "due_at" and problem.status == 400 else problem)
    return visit.go(f"/money/invoices/{now['id']}?done=edited")


def typed_due(day: str, due_at: int | None) -> int | None:
    """The last second of the day that was typed, in UTC; what is set already where it is that day. Raises ValueError where it is none."""
    if day == due_day(due_at):
        return due_at
    if not day:
        return None
    midnight = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    return int(midnight.timestamp()) + DAY_SECONDS - 1


def due_problem(visit: ConsoleRequest, problem: PageProblem) -> PageProblem:
    return replace(problem, text=visit.say("invoices.bad_due"), hint=visit.say("invoices.bad_due_hint"), field="due_at")


async def send_draft(visit: ConsoleRequest, now: WholeInvoice, version: str) -> Response:
    """Asks first, and sends then. One that was sent already, by the same form, is shown as it is.

    A form that was made from another `version` is not asked about: the operation refuses it, and says who has changed the draft.
    """
    page = f"/money/invoices/{now['id']}"
    if now["status"] in ("sent", "paid"):
        return visit.go(f"{page}?done=sent")
    config = await visit.read("get_billing_config")
    mailed, money = goes_through_processor(cast(Mapping[str, object], now), config), visit.texts.money(now["total_cents"], now["currency"])
    text = visit.say(f"invoices.send_question_{mailed}", who=recipient_words(visit, now), email=now["recipient_email"], money=money)
    title = visit.say("invoices.send_title", number=now["invoice_number"])
    fresh = visit.form.get(VERSION_FIELD, version) == version
    asked = visit.ask_of_ours(title=title, text=text, button=visit.say("invoices.send"), back=page) if fresh else None
    if asked is not None:
        return asked
    outcome = await visit.press("update_invoice", {"id": now["id"], "status": "sent"})
    return visit.go(f"{page}?done=sent") if outcome.problem is None else await show_invoice(visit, outcome.problem)


async def void_shown_invoice(visit: ConsoleRequest, now: WholeInvoice) -> Response:
    """Asks first, and voids the invoice for good then."""
    page = f"/money/invoices/{now['id']}"
    if now["status"] == "void":
        return visit.go(f"{page}?done=voided")
    late = visit.changed_since(comparable_invoice(cast(Mapping[str, object], now)))
    if late is not None:
        return await show_invoice(visit, late)
    title = visit.say("invoices.void_title", number=now["invoice_number"])
    who, money = recipient_words(visit, now), visit.texts.money(now["total_cents"], now["currency"])
    text = visit.say(f"invoices.void_question_{now['status']}", who=who, money=money)
    asked = visit.ask_of_ours(title=title, text=text, button=visit.say("invoices.void"), back=page)
    if asked is not None:
        return asked
    outcome = await visit.press("void_invoice", {"id": now["id"]})
    return visit.go(f"{page}?done=voided") if outcome.problem is None else await show_invoice(visit, outcome.problem)


async def show_new_invoice(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Which month of which customer account is billed, to whom, and at what price?"""
    found = await visit.read_together(
        periods=PageRead("list_invoice_periods", {"limit": PERIODS_TO_CHOOSE}),
        accounts=PageRead("list_reseller_accounts", {}),
        config=PageRead("get_billing_config", {}),
    )
    config, accounts = found["config"].body, {str(row["id"]): f"{row['name']} ({row['id']})" for row in found["accounts"].rows}
    for number in (visit.query.get("account", ""), visit.form.get("account_ids", "")):
        if isinstance(typed_whole(number), int):
            accounts.setdefault(number, number)  # one that cannot be read now is chosen all the same, and not the whole month in its place
    facts: Mapping[str, object] = {
        "months": list(named_periods(visit, found["periods"]).items()),
        "accounts": [("", visit.say("invoices.whole_month")), *accounts.items()],
        "config": config,
        "unpriced": not config.get("price_per_gb_cents"),
        "currencies": [(code, code) for code in get_args(Currency)],
        "typed": visit.form if problem is not None else {},
        "chosen": {"period_id": visit.query.get("period", ""), "account_ids": visit.query.get("account", "")},
        "off": visit.may("create_invoice"),
    }
    return visit.draw("invoice_new.html", facts, problem=problem or found["periods"].problem or found["config"].problem)


async def post_new_invoice(visit: ConsoleRequest) -> Response:
    """Makes the draft, once however often its form is sent, and shows it."""
    form, given = visit.form, filled_fields(visit.form, "period_id", "recipient_name", "recipient_email")
    if form.get("account_ids"):
        given["account_ids"] = [typed_whole(form["account_ids"])]
    if form.get("price_per_gb_cents"):
        given |= {"price_per_gb_cents": typed_cents(form["price_per_gb_cents"]), "currency": form.get("currency", "")}
    elif form.get("currency") != (await visit.read("get_billing_config")).body.get("currency"):
        given |= filled_fields(form, "currency")
    asked = None if form.get("account_ids") else await ask_before_second_invoice(visit, form.get("period_id", ""))
    if asked is not None:
        return asked
    outcome = await visit.press("create_invoice", {"period_id": "", **given})
    if outcome.problem is not None:
        return await show_new_invoice(visit, new_invoice_problem(visit, outcome.problem))
    return visit.go(f"/money/invoices/{outcome.body['id']}?done=created")


async def ask_before_second_invoice(visit: ConsoleRequest, period: str) -> Response | None:
    """The question before a whole month is billed of which there is an invoice already; None where there is none, or the person is sure."""
    walk = await walk_invoices(visit, {"period_id": period} if period else {})
    others = [row for row in walk.rows if row["period_id"] == period and row["status"] != "void"]
    if not others:
        return None
    months = named_periods(visit, await visit.read("list_invoice_periods", limit=PERIODS_TO_CHOOSE))
    title = visit.say("invoices.again_title", month=months.get(period, period))
    text, button = visit.texts.count("invoices.again", len(others)), visit.say("invoices.create")
    return visit.ask_of_ours(title=title, text=text, button=button, back=f"/money/invoices?{urlencode({'period': period})}")


def new_invoice_problem(visit: ConsoleRequest, problem: PageProblem) -> PageProblem:
    """The problem beside the field of the form, in the page's words where a person types otherwise than a program does."""
    field = problem.field.partition("[")[0].partition(".")[0]
    if field == "price_per_gb_cents" and problem.code != "invoice_too_large":
        return replace(problem, text=visit.say("invoices.bad_price"), hint=visit.say("invoices.bad_price_hint"), field=field)
    return replace(problem, field=field)


def lines_of_invoice(outcome: CallOutcome) -> Sequence[LineItem]:
    """The lines that one read of an invoice brought."""
    return cast(WholeInvoice, outcome.body)["line_items"]


INVOICE_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/money/invoices": PageRoute(show_invoices),
    "/money/invoices/new": PageRoute(show_new_invoice, post_new_invoice),
    "/money/invoices/{invoice}": PageRoute(show_invoice, post_invoice, long_fields=frozenset({"notes"})),
    "/money/invoices/{invoice}/document": PageRoute(show_invoice_document),
}
