"""The page of a shop: the plans that it sells, grouped by where they work, and the way from a plan to the page on which it is paid."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from starlette.responses import Response

from operations.languages import LanguageTexts
from operations.storefronts.sales.checkout import NotForSale, ShopNotReady, SoldOut, begin_order
from registry.errors import PaymentsError, Refusal
from storage.storefronts import find_plan, find_published, find_published_at
from transports.web.countries import countries_by_name, name_sort_key
from transports.web.shop.brand import brand_of, plain_text
from transports.web.shop.request import ShopRequest, shop_not_found

OfferedPlan = Mapping[str, object]


class ShopOffer(NamedTuple):
    """A plan in words. `refused` says why it cannot be bought now; empty where it can."""

    slug: str
    name: str
    data: str
    days: str
    price: str
    codes: Sequence[str]
    countries: str
    refused: str


class OfferGroup(NamedTuple):
    title: str
    offers: Sequence[ShopOffer]


def offer_of(plan: OfferedPlan, reasons: Mapping[str, str], texts: LanguageTexts) -> ShopOffer:
    slug, codes = str(plan["slug"]), cast(Sequence[str], plan.get("countries") or ())
    reason = reasons.get(slug)
    refused = "" if reason is None else texts.say("shop.sold_out" if reason == "no_free_esim" else "shop.not_now")
    return ShopOffer(
        slug=slug,
        name=plain_text(str(plan["name"])),
        data=texts.data(cast(int, plan["data_mb"])),
        days=texts.days(cast(int, plan["validity_days"])),
        price=texts.money(cast(int, plan["price_cents"]), str(plan["currency"])),
        codes=codes,
        countries=names_of_countries(tuple(codes), texts),
        refused=refused,
    )


def offered_countries(offers: Sequence[ShopOffer], texts: LanguageTexts) -> Sequence[tuple[str, str]]:
    """Code and name of every country that a plan is for, by name."""
    return countries_by_name(set[str]().union(*(offer.codes for offer in offers)), texts)


def group_offers(offers: Sequence[ShopOffer], country: str, texts: LanguageTexts) -> Sequence[OfferGroup]:
    """By country, those for several countries last; with a country chosen, those for it alone come first."""
    if country:
        name = texts.country(country)
        there = [offer for offer in offers if country in offer.codes]
        alone = [offer for offer in there if len(offer.codes) == 1]
        more = [offer for offer in there if len(offer.codes) > 1]
        made = [OfferGroup(texts.say("shop.only_there", country=name), alone), OfferGroup(texts.say("shop.there_too", country=name), more)]
    else:
        names = {texts.country(offer.codes[0]): offer.codes[0] for offer in offers if len(offer.codes) == 1}
        made = [
            OfferGroup(name, [offer for offer in offers if list(offer.codes) == [names[name]]]) for name in sorted(names, key=name_sort_key)
        ]
        made.append(OfferGroup(texts.say("shop.several"), [offer for offer in offers if len(offer.codes) != 1]))
    return [group for group in made if group.offers]


@lru_cache(maxsize=512)
def names_of_countries(codes: Sequence[str], texts: LanguageTexts) -> str:
    """Countries by name; many plans of a shop are for the same ones."""
    return ", ".join(name for _, name in countries_by_name(codes, texts))


COUNTRY_CODE = re.compile(r"[A-Za-z]{2}", re.ASCII)
OfferedPlans = Sequence[Mapping[str, object]]


async def show_shop(visit: ShopRequest) -> Response:
    """All plans of the shop, or those for the chosen country. A former address of the shop redirects to the present one."""
    shop = await visit.deps.store.read(find_published_at, slug=visit.slug)
    if shop is not None and shop.slug != visit.slug:
        return visit.redirect(f"{shop.slug}")
    return await storefront_page(visit, country=visit.query.get("country", "").upper())


async def storefront_page(visit: ShopRequest, *, country: str = "", problem: tuple[str, str] | None = None, status: int = 200) -> Response:
    """The shop. `problem`: title and text of what was not done."""
    shop = await visit.ask("get_hosted_storefront", {"slug": visit.slug})
    if not isinstance(shop, Mapping):
        raise shop_not_found()
    told, texts = cast(Mapping[str, object], shop), visit.texts
    reasons = await visit.context.availability.reasons(visit.slug)
    offers = [offer_of(plan, reasons, texts) for plan in cast(OfferedPlans, told["plans"])]
    chosen = country if COUNTRY_CODE.fullmatch(country) else ""
    facts = {**shop_facts(offers, chosen, texts), "here": visit.shop_path, "problem": problem, "sells": True}
    return visit.page("shop.html", facts, brand_of(told), status)


def shop_facts(offers: Sequence[ShopOffer], country: str, texts: LanguageTexts) -> Mapping[str, object]:
    """What the page of a shop is drawn from; all plans, or those for a country."""
    groups = group_offers(offers, country, texts)
    return {
        "countries": offered_countries(offers, texts),
        "country": country,
        "groups": groups,
        "found": sum(len(group.offers) for group in groups),
        "offers": offers,
        "sold_out": bool(offers) and all(offer.refused for offer in offers),
    }


CHECKOUT_WORDS: Mapping[str, str] = {
    SoldOut.code: "sold_out",
    NotForSale.code: "gone",
    ShopNotReady.code: "not_now",
}
"""Which of our words fit what was refused, by its code."""


async def post_checkout(visit: ShopRequest) -> Response:
    """Only the plan's slug is read of the form: what it costs and what it is, the shop says."""
    await visit.context.pipeline.rate_limiter.order(visit.client)
    deps = visit.deps
    shop = await deps.store.read(find_published, slug=visit.slug)
    if shop is None:
        raise shop_not_found()
    plan = await deps.store.read(find_plan, storefront=shop.id, slug=visit.form.get("plan", ""))
    if plan is None or not plan.on_sale:
        return await checkout_refused(visit, "gone", 404 if plan is None else 409)
    try:
        begun = await begin_order(deps, shop=shop, plan=plan, language=visit.texts.language, now=visit.now)
    except Refusal as refusal:
        return await checkout_refused(visit, refusal_word(refusal, CHECKOUT_WORDS, "not_now"), refusal.status)
    return visit.to_checkout(begun.url, begun.order, begun.token)


def refusal_word(refusal: Refusal, words: Mapping[str, str], other: str) -> str:
    return "payment" if isinstance(refusal, PaymentsError) else words.get(refusal.error_code, other)


async def checkout_refused(visit: ShopRequest, word: str, status: int) -> Response:
    visit.context.availability.forget(visit.slug)
    say = visit.texts.say
    return await storefront_page(visit, problem=(say(f"refused.{word}_title"), say(f"refused.{word}")), status=status)
