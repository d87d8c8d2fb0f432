"""An order: how far it is, then its eSIM, what is left of it and what can be added; for whoever has the link, as often as they come."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import anyio

from registry.errors import Refusal
from registry.order_numbers import IS_NUMBER
from storage.shop.orders import OrderRow, find_order, top_ups_of
from storage.shop.storefronts import storefront_of
from transports.shop.answers import Answer, Page, Redirect
from transports.shop.brand import Brand, brand_of
from transports.shop.install import install_of
from transports.shop.offers import Plan, offer_of
from transports.shop.order_facts import line_of, money_back, usage_of
from transports.shop.progress import HOUR, OLD, STANDINGS, renews_after, steps_of
from transports.shop.visit import Visit, nothing_here

Told = Mapping[str, object]
PATIENCE = 5.0
"""Seconds that a page waits for the charging system before it says that it cannot tell."""
JUST_NOW = 900.0


class Order(NamedTuple):
    """An order as the operations tell it, its row, and its shop's looks."""

    told: Told
    row: OrderRow
    brand: Brand


async def show(visit: Visit) -> Answer:
    """The order, in the colours of its shop."""
    found = await find(visit)
    if found.brand.slug != visit.slug:
        return Redirect(f"{visit.counter.root}/shop/{found.brand.slug}/orders/{visit.order}")
    return await page(visit, found)


async def find(visit: Visit) -> Order:
    """The order of the path, whichever shop the path names.

    Choice: a shop that is not published any more goes on showing its buyers what they bought; and whatever shop is named, the reader is
    led to the order's own: the link in a mail is all that a buyer has, and its shop may have another address by now.
    """
    told = cast(Told, await visit.ask("get_storefront_order", {"order_id": visit.token}))
    store = visit.deps.store
    row = await store.read(find_order, order=str(told["number"]))
    shop = None if row is None else await store.read(storefront_of, storefront=row.storefront)
    if row is None or shop is None or (IS_NUMBER.fullmatch(visit.order) and visit.order != row.id):
        raise nothing_here()  # a cookie that opens another order was not set by us
    return Order(told, row, brand_of(shop._asdict()))


async def page(visit: Visit, order: Order, *, problem: tuple[str, str] | None = None, status: int = 200) -> Page:
    """Everything that can be said of it. `problem`: title and text of what was not done."""
    told, texts = order.told, visit.texts
    esim = cast(Told | None, told["esim"])
    open_for_more = told["status"] == "ready" and told["cancelled_at"] is None
    lines = [line_of(row, texts) for row in cast(Sequence[Told], told["top_ups"])]
    begun: Sequence[float] = await unpaid(visit, order.row.id) if open_for_more else ()
    wait = seconds_until_next(visit, order, [*begun, *(line.created for line in lines if line.moving)])
    facts = {
        "here": f"{visit.shop_path}/orders/{visit.order}",
        "number": order.row.id,
        "keep": "order.keep_link" if visit.token == visit.order else "order.keep_mail",
        "shop_path": visit.shop_path,
        "device": visit.device,
        "problem": problem,
        "wait": wait,
        "esim": esim is not None,
        "iccid": None if esim is None else esim["iccid"],
        "install": None,
        "open": open_for_more,
        "waiting": bool(begun),
        "top_ups": lines,
        **standing_facts(visit, order),
        **bought_facts(visit, order),
    }
    if esim is not None:
        facts |= install_facts(esim)
        facts |= await live(visit, cast(Plan, told["plan"]), open_for_more=open_for_more)
    return Page("order.html", facts, order.brand, status, {"Refresh": str(wait)} if wait and problem is None else {})


def install_facts(esim: Told) -> dict[str, object]:
    """How it is installed. Where nothing says so, nobody is told to do it."""
    install = install_of(esim)
    return {"install": install} if install is not None else {"install": None, "lead": "install.missing"}


def standing_facts(visit: Visit, order: Order) -> Told:
    """How far it is, and what became of the money."""
    told, texts = order.told, visit.texts
    standing = STANDINGS[str(told["status"])]
    refund = cast(Told | None, told["refund"])
    closed = told["cancelled_at"] is not None and told["status"] == "ready"
    return {
        "standing": standing,
        "lead": OLD if told["status"] == "pending_payment" and visit.now - order.row.created > HOUR else standing.lead,
        "steps": steps_of(standing, texts) if standing.mark == "wait" else (),
        "back": money_back(refund, str(told["currency"]), texts),
        "refund_failed": refund is not None and refund["status"] == "failed",
        "closed": texts.say("order.closed", moment=texts.moment(str(told["cancelled_at"]))) if closed else "",
    }


def bought_facts(visit: Visit, order: Order) -> Told:
    """What it is, whatever the shop sells by now."""
    told = order.told
    sold = {**cast(Plan, told["plan"]), "price_cents": told["amount"], "currency": told["currency"]}
    return {"plan": offer_of(sold, {}, visit.texts), "ordered": visit.texts.day(str(told["created"]))}


def seconds_until_next(visit: Visit, order: Order, moving: Sequence[float]) -> int:
    """Until the page looks again by itself; 0: never. `moving`: when the top-ups were begun that are on their way.

    Whoever reads how to install an eSIM is not to be thrown back to the top every few seconds because of a payment they gave up.
    """
    began = max(moving, default=0.0)
    if STANDINGS[str(order.told["status"])].fresh:
        began = max(began, order.row.created)
    return renews_after(visit.now - began)


async def unpaid(visit: Visit, number: str) -> Sequence[float]:
    """When somebody went to pay for more data, as far as it is a short while ago: the news of it may come after the buyer."""
    rows = await visit.deps.store.read(top_ups_of, order=number)
    return [row.created for row in rows if row.status == "pending_payment" and visit.now - row.created < JUST_NOW]


async def live(visit: Visit, sold: Plan, *, open_for_more: bool) -> dict[str, object]:
    """What the charging system says at this moment, asked for at once; what it does not say in time is not known."""
    usage, options = list[object](), list[object]()
    named = {"order_id": visit.token}

    async def ask(operation: str, answers: list[object]) -> None:
        try:
            with anyio.move_on_after(PATIENCE):
                answers.append(await visit.ask(operation, named))
        except Refusal:
            return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "get_storefront_order_usage", usage)
        if open_for_more:
            tasks.start_soon(ask, "get_storefront_order_top_up_options", options)
    plans = cast(Sequence[Plan], options[0]) if options else ()
    return {
        "usage": usage_of(cast(Told, usage[0]), visit.texts, visit.now) if usage else None,
        "options": [offer_of(plan, {}, visit.texts) for plan in nearest(plans, sold)],
        "options_known": bool(options),
    }


def nearest(plans: Sequence[Plan], sold: Plan) -> Sequence[Plan]:
    """What was bought comes first, then what works there too; the rest as the shop has it."""
    there = set(cast(Sequence[str], sold["countries"]))
    return sorted(plans, key=lambda plan: (plan["slug"] != sold["slug"], there.isdisjoint(cast(Sequence[str], plan["countries"]))))
