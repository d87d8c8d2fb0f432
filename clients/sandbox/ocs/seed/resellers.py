"""The two resellers, trees of their own, and their six accounts."""

from clients.sandbox.ocs.entities import MICRO, Account, GreenZone, Reseller
from clients.sandbox.ocs.seed.sponsors import ALPINE, FJORD

DEMO_ACCOUNT = 8101
BUY = {FJORD: 512, ALPINE: 513}
SELL = {FJORD: 530, ALPINE: 531}
VOIP = {FJORD: 92, ALPINE: 95}

FJORD_CONTACT = {
    "contactName": "Ingrid Solberg",
    "email": "noc@fjordmobile.example",
    "phone": "4722000001",
    "address": "Havnegata 12",
    "zip": "0150",
    "city": "Oslo",
    "state": "Oslo",
    "country": "Norway",
}
ALPINE_CONTACT = {
    "contactName": "Beat Zurbriggen",
    "email": "ops@alpineconnect.example",
    "phone": "41440000001",
    "city": "Zürich",
    "state": "ZH",
    "country": "Switzerland",
}


def resellers() -> dict[int, Reseller]:
    """Both resellers by id."""
    fjord = Reseller(
        FJORD,
        "Fjord Mobile",
        parent_id=-1,
        balance=1_530_200_000,  # 1530,20 on the wire
        relay_gy=False,
        relay_calls=False,
        relay_location=True,
        relay_voip=False,
        mobile_plan_id=SELL[FJORD],
        buy_tariff_id=BUY[FJORD],
        voip_plan_id=VOIP[FJORD],
        contact=dict(FJORD_CONTACT),
        green_zone=GreenZone(301, "Fjord green zone", max_mb=50, throttle_kbps=128),
    )
    alpine = Reseller(
        ALPINE,
        "Alpine Connect",
        parent_id=-1,
        balance=612_750_000,
        relay_gy=False,
        relay_calls=False,
        relay_location=False,
        relay_voip=False,
        mobile_plan_id=SELL[ALPINE],
        buy_tariff_id=BUY[ALPINE],
        voip_plan_id=VOIP[ALPINE],
        contact=dict(ALPINE_CONTACT),
        single_counter=True,
    )
    return {FJORD: fjord, ALPINE: alpine}


def accounts() -> dict[int, Account]:
    """Every account by its id."""
    made = (
        Account(DEMO_ACCOUNT, FJORD, "Demo Retail", 412_500_000, False, 17, GreenZone(311, "Retail green zone", 0, 128)),
        Account(8102, FJORD, "Fleet Trackers", 238 * MICRO, False, 18, GreenZone(312, "Fleet green zone", 5, 64)),
        Account(8103, FJORD, "Corporate Travel", 955_400_000, False, None),
        Account(8104, FJORD, "Partner Shop", 0, True, None),
        Account(8201, ALPINE, "Retail Alps", 187_250_000, False, None),
        Account(8202, ALPINE, "Hotel Guests", 64_900_000, False, None, GreenZone(313, "Guest green zone", 20, 256)),
    )
    return {account.id: account for account in made}


SHARES = {8101: 140, 8102: 90, 8103: 50, 8104: 40, 8201: 50, 8202: 30}


def line_counts(lines: int) -> dict[int, int]:
    """How many lines each account has: in proportion, and what is left over in the demo account, as is all beyond 400."""
    whole = sum(SHARES.values())
    counts = {account: min(share, share * lines // whole) for account, share in SHARES.items()}
    counts[DEMO_ACCOUNT] += lines - sum(counts.values())
    return counts
