"""Usage and signalling over a period, as the wire answers them."""

from datetime import date

from inline_snapshot import snapshot

from simulators.network import charging, packages
from simulators.network.entities import DATA, DAY_SECONDS, MOC
from simulators.network.methods.statistics import network_events_view, usage_view
from simulators.network.radio import attach_to_network
from simulators.network.world import World
from tests.network_facts import MIB
from tests.sandbox.small import BERGEN, OSLO, SMALL_NOON, STOCKHOLM, small_world

FIRST, NEXT = date(2026, 1, 31), date(2026, 2, 1)
MIDNIGHT = SMALL_NOON + DAY_SECONDS // 2


def used_world() -> World:
    """Two days with use in two countries, some of it paid by the balance."""
    world = small_world()
    subscriber = world.lines[900]
    packages.assign_package(world, subscriber, world.templates[50], period=None, validity_days=None)
    charging.use_service(world, subscriber, DATA, 101 * MIB, network_id=OSLO, at=SMALL_NOON + 30)
    charging.use_service(world, subscriber, MOC, 60, network_id=BERGEN, at=MIDNIGHT - 1, other_party="4790000001")
    charging.use_service(world, subscriber, DATA, 3 * MIB, network_id=STOCKHOLM, at=MIDNIGHT)
    return world


def test_a_period_without_use_has_zeros_and_no_usages() -> None:
    world = used_world()
    assert usage_view(world, world.lines[900], date(2026, 3, 1), date(2026, 3, 7)) == {
        "total": {"resellerCost": 0.0, "subscriberCost": 0.0}
    }


def test_totals_add_up_per_type_country_and_operator() -> None:
    world = used_world()
    assert usage_view(world, world.lines[900], FIRST, NEXT)["total"] == snapshot(
        {
            "resellerCost": 0.26,
            "subscriberCost": 0.176,
            "quantityPerType": {"1": 60, "33": 109051904},
            "quantityPerCountry": [
                {
                    "mcc": 240,
                    "name": "Sweden",
                    "alpha2": "se",
                    "qty": 3145728,
                    "quantityPerOperator": [{"mnc": 1, "name": "Svea", "qty": 3145728}],
                },
                {
                    "mcc": 242,
                    "name": "Norway",
                    "alpha2": "no",
                    "qty": 105906236,
                    "quantityPerOperator": [
                        {"mnc": 1, "name": "Oslo Tele", "qty": 105906176},
                        {"mnc": 2, "name": "Bergen Mobil", "qty": 60},
                    ],
                },
            ],
        }
    )


def test_days_begin_at_midnight_utc_and_both_ends_are_included() -> None:
    world = used_world()
    answer = usage_view(world, world.lines[900], FIRST, NEXT)
    assert [row["day"] for row in answer["usages"][0]["subsPeriodUsages"]] == ["2026-01-31", "2026-02-01"]  # pyright: ignore[reportIndexIssue]  # a decoded body
    [only] = usage_view(world, world.lines[900], NEXT, NEXT)["usages"]  # pyright: ignore[reportGeneralTypeIssues]  # a decoded body
    [day] = only["subsPeriodUsages"]
    assert only["subscriberId"] == 900 and day["day"] == "2026-02-01" and day["total"] == only["total"]
    assert only["total"] == usage_view(world, world.lines[900], NEXT, NEXT)["total"]
    assert day["subsDailyUsages"] == snapshot(
        [
            {
                "subscriberId": 900,
                "sessionId": "ocs;1769904000;3",
                "usageDateUtc": "2026-02-01T00:00:00",
                "usageType": 33,
                "accountId": 81,
                "accountName": "Retail",
                "resellerId": 7,
                "resellerName": "Fjord",
                "mcc": 240,
                "mnc": 1,
                "country": "Sweden",
                "countryAlpha2": "se",
                "operator": "Svea",
                "quantity": 3145728,
                "resellerCost": 0.009,
                "resellerPlanId": 512,
                "resellerCurrencyId": 1,
                "resellerConvertRate": 1.0,
                "resellerPrepaidPackageQty": 0,
                "subscriberCost": 0.021,
                "lac": 3921,
                "cellId": 42963,
                "rat": "4G - LTE",
                "imei": "351271000009003",
                "imsi": 90170,
                "sponsorImsi": 901700000000900,
                "accountChargeEntity": False,
                "resellerPlanRuleId": 103,
                "subscriberPlanId": 530,
                "subscriberPlanRuleId": 299,
                "subscriberCurrencyId": 1,
                "subscriberConvertRate": 1.0,
                "apn": "internet",
            }
        ]
    )


def test_a_call_record_names_package_plan_and_number_only_where_there_is_one() -> None:
    world = used_world()
    [usage] = usage_view(world, world.lines[900], FIRST, FIRST)["usages"]  # pyright: ignore[reportGeneralTypeIssues]  # a decoded body
    rows = usage["subsPeriodUsages"][0]["subsDailyUsages"]
    names = ("quantity", "subscriberPrepaidPackageQty", "subscriberPlanRuleId", "otherPartyNumber", "apn")
    assert [[row.get(name) for name in names] for row in rows] == snapshot(
        [[104857600, 104857600, None, None, "internet"], [1048576, None, 201, None, "internet"], [60, None, 202, "4790000001", None]]
    )
    assert rows[0]["sessionId"] == rows[1]["sessionId"] != rows[2]["sessionId"]


SEEN = {
    "mapAnswer": ("eventTime", "shortCode", "result", "in_imsi", "operator"),
    "s6aAnswer": ("eventTime", "cmdNameShort", "code", "orig_realm", "customer", "operator"),
    "gyAnswer": ("eventTime", "requestType", "usedUnits", "apn", "userLocationInfoMCC", "userLocationInfoMNC", "operator"),
}
"""Members that say what happened."""


def test_signalling_is_sorted_into_sections_with_the_offset_in_its_times() -> None:
    world = used_world()
    told = network_events_view(world, world.lines[900], FIRST, FIRST)
    rows = {section: [event[name] for name in SEEN[section]] for section, part in told.items() for event in part["events"]}  # pyright: ignore[reportIndexIssue]  # a decoded body
    members = {section: " ".join(part["events"][0]) for section, part in told.items()}  # pyright: ignore[reportIndexIssue]  # a decoded body
    assert members == snapshot(
        {
            "mapAnswer": "eventTime mcc mnc service o_gt o_ssn d_gt d_ssn opcode shortCode longCode result in_imsi protocol "
            "acn host countryName countryAlpha2 operator",
            "s6aAnswer": "eventTime service cmdCode cmdNameShort cmdNameLong protocol sponsor_imsi subs_imsi mvno code "
            "oper_allowed customer session orig_realm orig_host dest_realm host user_apn sponsor countryName "
            "countryAlpha2 operator",
            "gyAnswer": "eventTime hopByHopS endToEndS hopByHopL endToEndL originHost originRealm requestType session msisdn "
            "imei apn ratTypes userLocationInfoMCC userLocationInfoMNC userLocationInfoLAC userLocationInfoSAC "
            "usedUnits responseCode sgsnip rreResponse ratingGroup rreAllowedQuota countryName countryAlpha2 "
            "operator",
        }
    )
    assert rows == snapshot(
        {
            "mapAnswer": ["2026-02-01T00:59:59.000+01:00", "UL", "Success", "901700000000900", "Bergen Mobil"],
            "s6aAnswer": ["2026-01-31T13:00:30.000+01:00", "ULR", "2001", "epc.mnc001.mcc242.3gppnetwork.org", "Retail", "Oslo Tele"],
            "gyAnswer": ["2026-01-31T13:00:30.000+01:00", "Term", "105906176", "internet", "242", "01", "Oslo Tele"],
        }
    )


def test_a_section_without_events_is_absent() -> None:
    world = small_world()
    assert network_events_view(world, world.lines[900], FIRST, NEXT) == {}
    attach_to_network(world, world.lines[900], OSLO, SMALL_NOON)
    assert list(network_events_view(world, world.lines[900], FIRST, NEXT)) == ["s6aAnswer"]
