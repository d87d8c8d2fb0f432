"""Alerts: what runs out, is late or is refused is told once, and once more when it is well again."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from registry.caller import Role, Tier
from registry.limits import TIERS, Limits
from simulators.network.faults import NetworkFault
from storage.alerts import days_of_alerts
from storage.upstream_connections import set_connection
from tests.events.alert_stage import ALERTS, AlertStage, open_alert_stage
from tests.network_facts import ACCOUNT, HOUR, OWN_TOKEN
from tests.stage import opened, opened_on_both
from transports.worker.chores import alerts_chore
from transports.worker.retention import retention_chore

stage = opened(open_alert_stage)
both = opened_on_both(open_alert_stage)


async def used_for_days(stage: AlertStage, balance: float = 300.0, days: int = 4) -> float:
    """Days of 20 EUR each, in which nobody asks how old the list of the fleet is."""
    assert (await stage.choose(sync=False)).status_code == 200
    stage.set_balance(balance)
    await stage.look()
    for _ in range(days):
        balance = await stage.live_day(balance, 20.0)
    return balance


@pytest.mark.long
async def test_a_balance_that_falls_is_told_once_and_again_when_a_top_up_has_held_for_an_hour(both: AlertStage) -> None:
    stage = both
    assert await used_for_days(stage) == pytest.approx(220.0)
    assert await stage.events() == []
    stage.set_balance(139.0)
    await stage.look(5)
    [(name, data)] = await stage.events()
    assert name == "balance_low"
    assert data == {
        "account": ACCOUNT,
        "balance": pytest.approx(139.0, abs=1),
        "daily_use": pytest.approx(20.0, abs=1),
        "currency": "EUR",
        "days_left": pytest.approx(6.9, abs=0.2),
        "opened": data["opened"],
    }
    for level in (143.0, 138.0, 146.0, 139.0):  # what is added is less than a day's use
        stage.set_balance(level)
        await stage.look(5)
    assert await stage.names() == ["balance_low"]
    stage.set_balance(180.0)  # nine days: inside the band
    await stage.look(60)
    assert await stage.names() == ["balance_low"]
    [shown] = (await stage.shown())["open"]
    assert shown == {
        "type": "organisation.balance_low",
        "account": ACCOUNT,
        "opened": data["opened"],
        "level": data["balance"],
        "unit": "EUR",
    }
    await stage.look(9)
    assert await stage.names() == ["balance_low", "balance_restored"]
    assert (await stage.shown())["open"] == []
    await stage.look(10)
    assert len(await stage.events()) == 2


@pytest.mark.long
async def test_a_balance_that_rises_above_ten_days_is_well_at_once(stage: AlertStage) -> None:
    await used_for_days(stage)
    stage.set_balance(100.0)
    await stage.look(5)
    stage.set_balance(1000.0)
    await stage.look(5)
    (_, low), (name, data) = await stage.events()
    assert name == "balance_restored" and data["opened"] == low["opened"] and data["days_left"] > 10


@pytest.mark.long
async def test_before_three_days_are_known_nothing_is_told(stage: AlertStage) -> None:
    await used_for_days(stage, balance=60.0, days=2)
    await stage.look(5)
    assert await stage.events() == []
    levels = {row["kind"]: row for row in (await stage.shown())["levels"]}
    assert levels["balance"]["days_left"] is None and levels["balance"]["days_of_data"] < 3


async def test_before_the_fleet_was_listed_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AlertStage, "sync", no_sync)
    async with open_alert_stage(tmp_path) as stage:
        before = len(stage.world.sandbox.calls)
        await used_for_days(stage, balance=60.0, days=4)
        assert await stage.events() == [] and len(stage.world.sandbox.calls) == before
        assert (await stage.shown())["levels"] == []


async def no_sync(stage: AlertStage) -> None:
    """Nobody reads the fleet."""


@pytest.mark.long
async def test_a_stock_that_is_issued_is_told_once_and_again_when_it_is_filled_up(tmp_path: Path) -> None:
    async with open_alert_stage(tmp_path, lines=100) as stage:
        assert (await stage.choose(sync=False)).status_code == 200
        for _ in range(4):
            await stage.issue(1)
            await stage.live_day(400.0, 0.0, listed=True)
        [(name, data)] = await stage.events()
        assert name == "stock_low"
        assert data == {"account": ACCOUNT, "free_esims": 0, "daily_use": 1.0, "days_left": 0.0, "opened": data["opened"]}
        issued = [line for line in stage.network.lines_of(ACCOUNT) if line.sim.esim and line.sim.status == "AFFECTED"]
        for line in issued[:8]:
            line.sim.status = "FREE"
        await stage.look(6)  # then the next list is due
        for told in (["stock_low"], ["stock_low", "stock_restored"]):
            await stage.sync()
            await stage.look(55)
            assert await stage.names() == told
        [stock] = [row for row in (await stage.shown())["levels"] if row["kind"] == "stock"]
        assert (stock["level"], stock["daily_use"], stock["days_left"], stock["unit"]) == (8.0, 1.0, 8.0, "eSIMs")


@pytest.mark.long
async def test_calls_of_the_day_are_told_at_80_and_at_100_percent_once_a_day(tmp_path: Path) -> None:
    tiers = {**TIERS, Tier.PRO: replace(TIERS[Tier.PRO], calls_per_day=50)}
    async with open_alert_stage(tmp_path, limits=Limits(tiers=tiers, burst_enabled=False, quota_block=1), tier=Tier.PRO) as stage:
        for day in ("2027-01-15", "2027-01-16"):
            for calls, told in ((39, []), (1, ["quota_80"]), (9, ["quota_80"]), (1, ["quota_80", "quota_exceeded"])):
                for _ in range(calls):
                    assert (await stage.http.get("/v1/whoami")).status_code == 200
                await stage.look(2)
                found = [(name, data) for name, data in await stage.events() if data.get("period") == day]
                assert [name for name, _ in found] == told
            assert (await stage.http.get("/v1/whoami")).status_code == 429
            assert [(data["used"], data["limit"], data["percent"]) for _, data in found] == [(40, 50, 80), (50, 50, 100)]
            stage.world.clock.advance(24 * HOUR)


@pytest.mark.long
async def test_a_list_of_the_fleet_that_is_late_is_told_once_and_again_when_it_has_caught_up(stage: AlertStage) -> None:
    await stage.look(14)
    assert await stage.events() == []
    await stage.look(6)
    [(name, data)] = await stage.events()
    assert name == "sync_behind" and data["age_seconds"] > 3 * data["normal_seconds"]
    assert [row["type"] for row in (await stage.shown())["open"]] == ["organisation.sync_behind"]
    await stage.look(30)
    await stage.sync()
    await stage.look(10)
    assert await stage.names() == ["sync_behind", "sync_caught_up"]


@pytest.mark.long
async def test_a_token_that_is_refused_is_told_once_and_again_when_it_is_accepted(tmp_path: Path) -> None:
    async with open_alert_stage(tmp_path, token=OWN_TOKEN) as stage:
        await stage.look(5)
        tokens = stage.network.tokens
        mine = tokens.pop(OWN_TOKEN)
        await stage.look(5)
        assert await stage.names() == ["upstream_refused"]
        await stage.look(10)
        assert {row["type"] for row in (await stage.shown())["open"]} == {"organisation.upstream_refused", "organisation.sync_behind"}
        tokens[OWN_TOKEN] = mine
        await stage.look(5)
        assert [name for name in await stage.names() if name.startswith("upstream")] == ["upstream_refused", "upstream_accepted"]


@pytest.mark.long
async def test_settings_are_kept_and_refused_where_opening_and_closing_do_not_differ(stage: AlertStage) -> None:
    chosen = {"quota": False, "days_to_open": 3, "days_to_close": 5, "quota_percent": 50}
    said = await stage.choose(**chosen)
    usual = {"balance": True, "stock": True, "sync": True, "upstream": True}
    assert said.json() == {"object": "connectivity.alert_settings", "settings": {**usual, **chosen}}
    assert (await stage.shown())["settings"] == {**usual, **chosen}
    refused = await stage.choose(days_to_open=7, days_to_close=7)
    assert refused.status_code == 400 and "days_to_close 7: it must be above days_to_open" in refused.json()["error"]
    assert (await stage.shown())["settings"]["days_to_open"] == 3


async def test_an_alert_that_is_not_wanted_any_more_ends_without_an_event(stage: AlertStage) -> None:
    await used_for_days(stage)
    stage.set_balance(100.0)
    await stage.look(5)
    assert (await stage.choose(balance=False, sync=False)).status_code == 200
    await stage.look(5)
    assert await stage.names() == ["balance_low"] and (await stage.shown())["open"] == []
    assert (await stage.choose(sync=False)).status_code == 200
    await stage.look(5)
    assert await stage.names() == ["balance_low", "balance_low"]


@pytest.mark.long
async def test_only_admins_see_and_set_alerts(stage: AlertStage) -> None:
    member = await stage.world.caller(role=Role.MEMBER, organisation=stage.who.organisation)
    async with stage.world.client(member.secret) as http:
        assert (await http.get(ALERTS)).status_code == 403
        assert (await http.put(ALERTS, json={"balance": False})).status_code == 403


@pytest.mark.long
async def test_of_two_processes_that_find_the_same_one_tells(both: AlertStage) -> None:
    stage = both
    await stage.look(14)
    other = alerts_chore(stage.world.pipeline.deps, stage.reports.append, lambda: True)
    stage.world.clock.advance(300)
    async with anyio.create_task_group() as group:
        group.start_soon(stage.run_chore)
        group.start_soon(stage.run_chore, other)
    assert await stage.names() == ["sync_behind"]


async def test_an_organisation_that_is_disconnected_has_no_open_alert_and_balances_are_read_every_four_minutes(stage: AlertStage) -> None:
    before = len(stage.world.sandbox.calls)
    await stage.look(20)
    assert [call.method for call in stage.world.sandbox.calls[before:]] == ["listResellerAccount"] * 5
    assert await stage.names() == ["sync_behind"]
    mine = stage.who.organisation
    await stage.world.store.write(set_connection, organisation=mine, mode=None, account_id=None, own_token=None)
    await stage.look(5)
    assert await stage.names() == ["sync_behind"] and (await stage.shown())["open"] == []


async def test_what_is_known_of_balances_and_quotas_is_forgotten_after_its_time(stage: AlertStage) -> None:
    await used_for_days(stage, days=2)
    assert (await stage.shown())["levels"] != []
    stage.world.clock.advance(29 * 24 * HOUR)
    await retention_chore(stage.world.store, stage.world.clock, stage.reports.append).run()
    assert await stage.world.store.read(days_of_alerts, organisation=stage.who.organisation, first=0) == []


async def test_an_account_whose_charging_system_fails_is_looked_at_again_later(stage: AlertStage) -> None:
    await used_for_days(stage)
    stage.set_balance(100.0)
    stage.world.sandbox.faults.add(NetworkFault("listResellerAccount", code=7))
    await stage.look(4)
    assert await stage.events() == []
    await stage.look(5)
    assert await stage.names() == ["balance_low"]
