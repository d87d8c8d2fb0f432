"""The page Today: what needs somebody now, the most expensive first, and how old the facts are."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, cast

from markupsafe import Markup
from starlette.responses import Response

from operations.ledger.event_letters import happened_text
from operations.subscribers.issuance_list import ListedIssuance
from operations.times import utc_today
from transports.web.console.charts import ChartPoint, bar_chart
from transports.web.console.issue import WaitingIssuance, waiting_issuance
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome
from transports.web.pages.request import PageProblem
from transports.web.site import PageRoute

PROBLEMS_SHOWN = 8
WAITING_SHOWN = 5
WEEK_LENGTH = 7
PERSON_STATES = ("manual_reconciliation_required", "rollback_unknown")
"""Of an issuance: the states that the service leaves to people. What is not known yet it is finding out by itself."""
COUNTED_ROWS = 100
"""The newest eSIMs and orders that are looked at for a week: one read of each. Of the days before them nothing is said."""


class DrawnWeek(NamedTuple):
    """What happened on each of the last seven days, and how much it was.

    `since`: the first of these days that is known as a whole, where the newest hundred do not reach further back; empty where all are.
    `busy`: they do not even reach to the beginning of today.
    """

    total: int
    drawing: Markup
    since: str = ""
    busy: bool = False
    sums: Sequence[str] = ()


async def show_today(visit: ConsoleRequest) -> Response:
    """What is wrong with the fleet by money, who waits for a decision, what failed, and how did the week and the day's quota go?"""
    found = await visit.read_together(
        problems=PageRead("fleet_problems", {"limit": PROBLEMS_SHOWN}),
        approvals=PageRead("list_approvals", {"state": "waiting", "limit": WAITING_SHOWN}),
        orders=PageRead("list_storefront_orders", {"status": "needs_review", "limit": WAITING_SHOWN}),
        deliveries=PageRead("list_deliveries", {"state": "failed", "limit": WAITING_SHOWN}),
        alerts=PageRead("get_alerts", {}),
        sync=PageRead("fleet_sync_status", {}),
        credential=PageRead("whoami", {}),
        issued=PageRead("list_connectivity_intents", {"limit": COUNTED_ROWS, "activation_codes": False}),
        sold=PageRead("list_storefront_orders", {"limit": COUNTED_ROWS}),
        **{state: PageRead("list_issuances", {"state": state, "limit": WAITING_SHOWN}) for state in PERSON_STATES},
    )
    facts: Mapping[str, object] = {
        **found,
        "approval_rows": visit.promised(found["approvals"].rows),
        "outcomes": unknown_outcomes(visit, [found[state] for state in PERSON_STATES]),
        "happened": happened_text,
        "issued_week": issued_week(visit, found["issued"]),
        "sold_week": sold_week(visit, found["sold"]),
        "causes": cause_points(visit, sheet_of(found["problems"])),
        "sheet": sheet_of(found["problems"]),
        "quota": quota_share(cast("Mapping[str, object] | None", found["credential"].body.get("calls"))),
    }
    return visit.draw("today.html", facts)


def sheet_of(outcome: CallOutcome) -> Mapping[str, object]:
    """What a finding holds; nothing where it was refused."""
    return {} if outcome.problem is not None else cast(Mapping[str, object], outcome.body["data"])


class UnknownOutcomes(NamedTuple):
    """The issuances that wait for a person: how many were read; `more`: whether there are others; the first of them."""

    known: int
    more: bool
    shown: Sequence[WaitingIssuance]
    problem: PageProblem | None


def unknown_outcomes(visit: ConsoleRequest, states: Sequence[CallOutcome]) -> UnknownOutcomes:
    """What the reads of the states that wait for a person say together."""
    rows = [waiting_issuance(visit, cast(ListedIssuance, row)) for each in states for row in each.rows]
    more = any(bool(each.body.get("has_more")) for each in states)
    return UnknownOutcomes(len(rows), more, rows[:WAITING_SHOWN], next((each.problem for each in states if each.problem is not None), None))


def cause_points(visit: ConsoleRequest, sheet: Mapping[str, object]) -> list[ChartPoint]:
    """What each cause costs a month, the dearest first; causes that cost nothing are left out."""
    causes = cast(Mapping[str, Mapping[str, float]], sheet.get("causes", {}))
    dear = sorted(((each["money_a_month"], cause) for cause, each in causes.items() if each["money_a_month"] > 0), reverse=True)
    words = {cause: visit.word("problems", cause) for _, cause in dear}
    return [ChartPoint(words[cause], money, visit.euros(money)) for money, cause in dear]


def issued_week(visit: ConsoleRequest, intents: CallOutcome) -> DrawnWeek:
    """The eSIMs that were issued, by the UTC day on which they were asked for."""
    moments = [cast(float, row["created"]) for row in intents.rows]
    days = [utc_today(moment) for moment, row in zip(moments, intents.rows, strict=True) if row["status"] == "succeeded"]
    return drawn_week(visit, days, last_read(intents, [utc_today(moment) for moment in moments]), "issued")


def sold_week(visit: ConsoleRequest, orders: CallOutcome) -> DrawnWeek:
    """The orders that were paid, by the UTC day of that, and what they came to in each currency."""
    paid = [(utc_day(str(row["paid_at"])), row) for row in orders.rows if row["paid_at"]]
    earliest = last_read(orders, [utc_day(str(row["created"])) for row in orders.rows])
    week = drawn_week(visit, [day for day, _ in paid], earliest, "sold")
    first = max(utc_today(visit.now) - timedelta(days=WEEK_LENGTH - 1), earliest)
    sums = Counter[str]()
    for day, row in paid:
        if day >= first:
            sums[str(row["currency"])] += cast(int, row["amount"])
    return week._replace(sums=[visit.texts.money(amount, currency) for currency, amount in sums.items()])


def utc_day(moment: str) -> date:
    return datetime.fromisoformat(moment).astimezone(UTC).date()


def last_read(outcome: CallOutcome, days: Sequence[date]) -> date:
    """The first day of which everything was read; the first there is where the list ends."""
    return min(days, default=date.min) + timedelta(days=1) if outcome.body.get("has_more") else date.min


def drawn_week(visit: ConsoleRequest, days: Sequence[date], earliest: date, noun: str) -> DrawnWeek:
    """A bar for each of the last seven days from `earliest` on."""
    today, counted = utc_today(visit.now), Counter(days)
    week = [today - timedelta(days=back) for back in reversed(range(WEEK_LENGTH))]
    known = [day for day in week if day >= earliest]
    points = [
        ChartPoint(
            visit.say(f"today.weekday_{day.weekday()}"),
            counted[day],
            visit.texts.count(f"today.{noun}", counted[day]),
            visit.texts.day(day.isoformat()),
        )
        for day in known
    ]
    count = sum(counted[day] for day in known)
    since = visit.texts.day(known[0].isoformat()) if 0 < len(known) < WEEK_LENGTH else ""
    drawing = bar_chart(points, visit.say(f"today.{noun}_week")) if count else Markup("")
    return DrawnWeek(count, drawing, since, not known)


def quota_share(calls: Mapping[str, object] | None) -> int:
    """How much of the day's calls is used, in percent; 0 where nothing is counted."""
    if calls is None:
        return 0
    used, left = cast(int, calls["used"]), cast(int, calls["left"])
    return round(100 * used / (used + left)) if used + left else 0


TODAY_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"": PageRoute(show_today)}
