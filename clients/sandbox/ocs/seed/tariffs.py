"""What a network costs the reseller, and what the reseller charges: one rule for each network, with the spread of real price lists."""

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import NamedTuple

from clients.sandbox.ocs.dice import Random, dice
from clients.sandbox.ocs.places import Country, Network
from clients.sandbox.ocs.prices import Tariff, TariffRule
from clients.sandbox.ocs.seed.resellers import BUY, SELL
from clients.sandbox.ocs.seed.sponsors import ALPINE, FJORD, SPONSORED

FIRST_RULE = 9001
UNPRICED = frozenset({("293", "64"), ("716", "15"), ("440", "11"), ("454", "12"), ("655", "07"), ("214", "04")})
"""Networks without a rule: a zone that names one is refused with 10003."""
DATA_FLOOR = {"Europe": 700, "North America": 1800, "South America": 3000, "Asia": 1500, "Oceania": 2200, "Africa": 4000}
"""Micro-euro per MiB of the cheapest network of an average country."""
CHEAP_HALF, DEAR_HALF = 0.6, 1.9


class Price(NamedTuple):
    """What one network costs to buy, in micro-euro."""

    data: int
    call_out: int
    call_in: int
    sms_out: int


def prices(seed: int, countries: Mapping[str, Country], networks: Mapping[int, Network]) -> dict[int, Price]:
    """The buying price of every network. Within a country the dearest data costs 3 to 30 times the cheapest."""
    found: dict[int, Price] = {}
    for iso2, group in groupby(networks.values(), key=lambda network: network.iso2):
        chance = dice(seed, "prices", iso2)
        floor = DATA_FLOOR[countries[iso2].continent] * chance.uniform(CHEAP_HALF, DEAR_HALF)
        ids = [network.network_id for network in group]
        factors = spread(chance, len(ids))
        found |= {network_id: price(chance, floor * factor) for network_id, factor in zip(ids, factors, strict=True)}
    return found


def spread(chance: Random, size: int) -> list[float]:
    """Factors of one country in random order, from 1 to between 3 and 30."""
    widest = 3.5 * 8.0 ** chance.random()
    factors = [1.0, widest, *(widest ** chance.uniform(0.1, 0.9) for _ in range(size - 2))]
    chance.shuffle(factors)
    return factors


def price(chance: Random, data: float) -> Price:
    """All rates of a network."""
    call = chance.randrange(4, 40) * 9_000
    return Price(round(data / 10) * 10, call, call // 3, chance.randrange(15, 80) * 1_000)


def tariffs(
    seed: int, start: int, countries: Mapping[str, Country], networks: Mapping[int, Network], next_rule: Callable[[], int]
) -> dict[int, Tariff]:
    """Both tariffs of both resellers by id."""
    costs = prices(seed, countries, networks)
    made = [
        Tariff(BUY[FJORD], "Fjord Buy", FJORD, "RESELLER", ()),
        Tariff(BUY[ALPINE], "Alpine Buy", ALPINE, "RESELLER", ()),
        Tariff(SELL[FJORD], "Fjord Sell", FJORD, "SUBSCRIBER", ()),
        Tariff(SELL[ALPINE], "Alpine Sell", ALPINE, "SUBSCRIBER", ()),
    ]
    for tariff in made:
        tariff.rules = tuple(rules(dice(seed, "tariff", tariff.id), tariff, start, networks, costs, next_rule))
    return {tariff.id: tariff for tariff in made}


def rules(
    chance: Random, tariff: Tariff, start: int, networks: Mapping[int, Network], costs: Mapping[int, Price], next_rule: Callable[[], int]
) -> list[TariffRule]:
    """The rules of one tariff: for any sponsor, and now and then a better one for one sponsor."""
    markup = 1.0 if tariff.kind == "RESELLER" else 2.4
    made: list[TariffRule] = []
    for network_id, network in networks.items():
        if network.codes[0] in UNPRICED:
            continue
        active = chance.random() >= 0.03
        made.append(rule(next_rule(), tariff, network_id, None, active, start, times(costs[network_id], markup)))
        if chance.random() < 0.1:
            sponsor = chance.choice(SPONSORED[tariff.reseller_id])
            made.append(rule(next_rule(), tariff, network_id, sponsor, True, start, times(costs[network_id], markup * 0.7)))
    return made


def times(cost: Price, factor: float) -> Price:
    """A price list position with a markup, in steps of ten micro-euro."""
    return Price(*(round(value * factor / 10) * 10 for value in cost))


def rule(number: int, tariff: Tariff, network_id: int, sponsor_id: int | None, active: bool, start: int, cost: Price) -> TariffRule:
    """One rule; a message that arrives is free."""
    return TariffRule(
        number,
        tariff.id,
        network_id,
        sponsor_id,
        active,
        cost.data,
        cost.call_out,
        cost.call_in,
        cost.sms_out,
        0,
        start,
        discounted=sponsor_id is not None,
    )
