"""The page Today: what needs somebody now, the most expensive first, and how old the facts are."""

from collections.abc import Mapping
from typing import cast

from starlette.responses import Response

from operations.ledger.event_letters import happened_text
from transports.web.console.charts import ChartPoint
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome
from transports.web.site import PageRoute

PROBLEMS_SHOWN = 8
WAITING_SHOWN = 5


async def show_today(visit: ConsoleRequest) -> Response:
    """What is wrong with the fleet by money, who waits for a decision, what failed, and how much of the day's quota is left."""
    found = await visit.read_together(
        problems=PageRead("fleet_problems", {"limit": PROBLEMS_SHOWN}),
        approvals=PageRead("list_approvals", {"state": "waiting", "limit": WAITING_SHOWN}),
        orders=PageRead("list_storefront_orders", {"status": "needs_review", "limit": WAITING_SHOWN}),
        deliveries=PageRead("list_deliveries", {"state": "failed", "limit": WAITING_SHOWN}),
        alerts=PageRead("get_alerts", {}),
        sync=PageRead("fleet_sync_status", {}),
        credential=PageRead("whoami", {}),
    )
    facts: Mapping[str, object] = {
        **found,
        "happened": happened_text,
        "causes": cause_points(visit, sheet_of(found["problems"])),
        "sheet": sheet_of(found["problems"]),
        "quota": quota_share(cast("Mapping[str, object] | None", found["credential"].body.get("calls"))),
    }
    return visit.draw("today.html", facts)


def sheet_of(outcome: CallOutcome) -> Mapping[str, object]:
    """What a finding holds; nothing where it was refused."""
    return {} if outcome.problem is not None else cast(Mapping[str, object], outcome.body["data"])


def cause_points(visit: ConsoleRequest, sheet: Mapping[str, object]) -> list[ChartPoint]:
    """What each cause costs a month, the dearest first; causes that cost nothing are left out."""
    causes = cast(Mapping[str, Mapping[str, float]], sheet.get("causes", {}))
    dear = sorted(((each["money_a_month"], cause) for cause, each in causes.items() if each["money_a_month"] > 0), reverse=True)
    words = {cause: visit.word("problems", cause) for _, cause in dear}
    return [ChartPoint(words[cause], money, f"{words[cause]}: {visit.euros(money)}") for money, cause in dear]


def quota_share(calls: Mapping[str, object] | None) -> int:
    """How much of the day's calls is used, in percent; 0 where nothing is counted."""
    if calls is None:
        return 0
    used, left = cast(int, calls["used"]), cast(int, calls["left"])
    return round(100 * used / (used + left)) if used + left else 0


TODAY_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"": PageRoute(show_today)}
