"""Price lists of calls over IP."""

from clients.sandbox.ocs.prices import VoipRule, VoipTariff
from clients.sandbox.ocs.seed.sponsors import ALPINE, FJORD

# Prefix, country, micro-euro per minute; the longest prefix wins.
PRICES = """
    1 UNITED_STATES 9000 | 1809 DOMINICAN_REPUBLIC 61000 | 30 GREECE 12000 | 31 NETHERLANDS 14000 | 316 NETHERLANDS 42000
    32 BELGIUM 15000 | 33 FRANCE 9000 | 336 FRANCE 35000 | 34 SPAIN 11000 | 351 PORTUGAL 12000 | 353 IRELAND 13000
    354 ICELAND 22000 | 358 FINLAND 48000 | 370 LITHUANIA 24000 | 371 LATVIA 26000 | 372 ESTONIA 26000 | 39 ITALY 10000
    41 SWITZERLAND 19000 | 4179 SWITZERLAND 52000 | 43 AUSTRIA 17000 | 44 UNITED_KINGDOM 8000 | 447 UNITED_KINGDOM 31000
    45 DENMARK 11000 | 46 SWEDEN 9000 | 47 NORWAY 20000 | 479 NORWAY 38000 | 48 POLAND 12000 | 49 GERMANY 9000
    491 GERMANY 33000 | 61 AUSTRALIA 21000 | 65 SINGAPORE 14000 | 81 JAPAN 34000 | 86 CHINA 17000 | 90 TURKEY 55000
    91 INDIA 13000 | 971 UNITED_ARAB_EMIRATES 190000
"""


def rules(start: int, factor: float) -> tuple[VoipRule, ...]:
    """The price list with a markup, in steps of a tenth of a cent."""
    rows = [cell.split() for line in PRICES.strip().splitlines() for cell in line.split("|")]
    return tuple(
        VoipRule(prefix, country.replace("_", " "), round(int(price) * factor / 1000) * 1000, start) for prefix, country, price in rows
    )


def voip_tariffs(start: int) -> dict[int, VoipTariff]:
    """Every VoIP price list by its id."""
    made = (
        VoipTariff(92, "Std", FJORD, "VoxLink", False, False, 1_500_000, rules(start, 1.0)),
        VoipTariff(93, "Premium routes", FJORD, "VoxLink", False, False, 3_000_000, rules(start, 1.6)),
        VoipTariff(94, "Std 2024", FJORD, "VoxLink", True, False, 1_500_000, rules(start, 1.2)),
        VoipTariff(95, "Alpine voice", ALPINE, None, False, True, 1_000_000, rules(start, 1.1)),
    )
    return {tariff.id: tariff for tariff in made}
