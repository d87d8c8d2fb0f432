"""What a use costs in the simulated network, to the micro-euro."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from simulators.network import charging, fair_use, packages
from simulators.network.charging import find_tariff_rule, usage_cost
from simulators.network.entities import DATA, DAY_SECONDS, MO_SMS, MOC, MOC_VOIP, MT_SMS, MTC, Line, NetworkRefusal
from simulators.network.world import Tariff, TariffRule, VoipRule, VoipTariff, World
from tests.network_facts import MIB
from tests.sandbox.small import BERGEN, NORWAY, OSLO, SMALL_NOON, STOCKHOLM, rule, small_world, template


def ready(*, balance: int = 2_000_000, **changes: object) -> tuple[World, Line]:
    """A world whose line has one package of the given template."""
    world = small_world()
    subscriber = world.lines[900]
    subscriber.balance = balance
    world.templates[50] = template(**changes)
    packages.assign_package(world, subscriber, world.templates[50], period=None, validity_days=None)
    world.pushes.clear()
    return world, subscriber


def test_the_first_use_begins_an_undated_package() -> None:
    world, subscriber = ready()
    [cdr] = charging.use_service(world, subscriber, DATA, 5 * MIB, network_id=BERGEN, at=SMALL_NOON + 60)
    [package] = subscriber.packages
    assert (package.activated, package.expires, package.data_used) == (SMALL_NOON + 60, SMALL_NOON + 60 + 30 * DAY_SECONDS, 5 * MIB)
    assert (cdr.in_package, cdr.package_id, cdr.reseller_cost, cdr.subscriber_cost) == (5 * MIB, package.id, 10_000, 0)
    assert (package.reseller_cost, world.resellers[7].balance) == (10_000, 10**9 - 10_000)
    assert (subscriber.first_usage_at, subscriber.last_usage_at) == (SMALL_NOON + 60, SMALL_NOON + 60)
    assert subscriber.sighting is not None
    assert (subscriber.sighting.mcc, subscriber.sighting.mnc, subscriber.sighting.rat) == ("242", "02", "3G - UTRAN")


def test_one_use_is_split_over_packages_by_priority_and_the_balance_with_one_session() -> None:
    world, subscriber = ready()
    packages.assign_package(world, subscriber, template(data_bytes=50 * MIB), period=None, validity_days=None)
    cdrs = charging.use_service(world, subscriber, DATA, 152 * MIB, network_id=OSLO)
    assert [(cdr.quantity, cdr.in_package, cdr.subscriber_cost) for cdr in cdrs] == [
        (100 * MIB, 100 * MIB, 0),
        (50 * MIB, 50 * MIB, 0),
        (2 * MIB, 0, 10_000),
    ]
    assert len({cdr.session for cdr in cdrs}) == 1
    assert (subscriber.balance, world.transactions[-1].amount) == (1_990_000, -10_000)


def test_a_package_outside_its_zone_pays_nothing() -> None:
    world, subscriber = ready(zone_id=NORWAY)
    [cdr] = charging.use_service(world, subscriber, DATA, MIB, network_id=STOCKHOLM)
    assert (cdr.package_id, cdr.subscriber_cost, cdr.subscriber_rule_id) == (None, 7000, 299)
    assert subscriber.packages[0].activated is None


def test_the_rule_of_the_sponsor_wins_and_the_newest_that_has_begun() -> None:
    world, _ = ready()
    old, new, later = (TariffRule(n, 530, OSLO, 31, True, n, None, None, None, None, SMALL_NOON + n - 2) for n in (1, 2, 3))
    world.tariffs[530].rules += (old, new, later)
    assert find_tariff_rule(world, 530, OSLO, 31, SMALL_NOON) == new
    found = find_tariff_rule(world, 530, OSLO, 32, SMALL_NOON)
    assert found is not None
    assert found.id == 201


@pytest.mark.parametrize(
    ("usage_type", "quantity", "price"),
    [(MOC, 60, 150_000), (MOC, 61, 152_500), (MOC, 1, 2500), (MTC, 60, 30_000), (MO_SMS, 2, 100_000), (MT_SMS, 1, 10_000)],
)
def test_calls_are_charged_by_the_second_and_messages_each(usage_type: int, quantity: int, price: int) -> None:
    world, subscriber = ready()
    [cdr] = charging.use_service(world, subscriber, usage_type, quantity, network_id=OSLO, other_party="4790000001")
    assert (cdr.subscriber_cost, subscriber.balance) == (price, 2_000_000 - price)


def test_costs_are_rounded_half_up() -> None:
    assert [usage_cost(1, quantity, 2) for quantity in (0, 1, 2, 3)] == [0, 1, 1, 2]
    assert [usage_cost(10, quantity, MIB) for quantity in (MIB // 20 - 1, MIB // 20 + 1)] == [0, 1]


def test_the_account_pays_for_a_line_that_is_charged_there() -> None:
    world, subscriber = ready()
    subscriber.use_account = True
    [cdr] = charging.use_service(world, subscriber, MO_SMS, 1, network_id=OSLO)
    assert (world.accounts[81].balance, subscriber.balance, cdr.account_charged) == (2_950_000, 2_000_000, True)
    assert (world.transactions[-1].owner, world.transactions[-1].balance) == ("account", 2_950_000)


def test_an_account_for_packages_only_pays_for_nothing_else() -> None:
    world, subscriber = ready()
    subscriber.use_account = world.accounts[81].package_only = True
    with pytest.raises(NetworkRefusal, match="no balance pays"):
        charging.use_service(world, subscriber, MO_SMS, 1, network_id=OSLO)


def test_the_use_stops_where_the_balance_ends() -> None:
    world, subscriber = ready(balance=12_500, data_bytes=None)
    [cdr] = charging.use_service(world, subscriber, DATA, 10 * MIB, network_id=OSLO)
    assert (cdr.subscriber_cost, subscriber.balance) == (12_500, 0)
    assert abs(cdr.quantity - 5 * MIB // 2) < 200
    with pytest.raises(NetworkRefusal) as refused:
        charging.use_service(world, subscriber, DATA, MIB, network_id=OSLO)
    assert refused.value.code == 14
    assert [(event.code, event.result) for event in subscriber.events[-2:]] == [("CCR-T", "2001"), ("CCR-I", "4012")]


def test_calls_count_together_with_a_single_counter() -> None:
    world, subscriber = ready(moc_seconds=100, mtc_seconds=100, single_counter=True)
    charging.use_service(world, subscriber, MTC, 30, network_id=OSLO)
    charging.use_service(world, subscriber, MOC_VOIP, 10, network_id=OSLO, other_party="4790000001")
    [package] = subscriber.packages
    assert (package.moc_used, package.mtc_used, package.voip_used, package.units_left(MOC)) == (30, 0, 10, 60)


def test_a_call_over_ip_costs_what_the_longest_prefix_says() -> None:
    world, subscriber = ready()
    rules = tuple(VoipRule(prefix, "NORWAY", price, 0) for prefix, price in (("47", 20_000), ("479", 60_000), ("46", 1)))
    world.voip_tariffs[92] = VoipTariff(92, "Std", 7, None, False, False, 10**6, rules)
    [cdr] = charging.use_service(world, subscriber, MOC_VOIP, 30, network_id=OSLO, other_party="4790000001")
    assert (cdr.subscriber_cost, cdr.usage_type, subscriber.balance) == (30_000, 40, 1_970_000)


def test_a_parent_resellers_cost_is_kept_on_the_package() -> None:
    world, subscriber = ready()
    world.resellers[6] = replace(world.resellers[7], id=6, buy_tariff_id=513)
    world.resellers[7].parent_id = 6
    world.tariffs[513] = Tariff(513, "Wholesale", 6, "RESELLER", (rule(400, 513, OSLO, 700),))
    charging.use_service(world, subscriber, DATA, 2 * MIB, network_id=OSLO)
    assert (subscriber.packages[0].reseller_cost, subscriber.packages[0].parent_cost) == (2000, 1400)


def test_calls_elsewhere_than_the_destination_list_cost_money() -> None:
    world, subscriber = ready(moc_seconds=600, destination_id=64)
    parts = [
        charging.use_service(world, subscriber, MOC, 60, network_id=OSLO, other_party=number)[0] for number in ("+4790000001", "4690000001")
    ]
    assert [(cdr.in_package, cdr.subscriber_cost) for cdr in parts] == [(60, 0), (0, 150_000)]


@pytest.mark.parametrize("status", ["SUSPENDED", "INACTIVE", "DISCONNECTED", "PENDING", "END_OF_LIFE"])
def test_only_active_lines_use_services(status: str) -> None:
    world, subscriber = ready()
    subscriber.statuses[-1].status = status  # pyright: ignore[reportAttributeAccessIssue]  # a parametrized literal
    with pytest.raises(NetworkRefusal) as refused:
        charging.use_service(world, subscriber, DATA, 1, network_id=OSLO)
    assert (refused.value.code, subscriber.cdrs, subscriber.sighting) == (14, [], None)


def test_a_switched_off_service_is_refused_but_messages_still_arrive() -> None:
    world, subscriber = ready()
    subscriber.allowed_data = subscriber.allowed_moc = subscriber.allowed_mtc = subscriber.allowed_mo_sms = False
    for usage_type in (DATA, MOC, MTC, MO_SMS):
        with pytest.raises(NetworkRefusal):
            charging.use_service(world, subscriber, usage_type, 1, network_id=OSLO)
    assert len(charging.use_service(world, subscriber, MT_SMS, 1, network_id=OSLO)) == 1


def test_each_threshold_is_pushed_once_with_strings_where_the_wire_has_strings() -> None:
    world, subscriber = ready()
    for _ in range(10):
        charging.use_service(world, subscriber, DATA, 11 * MIB, network_id=OSLO)
    usage = [push for push in world.pushes if "subscriberPrepaidPackage" in push.body]
    assert usage[0].url == "https://shop.test/usage"
    first, second = (push.body["subscriberPrepaidPackage"] for push in usage)
    changes = {"unitsBefore": 103809024, "unitsAfter": 104857600, "thresholdPercentage": "100", "thresholdUnits": "104857600"}
    assert second == {**first, **changes}  # pyright: ignore[reportGeneralTypeIssues]  # a decoded body
    assert [first] == snapshot(
        [
            {
                "unitsBefore": 80740352,
                "unitsAfter": 92274688,
                "thresholdPercentage": "80",
                "thresholdUnits": "83886080",
                "subscriberPackageId": 1,
                "totalUnits": 104857600,
                "subscriberId": 900,
                "subscriberIMSI": "901700000000900",
                "usageType": "DATA",
            },
        ]
    )


def test_nothing_is_pushed_to_a_reseller_without_an_address() -> None:
    world, subscriber = ready()
    world.resellers[7].push.usage_url = world.resellers[7].push.location_url = ""
    charging.use_service(world, subscriber, DATA, 100 * MIB, network_id=OSLO)
    assert world.pushes == []


USES = st.lists(
    st.tuples(
        st.sampled_from((DATA, MOC, MTC, MO_SMS, MT_SMS)),
        st.integers(1, 60 * MIB),
        st.sampled_from((OSLO, BERGEN, STOCKHOLM)),
        st.sampled_from(("4790000001", "4690000001", None)),
    ),
    max_size=12,
)
OFFERS = st.lists(
    st.fixed_dictionaries(
        {
            "data_bytes": st.none() | st.integers(0, 90 * MIB),
            "moc_seconds": st.none() | st.integers(0, 10_000_000),
            "mtc_seconds": st.none() | st.integers(0, 10_000_000),
            "mo_sms": st.none() | st.integers(0, 10_000_000),
            "destination_id": st.sampled_from((None, 64)),
            "zone_id": st.sampled_from((1, 2)),
            "single_counter": st.booleans(),
        }
    ),
    max_size=4,
)


@pytest.mark.long
@given(offers=OFFERS, uses=USES, balance=st.integers(0, 3_000_000), on_account=st.booleans())
def test_whatever_is_used_the_figures_add_up(
    offers: list[dict[str, object]], uses: list[tuple[int, int, int, str | None]], balance: int, on_account: bool
) -> None:
    world, subscriber = ready(balance=balance)
    subscriber.use_account = on_account
    for number, offer in enumerate(offers):
        world.templates[60 + number] = template(id=60 + number, **offer)
        packages.assign_package(world, subscriber, world.templates[60 + number], period=None, validity_days=None)
    world.resellers[7].balance = reseller = 10**15
    account = world.accounts[81].balance
    served = [serve(world, subscriber, *each) for each in uses]
    assert all(0 < sum(cdr.quantity for cdr in cdrs) <= use[1] for cdrs, use in zip(served, uses, strict=True) if cdrs)
    for package in subscriber.packages:
        counted = package.data_used + package.moc_used + package.mtc_used + package.mo_sms_used + package.mt_sms_used
        assert counted == sum(cdr.in_package for cdr in subscriber.cdrs if cdr.package_id == package.id)
        assert package.reseller_cost == sum(cdr.reseller_cost for cdr in subscriber.cdrs if cdr.package_id == package.id)
    charged = sum(cdr.subscriber_cost for cdr in subscriber.cdrs)
    assert (
        charged == (account - world.accounts[81].balance) + (balance - subscriber.balance) == -sum(row.amount for row in world.transactions)
    )
    assert min(subscriber.balance, world.accounts[81].balance) >= 0
    assert reseller - world.resellers[7].balance == sum(cdr.reseller_cost for cdr in subscriber.cdrs)
    assert all(cdr.quantity > 0 and cdr.in_package in (0, cdr.quantity) for cdr in subscriber.cdrs)


def serve(world: World, subscriber: Line, usage_type: int, quantity: int, network_id: int, other: str | None) -> list[charging.Cdr]:
    """Use, and check that what the packages had left went first and in order."""
    open_before = [
        package.id
        for package in fair_use.covering_packages(world, subscriber, network_id, SMALL_NOON)
        if package.units_left(charging.counted_usage_type(world, subscriber, package, usage_type))
        and charging.covers_destination(world, package, usage_type, other)
    ]
    try:
        cdrs = charging.use_service(world, subscriber, usage_type, quantity, network_id=network_id, other_party=other)
    except NetworkRefusal as refused:
        assert (refused.code, open_before) == (14, [])
        return []
    paid = [cdr.package_id for cdr in cdrs if cdr.package_id is not None]
    assert paid == open_before[: len(paid)]
    return cdrs
