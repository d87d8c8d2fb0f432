"""From a plan to the page on which it is paid."""

from collections.abc import Mapping

from operations.services.shop.checkout import NotForSale, ShopNotReady, SoldOut, begin_order
from registry.errors import Refusal
from registry.payments_errors import PaymentsError
from storage.shop.storefront_plans import find_plan
from storage.shop.storefronts import published
from transports.shop import shop_page
from transports.shop.answers import Answer, Redirect
from transports.shop.visit import Visit, nothing_here

WORDS: Mapping[str, str] = {
    SoldOut.code: "sold_out",
    NotForSale.code: "gone",
    ShopNotReady.code: "not_now",
}
"""Which of our words fit what was refused, by its code."""


async def begin(visit: Visit) -> Answer:
    """Only the plan's slug is read of the form: what it costs and what it is, the shop says."""
    await visit.counter.pipeline.admit_order(visit.client)
    deps = visit.deps
    shop = await deps.store.read(published, slug=visit.slug)
    if shop is None:
        raise nothing_here()
    plan = await deps.store.read(find_plan, storefront=shop.id, slug=visit.form.get("plan", ""))
    if plan is None or not plan.on_sale:
        return await refused(visit, "gone", 404 if plan is None else 409)
    try:
        begun = await begin_order(deps, shop=shop, plan=plan, language=visit.texts.language, now=visit.now)
    except Refusal as refusal:
        return await refused(visit, word_of(refusal, WORDS, "not_now"), refusal.status)
    return Redirect(begun.url, visit.counter.order_cookies.setting(visit.cookies, begun.order, begun.token))


def word_of(refusal: Refusal, words: Mapping[str, str], other: str) -> str:
    """Which of our words fit what was refused."""
    return "payment" if isinstance(refusal, PaymentsError) else words.get(refusal.error_code, other)


async def refused(visit: Visit, word: str, status: int) -> Answer:
    """The shop again, and what was not done."""
    visit.counter.shelf.forget(visit.slug)
    say = visit.texts.say
    return await shop_page.page(visit, problem=(say(f"refused.{word}_title"), say(f"refused.{word}")), status=status)
