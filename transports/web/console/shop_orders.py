"""The pages of orders: which were bought, where each of them is, and what a person does where one cannot go on by itself."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from operations.storefronts.sold_orders import SoldOrder
from storage.orders import OrderStatus
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import filled_fields
from transports.web.pages.request import PageProblem, unknown_form
from transports.web.site import PageRoute

ORDERS_A_PAGE = 50
SHOPS_TO_CHOOSE = 100
ORDER_FILTERS = ("storefront", "status", "email")
ORDER_COLUMNS = (
    "id", "storefront", "plan", "plan_name", "status", "amount", "currency", "refund", "top_ups", "created", "paid_at", "ready_at",
    "cancelled_at",
)  # fmt: skip
"""Of a file: members of the entries of list_storefront_orders."""
WHOLE_WAY = ("created", "paid", "esim_asked_for", "esim_issued", "ready", "mail_ready")
"""The steps of an order that goes well."""
ON_ITS_WAY = ("pending_payment", "paid", "provisioning")
STOPPED_STEPS = ("needs_review", "failed", "refund_failed", "mail_failed")
UNDRAWN = (None, "rolled_back", "released")
"""States of an order's issuance in which no eSIM is out for it; without one nothing was sent."""
UNRESOLVED = ("outcome_unknown", "manual_reconciliation_required")
NEW_LINK = "mail_new_link"
ORDER_DONE_WORDS = ("renewed", "settled")


class OrderQuestion(NamedTuple):
    """What a person has to say of an order or a top-up (`number`) that needs review, and the outcomes that it can have."""

    number: str
    plan: str
    top_up: bool
    outcomes: Sequence[str]


def questions_of(order: SoldOrder) -> list[OrderQuestion]:
    """What of an order needs a person: itself, and its top-ups. An order whose eSIM is known to be drawn has no outcome to choose."""
    found: list[OrderQuestion] = []
    if order["status"] == "needs_review":
        state = order["issuance"]["state"] if order["issuance"] else None
        outcomes = ("refund",) if state in UNDRAWN else ("delivered", "failed") if state in UNRESOLVED else ()
        found.append(OrderQuestion(order["id"], order["plan"]["name"], False, outcomes))
    waiting = [each for each in order["top_ups"] if each["status"] == "needs_review"]
    return found + [OrderQuestion(each["id"], each["plan"]["name"], True, ("delivered", "refund")) for each in waiting]


def steps_to_come(order: SoldOrder) -> Sequence[str]:
    """What has still to happen to an order that is on its way."""
    if order["status"] not in ON_ITS_WAY:
        return ()
    taken = {step["step"] for step in order["way"]}
    last = max((place for place, step in enumerate(WHOLE_WAY) if step in taken), default=-1)
    return WHOLE_WAY[last + 1 :]


def links_sent(order: SoldOrder) -> int:
    """How many new links its buyer was mailed."""
    return sum(step["step"] == NEW_LINK for step in order["way"])


async def show_orders(visit: ConsoleRequest) -> Response:
    """Which orders are there, and which of them wait for me?"""
    wanted = {name: visit.query[name] for name in ORDER_FILTERS if visit.query.get(name)}
    if is_csv_asked(visit):
        return await csv_download(visit, "orders", "list_storefront_orders", ORDER_COLUMNS, wanted)
    page: dict[str, object] = {**wanted, "limit": ORDERS_A_PAGE}
    if visit.query.get("after"):
        page["starting_after"] = visit.query["after"]
    found = await visit.read_together(
        orders=PageRead("list_storefront_orders", page),
        shops=PageRead("list_storefronts", {"limit": SHOPS_TO_CHOOSE}),
        review=PageRead("list_storefront_orders", {"status": "needs_review", "limit": ORDERS_A_PAGE}),
    )
    orders, review = found["orders"], found["review"]
    more = orders.rows and orders.body.get("has_more")
    facts: Mapping[str, object] = {
        "orders": orders.rows,
        "shops": [row["slug"] for row in found["shops"].rows],
        "statuses": get_args(OrderStatus),
        "waiting": len(review.rows),
        "waiting_more": bool(review.rows and review.body.get("has_more")),
        "wanted": wanted,
        "next_page": f"?{urlencode({**wanted, 'after': str(orders.rows[-1]['id'])})}" if more else "",
        "first_page": f"?{urlencode(wanted)}" if visit.query.get("after") else "",
    }
    return visit.draw("shop_orders.html", facts, problem=orders.problem)


async def show_sold_order(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Where is this order, and does it need me?"""
    found = await visit.read("get_sold_order", number=visit.request.path_params["number"])
    if found.problem is not None:
        return visit.draw("refused.html", {}, problem=found.problem)
    done, order = visit.query.get("done", "") if problem is None else "", cast(SoldOrder, found.body)
    facts: Mapping[str, object] = {
        "order": order,
        "coming": steps_to_come(order),
        "stopped": STOPPED_STEPS,
        "questions": questions_of(order),
        "links": links_sent(order),
        "done": visit.say(f"shop_orders.done_{done}") if done in ORDER_DONE_WORDS else "",
        "typed": visit.form if problem is not None else {},
    }
    return visit.draw("shop_order.html", facts, problem=problem)


async def post_sold_order(visit: ConsoleRequest) -> Response:
    """Mails the buyer a new link, or says what became of an order that needs review."""
    do = visit.form.get("do", "")
    if do == "renew":
        return await renew_access(visit)
    if do == "settle":
        return await settle(visit)
    raise unknown_form()


async def renew_access(visit: ConsoleRequest) -> Response:
    """Ends the links of the order and has a new one mailed, unless the buyer was mailed one since the page was shown."""
    number = visit.request.path_params["number"]
    now = await visit.read("get_sold_order", number=number)
    if now.problem is not None:
        return visit.draw("refused.html", {}, problem=now.problem)
    if visit.form.get("shown") == str(links_sent(cast(SoldOrder, now.body))):
        outcome = await visit.press("renew_storefront_order_access", {"number": number})
        if outcome.problem is not None:
            return await show_sold_order(visit, outcome.problem)
    return visit.go(f"/shops/orders/{number}?done=renewed")


async def settle(visit: ConsoleRequest) -> Response:
    """Asks first, and says then for good what became of the order, or of one of its top-ups."""
    number = visit.request.path_params["number"]
    now = await visit.read("get_sold_order", number=number)
    if now.problem is not None:
        return visit.draw("refused.html", {}, problem=now.problem)
    about, order = visit.form.get("about", ""), cast(SoldOrder, now.body)
    numbers = (order["id"], *(each["id"] for each in order["top_ups"]))
    if about not in numbers:
        raise unknown_form()
    arguments = {"number": about, **filled_fields(visit.form, "outcome", "iccid"), "reason": visit.form.get("reason", "")}
    outcome = await visit.press("settle_order", arguments)
    title, button = visit.say("shop_orders.settle_title"), visit.say("shop_orders.settle_button")
    question = visit.ask_first(outcome, title=title, button=button, back=f"/shops/orders/{number}")
    if question is not None:
        return question
    if outcome.problem is not None:
        return await show_sold_order(visit, outcome.problem)
    return visit.go(f"/shops/orders/{number}?done=settled")


SHOP_ORDER_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/shops/orders": PageRoute(show_orders),
    "/shops/orders/{number}": PageRoute(show_sold_order, post_sold_order),
}
