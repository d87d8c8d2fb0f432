"""What a buyer does with an order: add data, or close it."""

from collections.abc import Mapping

from operations.services.shop.checkout import NotForSale, ShopNotReady, SoldOut, begin_top_up
from operations.services.shop.top_up_plans import addable
from registry.errors import Refusal
from transports.shop import order_page
from transports.shop.answers import Answer, Redirect
from transports.shop.checkout import word_of
from transports.shop.visit import Visit

WORDS: Mapping[str, str] = {
    NotForSale.code: "gone",
    ShopNotReady.code: "not_now",
    SoldOut.code: "sold_out",
}


async def top_up(visit: Visit) -> Answer:
    """Only the plan's slug is read of the form."""
    order = await order_page.find(visit)
    await visit.counter.pipeline.admit_order(visit.client)
    try:
        plans = await addable(visit.deps, order.row)
        plan = next((plan for plan in plans if plan.slug == visit.form.get("plan", "")), None)
        if plan is None:
            return await refused(visit, order, "top_up", 409)
        begun = await begin_top_up(visit.deps, order=order.row, plan=plan, language=visit.texts.language, now=visit.now)
    except Refusal as refusal:
        return await refused(visit, order, word_of(refusal, WORDS, "top_up"), refusal.status)
    # The processor leads back to the order's number: this browser opens it by what opened it now.
    return Redirect(begun.url, visit.counter.order_cookies.setting(visit.cookies, order.row.id, visit.token))


async def refused(visit: Visit, order: order_page.Order, word: str, status: int) -> Answer:
    """The order again, and what was not done."""
    say = visit.texts.say
    return await order_page.page(visit, order, problem=(say(f"refused.{word}_title"), say(f"refused.{word}")), status=status)


async def cancel(visit: Visit) -> Answer:
    """Recorded once; then the order again, which says so."""
    order = await order_page.find(visit)
    await visit.ask("cancel_storefront_order", {"order_id": visit.token})
    return Redirect(f"{visit.counter.root}/shop/{order.brand.slug}/orders/{visit.order}")
