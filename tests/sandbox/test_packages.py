"""Packages of the simulated network: what assigning does, what the clock does, and who may not."""

import pytest

from simulators.network import charging, packages
from simulators.network.entities import DATA, DAY_SECONDS, UNLIMITED_BITRATE, NetworkRefusal, ThrottleThreshold
from simulators.network.simulation import run_world_to
from tests.network_facts import MIB
from tests.sandbox.small import OSLO, SMALL_NOON, line, small_world, template


def moment(day: int, month: int, hour: int = 12) -> int:
    """In 2026; 31 January noon is NOON."""
    lengths = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return SMALL_NOON + (sum(lengths[: month - 1]) + day - 31) * DAY_SECONDS + (hour - 12) * 3600


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


def test_a_monthly_series_keeps_its_day_of_month_and_is_made_twelve_hours_ahead() -> None:
    world = small_world()
    subscriber = world.lines[900]
    monthly = template(recurring=True, periodicity=2, frequency=1)
    world.templates[50] = monthly
    series, first = packages.assign_package_series(world, subscriber, monthly, start=None, at_first_use=False)
    assert first is not None
    run_world_to(world, moment(28, 2, 0) - 1)
    assert series.created == 1
    run_world_to(world, moment(1, 5, 12))
    assert [package.activated for package in subscriber.packages] == [moment(31, 1), moment(28, 2), moment(31, 3), moment(30, 4)]
    assert [package.assigned for package in subscriber.packages][1:] == [moment(28, 2, 0), moment(31, 3, 0), moment(30, 4, 0)]
    assert series.last_created == moment(30, 4, 0)


@pytest.mark.parametrize(("periodicity", "frequency", "step"), [(0, 1, 1), (0, 3, 3), (1, 1, 7), (1, 2, 14)])
def test_daily_and_weekly_series_step_by_their_frequency_and_stop_at_their_number(periodicity: int, frequency: int, step: int) -> None:
    world = small_world()
    subscriber = world.lines[900]
    world.templates[50] = template(recurring=True, periodicity=periodicity, frequency=frequency, occurrences=3, period_days=1)
    packages.assign_package_series(world, subscriber, world.templates[50], start=SMALL_NOON + DAY_SECONDS, at_first_use=False)
    run_world_to(world, SMALL_NOON + 60 * DAY_SECONDS)
    assert [package.activated for package in subscriber.packages] == [SMALL_NOON + DAY_SECONDS + n * step * DAY_SECONDS for n in range(3)]


def test_a_series_that_starts_later_than_twelve_hours_has_no_package_yet() -> None:
    world = small_world()
    world.templates[50] = template(recurring=True, periodicity=0, frequency=1)
    series, package = packages.assign_package_series(
        world, world.lines[900], world.templates[50], start=SMALL_NOON + DAY_SECONDS, at_first_use=False
    )
    assert (package, series.created, world.lines[900].status) == (None, 0, "ACTIVE")


def test_the_first_use_of_a_series_starts_it() -> None:
    world = small_world()
    subscriber = world.lines[900]
    world.templates[50] = template(recurring=True, periodicity=1, frequency=1, period_days=7)
    series, package = packages.assign_package_series(world, subscriber, world.templates[50], start=None, at_first_use=True)
    assert package is not None
    run_world_to(world, SMALL_NOON + 20 * DAY_SECONDS)
    assert (series.start, package.activated, len(subscriber.packages)) == (None, None, 1)
    charging.use_service(world, subscriber, DATA, 10, network_id=OSLO)
    run_world_to(world, SMALL_NOON + 30 * DAY_SECONDS)
    assert [held.activated for held in subscriber.packages] == [SMALL_NOON + 20 * DAY_SECONDS, SMALL_NOON + 27 * DAY_SECONDS]


def test_a_stopped_series_makes_nothing_and_a_resumed_one_skips_what_it_missed() -> None:
    world = small_world()
    subscriber = world.lines[900]
    world.templates[50] = template(recurring=True, periodicity=0, frequency=1, period_days=1, occurrences=4)
    series, _ = packages.assign_package_series(world, subscriber, world.templates[50], start=None, at_first_use=False)
    packages.set_series_active(world, [series], False)
    run_world_to(world, SMALL_NOON + 5 * DAY_SECONDS + 3600)
    assert len(subscriber.packages) == 1
    packages.set_series_active(world, [series], True)
    run_world_to(world, SMALL_NOON + 20 * DAY_SECONDS)
    assert [(held.activated or 0) - SMALL_NOON for held in subscriber.packages] == [0, 5 * DAY_SECONDS, 6 * DAY_SECONDS, 7 * DAY_SECONDS]


def test_switching_the_templates_recurring_off_stops_its_series() -> None:
    world = small_world()
    world.templates[50] = template(recurring=True, periodicity=0, frequency=1)
    packages.assign_package_series(world, world.lines[900], world.templates[50], start=None, at_first_use=False)
    world.templates[50].recurring = False
    run_world_to(world, SMALL_NOON + 5 * DAY_SECONDS)
    assert len(world.lines[900].packages) == 1


def test_a_month_renews_carries_over_throttles_exhausts_and_expires() -> None:
    world = small_world()
    subscriber = world.lines[900]
    steps = (ThrottleThreshold(80, 512), None, None, None)
    world.templates[50] = template(
        recurring=True, periodicity=1, frequency=1, period_days=7, carry_over=True, throttling=True, throttles=steps
    )
    packages.assign_package_series(world, subscriber, world.templates[50], start=None, at_first_use=False)
    charging.use_service(world, subscriber, DATA, 30 * MIB, network_id=OSLO)
    run_world_to(world, SMALL_NOON + 7 * DAY_SECONDS)
    first, second = subscriber.packages
    assert (second.data_limit, first.expires) == (170 * MIB, SMALL_NOON + 7 * DAY_SECONDS)
    charging.use_service(world, subscriber, DATA, 140 * MIB, network_id=OSLO)
    assert (subscriber.bitrate, subscriber.throttled, second.throttled_kbps) == ("KB_512", True, 512)
    run_world_to(world, SMALL_NOON + 13 * DAY_SECONDS + 13 * 3600)
    assert subscriber.bitrate == "KB_512"
    run_world_to(world, SMALL_NOON + 14 * DAY_SECONDS)
    third = subscriber.packages[-1]
    assert (subscriber.bitrate, subscriber.throttled, third.data_limit) == (UNLIMITED_BITRATE, False, 130 * MIB)
    charging.use_service(world, subscriber, DATA, 130 * MIB, network_id=OSLO)
    assert (third.data_used, subscriber.bitrate) == (130 * MIB, UNLIMITED_BITRATE)
    packages.set_series_active(world, subscriber.series, False)
    run_world_to(world, SMALL_NOON + 21 * DAY_SECONDS)
    before = subscriber.balance
    charging.use_service(world, subscriber, DATA, MIB, network_id=OSLO)
    assert before - subscriber.balance == 5000
    usage = [body for push in world.pushes if isinstance(body := push.body.get("subscriberPrepaidPackage"), dict)]
    marks = [body["thresholdPercentage"] for body in usage]
    assert marks == ["80", "80", "100"]


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
