"""The radio life of the simulated fleet: what lines do by themselves, and that only the clock decides it."""

from hashlib import sha256
from itertools import pairwise
from random import Random

import pytest
from inline_snapshot import snapshot

from simulators.network import charging, packages
from simulators.network.entities import DATA, DAY_SECONDS, GreenZone, NetworkRefusal, ThrottleThreshold
from simulators.network.line_behaviour import plan_line_day, stays_of_day
from simulators.network.radio import attach_to_network
from simulators.network.simulation import run_world_to
from simulators.network.world import World
from tests.network_facts import MIB
from tests.sandbox.small import BERGEN, LIVELY, OSLO, SMALL_NOON, STOCKHOLM, line, small_world, template


def lively_world(lines: int = 6) -> World:
    """Lines with short packages of little data, recurring and throttled, so that everything that can happen does."""
    world = small_world()
    slow = {"throttling": True, "throttles": (ThrottleThreshold(50, 512), ThrottleThreshold(90, 128), None, None)}
    series = {"recurring": True, "periodicity": 0, "frequency": 2, "carry_over": True, "period_days": 2}
    world.templates[51] = template(id=51, data_bytes=20 * MIB, moc_seconds=300, **series, **slow)
    world.templates[52] = template(id=52, data_bytes=30 * MIB, period_days=3, **slow)
    world.resellers[7].green_zone = GreenZone(1, "Slow", 10, 64)
    for number in range(901, 901 + lines):
        subscriber = line(world, number, LIVELY)
        if number % 3 == 0:
            packages.assign_package(world, subscriber, world.templates[52], period=None, validity_days=None)
        else:
            packages.assign_package_series(world, subscriber, world.templates[51], start=None, at_first_use=number % 3 == 1)
        subscriber.use_account = number % 2 == 0
    return world


def digest(world: World) -> str:
    parts = (
        world.now,
        world.lines,
        world.accounts,
        world.resellers,
        world.transactions,
        world.pushes,
        world.packages,
        world.series,
        world.counters,
    )
    return sha256(repr(parts).encode()).hexdigest()


@pytest.mark.parametrize("seed", range(3))
def test_the_result_does_not_depend_on_how_the_way_is_cut(seed: int) -> None:
    straight, cut = lively_world(), lively_world()
    end = SMALL_NOON + 12 * DAY_SECONDS + 4321
    run_world_to(straight, end)
    random = Random(seed)
    marks = [random.randrange(SMALL_NOON, end) for _ in range(random.choice((1, 5, 60)))]
    marks += [deed.at for deed in plan_line_day(1, cut.lines[901], SMALL_NOON // DAY_SECONDS + 3, {})] + [
        SMALL_NOON + DAY_SECONDS // 2,
        SMALL_NOON + DAY_SECONDS * 3 // 2,
    ]
    for mark in sorted(marks):
        run_world_to(cut, mark)
    run_world_to(cut, end)
    assert digest(cut) == digest(straight)
    assert len(straight.pushes) > 20
    assert len(straight.transactions) > 10
    assert any(found.green_bytes for found in straight.lines.values())
    assert any(package.throttled_kbps for package in straight.packages.values())


def test_an_event_at_the_very_moment_is_run_and_the_next_is_not() -> None:
    world = lively_world()
    plan = sorted(deed for deed in plan_line_day(1, world.lines[902], SMALL_NOON // DAY_SECONDS + 1, {}) if deed.kind == DATA)
    run_world_to(world, plan[0].at - 1)
    before = len(world.lines[902].cdrs)
    run_world_to(world, plan[0].at)
    assert (len(world.lines[902].cdrs) - before, world.now) == (1, plan[0].at)


def test_the_clock_does_not_go_back() -> None:
    world = lively_world()
    run_world_to(world, SMALL_NOON + DAY_SECONDS)
    before = digest(world)
    run_world_to(world, SMALL_NOON)
    assert digest(world) == before


def test_lines_that_are_not_active_and_stock_do_nothing() -> None:
    world = small_world()
    line(world, 901, LIVELY)
    line(world, 902, LIVELY._replace(kind="stock"))
    packages.assign_package(world, world.lines[902], world.templates[50], period=None, validity_days=None)
    run_world_to(world, SMALL_NOON + 20 * DAY_SECONDS)
    assert all(not (found.cdrs or found.events or found.sighting) for found in world.lines.values())


def test_a_line_without_credit_is_seen_but_gets_no_data() -> None:
    world = small_world()
    subscriber = line(world, 901, LIVELY)
    packages.assign_package(world, subscriber, template(data_bytes=None), period=None, validity_days=None)
    subscriber.balance = 0
    run_world_to(world, SMALL_NOON + 3 * DAY_SECONDS)
    assert subscriber.cdrs == []
    assert subscriber.sighting is not None
    assert {event.code for event in subscriber.events} >= {"ULR", "CCR-I"}


def test_a_traveller_goes_away_and_comes_home() -> None:
    countries = [stay.iso2 for number in range(20_000, 20_084) for stay in stays_of_day(1, 901, LIVELY, number, {})]
    changes = [after for before, after in pairwise(countries) if before != after]
    assert len(changes) > 6
    assert all(before != after for before, after in pairwise(changes))
    assert 10 < countries.count("se") < 60


def test_an_arrival_is_attached_and_pushed_with_the_place() -> None:
    world = lively_world(1)
    run_world_to(world, SMALL_NOON + 40 * DAY_SECONDS)
    places = [push.body["locationUpdate"] for push in world.pushes if "locationUpdate" in push.body]
    assert {(place["mcc"], place["mnc"]) for place in places} == {(242, 1), (242, 2), (240, 1)}  # pyright: ignore[reportIndexIssue]  # a decoded body
    assert places[0] == snapshot(
        {
            "iccid": "8988303000000000901",
            "imsi": "901700000000901",
            "subsId": 901,
            "mcc": 242,
            "mnc": 2,
            "lac": 3945,
            "cellId": 37949,
            "rat": "3G - UTRAN",
            "eventTimeUtc": "2026-01-31T16:21:11",
        }
    )


def test_no_location_is_pushed_unless_the_reseller_has_it_relayed() -> None:
    world = small_world()
    world.resellers[7].relay_location = False
    attach_to_network(world, world.lines[900], OSLO, SMALL_NOON)
    assert (world.pushes, [event.code for event in world.lines[900].events]) == ([], ["ULR"])


def test_attaching_twice_to_one_network_is_one_push_and_two_events() -> None:
    world = small_world()
    for network_id in (BERGEN, BERGEN, STOCKHOLM):
        attach_to_network(world, world.lines[900], network_id, SMALL_NOON)
    assert [event.code for event in world.lines[900].events] == ["UpdateLocation", "UpdateLocation", "ULR"]
    assert len(world.pushes) == 2
    with pytest.raises(NetworkRefusal) as refused:
        attach_to_network(world, world.lines[900], 99, SMALL_NOON)
    assert refused.value.code == 6


def test_steering_decides_the_network_most_of_the_time() -> None:
    world = lively_world(1)
    world.lines[901].steering_list_id = 17
    run_world_to(world, SMALL_NOON + 40 * DAY_SECONDS)
    home = [cdr.network_id for cdr in world.lines[901].cdrs if cdr.mcc == "242"]
    assert home.count(BERGEN) > 8 * home.count(OSLO) > 0


def test_records_and_events_stay_in_order_of_time_when_an_older_use_is_put_in() -> None:
    world = lively_world(2)
    run_world_to(world, SMALL_NOON + 3 * DAY_SECONDS)
    subscriber = world.lines[902]
    seen = subscriber.sighting
    assert seen is not None
    last = seen.at
    charging.use_service(world, subscriber, DATA, 1, network_id=OSLO, at=SMALL_NOON + 5)
    assert [cdr.at for cdr in subscriber.cdrs] == sorted(cdr.at for cdr in subscriber.cdrs)
    assert [event.at for event in subscriber.events] == sorted(event.at for event in subscriber.events)
    assert (seen.at, subscriber.first_usage_at) == (last, SMALL_NOON + 5)


def test_a_provider_status_ends_the_one_before() -> None:
    world = small_world()
    world.add_provider_status(world.lines[900], "Enable", "P1")
    assert [(row.status, row.start, row.end) for row in world.lines[900].sim.provider] == [
        ("Allocated", 0, SMALL_NOON),
        ("Enable", SMALL_NOON, None),
    ]
    assert world.pushes[0].url == "https://shop.test/esim"
