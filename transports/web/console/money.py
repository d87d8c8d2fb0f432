"""The overview of money: what was used and is to be paid, by month and by customer account; and the page of how the organisation bills.

What an account has used is what its SIMs have, those that are in it now; what it is to pay is what the lines of invoices say of them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from operations.invoicing.call_records import CdrAggregate, InvoicePeriod
from operations.invoicing.invoices import ShownInvoice, WholeInvoice
from operations.vocabulary import Currency
from transports.web.console.charts import ChartPoint
from transports.web.console.invoices import (
    OWING_STATES,
    InvoiceWalk,
    is_overdue,
    lines_of_invoice,
    money_words,
    named_month,
    owed_by_state,
    summed_money,
    walk_invoices,
)
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.console.shops import differing, typed_cents, written_cents
from transports.web.pages.calls import CallOutcome
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute

MONTHS_A_PAGE = 6
FLEET_PAGES, FLEET_PAGE_LINES = 5, 200
"""How far the fleet is looked through for the accounts of a month's SIMs."""
BILLED_INVOICES, BILLED_LINES = 10, 1000
"""How many invoices of a month, and how many lines of each, are summed by account."""
CONFIG_FIELDS = ("currency", "price_per_gb_cents", "invoice_prefix")
"""What somebody can change of how the organisation bills."""


class MonthLine(NamedTuple):
    """A month: the bytes of its records, None where they could not be read, and in words what its invoices come to by their state."""

    period: InvoicePeriod
    name: str
    used: int | None
    money: Mapping[str, str]


@dataclass(slots=True)
class AccountUse:
    """What the SIMs of an account used in a month and, by the state of the invoices, what their lines come to. `id`: None where no account
    is known for them.
    """

    id: int | None
    name: str
    sims: int = 0
    used: int = 0
    billed: int = 0
    """The bytes of its SIMs that invoices bill which are not void."""
    sums: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict[str, Counter[str]](Counter))
    money: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def standing(self) -> str:
        """Whether what it used is billed: no, partly, or whole."""
        return "no" if not self.billed else "partly" if self.billed < self.used else "whole"


class BilledSims(NamedTuple):
    """By SIM, the bytes that a month's invoices bill, and their amounts by state and currency. `whole`: whether all lines were read."""

    bytes: Counter[str]
    amounts: Counter[tuple[str, str, str]]
    whole: bool


class SimAccounts(NamedTuple):
    """The account of each SIM that was found. `whole`: whether the fleet was read to its end, or all of them were found."""

    accounts: Mapping[str, int]
    whole: bool


async def show_money(visit: ConsoleRequest) -> Response:
    """What was used, month by month and by each customer account, and what is it to pay?"""
    after = visit.query.get("after", "")
    page: dict[str, object] = {"limit": MONTHS_A_PAGE, **({"starting_after": after} if after else {})}
    found = await visit.read_together(
        periods=PageRead("list_invoice_periods", page),
        config=PageRead("get_billing_config", {}),
        accounts=PageRead("list_reseller_accounts", {}),
    )
    periods, walk = cast("list[InvoicePeriod]", found["periods"].rows), await walk_invoices(visit, {})
    sums = await month_sums(visit, periods)
    months = [month_line(visit, period, sums[period["id"]], walk) for period in periods]
    chosen = next((month for month in months if month.period["id"] == visit.query.get("month")), months[0] if months else None)
    mine = [row for row in walk.rows if chosen is not None and row["period_id"] == chosen.period["id"]]
    facts: Mapping[str, object] = {
        **found,
        "months": months,
        "chosen": chosen,
        "used_points": used_points(visit, months),
        "money_points": money_points(visit, months, walk, str(found["config"].body.get("currency", ""))),
        "owed": owed_by_state(visit, walk.rows),
        "to_pay": summed_money(visit, [row for row in walk.rows if row["status"] == "sent"]),
        "late": sum(is_overdue(visit, row) for row in walk.rows),
        "older": walk.older,
        "looked": len(walk.rows),
        "mine": mine,
        "overdue": {row["id"] for row in mine if is_overdue(visit, row)},
        "names": {month.period["id"]: month.name for month in months},
        "states": OWING_STATES,
        "next_page": f"?{urlencode({'after': periods[-1]['id']})}" if periods and found["periods"].body.get("has_more") else "",
        "after": after,
        **(await account_facts(visit, sums[chosen.period["id"]], mine, found["accounts"]) if chosen is not None else NO_ACCOUNT_FACTS),
    }
    return visit.draw("money.html", facts, problem=found["periods"].problem or walk.problem)


async def month_sums(visit: ConsoleRequest, periods: Sequence[InvoicePeriod]) -> Mapping[str, CallOutcome]:
    """The records of each month, summed, by the month's period."""
    before = len(visit.reads)
    asked = {each["id"]: PageRead("aggregate_cdr", {"year": each["year"], "month": each["month"]}) for each in periods}
    sums = await visit.read_together(**asked)
    del visit.reads[before + 1 :]  # one of them shows a program how the others are asked
    return sums


def month_line(visit: ConsoleRequest, period: InvoicePeriod, sums: CallOutcome, walk: InvoiceWalk) -> MonthLine:
    mine = [row for row in walk.rows if row["period_id"] == period["id"]]
    money = {state: summed_money(visit, [row for row in mine if row["status"] == state]) for state in OWING_STATES}
    used = None if sums.problem is not None else cast(CdrAggregate, sums.body)["total_bytes"]
    return MonthLine(period, named_month(visit, period["year"], period["month"]), used, money)


def used_points(visit: ConsoleRequest, months: Sequence[MonthLine]) -> list[ChartPoint]:
    """A bar for what each month used, the oldest first."""
    words = [(month.name, month.used or 0) for month in reversed(months)]
    return [ChartPoint(name, used, visit.texts.bytes(used)) for name, used in words]


def money_points(visit: ConsoleRequest, months: Sequence[MonthLine], walk: InvoiceWalk, currency: str) -> list[ChartPoint]:
    """A bar for what the invoices of each month come to in the organisation's `currency`, the oldest first; none where all are 0."""
    sums: Counter[str] = Counter()
    for row in walk.rows:
        if row["status"] in OWING_STATES and row["currency"] == currency:
            sums[row["period_id"]] += row["total_cents"]
    named = [(month.name, sums[month.period["id"]]) for month in reversed(months)]
    if not any(cents for _, cents in named):
        return []
    return [ChartPoint(name, cents, visit.texts.money(cents, currency)) for name, cents in named]


NO_ACCOUNT_FACTS: Mapping[str, object] = {"uses": (), "truncated": False, "fleet_whole": True, "billed_whole": True}


async def account_facts(
    visit: ConsoleRequest, sums: CallOutcome, invoices: Sequence[ShownInvoice], accounts: CallOutcome
) -> Mapping[str, object]:
    """What each customer account used in a month and is to pay for it."""
    if sums.problem is not None:
        return NO_ACCOUNT_FACTS
    month = cast(CdrAggregate, sums.body)
    used = {line["iccid"]: line["bytes_total"] for line in month["data"]}
    billed = await billed_sims(visit, [row for row in invoices if row["status"] != "void"])
    found = await accounts_of_sims(visit, used.keys() | billed.bytes.keys())
    names = {cast(int, row["id"]): str(row["name"]) for row in accounts.rows}
    return {
        "uses": account_uses(visit, used, billed, found.accounts, names),
        "truncated": month["truncated"],
        "fleet_whole": found.whole,
        "billed_whole": billed.whole,
    }


async def billed_sims(visit: ConsoleRequest, invoices: Sequence[ShownInvoice]) -> BilledSims:
    """What these invoices bill, by SIM, as far as a page reads their lines."""
    before = len(visit.reads)
    asked = {row["id"]: PageRead("get_invoice", {"id": row["id"], "limit": BILLED_LINES}) for row in invoices[:BILLED_INVOICES]}
    found, billed = await visit.read_together(**asked), BilledSims(Counter(), Counter(), whole=len(invoices) <= BILLED_INVOICES)
    del visit.reads[before + 1 :]
    for outcome in found.values():
        if outcome.problem is not None:
            billed = billed._replace(whole=False)
            continue
        for line in lines_of_invoice(outcome):
            billed.bytes[line["iccid"]] += line["bytes_total"]
            billed.amounts[line["iccid"], cast(WholeInvoice, outcome.body)["status"], line["currency"]] += line["amount_cents"]
        if outcome.next_cursor is not None:
            billed = billed._replace(whole=False)
    return billed


async def accounts_of_sims(visit: ConsoleRequest, iccids: Collection[str]) -> SimAccounts:
    """The account that each SIM is in now, as the model of the fleet has it."""
    before, found, after = len(visit.reads), dict[str, int](), dict[str, object]()
    for _ in range(FLEET_PAGES):
        page = await visit.read("query_fleet", fields=["account_id"], limit=FLEET_PAGE_LINES, **after)
        found |= {str(row["iccid"]): cast(int, row["account_id"]) for row in page.rows if row["iccid"] in iccids}
        read_to_end = page.next_cursor is None and page.problem is None and not page.body.get("incomplete")
        if page.next_cursor is None or len(found) == len(iccids):
            break
        after = {"starting_after": page.next_cursor}
    else:
        read_to_end = False
    del visit.reads[before + 1 :]
    return SimAccounts(found, whole=read_to_end or len(found) == len(iccids))


def account_uses(
    visit: ConsoleRequest, used: Mapping[str, int], billed: BilledSims, accounts: Mapping[str, int], names: Mapping[int, str]
) -> list[AccountUse]:
    """A row for each account, the one that used most first; SIMs of no known account are the last."""
    rows: dict[int | None, AccountUse] = {}

    def row_of(iccid: str) -> AccountUse:
        id = accounts.get(iccid)
        name = visit.say("money.no_account") if id is None else names.get(id, str(id))
        return rows.setdefault(id, AccountUse(id, name))

    for iccid, count in used.items():
        row = row_of(iccid)
        row.sims, row.used = row.sims + 1, row.used + count
    for iccid, count in billed.bytes.items():
        row_of(iccid).billed += count
    for (iccid, state, currency), cents in billed.amounts.items():
        row_of(iccid).sums[state][currency] += cents
    for row in rows.values():
        row.money = {state: money_words(visit, sums) for state, sums in row.sums.items()}
    return sorted(rows.values(), key=lambda row: (row.id is None, -row.used))


async def show_billing_config(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """In which currency, at which price and under which numbers do we bill, and can our invoices be paid online?"""
    found = await visit.read_together(
        config=PageRead("get_billing_config", {}),
        standing=PageRead("payments_connect_status", {}),
    )
    config = found["config"]
    if config.problem is not None:
        return visit.draw("refused.html", {}, problem=config.problem)
    facts: Mapping[str, object] = {
        "config": config.body,
        "standing": found["standing"],
        "fee": fee_words(visit, cast(int, config.body["platform_fee_bps"])),
        "price": written_cents(visit.texts, cast(int, config.body["price_per_gb_cents"])),
        "currencies": [(code, code) for code in get_args(Currency)],
        "version": config.version,
        "stale": not visit.signed_in_lately,
        "typed": visit.form if problem is not None and visit.form.get("do") == "change" else {},
        "done": visit.query.get("done", "") == "changed" and visit.request.method != "POST",
    }
    return visit.draw("money_billing_config.html", facts, problem=problem)


def fee_words(visit: ConsoleRequest, bps: int) -> str:
    """Basis points as a percentage."""
    return f"{written_cents(visit.texts, bps)}\u00a0%"


async def post_billing_config(visit: ConsoleRequest) -> Response:
    """Changes how new invoices bill, or begins at the payment processor, which needs a new sign-in."""
    do = visit.form.get("do", "")
    if do not in ("change", "begin", "again"):
        raise unknown_form()
    if do == "change":
        return await change_billing_config(visit)
    if do == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again(f"{CONSOLE_PATH}{visit.path}")
    outcome = await visit.press("payments_connect_begin", {})
    title, button = visit.say("money.replace_title"), visit.say("money.replace_button")
    question = visit.ask_first(outcome, title=title, button=button, back=visit.path)
    if question is not None:
        return question
    if outcome.problem is not None:
        return await show_billing_config(visit, outcome.problem)
    # A link, since no form of ours may end elsewhere; the processor's address is not known when the form is shown.
    return visit.draw("money_away.html", {"begun": outcome.body})


async def change_billing_config(visit: ConsoleRequest) -> Response:
    """Sends what differs from what holds now, and nothing where nothing does."""
    now = await visit.read("get_billing_config")
    if now.problem is not None:
        return visit.draw("refused.html", {}, problem=now.problem)
    typed = {name: visit.form.get(name, "") for name in CONFIG_FIELDS}
    wanted = {**typed, "price_per_gb_cents": typed_cents(typed["price_per_gb_cents"])}
    changes = differing(wanted, now.body)
    outcome = await visit.press("update_billing_config", changes) if changes else now
    if outcome.problem is not None:
        return await show_billing_config(visit, config_problem(visit, outcome.problem))
    return visit.go(f"{visit.path}?done=changed")


def config_problem(visit: ConsoleRequest, problem: PageProblem) -> PageProblem:
    """The problem in the page's words, where a person types otherwise than a program does."""
    if problem.field == "price_per_gb_cents":
        return replace(problem, text=visit.say("invoices.bad_price"), hint=visit.say("invoices.bad_price_hint"))
    if problem.field == "invoice_prefix":
        return replace(problem, text=visit.say("money.bad_prefix"), hint=visit.say("money.prefix_hint"))
    return problem


MONEY_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/money": PageRoute(show_money),
    "/money/billing-config": PageRoute(show_billing_config, post_billing_config),
}
