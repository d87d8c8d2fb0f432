"""POST /v1/intelligence/diagnose-subscriber: every cause is made to happen, and told as the first one."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE as WHOLE
from operations.intelligence.diagnosis.causes import CAUSE_RULES, CAUSE_STEPS
from registry.restrictions import names_one_line
from simulators.network.entities import DAY_SECONDS
from tests.intelligence_network.stage import NORDIC_1GB, WORLD_1GB, DiagnosisStage


async def suspend(stage: DiagnosisStage) -> None:
    await stage.ocs.subscriber.modify_status(stage.line.id, "SUSPENDED")


async def forbid(stage: DiagnosisStage) -> None:
    await stage.ocs.subscriber.set_traffic_restrictions(stage.line.id, data=False, moc=True, mtc=True, sms_mo=True)


async def return_to_stock(stage: DiagnosisStage) -> None:
    await stage.ocs.subscriber.change_sim_status(stage.line.sim.id, "Free")


async def issue(stage: DiagnosisStage, *statuses: str) -> None:
    """A new line from the stock, as far as its user has come."""
    stage.line = next(line for line in stage.network.lines_of(8101) if line.sim.status == "FREE" and line.sim.esim)
    await stage.package(NORDIC_1GB)
    for status in statuses:
        await stage.control("provider-status", iccid=stage.line.iccid, status=status)


async def never_downloaded(stage: DiagnosisStage) -> None:
    await issue(stage, "Released")


async def disable(stage: DiagnosisStage) -> None:
    await stage.control("provider-status", iccid=stage.line.iccid, status="Disable")


async def delete(stage: DiagnosisStage) -> None:
    await stage.control("provider-status", iccid=stage.line.iccid, status="Delete")


async def strip(stage: DiagnosisStage) -> None:
    await stage.ocs.subscriber.clean_all_packages(stage.line.id)


async def start_later(stage: DiagnosisStage) -> None:
    start = datetime.fromtimestamp(stage.world.clock.now(), UTC).replace(tzinfo=None) + timedelta(days=9)
    dates = {"start": start.isoformat()[:19], "end": (start + timedelta(days=30)).isoformat()[:19]}
    await stage.package(NORDIC_1GB, active_period=dates)


async def expire(stage: DiagnosisStage) -> None:
    await stage.package(NORDIC_1GB, validity_days=1)
    await stage.advance(2)


async def use_up(stage: DiagnosisStage) -> None:
    package = stage.line.packages[0]
    assert package.data_limit is not None
    await stage.use(package.data_limit - package.data_used, await stage.attach("no"))


async def block(stage: DiagnosisStage) -> None:
    await stage.ocs.packages.modify_status(stage.line.packages[0].id, active=False)


async def leave_the_zone(stage: DiagnosisStage) -> None:
    await stage.attach("gr")


async def slow_down(stage: DiagnosisStage) -> None:
    await stage.ocs.subscriber.hlr_set_bitrate(stage.line.imsi, "KB_128")


async def spend(stage: DiagnosisStage) -> None:
    """A line that needs no package: its balance paid for all of the last days, until now."""
    await stage.ocs.subscriber.clean_all_packages(stage.line.id)
    await stage.ocs.subscriber.modify_balance(stage.line.id, 50.0, set_balance=True)
    await stage.advance(9)
    await stage.use(1 << 20, await stage.attach("no"))
    await stage.ocs.subscriber.modify_balance(stage.line.id, 0.0, set_balance=True)


async def refuse(stage: DiagnosisStage) -> None:
    stage.registered("5004", stage.network.now)


async def never_switch_on(stage: DiagnosisStage) -> None:
    await issue(stage, "Downloaded", "Installed", "Enable")


async def nothing(stage: DiagnosisStage) -> None:
    del stage


Act = Callable[[DiagnosisStage], Awaitable[None]]
ACTS: dict[str, Act] = {
    "status_not_active": suspend,
    "data_not_allowed": forbid,
    "sim_in_stock": return_to_stock,
    "profile_not_installed": never_downloaded,
    "profile_disabled": disable,
    "profile_deleted": delete,
    "no_package": strip,
    "package_not_started": start_later,
    "package_expired": expire,
    "package_exhausted": use_up,
    "package_blocked": block,
    "zone_not_covering": leave_the_zone,
    "throttled": slow_down,
    "balance_empty": spend,
    "registrations_rejected": refuse,
    "never_attached": never_switch_on,
    "healthy": nothing,
}


@pytest.mark.cases
@pytest.mark.parametrize(("cause", "act"), ACTS.items(), ids=ACTS)
@pytest.mark.rule("4.7.21")
async def test_what_happened_is_the_first_cause(stage: DiagnosisStage, cause: str, act: Act) -> None:
    await act(stage)
    assert (await stage.causes())[0] == cause


def test_every_cause_is_made_to_happen_and_has_steps_that_there_are() -> None:
    assert list(ACTS) == [*CAUSE_RULES, "healthy"]
    assert [*CAUSE_STEPS] == [*CAUSE_RULES, "healthy", "undetermined"]
    for step in (step for steps in CAUSE_STEPS.values() for step in steps):
        operation = WHOLE.operations[step.operation]
        assert step.changes is not operation.read_only
        assert step.of_line is names_one_line(operation)
        assert step.changes or step.pays == 0


async def test_causes_come_in_the_order_in_which_to_mend_them(stage: DiagnosisStage) -> None:
    for act in (slow_down, refuse, suspend, forbid, strip):
        await act(stage)
    await stage.ocs.subscriber.modify_balance(stage.line.id, 0.0, set_balance=True)
    causes = ["status_not_active", "data_not_allowed", "no_package", "throttled", "balance_empty", "registrations_rejected"]
    assert await stage.causes() == causes


async def test_a_healthy_line_is_told_whole(stage: DiagnosisStage) -> None:
    assert await stage.diagnosis() == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 1,
            "of": 1,
            "method": (
                "A table of causes in a fixed order, each found when its first rule holds for what the charging "
                "system says now, its signalling and the use of the last 7 UTC days with today. `problems` are "
                "judged as those of fleet_problems are, by the same rules and 90 days of use."
            ),
            "incomplete": None,
            "data": {
                "iccid": "8988303700000100047",
                "account_id": 8101,
                "first_cause": "healthy",
                "causes": [{"cause": "healthy", "effect": "none", "confidence": {"fired": 0, "of": 0}, "evidence": [], "next_steps": []}],
                "problems": [],
                "barred_by": [],
                "line": {
                    "status": "ACTIVE",
                    "country": "NO",
                    "network": {"mcc": "242", "mnc": "01", "operator": "Telenor"},
                    "seen": "2027-01-15T12:00:00Z",
                    "last_used": "2027-01-15T12:00:00Z",
                    "packages": {"running": 1},
                    "data_left": 1072693248,
                    "speed_limit_kbps": None,
                    "balance": 11.40676,
                    "balance_of": "line",
                    "profile": "Enable",
                    "used_bytes": 210611097,
                    "charged": 0.09324,
                },
            },
        }
    )


async def test_a_line_outside_its_zone_is_told_with_evidence_and_steps(stage: DiagnosisStage) -> None:
    await stage.ocs.subscriber.modify_balance(stage.line.id, 0.0, set_balance=True)
    await leave_the_zone(stage)
    assert (await stage.diagnosis())["data"] == snapshot(
        {
            "iccid": "8988303700000100047",
            "account_id": 8101,
            "first_cause": "zone_not_covering",
            "causes": [
                {
                    "cause": "zone_not_covering",
                    "effect": "no_data",
                    "confidence": {"fired": 1, "of": 2},
                    "evidence": [{"rule": "network_covered", "value": "202-01", "at": "2027-01-15T12:00:00Z"}],
                    "next_steps": [
                        {
                            "operation": "assign_package",
                            "arguments": {"iccid": "8988303700000100047", "packageTemplateId": 55035},
                            "why": "No network of its packages is in this country: this one works there, and costs no more than what is.",
                            "changes": True,
                            "customer_pays": 2.9,
                        }
                    ],
                },
                {
                    "cause": "balance_empty",
                    "effect": "no_data",
                    "confidence": {"fired": 1, "of": 2},
                    "evidence": [{"rule": "balance_eur", "value": 0.0, "at": None}],
                    "next_steps": [
                        {
                            "operation": "modify_subscriber_balance",
                            "arguments": {"iccid": "8988303700000100047"},
                            "why": "Add to the line's balance, where that pays.",
                            "changes": True,
                            "customer_pays": None,
                        },
                        {
                            "operation": "modify_account_balance",
                            "arguments": {},
                            "why": "Else to the account's.",
                            "changes": True,
                            "customer_pays": None,
                        },
                    ],
                },
            ],
            "problems": [
                {
                    "cause": "no_coverage",
                    "since": "2027-01-15T00:00:00Z",
                    "money_a_month": 4.5,
                    "evidence": {"country": "GR", "package_id": 3300366},
                    "do": {
                        "operation": "list_package_templates",
                        "arguments": {"country": "GR", "recurring": False},
                        "why": "No package of the line works in this country: choose one that does.",
                        "customer_pays": 0.0,
                    },
                }
            ],
            "barred_by": [],
            "line": {
                "status": "ACTIVE",
                "country": "GR",
                "network": {"mcc": "202", "mnc": "01", "operator": "Cosmote"},
                "seen": "2027-01-15T12:00:00Z",
                "last_used": "2027-01-15T12:00:00Z",
                "packages": {"running": 1},
                "data_left": 1072693248,
                "speed_limit_kbps": None,
                "balance": 0.0,
                "balance_of": "line",
                "profile": "Enable",
                "used_bytes": 210611097,
                "charged": 0.09324,
            },
        }
    )


async def test_a_line_that_is_steered_wrongly_is_said_to_be_and_no_list_is_named_on_a_guess(stage: DiagnosisStage) -> None:
    stage.line.packages[0].zone_id = stage.zone("Norway, one network", (await stage.attach("no"),))
    await stage.attach("no", 1)
    cause = (await stage.diagnosis())["data"]["causes"][0]
    assert [(row["rule"], row["value"]) for row in cause["evidence"]] == [("network_covered", "242-02"), ("country_covered", "NO")]
    assert [step["operation"] for step in cause["next_steps"]] == ["audit_network_coverage"]


async def test_use_beside_a_package_is_charged_where_there_is_a_balance(stage: DiagnosisStage) -> None:
    await use_up(stage)
    effects: list[str] = []
    for balance in (5.0, 0.0):
        await stage.ocs.subscriber.modify_balance(stage.line.id, balance, set_balance=True)
        effects.append((await stage.diagnosis())["data"]["causes"][0]["effect"])
    assert effects == ["charged", "no_data"]


async def test_a_package_in_stock_does_not_hide_one_that_is_used_up(stage: DiagnosisStage) -> None:
    await use_up(stage)
    start = datetime.fromtimestamp(stage.world.clock.now(), UTC).replace(tzinfo=None) + timedelta(days=9)
    dates = {"start": start.isoformat()[:19], "end": (start + timedelta(days=30)).isoformat()[:19]}
    template = stage.template(NORDIC_1GB)
    await stage.ocs.packages.affect_to_subscriber(template, stage.line.id, active_period={"start": dates["start"], "end": dates["end"]})
    assert (await stage.causes())[0] == "package_exhausted"
    await stage.ocs.packages.affect_to_subscriber(stage.template(WORLD_1GB), stage.line.id)
    assert await stage.causes() == ["healthy"]


async def test_a_profile_that_was_seen_on_the_air_since_is_not_what_its_provider_says(stage: DiagnosisStage) -> None:
    await disable(stage)
    assert await stage.causes() == ["profile_disabled"]
    stage.world.clock.advance(60)
    await stage.attach("no")
    assert await stage.causes() == ["healthy"]


async def test_a_registration_that_was_refused_before_one_that_was_taken_is_over(stage: DiagnosisStage) -> None:
    stage.registered("5004", stage.network.now)
    stage.registered("2001", stage.network.now + 1)
    assert await stage.causes() == ["healthy"]


async def test_a_session_that_nobody_paid_for_speaks_for_the_cause(stage: DiagnosisStage) -> None:
    await use_up(stage)
    await stage.ocs.subscriber.modify_balance(stage.line.id, 0.0, set_balance=True)
    stage.line.green_bytes = 50 * 1_048_576
    network = await stage.attach("no")
    refused = await stage.world.sandbox.handle(
        "POST",
        "/control/usage",
        body=b'{"iccid":"%s","networkId":%d,"usageType":33,"quantity":4096}' % (stage.line.iccid.encode(), network),
    )
    assert refused.status == 409
    cause = (await stage.diagnosis())["data"]["causes"][0]
    assert (cause["cause"], cause["confidence"]) == ("package_exhausted", {"fired": 2, "of": 2})
    assert [(row["rule"], row["value"]) for row in cause["evidence"]] == [("data_left", 0), ("session_refused", "4012")]


@pytest.mark.long
async def test_a_limit_that_nobody_feels_is_no_cause(stage: DiagnosisStage) -> None:
    await stage.ocs.subscriber.hlr_set_bitrate(stage.line.imsi, "KB_20480")
    said = (await stage.diagnosis())["data"]
    assert (said["first_cause"], said["line"]["speed_limit_kbps"]) == ("healthy", 20480)


async def test_old_packages_are_no_cause_beside_a_good_one(stage: DiagnosisStage) -> None:
    await stage.package(NORDIC_1GB, validity_days=1)
    await stage.advance(2)
    await stage.ocs.packages.affect_to_subscriber(stage.template(WORLD_1GB), stage.line.id)
    await stage.attach("gr")
    assert await stage.causes() == ["healthy"]
    assert stage.network.now - stage.line.packages[0].assigned >= DAY_SECONDS * 2
