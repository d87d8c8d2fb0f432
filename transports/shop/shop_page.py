"""The shop: what it sells, by country, with one button a plan."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from storage.shop.storefronts import published_at
from transports.shop.answers import Answer, Page, Redirect
from transports.shop.brand import brand_of
from transports.shop.offers import countries_of, grouped, offer_of
from transports.shop.visit import Visit, nothing_here

COUNTRY = re.compile(r"[A-Za-z]{2}", re.ASCII)
Plans = Sequence[Mapping[str, object]]


async def show(visit: Visit) -> Answer:
    """All plans, or those for the country that was chosen. Who comes to an address that the shop had is led to the one that it has."""
    shop = await visit.deps.store.read(published_at, slug=visit.slug)
    if shop is not None and shop.slug != visit.slug:
        return Redirect(f"{visit.counter.root}/shop/{shop.slug}")
    return await page(visit, country=visit.query.get("country", "").upper())


async def page(visit: Visit, *, country: str = "", problem: tuple[str, str] | None = None, status: int = 200) -> Page:
    """The shop. `problem`: title and text of what was not done."""
    shop = await visit.ask("get_hosted_storefront", {"slug": visit.slug})
    if not isinstance(shop, Mapping):
        raise nothing_here()
    told, texts = cast(Mapping[str, object], shop), visit.texts
    plans = cast(Plans, told["plans"])
    reasons = await visit.counter.shelf.reasons(visit.slug)
    offers = [offer_of(plan, reasons, texts) for plan in plans]
    chosen = country if COUNTRY.fullmatch(country) else ""
    groups = grouped(offers, chosen, texts)
    facts = {
        "here": visit.shop_path,
        "countries": countries_of(offers, texts),
        "country": chosen,
        "groups": groups,
        "found": sum(len(group.offers) for group in groups),
        "offers": offers,
        "sold_out": bool(offers) and all(offer.refused for offer in offers),
        "problem": problem,
    }
    return Page("shop.html", facts, brand_of(told), status)
