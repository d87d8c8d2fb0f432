"""What a line has, and giving it one more."""

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from simulators.network.entities import DAY_SECONDS
from tests.stage import opened, without_request_id
from tests.subscribers.packages_stage import MONTHLY, ONE_TIME, PackagesStage, open_packages_stage, plain

stage = opened(open_packages_stage)


@pytest.mark.rule("4.2.31")
async def test_a_package_without_a_window_waits_for_its_first_use(stage: PackagesStage) -> None:
    said = await stage.http.post(stage.path, json={"packageTemplateId": stage.template(ONE_TIME)})
    assert said.status_code == 201
    assert plain(said.json()) == snapshot(
        {
            "data": {
                "iccid": "str",
                "smdpServer": "smdp.spx-roaming.test",
                "activationCode": "str",
                "urlQrCode": "str",
                "subscriberId": "int",
                "esimId": "int",
                "subsPackageId": "int",
                "userSimName": "str",
                "packageId": "int",
            }
        }
    )
    listed = await stage.http.get(stage.path)
    assert plain(listed.json()) == snapshot(
        {
            "data": [
                {
                    "subscriberprepaidpackageid": "int",
                    "subscriberid": "int",
                    "priority": 1,
                    "locationzoneid": 2301,
                    "rdbLocationZones": {"locationzoneid": 2301, "locationzonename": "Nordics"},
                    "packageTemplate": {"prepaidpackagetemplateid": 55010, "prepaidpackagetemplatename": "Nordic 1GB 30d"},
                    "templateId": 55010,
                    "esimId": "int",
                    "pckdatabyte": 1073741824,
                    "useddatabyte": 0,
                    "usedmocsecond": 0,
                    "usedmtcsecond": 0,
                    "usedmocvoipsecond": 0,
                    "usedmosmsnumber": 0,
                    "usedmtsmsnumber": 0,
                    "tsassigned": "2027-01-15T12:00:00",
                    "perioddays": 30,
                    "cost": 4.5,
                    "active": True,
                    "resellerCost": 0.0,
                    "packageId": "int",
                    "state": "assigned",
                    "recurring": None,
                    "callUseSingleCounter": False,
                }
            ]
        }
    )


async def test_a_line_without_packages_lists_none(stage: PackagesStage) -> None:
    listed = await stage.http.get(stage.path)
    assert (listed.status_code, listed.json()) == (200, {"data": []})


async def test_days_count_from_now(stage: PackagesStage) -> None:
    package = await stage.assign(validityPeriod=10)
    assert (package.activated, package.expires) == (stage.network.now, stage.network.now + 10 * DAY_SECONDS)


SAME_DATES = [
    ("2027-03-01T00:00:00Z", "2027-03-08T23:59:59Z"),
    ("2027-03-01T00:00:00", "2027-03-08T23:59:59.75"),
    ("2027-03-01T02:00:00+02:00", "2027-03-08 18:59:59-0500"),
    ("2027-03-01", "2027-03-08"),
]


async def test_dates_are_utc_whatever_their_zone_and_are_sent_without_one(stage: PackagesStage) -> None:
    for start, end in SAME_DATES:
        await stage.assign(activePeriod={"start": start, "end": end})
    sent = {"start": "2027-03-01T00:00:00", "end": "2027-03-08T23:59:59"}
    identifier = {"subscriberId": stage.line.id}
    template = stage.template(ONE_TIME)
    call = ("affectPackageToSubscriber", {"packageTemplateId": template, "subscriber": identifier, "activePeriod": sent})
    assert stage.writes() == [call] * len(SAME_DATES)


@pytest.mark.rule("4.2.30")
async def test_every_package_says_where_it_stands(stage: PackagesStage) -> None:
    made = [await stage.assign(validityPeriod=days) for days in (10, 10, 10, 1)]
    await stage.assign()
    await stage.assign(activePeriod={"start": "2027-03-01", "end": "2027-03-08"})
    made[1].data_used = made[1].data_limit or 0
    made[2].active = False
    stage.world.clock.advance(2 * DAY_SECONDS)
    rows = (await stage.http.get(stage.path)).json()["data"]
    assert [row["state"] for row in rows] == ["running", "exhausted", "blocked", "expired", "assigned", "scheduled"]
    assert [row["packageId"] for row in rows] == sorted(row["packageId"] for row in rows)


async def test_a_package_with_calls_left_is_not_exhausted(stage: PackagesStage) -> None:
    package = await stage.assign("Nordic Talk 2GB 30d", validityPeriod=10)
    package.data_used = package.data_limit or 0
    assert (await stage.http.get(stage.path)).json()["data"][0]["state"] == "running"
    package.moc_used, package.mtc_used, package.mo_sms_used, package.mt_sms_used = 18000, 18000, 100, 100
    assert (await stage.http.get(stage.path)).json()["data"][0]["state"] == "exhausted"


async def test_a_series_without_a_package_is_upcoming_and_comes_last(stage: PackagesStage) -> None:
    later = {"packageTemplateId": stage.template(MONTHLY), "startTime": "2027-02-01T00:00:00Z"}
    assert (await stage.http.post(f"{stage.path}/recurring", json=later)).status_code == 201
    package = await stage.assign()
    first = await stage.http.get(stage.path, params={"limit": 1, "fields": "packageId,state"})
    assert first.json() == {"data": [{"packageId": package.id, "state": "assigned"}]}
    rest = await stage.http.get(first.links["next"]["url"])
    assert plain(rest.json()) == snapshot({"data": [{"packageId": None, "state": "upcoming"}]})
    assert "next" not in rest.links


async def test_a_package_shows_the_series_that_made_it(stage: PackagesStage) -> None:
    await stage.http.post(f"{stage.path}/recurring", json={"packageTemplateId": stage.template(MONTHLY)})
    (row,) = (await stage.http.get(stage.path)).json()["data"]
    assert (row["state"], row["recurring"]["templateName"], row["recurring"]["id"]) == ("running", MONTHLY, row["recurringPackage"])


MEANINGLESS: list[dict[str, object]] = [
    {"validityPeriod": 5, "activePeriod": {"start": "2027-03-01", "end": "2027-03-08"}},
    {"activePeriod": {"start": "2027-03-08T00:00:00", "end": "2027-03-08T00:00:00"}},
    {"activePeriod": {"start": "2027-03-08"}},
    {"activePeriod": {"start": "2027-13-08", "end": "2027-14-01"}},
    {"activePeriod": {"start": 1, "end": "2027-14-01"}},
    {"activePeriod": {"start": "2027-03-01", "end": "2027-03-08", "days": 3}},
    {"validityPeriod": 0},
    {"validityPeriod": True},
    {"templateId": 1},
    {"valid": 3},
]


async def test_a_window_that_means_nothing_is_refused_before_anything_is_sent(stage: PackagesStage) -> None:
    for body in MEANINGLESS:
        said = await stage.http.post(stage.path, json={"packageTemplateId": stage.template(ONE_TIME), **body})
        assert said.status_code == 400, said.text
        assert said.json()["param"] and said.json()["hint"], said.text
    assert stage.world.sandbox.calls == []


async def test_two_windows_at_once_are_explained(stage: PackagesStage) -> None:
    body = {"templateId": 55010, "validityPeriod": 5, "activePeriod": {"start": "2027-03-01", "end": "2027-03-08"}}
    said = (await stage.http.post(stage.path, json=body)).json()
    assert without_request_id(said) == snapshot(
        {
            "error": "activePeriod: given together with validityPeriod, and they exclude each other",
            "code": "invalid_request",
            "param": "activePeriod",
            "hint": "Send validityPeriod (days from now) or activePeriod (two dates); neither means from the first use",
        }
    )


async def test_foreign_deleted_and_unknown_templates_are_answered_alike(stage: PackagesStage) -> None:
    told = []
    for template in (stage.template("Alps 1GB 7d", 7002), stage.template("Europe 2GB 2024"), 99):
        said = await stage.http.post(stage.path, json={"packageTemplateId": template})
        assert said.status_code == 404
        told.append({**said.json(), "request_id": ""})
    assert (
        told
        == [
            snapshot(
                {
                    "error": "Your account has no package template with this id",
                    "code": "not_found",
                    "request_id": "",
                    "param": "packageTemplateId",
                    "hint": "list_package_templates names the ones you can use",
                }
            )
        ]
        * 3
    )
    assert stage.writes() == []


async def test_a_template_is_read_once_a_minute_and_a_missing_one_every_time(stage: PackagesStage) -> None:
    def reads() -> int:
        return sum(call.method == "listPrepaidPackageTemplate" for call in stage.world.sandbox.calls)

    await stage.assign()
    await stage.assign()
    assert reads() == 1
    template = stage.network.templates[stage.template(ONE_TIME)]
    assert (await stage.http.post(stage.path, json={"packageTemplateId": 99})).status_code == 404
    assert (await stage.http.post(stage.path, json={"packageTemplateId": 99})).status_code == 404
    assert reads() == 3
    template.deleted = True
    stage.world.clock.advance(61)
    assert (await stage.http.post(stage.path, json={"packageTemplateId": template.id})).status_code == 404


async def test_a_repeated_call_adds_a_second_package_unless_it_has_the_same_key(stage: PackagesStage) -> None:
    body = {"templateId": stage.template(ONE_TIME)}
    first = await stage.http.post(stage.path, json=body, headers={"Idempotency-Key": "once"})
    again = await stage.http.post(stage.path, json=body, headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.content) == (201, first.content)
    assert len(stage.line.packages) == 1
    await stage.http.post(stage.path, json=body)
    assert len(stage.line.packages) == 2


async def test_a_line_that_has_ended_takes_no_package(stage: PackagesStage) -> None:
    ended = next(line for line in stage.network.lines_of(8101) if line.status == "END_OF_LIFE")
    said = await stage.http.post(f"/v1/subscribers/{ended.iccid}/packages", json={"packageTemplateId": stage.template(ONE_TIME)})
    assert (said.status_code, said.json()["code"]) == (409, "subscriber_end_of_life")


async def test_what_installs_an_esim_reaches_its_owner_and_no_log(stage: PackagesStage) -> None:
    said = await stage.http.post(stage.path, json={"packageTemplateId": stage.template(ONE_TIME)})
    code = said.json()["data"]["activationCode"]
    assert code
    assert all(code not in str(line) for line in stage.world.lines)


async def test_a_token_of_its_own_reaches_its_own_lines_and_templates_only(stage: PackagesStage) -> None:
    caller = await stage.world.caller(Tier.ENTERPRISE, token="sandbox-7002-token")
    line = next(line for line in stage.network.lines_of(8201) if line.sim.status == "FREE")
    theirs = [found for found in stage.network.templates.values() if found.reseller_id == 7002]
    own = next(found.id for found in theirs if found.sponsor_id == line.sim.sponsor_id)
    path, foreign = f"/v1/subscribers/{line.iccid}/packages", stage.template(ONE_TIME)
    async with stage.world.client(caller.secret) as http:
        assert (await http.post(path, json={"packageTemplateId": foreign})).status_code == 404
        assert (await http.post(stage.path, json={"packageTemplateId": own})).status_code == 404
        assert stage.writes() == []
        said = await http.post(path, json={"packageTemplateId": own})
        assert said.status_code == 201, said.text
        assert [row["state"] for row in (await http.get(path)).json()["data"]] == ["assigned"]


async def test_a_template_of_another_sponsor_is_refused_with_the_likely_reason(stage: PackagesStage) -> None:
    other = next(found for found in stage.network.templates.values() if found.reseller_id == 7001 and found.sponsor_id == 32)
    other.recurring = True  # so that the series is refused for its sponsor, too
    for path in (stage.path, f"{stage.path}/recurring"):
        said = await stage.http.post(path, json={"packageTemplateId": other.id})
        assert (said.status_code, said.json()["ocs_code"]) == (409, 14)
        assert "nothing was assigned" in said.json()["error"] and "another sponsor" in said.json()["hint"]
    assert stage.line.packages == [] and stage.line.series == []
