"""The simulated network at its start: reproducible, complete, and true to the rules of the wire."""

import pickle
from itertools import groupby, pairwise

import pytest

from operations.vocabulary import network_country
from simulators.network.entities import DATA, DAY_SECONDS, Line
from simulators.network.seed.build import build_world
from simulators.network.seed.catalogue import zone_countries
from simulators.network.seed.tariffs import UNPRICED_NETWORKS
from simulators.network.world import World

NOON = 1_774_008_000
SHORT = 20


@pytest.fixture(scope="module")
def world() -> World:
    return build_world(1, NOON, history_days=0)


@pytest.fixture(scope="module")
def lived() -> World:
    """A world with some weeks behind it."""
    return build_world(1, NOON, history_days=SHORT)


def lines_per_account(world: World) -> list[int]:
    return [len(list(world.lines_of(account_id))) for account_id in world.accounts]


def lines_that_were_used(world: World) -> list[Line]:
    return [line for line in world.lines.values() if line.persona.kind != "stock"]


@pytest.mark.parametrize("days", [0, 6])
def test_one_seed_gives_one_world_and_another_seed_another(days: int) -> None:
    first, again, other = (repr(build_world(seed, NOON, history_days=days, lines=60)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_world_survives_being_stored(world: World) -> None:
    assert repr(pickle.loads(pickle.dumps(world))) == repr(world)


def test_two_resellers_have_six_accounts_and_four_hundred_lines(world: World) -> None:
    assert [(reseller.name, reseller.parent_id) for reseller in world.resellers.values()] == [("Fjord Mobile", -1), ("Alpine Connect", -1)]
    assert list(world.accounts) == [8101, 8102, 8103, 8104, 8201, 8202]
    assert lines_per_account(world) == [140, 90, 50, 40, 50, 30]
    assert [account.id for account in world.accounts.values() if account.package_only] == [8104]
    assert {token.reseller_id for token in world.tokens.values()} == set(world.resellers)


@pytest.mark.parametrize(
    ("lines", "expected"), [(40, [14, 9, 5, 4, 5, 3]), (1, [1, 0, 0, 0, 0, 0]), (1000, [740, 90, 50, 40, 50, 30]), (0, [0] * 6)]
)
def test_other_numbers_of_lines_are_shared_in_proportion_and_the_surplus_is_the_demo_accounts(lines: int, expected: list[int]) -> None:
    assert lines_per_account(build_world(1, NOON, history_days=0, lines=lines)) == expected


def test_ids_begin_where_the_wire_expects_them_and_new_ones_go_on_from_there(world: World) -> None:
    assert [min(world.lines), min(line.sim.id for line in world.lines.values()), min(world.packages)] == [910_001, 760_001, 3_300_001]
    assert [min(world.series), min(world.templates), min(world.zones), min(world.profiles)] == [6_001, 55_010, 2_301, 412]
    for kind, used in {"line": world.lines, "package": world.packages, "series": world.series, "zone": world.zones}.items():
        assert world.counters[kind] == max(used)
    assert world.counters["template"] == max(world.templates)
    assert world.counters["rule"] == max(rule.id for tariff in world.tariffs.values() for rule in tariff.rules)


def test_rows_of_histories_have_ids_of_their_own(lived: World) -> None:
    rows = [row.id for line in lived.lines.values() for row in (*line.imsis, *line.numbers, *line.multi_imsis, *line.statuses)]
    assert len(set(rows)) == len(rows)


def test_networks_stand_in_the_country_of_their_codes(world: World) -> None:
    codes = [(code, network.iso2) for network in world.networks.values() for code in network.codes]
    assert len(codes) == len(dict(codes))
    assert [(code, iso2) for code, iso2 in codes if network_country(*code) != iso2.upper()] == []
    assert {iso2 for _, iso2 in codes} == set(world.countries)
    tadigs = [tadig for network in world.networks.values() for tadig in network.tadigs]
    assert len(tadigs) == len(set(tadigs))
    assert {len(tadig) for tadig in tadigs} == {5}
    assert any(network.name.endswith(" ") for network in world.networks.values())


def test_zones_reach_at_least_fifty_five_countries_and_stay_within_their_profiles(world: World) -> None:
    reached: set[str] = set()
    for zone in world.zones.values():
        profile = world.profiles[zone.profile_id]
        assert zone.network_ids
        assert set(zone.network_ids) <= profile.network_ids
        assert zone.reseller_id == profile.reseller_id
        assert profile.sponsor_id in world.sponsored[zone.reseller_id]
        reached |= zone_countries(zone, world.networks)
    assert len(reached) >= 55
    assert [zone.name for zone in world.zones.values() if zone.malformed] == ["Iberia"]


def test_no_two_zones_of_a_reseller_share_a_name_or_a_set_of_networks(world: World) -> None:
    zones = list(world.zones.values())
    assert len({(zone.reseller_id, zone.name) for zone in zones}) == len(zones)
    assert len({(zone.reseller_id, zone.network_ids) for zone in zones}) == len(zones)


def test_every_sponsor_a_reseller_has_comes_with_a_profile_and_a_zone(world: World) -> None:
    offered = {(zone.reseller_id, world.profiles[zone.profile_id].sponsor_id) for zone in world.zones.values()}
    assert offered == {(reseller_id, sponsor_id) for reseller_id, ids in world.sponsored.items() for sponsor_id in ids}


def test_templates_fit_the_sponsor_of_their_zone(world: World) -> None:
    for template in world.templates.values():
        zone = world.zones[template.zone_id]
        assert template.sponsor_id == world.profiles[zone.profile_id].sponsor_id
        assert template.reseller_id == zone.reseller_id
        assert template.destination_id is None or world.destinations[template.destination_id].reseller_id == template.reseller_id


def test_templates_come_in_every_kind(world: World) -> None:
    found = list(world.templates.values())
    assert {template.periodicity for template in found if template.recurring} == {0, 1, 2}
    assert {template.occurrences is None for template in found if template.recurring} == {True, False}
    assert any(template.carry_over for template in found)
    assert any(template.throttling for template in found)
    assert any(template.moc_seconds and template.mo_sms and template.destination_id for template in found)
    assert [template.name for template in found if template.deleted] == ["Europe 2GB 2024"]


def test_data_prices_of_one_country_differ_by_a_factor_between_three_and_thirty(world: World) -> None:
    for tariff in world.tariffs.values():
        rates = {rule.network_id: rule.data_rate or 0 for rule in tariff.rules if rule.sponsor_id is None}
        for _, group in groupby(world.networks.values(), key=lambda network: network.iso2):
            country = list(group)
            if not any(network.codes[0] in UNPRICED_NETWORKS for network in country):
                prices = [rates[network.network_id] for network in country]
                assert 3 <= max(prices) / min(prices) <= 30


def test_tariffs_have_inactive_rules_sponsor_rules_and_gaps(world: World) -> None:
    assert {(tariff.reseller_id, tariff.kind) for tariff in world.tariffs.values()} == {
        (reseller_id, kind) for reseller_id in world.resellers for kind in ("RESELLER", "SUBSCRIBER")
    }
    for tariff in world.tariffs.values():
        assert {rule.active for rule in tariff.rules} == {True, False}
        assert {rule.sponsor_id for rule in tariff.rules} > {None}
        missing = set(world.networks) - {rule.network_id for rule in tariff.rules}
        assert {world.networks[network_id].codes[0] for network_id in missing} == UNPRICED_NETWORKS


def luhn_sum(digits: str) -> int:
    return sum(sum(divmod(int(digit) * (1 + place % 2), 10)) for place, digit in enumerate(reversed(digits)))


def test_iccids_and_imsis_are_well_formed_and_unique(world: World) -> None:
    lines = world.lines.values()
    iccids = [row.iccid for line in lines for row in line.imsis]
    assert len(set(iccids)) == len(iccids)
    assert all(len(iccid) == 19 and iccid.startswith("89") and luhn_sum(iccid) % 10 == 0 for iccid in iccids)
    imsis = [row.imsi for line in lines for row in (*line.imsis, *line.multi_imsis)]
    assert len(set(imsis)) == len(imsis)
    assert all(len(imsi) == 15 for imsi in imsis)
    assert all(line.imsi.startswith(str(world.sponsors[line.sim.sponsor_id].prefix)) for line in lines)


def test_chips_and_codes_are_well_formed_and_unique(world: World) -> None:
    esims = [line.sim for line in world.lines.values() if line.sim.esim]
    assert all(len(sim.eid) == 32 and int(sim.eid) % 97 == 1 for sim in esims)
    assert all(set(sim.activation_code) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") and sim.smdp.endswith(".test") for sim in esims)
    assert len({sim.activation_code for sim in esims}) == len({sim.eid for sim in esims}) == len(esims)
    assert all(len(line.number) <= 14 and not line.number.startswith("89") for line in world.lines.values())


def test_stock_is_a_tenth_free_unused_and_of_the_sponsor_of_the_accounts_templates(world: World) -> None:
    stock = [line for line in world.lines.values() if line.persona.kind == "stock"]
    assert len(stock) == 40
    for line in stock:
        assert line.sim.status == "FREE"
        assert line.sim.esim
        assert line.status in ("PENDING", "INACTIVE")
        assert (line.packages, line.cdrs, line.activated_at, line.name) == ([], [], None, None)


@pytest.mark.parametrize("which", ["world", "lived"])
def test_lines_in_use_have_packages_that_fit_their_sim_and_their_home(which: str, request: pytest.FixtureRequest) -> None:
    world: World = request.getfixturevalue(which)
    for line in lines_that_were_used(world):
        assert line.packages
        assert line.sim.status == "AFFECTED"
        for package in line.packages:
            template = world.templates[package.template_id]
            assert template.sponsor_id == line.sim.sponsor_id
            assert line.persona.home_iso2 in zone_countries(world.zones[package.zone_id], world.networks)
            assert world.packages[package.id] is package


def test_some_lines_are_suspended_disconnected_or_over_and_some_have_a_past(world: World) -> None:
    lines = list(world.lines.values())
    assert {line.status for line in world.lines_of(8101)} == {"ACTIVE", "PENDING", "INACTIVE", "SUSPENDED", "DISCONNECTED", "END_OF_LIFE"}
    assert any(len(line.imsis) > 1 for line in lines)
    assert any(line.multi_imsis for line in lines)
    assert any(line.number != line.own_number and line.numbers[-1].real for line in lines)
    assert any(line.name is None for line in lines_that_were_used(world))
    assert any(line.email for line in lines)


def test_histories_are_in_order_and_before_the_start(lived: World) -> None:
    assert lived.now == NOON
    for line in lived.lines.values():
        for rows in (line.imsis, line.numbers, line.statuses, line.sim.provider):
            assert all(former.end == latter.start for former, latter in pairwise(rows))
            assert all(former.start <= latter.start <= NOON for former, latter in pairwise(rows))
            assert not rows or rows[-1].end is None
        assert all(package.assigned <= NOON for package in line.packages)
        assert all(NOON - SHORT * DAY_SECONDS <= cdr.at <= NOON for cdr in line.cdrs)


def test_nobody_uses_a_package_before_it_was_assigned_or_a_line_before_it_was_activated(lived: World) -> None:
    for line in lived.lines.values():
        for cdr in line.cdrs:
            assert line.activated_at is not None
            assert line.activated_at <= cdr.at
            assert cdr.package_id is None or lived.packages[cdr.package_id].assigned <= cdr.at


def test_the_history_is_used_mostly_from_packages_and_balances_are_kept_up(lived: World) -> None:
    data = [cdr for line in lived.lines.values() for cdr in line.cdrs if cdr.usage_type == DATA]
    assert len(data) > 3000
    assert sum(cdr.in_package for cdr in data) > 0.6 * sum(cdr.quantity for cdr in data)
    assert all(account.balance > 0 for account in lived.accounts.values() if not account.package_only)
    assert all(reseller.balance > 0 for reseller in lived.resellers.values())


def test_the_other_reseller_has_no_steering_lists(world: World) -> None:
    assert {steering.reseller_id for steering in world.steering.values()} == {7001}
    assert len(world.steering) == 4
    assert any(not destination.prefixes for destination in world.destinations.values())
    assert [plan.id for plan in world.voip_tariffs.values() if plan.deleted] == [94]
