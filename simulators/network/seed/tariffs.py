"""Tariffs: what a network costs the reseller and what the reseller charges, with the spread of real price lists; calls over IP too."""

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import NamedTuple

from simulators.network.seed.resellers import ALPINE, BUY_TARIFFS, FJORD, RESELLER_SPONSORS, SELL_TARIFFS
from simulators.network.world import Country, Network, Tariff, TariffRule, VoipRule, VoipTariff
from simulators.seeded_random import Random, seeded_random

FIRST_RULE_ID = 9001
UNPRICED_NETWORKS = frozenset({("293", "64"), ("716", "15"), ("440", "11"), ("454", "12"), ("655", "07"), ("214", "04")})
"""Networks without a rule: a zone that names one is refused with 10003."""

DATA_FLOOR = {"Europe": 700, "North America": 1800, "South America": 3000, "Asia": 1500, "Oceania": 2200, "Africa": 4000}
"""Micro-euro per MiB of the cheapest network of an average country."""

CHEAP_HALF, DEAR_HALF = 0.6, 1.9
# Prefix, country, micro-euro per minute; the longest prefix wins.
VOIP_PRICES = """
    1 UNITED_STATES 9000 | 1809 DOMINICAN_REPUBLIC 61000 | 30 GREECE 12000 | 31 NETHERLANDS 14000 | 316 NETHERLANDS 42000
    32 BELGIUM 15000 | 33 FRANCE 9000 | 336 FRANCE 35000 | 34 SPAIN 11000 | 351 PORTUGAL 12000 | 353 IRELAND 13000
    354 ICELAND 22000 | 358 FINLAND 48000 | 370 LITHUANIA 24000 | 371 LATVIA 26000 | 372 ESTONIA 26000 | 39 ITALY 10000
    41 SWITZERLAND 19000 | 4179 SWITZERLAND 52000 | 43 AUSTRIA 17000 | 44 UNITED_KINGDOM 8000 | 447 UNITED_KINGDOM 31000
    45 DENMARK 11000 | 46 SWEDEN 9000 | 47 NORWAY 20000 | 479 NORWAY 38000 | 48 POLAND 12000 | 49 GERMANY 9000
    491 GERMANY 33000 | 61 AUSTRALIA 21000 | 65 SINGAPORE 14000 | 81 JAPAN 34000 | 86 CHINA 17000 | 90 TURKEY 55000
    91 INDIA 13000 | 971 UNITED_ARAB_EMIRATES 190000
"""


class BuyingPrice(NamedTuple):
    """What one network costs to buy, in micro-euro."""

    data: int
    call_out: int
    call_in: int
    sms_out: int


def draw_prices(seed: int, countries: Mapping[str, Country], networks: Mapping[int, Network]) -> dict[int, BuyingPrice]:
    """The buying price of every network. Within a country the dearest data costs 3 to 30 times the cheapest."""
    found: dict[int, BuyingPrice] = {}
    for iso2, group in groupby(networks.values(), key=lambda network: network.iso2):
        chance = seeded_random(seed, "prices", iso2)
        floor = DATA_FLOOR[countries[iso2].continent] * chance.uniform(CHEAP_HALF, DEAR_HALF)
        ids = [network.network_id for network in group]
        factors = draw_spread(chance, len(ids))
        found |= {network_id: _draw_price(chance, floor * factor) for network_id, factor in zip(ids, factors, strict=True)}
    return found


def draw_spread(chance: Random, size: int) -> list[float]:
    """Factors of one country in random order, from 1 to between 3 and 30."""
    widest = 3.5 * 8.0 ** chance.random()
    factors = [1.0, widest, *(widest ** chance.uniform(0.1, 0.9) for _ in range(size - 2))]
    chance.shuffle(factors)
    return factors


def _draw_price(chance: Random, data: float) -> BuyingPrice:
    call = chance.randrange(4, 40) * 9_000
    return BuyingPrice(round(data / 10) * 10, call, call // 3, chance.randrange(15, 80) * 1_000)


def make_tariffs(
    seed: int, start: int, countries: Mapping[str, Country], networks: Mapping[int, Network], next_rule: Callable[[], int]
) -> dict[int, Tariff]:
    costs = draw_prices(seed, countries, networks)
    made = [
        Tariff(BUY_TARIFFS[FJORD], "Fjord Buy", FJORD, "RESELLER", ()),
        Tariff(BUY_TARIFFS[ALPINE], "Alpine Buy", ALPINE, "RESELLER", ()),
        Tariff(SELL_TARIFFS[FJORD], "Fjord Sell", FJORD, "SUBSCRIBER", ()),
        Tariff(SELL_TARIFFS[ALPINE], "Alpine Sell", ALPINE, "SUBSCRIBER", ()),
    ]
    for tariff in made:
        tariff.rules = tuple(make_rules(seeded_random(seed, "tariff", tariff.id), tariff, start, networks, costs, next_rule))
    return {tariff.id: tariff for tariff in made}


def make_rules(
    chance: Random,
    tariff: Tariff,
    start: int,
    networks: Mapping[int, Network],
    costs: Mapping[int, BuyingPrice],
    next_rule: Callable[[], int],
) -> list[TariffRule]:
    """The rules of one tariff: for any sponsor, and now and then a better one for one sponsor."""
    markup = 1.0 if tariff.kind == "RESELLER" else 2.4
    made: list[TariffRule] = []
    for network_id, network in networks.items():
        if network.codes[0] in UNPRICED_NETWORKS:
            continue
        active = chance.random() >= 0.03
        made.append(make_rule(next_rule(), tariff, network_id, None, active, start, scale_price(costs[network_id], markup)))
        if chance.random() < 0.1:
            sponsor = chance.choice(RESELLER_SPONSORS[tariff.reseller_id])
            made.append(make_rule(next_rule(), tariff, network_id, sponsor, True, start, scale_price(costs[network_id], markup * 0.7)))
    return made


def scale_price(cost: BuyingPrice, factor: float) -> BuyingPrice:
    """A price list position with a markup, in steps of ten micro-euro."""
    return BuyingPrice(*(round(value * factor / 10) * 10 for value in cost))


def make_rule(
    number: int, tariff: Tariff, network_id: int, sponsor_id: int | None, active: bool, start: int, cost: BuyingPrice
) -> TariffRule:
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


def make_voip_rules(start: int, factor: float) -> tuple[VoipRule, ...]:
    """The price list with a markup, in steps of a tenth of a cent."""
    rows = [cell.split() for line in VOIP_PRICES.strip().splitlines() for cell in line.split("|")]
    return tuple(
        VoipRule(prefix, country.replace("_", " "), round(int(price) * factor / 1000) * 1000, start) for prefix, country, price in rows
    )


def make_voip_tariffs(start: int) -> dict[int, VoipTariff]:
    made = (
        VoipTariff(92, "Std", FJORD, "VoxLink", False, False, 1_500_000, make_voip_rules(start, 1.0)),
        VoipTariff(93, "Premium routes", FJORD, "VoxLink", False, False, 3_000_000, make_voip_rules(start, 1.6)),
        VoipTariff(94, "Std 2024", FJORD, "VoxLink", True, False, 1_500_000, make_voip_rules(start, 1.2)),
        VoipTariff(95, "Alpine voice", ALPINE, None, False, True, 1_000_000, make_voip_rules(start, 1.1)),
    )
    return {tariff.id: tariff for tariff in made}
