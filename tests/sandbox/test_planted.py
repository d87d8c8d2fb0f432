"""Planting in the simulated network: the same every time, charged like all else, and true by what happens afterwards."""

import hashlib
import re
from collections import Counter
from datetime import UTC, date, datetime

import pytest

from simulators.network.charging import find_tariff_rule, rate_unit, tariff_rate, usage_cost
from simulators.network.entities import DATA, DAY_SECONDS, Cdr, Line
from simulators.network.seed.build import build_world
from simulators.network.seed.scenario import build_scenario
from simulators.network.seed.scenario_actors import TROUBLE_CAUSES
from simulators.network.simulation import run_world_to
from simulators.network.world import World
from tests.sandbox.planted import LAST, MIDNIGHT, PLANTED_LINES, original, planted, truth_counts

SMALLEST = 140


def by_iccid(world: World) -> dict[str, Line]:
    return {line.iccid: line for line in world.lines.values()}


def daily(line: Line) -> dict[date, int]:
    """Bytes of data by UTC day."""
    found = Counter[date]()
    for cdr in line.cdrs:
        if cdr.usage_type == DATA:
            found[datetime.fromtimestamp(cdr.at, UTC).date()] += cdr.quantity
    return found


@pytest.mark.long
def test_one_seed_gives_one_planted_world_and_one_truth_and_another_seed_another() -> None:
    values = re.sub(r"\b[A-Za-z_][\w.]*\(", "(", repr(planted(2, SMALLEST)))  # without the names of classes
    assert hashlib.sha256(values.encode()).hexdigest()[:24] == "7809f1ab1fae3a0bea2e4b71"
    assert {*planted(2, SMALLEST).truth.churn} != {*planted().truth.churn}


def test_plain_worlds_are_byte_for_byte_what_they_were_before_anything_could_be_planted() -> None:
    values = re.sub(
        r"\b[A-Za-z_][\w.]*\(", "(", repr(build_world(3, 1_789_992_000, history_days=30, lines=60))
    )  # without the names of classes
    assert hashlib.sha256(values.encode()).hexdigest()[:24] == "33235155c385b7027149b719"


@pytest.mark.long
@pytest.mark.parametrize(("seed", "lines"), [(1, PLANTED_LINES), (2, SMALLEST)])
def test_a_twentieth_to_a_tenth_of_the_lines_have_each_thing_to_find(seed: int, lines: int) -> None:
    truth = planted(seed, lines).truth
    shares = {kind: count / lines for kind, count in truth_counts(truth).items()}
    assert all(0.03 <= share <= 0.12 for share in shares.values()), shares
    assert {*truth.troubles.values()} == {*TROUBLE_CAUSES}
    assert all(truth.negatives.values())


def test_the_demo_account_alone_has_every_kind() -> None:
    made = planted()
    lines = by_iccid(made.world)
    for kind in truth_counts(made.truth):
        assert any(lines[iccid].account_id == 8101 for iccid in getattr(made.truth, kind)), kind


def test_too_few_lines_or_days_are_refused() -> None:
    with pytest.raises(ValueError, match="139 lines"):
        build_scenario(1, MIDNIGHT, lines=139)
    with pytest.raises(ValueError, match="59 days"):
        build_scenario(1, MIDNIGHT, lines=140, history_days=59)


def test_what_packages_say_was_used_is_the_sum_of_their_records() -> None:
    world = planted().world
    used = Counter[int]()
    for line in world.lines.values():
        for cdr in line.cdrs:
            used[cdr.package_id or 0] += cdr.in_package
    for package in world.packages.values():
        units = package.data_used + package.moc_used + package.mtc_used + package.mo_sms_used + package.mt_sms_used
        assert used[package.id] == units
        assert package.data_limit is None or package.data_used <= package.data_limit


def test_what_balances_paid_is_the_sum_of_the_records_and_every_price_is_the_tariffs() -> None:
    world = planted().world
    charged = Counter[tuple[str, int]]()
    for line in world.lines.values():
        for cdr in line.cdrs:
            assert cdr.reseller_cost == price(world, line, cdr)
            charged[("account", line.account_id) if cdr.account_charged else ("line", line.id)] += cdr.subscriber_cost
    paid = Counter[tuple[str, int]]()
    for entry in world.transactions:
        if entry.description.startswith("Usage"):
            paid[entry.owner, entry.owner_id] -= entry.amount
    assert paid == Counter({owner: sum_ for owner, sum_ in charged.items() if sum_})


def price(world: World, line: Line, cdr: Cdr) -> int:
    """What the reseller pays for a record by its own tariff."""
    buy = find_tariff_rule(world, world.resellers[line.reseller_id].buy_tariff_id, cdr.network_id, line.sim.sponsor_id, cdr.at)
    return usage_cost(tariff_rate(buy, cdr.usage_type), cdr.quantity, rate_unit(cdr.usage_type))


@pytest.mark.long
def test_nothing_is_used_after_the_start_by_lines_that_churn_and_most_others_go_on() -> None:
    world, truth = original().copy(), planted().truth
    run_world_to(world, MIDNIGHT + 28 * DAY_SECONDS)
    lines = by_iccid(world)
    assert len(truth.churn) >= 8
    for iccid in truth.churn:
        assert lines[iccid].cdrs[-1].at < MIDNIGHT
    going_on = [iccid for iccid in truth.staying if lines[iccid].cdrs[-1].at >= MIDNIGHT]
    assert len(going_on) > 0.9 * len(truth.staying)
    assert {*truth.churn} <= {*truth.gone}
    assert not {*truth.gone} & {*truth.staying}


def test_lines_that_churn_used_less_and_less_and_bought_nothing_more() -> None:
    made = planted()
    lines = by_iccid(made.world)
    early = late = 0
    for iccid in made.truth.churn:
        line = lines[iccid]
        days = [cdr.at // DAY_SECONDS - LAST for cdr in line.cdrs if cdr.usage_type == DATA]
        early += sum(-70 <= day < -42 for day in days)
        late += sum(day >= -14 for day in days)
        assert max(package.assigned for package in line.packages) < MIDNIGHT - 20 * DAY_SECONDS
    assert late * 4 < early


def test_a_spike_is_five_usual_days_at_once_and_a_silence_follows_regular_days() -> None:
    made = planted()
    lines = by_iccid(made.world)
    for iccid, days in made.truth.spikes.items():
        data = daily(lines[iccid])
        usual = sorted(data.values())[len(data) // 2]
        assert all(data[day] >= 4 * usual for day in days)
    for iccid, days in made.truth.silences.items():
        used = {*daily(lines[iccid])}
        assert not used & {*days}
        assert len([day for day in used if 0 < (days[0] - day).days <= 14]) >= 9


def test_the_days_that_only_look_like_something_are_not_in_the_truth() -> None:
    truth = planted().truth
    for iccid in (*truth.negatives["regular_heavy"], *truth.negatives["weekday"], *truth.negatives["first_trip"]):
        assert iccid not in truth.spikes
        assert iccid not in truth.silences
        assert iccid not in truth.churn
    for iccid in truth.negatives["partner"]:
        assert iccid not in truth.mis_steered


def test_mis_steered_lines_pay_from_a_balance_where_their_package_works_on_other_networks() -> None:
    made = planted()
    world, lines = made.world, by_iccid(made.world)
    for iccid, countries in made.truth.mis_steered.items():
        line = lines[iccid]
        assert line.steering_list_id == 18
        zones = [
            world.zones[package.zone_id].network_ids for package in line.packages if package.in_date(world.now) and package.units_left(DATA)
        ]
        for country in countries:
            assert any(world.networks[one].iso2 == country for zone in zones for one in zone)
            records = [cdr for cdr in line.cdrs if world.networks[cdr.network_id].iso2 == country and cdr.package_id is None]
            assert any(cdr.subscriber_cost > 0 for cdr in records)


def test_a_wrong_package_costs_at_least_twice_what_would_do() -> None:
    made = planted()
    world, lines = made.world, by_iccid(made.world)
    for iccid, template_id in made.truth.wrong_package.items():
        line, held = lines[iccid], world.templates[template_id]
        recent = [cdr for cdr in line.cdrs if cdr.at >= MIDNIGHT - 28 * DAY_SECONDS]
        needed = {cdr.network_id for cdr in recent}
        volume = sum(cdr.quantity for cdr in recent if cdr.usage_type == DATA)
        cheaper = [
            other.cost
            for other in world.templates.values()
            if (other.reseller_id, other.sponsor_id, other.deleted, other.recurring)
            == (line.reseller_id, line.sim.sponsor_id, False, False)
            and other.period_days >= 28
            and (other.data_bytes or 0) >= volume
            and needed <= {*world.zones[other.zone_id].network_ids}
        ]
        assert 2 * min(cheaper) <= held.cost


def test_lines_abroad_were_seen_last_where_nobody_expects_them() -> None:
    made = planted()
    lines = by_iccid(made.world)
    for iccid, (expected, country) in made.truth.abroad.items():
        seen = lines[iccid].sighting
        assert seen is not None
        assert expected != country
        assert next(one.iso2 for one in made.world.networks.values() if (seen.mcc, seen.mnc) in one.codes) == country


def test_lines_in_trouble_try_in_vain_and_slow_ones_are_slow() -> None:
    made = planted()
    lines = by_iccid(made.world)
    for iccid, cause in made.truth.troubles.items():
        line = lines[iccid]
        refused = any(event.result == "4012" and event.at > MIDNIGHT - 12 * DAY_SECONDS for event in line.events)
        assert refused is (cause in ("exhausted", "expired", "blocked", "no_coverage")), cause
        assert line.throttled is (cause == "throttled"), cause


@pytest.mark.long
def test_the_truth_is_nowhere_in_the_world() -> None:
    told = repr(planted().world)
    assert not [word for word in ("churn", "mis_steered", "Truth", "Part(", "silence", "wrong_package") if word in told]
