"""Packages of the simulated network: what assigning does, what the clock does, and who may not."""

import pytest

from simulators.network import charging, packages
from simulators.network.entities import DATA, DAY_SECONDS, UNLIMITED_BITRATE, NetworkRefusal, ThrottleThreshold
from simulators.network.simulation import run_world_to
from tests.network_facts import MIB
from tests.sandbox.small import OSLO, SMALL_NOON, line, small_world, template


def test_assigning_activates_the_line_and_takes_its_free_sim_into_use() -> None:
    world = small_world()
    subscriber = world.lines[900]
    package = packages.assign_package(world, subscriber, world.templates[50], period=None, validity_days=None)
    assert (package.priority, package.data_limit, package.activated, package.expires) == (1, 100 * MIB, None, None)
    assert (subscriber.status, subscriber.statuses[0].end, subscriber.activated_at) == ("ACTIVE", SMALL_NOON, SMALL_NOON)
    assert (subscriber.sim.status, subscriber.sim.affected_at) == ("AFFECTED", SMALL_NOON)
    assert [(row.status, row.end) for row in subscriber.sim.provider] == [("Allocated", SMALL_NOON), ("Released", None)]
    assert [push.body for push in world.pushes] == [
        {"iccid": subscriber.iccid, "imsi": subscriber.imsi, "eid": "8904", "subsId": 900, "status": "Released"}
    ]


def test_the_second_package_stands_behind_the_first_and_changes_neither_status_nor_sim() -> None:
    world = small_world()
    subscriber = world.lines[900]
    first = packages.assign_package(world, subscriber, world.templates[50], period=None, validity_days=7)
    second = packages.assign_package(
        world, subscriber, world.templates[50], period=(SMALL_NOON + DAY_SECONDS, SMALL_NOON + 3 * DAY_SECONDS), validity_days=None
    )
    assert (first.activated, first.expires) == (SMALL_NOON, SMALL_NOON + 7 * DAY_SECONDS)
    assert (second.priority, second.activated, second.expires) == (2, SMALL_NOON + DAY_SECONDS, SMALL_NOON + 3 * DAY_SECONDS)
    assert (len(subscriber.statuses), len(world.pushes)) == (2, 1)


@pytest.mark.parametrize(
    ("status", "changes", "code"), [("END_OF_LIFE", {}, 17), ("ACTIVE", {"deleted": True}, 6), ("ACTIVE", {"sponsor_id": 32}, 14)]
)
def test_assigning_is_refused_without_a_trace(status: str, changes: dict[str, object], code: int) -> None:
    world = small_world()
    subscriber = world.lines[900]
    subscriber.statuses[-1].status = status  # pyright: ignore[reportAttributeAccessIssue]  # a parametrized literal
    with pytest.raises(NetworkRefusal) as refused:
        packages.assign_package(world, subscriber, template(**changes), period=None, validity_days=None)
    assert refused.value.code == code
    assert (subscriber.packages, subscriber.sim.status, world.pushes) == ([], "FREE", [])


def test_the_free_line_with_the_lowest_id_is_drawn_until_none_is_left() -> None:
    world = small_world()
    line(world, 901)
    drawn = []
    for _ in range(2):
        found = packages.draw_free_line(world, world.accounts[81])
        packages.assign_package(world, found, world.templates[50], period=None, validity_days=None)
        drawn.append(found.id)
    assert drawn == [900, 901]
    with pytest.raises(NetworkRefusal, match="No free eSIM"):
        packages.draw_free_line(world, world.accounts[81])


def test_only_an_undated_package_takes_a_period_and_only_a_dated_one_an_expiry() -> None:
    world = small_world()
    package = packages.assign_package(world, world.lines[900], world.templates[50], period=None, validity_days=None)
    with pytest.raises(NetworkRefusal) as refused:
        packages.set_package_expiry(world, package, SMALL_NOON + DAY_SECONDS)
    assert refused.value.code == 14
    packages.set_package_validity(world, package, 5)
    packages.set_package_period(world, package, SMALL_NOON + DAY_SECONDS, SMALL_NOON + 2 * DAY_SECONDS, "trip moved")
    with pytest.raises(NetworkRefusal) as again:
        packages.set_package_period(world, package, SMALL_NOON + DAY_SECONDS, SMALL_NOON + 2 * DAY_SECONDS, "once more")
    assert again.value.code == 14
    packages.set_package_validity(world, package, 9)
    assert (package.activated, package.expires, package.history) == (
        SMALL_NOON + DAY_SECONDS,
        SMALL_NOON + 10 * DAY_SECONDS,
        ["active period changed: trip moved"],
    )


@pytest.mark.parametrize(("periodicity", "frequency", "step"), [(0, 1, 1), (0, 3, 3), (1, 1, 7), (1, 2, 14)])
def test_daily_and_weekly_series_step_by_their_frequency_and_stop_at_their_number(periodicity: int, frequency: int, step: int) -> None:
    world = small_world()
    subscriber = world.lines[900]
    world.templates[50] = template(recurring=True, periodicity=periodicity, frequency=frequency, occurrences=3, period_days=1)
    packages.assign_package_series(world, subscriber, world.templates[50], start=SMALL_NOON + DAY_SECONDS, at_first_use=False)
    run_world_to(world, SMALL_NOON + 60 * DAY_SECONDS)
    assert [package.activated for package in subscriber.packages] == [SMALL_NOON + DAY_SECONDS + n * step * DAY_SECONDS for n in range(3)]


def test_switching_the_templates_recurring_off_stops_its_series() -> None:
    world = small_world()
    world.templates[50] = template(recurring=True, periodicity=0, frequency=1)
    packages.assign_package_series(world, world.lines[900], world.templates[50], start=None, at_first_use=False)
    world.templates[50].recurring = False
    run_world_to(world, SMALL_NOON + 5 * DAY_SECONDS)
    assert len(world.lines[900].packages) == 1


def test_removing_the_throttled_package_gives_the_speed_back() -> None:
    world = small_world()
    subscriber = world.lines[900]
    world.templates[50] = template(throttling=True, throttles=(ThrottleThreshold(50, 128), ThrottleThreshold(80, 64), None, None))
    package = packages.assign_package(world, subscriber, world.templates[50], period=None, validity_days=None)
    charging.use_service(world, subscriber, DATA, 60 * MIB, network_id=OSLO)
    assert subscriber.bitrate == "KB_128"
    packages.set_package_limits(world, package, (200 * MIB, None, None, None, None), "gift")
    assert (subscriber.bitrate, package.history) == (UNLIMITED_BITRATE, ["limits changed: gift"])
    charging.use_service(world, subscriber, DATA, 100 * MIB, network_id=OSLO)
    assert subscriber.bitrate == "KB_64"
    packages.remove_package(world, package)
    assert (subscriber.bitrate, subscriber.packages, world.packages) == (UNLIMITED_BITRATE, [], {})


def test_cleaning_removes_packages_and_series() -> None:
    world = small_world()
    subscriber = world.lines[900]
    world.templates[50] = template(recurring=True, periodicity=0, frequency=1)
    packages.assign_package_series(world, subscriber, world.templates[50], start=None, at_first_use=False)
    packages.remove_all_packages(world, subscriber)
    assert (subscriber.packages, subscriber.series, world.packages, world.series) == ([], [], {}, {})
