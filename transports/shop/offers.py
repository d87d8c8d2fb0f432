"""Plans as a buyer compares them: grouped by where they work."""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from operations.services.shop.texts import Texts
from transports.shop.plain_text import plain

Plan = Mapping[str, object]


class Offer(NamedTuple):
    """A plan in words. `refused` says why it cannot be bought now; empty where it can."""

    slug: str
    name: str
    data: str
    days: str
    price: str
    codes: Sequence[str]
    countries: str
    refused: str


class Group(NamedTuple):
    """Offers under one heading."""

    title: str
    offers: Sequence[Offer]


def offer_of(plan: Plan, reasons: Mapping[str, str], texts: Texts) -> Offer:
    """A plan as the operations tell it."""
    slug, codes = str(plan["slug"]), cast(Sequence[str], plan.get("countries") or ())
    reason = reasons.get(slug)
    refused = "" if reason is None else texts.say("shop.sold_out" if reason == "no_free_esim" else "shop.not_now")
    return Offer(
        slug=slug,
        name=plain(str(plan["name"])),
        data=texts.data(cast(int, plan["data_mb"])),
        days=texts.days(cast(int, plan["validity_days"])),
        price=texts.money(cast(int, plan["price_cents"]), str(plan["currency"])),
        codes=codes,
        countries=names_of(tuple(codes), texts),
        refused=refused,
    )


def countries_of(offers: Sequence[Offer], texts: Texts) -> Sequence[tuple[str, str]]:
    """Code and name of every country that a plan is for, by name."""
    codes = set[str]().union(*(offer.codes for offer in offers))
    return sorted(((code, texts.country(code)) for code in codes), key=lambda one: in_order(one[1]))


def grouped(offers: Sequence[Offer], country: str, texts: Texts) -> Sequence[Group]:
    """By country, those for several countries last; with a country chosen, those for it alone come first."""
    if country:
        name = texts.country(country)
        there = [offer for offer in offers if country in offer.codes]
        alone = [offer for offer in there if len(offer.codes) == 1]
        more = [offer for offer in there if len(offer.codes) > 1]
        made = [Group(texts.say("shop.only_there", country=name), alone), Group(texts.say("shop.there_too", country=name), more)]
    else:
        names = {texts.country(offer.codes[0]): offer.codes[0] for offer in offers if len(offer.codes) == 1}
        made = [Group(name, [offer for offer in offers if list(offer.codes) == [names[name]]]) for name in sorted(names, key=in_order)]
        made.append(Group(texts.say("shop.several"), [offer for offer in offers if len(offer.codes) != 1]))
    return [group for group in made if group.offers]


@lru_cache(maxsize=512)
def names_of(codes: Sequence[str], texts: Texts) -> str:
    """Countries by name; many plans of a shop are for the same ones."""
    return ", ".join(sorted((texts.country(code) for code in codes), key=in_order))


@lru_cache(maxsize=1024)
def in_order(name: str) -> str:
    """Names in the order of their letters, marks left out."""
    return "".join(c for c in unicodedata.normalize("NFKD", name).casefold() if not unicodedata.combining(c))
