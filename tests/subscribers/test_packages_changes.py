"""Changing a package: what it holds, whether it may be used, when it ends."""

import pytest
from inline_snapshot import snapshot

from simulators.network.entities import DAY_SECONDS
from tests.stage import opened, without_request_id
from tests.subscribers.packages_stage import PackagesStage, open_packages_stage

GIB = 1024**3


stage = opened(open_packages_stage)


SPELLINGS: list[dict[str, object]] = [
    {"dataLimit": 2 * GIB, "moSmsLimit": 0},
    {"data_limit": 2 * GIB, "mo_sms_limit": 0, "mocLimit": None},
    {"dataByte": 2 * GIB, "moSms": 0},
    {"limits": {"dataLimit": 2 * GIB, "moSmsLimit": 0}},
    {"limits": {"dataByte": 2 * GIB, "mocSecond": None, "mtcSecond": None, "moSms": 0, "mtSms": None}},
    {"limits": {"dataLimit": 2 * GIB}, "moSmsLimit": 0},
]


@pytest.mark.rule("4.2.37")
async def test_limits_in_every_spelling_change_what_they_name_and_nothing_else(stage: PackagesStage) -> None:
    package = await stage.assign()
    answer = {"ok": True, "iccid": stage.line.iccid, "packageId": package.id, "dataLimit": 2 * GIB, "moSmsLimit": 0}
    limits = {"dataByte": 2 * GIB, "mocSecond": None, "mtcSecond": None, "moSms": 0, "mtSms": None}
    for body in SPELLINGS:
        said = await stage.http.put(f"{stage.path}/{package.id}/limits", json=body)
        assert (said.status_code, said.json()) == (200, {"data": answer})
        assert stage.writes()[-1] == ("modifySubscriberPrepaidPackageLimits", {"packageId": package.id, "newLimits": limits})
    assert len(stage.writes()) == 1 + len(SPELLINGS)


async def test_a_comment_is_kept_in_the_packages_history(stage: PackagesStage) -> None:
    package = await stage.assign()
    said = await stage.http.put(f"{stage.path}/{package.id}/limits", json={"dataLimit": 1, "comment": "goodwill"})
    assert said.json()["data"]["comment"] == "goodwill"
    assert package.history == ["limits changed: goodwill"]


MEANINGLESS: list[tuple[dict[str, object], str]] = [
    ({}, "dataLimit"),
    ({"dataLimit": None}, "dataLimit"),
    ({"limits": {}}, "dataLimit"),
    ({"limits": 5}, "limits"),
    ({"dataLimit": 1, "limits": {"dataLimit": 2}}, "limits"),
    ({"dataByte": 1, "limits": {"dataLimit": 2}}, "dataByte"),
    ({"dataLimit": 1, "limits": {"package_id": 5}}, "package_id"),
    ({"dataLimit": 1, "limits": {"iccid": "8988303000000000001"}}, "limits"),
    ({"limits": {"data": 2}}, "data"),
    ({"dataLimit": -1}, "dataLimit"),
    ({"dataLimit": 1.5}, "dataLimit"),
    ({"dataLimit": True}, "dataLimit"),
    ({"dataLimit": "1"}, "dataLimit"),
    ({"dataLimit": 1, "comment": "two\nlines"}, "comment"),
]


async def test_limits_that_mean_nothing_are_refused_before_anything_is_sent(stage: PackagesStage) -> None:
    for body, param in MEANINGLESS:
        said = await stage.http.put(f"{stage.path}/1/limits", json=body)
        assert (said.status_code, said.json()["param"]) == (400, param), said.text
    assert stage.world.sandbox.calls == []


@pytest.mark.rule("4.2.39")
async def test_a_package_is_paused_and_resumed(stage: PackagesStage) -> None:
    package = await stage.assign()
    words = {"INACTIVE": [("status", "INACTIVE"), ("action", "pause")], "ACTIVE": [("status", "ACTIVE"), ("action", "resume")]}
    for status, spelled in words.items():
        for name, word in spelled:
            said = await stage.http.put(f"{stage.path}/{package.id}/status", json={name: word})
            assert said.json() == {"data": {"ok": True, "iccid": stage.line.iccid, "packageId": package.id, "status": status}}
            assert package.active == (status == "ACTIVE")


@pytest.mark.rule("4.2.36")
async def test_the_end_of_a_running_package_is_moved_to_a_time(stage: PackagesStage) -> None:
    package = await stage.assign(validityPeriod=10)
    said = await stage.http.put(f"{stage.path}/{package.id}/expiry", json={"expires": "2027-02-01T02:00:00+02:00"})
    changed = {"ok": True, "iccid": stage.line.iccid, "packageId": package.id, "expires": "2027-02-01T00:00:00Z"}
    assert said.json() == {"data": changed}
    sent = {"packageId": package.id, "newExpirationDate": "2027-02-01T00:00:00"}
    assert stage.writes()[-1] == ("modifySubscriberPrepaidPackageExpDate", sent)


async def test_a_date_alone_is_its_last_second(stage: PackagesStage) -> None:
    package = await stage.assign(validityPeriod=10)
    said = await stage.http.put(f"{stage.path}/{package.id}/expiry", json={"expires": "2027-02-01"})
    assert said.json()["data"]["expires"] == "2027-02-01T23:59:59Z"


async def test_days_of_a_running_package_count_from_now_and_not_from_its_start(stage: PackagesStage) -> None:
    package = await stage.assign(validityPeriod=10)
    stage.world.clock.advance(3 * DAY_SECONDS)
    said = await stage.http.put(f"{stage.path}/{package.id}/expiry", json={"validityDays": 10})
    assert said.json()["data"]["expires"] == "2027-01-28T12:00:00Z"
    assert package.expires == stage.network.now + 10 * DAY_SECONDS


async def test_days_of_an_unused_package_count_from_its_first_use(stage: PackagesStage) -> None:
    package = await stage.assign()
    said = await stage.http.put(f"{stage.path}/{package.id}/expiry", json={"validityDays": 45})
    assert said.json() == {"data": {"ok": True, "iccid": stage.line.iccid, "packageId": package.id, "validityDays": 45}}
    assert (package.period_days, package.expires) == (45, None)


async def test_an_unused_package_has_no_end_to_move(stage: PackagesStage) -> None:
    package = await stage.assign()
    said = await stage.http.put(f"{stage.path}/{package.id}/expiry", json={"expires": "2027-02-01"})
    assert said.status_code == 400
    assert without_request_id(said) == snapshot(
        {
            "error": "expires: this package waits for its first use, so it has no end to move",
            "code": "invalid_request",
            "param": "expires",
            "hint": "Send validityDays: so many days from its first use; modify_subscriber_package_active_period gives it two dates",
        }
    )


async def test_a_package_cannot_end_before_it_starts(stage: PackagesStage) -> None:
    package = await stage.assign(activePeriod={"start": "2027-03-01", "end": "2027-03-08"})
    for name, value in {"expires": "2027-02-28", "validityDays": 3}.items():
        said = await stage.http.put(f"{stage.path}/{package.id}/expiry", json={name: value})
        assert (said.status_code, said.json()["param"]) == (400, name)


async def test_one_end_is_needed(stage: PackagesStage) -> None:
    for body in ({}, {"expires": "2027-02-01", "validityDays": 3}, {"expires": "soon"}, {"expires": "1999-01-01"}):
        said = await stage.http.put(f"{stage.path}/1/expiry", json=body)
        assert (said.status_code, said.json()["param"]) == (400, "expires")
    assert stage.world.sandbox.calls == []


@pytest.mark.parametrize(
    ("body", "start", "end"),
    [
        ({"start": "2027-03-01T00:00:00Z", "end": "2027-03-08T00:00:00Z"}, "2027-03-01T00:00:00", "2027-03-08T00:00:00"),
        ({"start": "2027-03-01T00:00:00Z"}, "2027-03-01T00:00:00", "2027-03-31T00:00:00"),
        ({"end": "2027-03-31T00:00:00Z"}, "2027-03-01T00:00:00", "2027-03-31T00:00:00"),
        ({"start": "2027-03-01", "end": "2027-03-08", "comment": "trip moved"}, "2027-03-01T00:00:00", "2027-03-08T23:59:59"),
    ],
)
@pytest.mark.rule("4.2.35")
async def test_an_unused_package_is_given_dates_and_the_missing_one_follows(
    stage: PackagesStage, body: dict[str, str], start: str, end: str
) -> None:
    package = await stage.assign()
    said = await stage.http.put(f"{stage.path}/{package.id}/active-period", json=body)
    comment = {"comment": body["comment"]} if "comment" in body else {}
    changed = {"ok": True, "iccid": stage.line.iccid, "packageId": package.id, "start": f"{start}Z", "end": f"{end}Z", **comment}
    assert said.json() == {"data": changed}
    sent = {"packageId": package.id, "newActivationDateUtc": start, "newExpirationDateUtc": end}
    said_why = {"comment": body.get("comment", "Changed by the operator")}
    assert stage.writes()[-1] == ("modifySubscriberPrepaidPackageActivePeriod", {**sent, **said_why})


async def test_a_package_that_has_dates_keeps_them(stage: PackagesStage) -> None:
    package = await stage.assign(validityPeriod=10)
    before = stage.writes()
    said = await stage.http.put(f"{stage.path}/{package.id}/active-period", json={"start": "2027-03-01"})
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "This package has its dates already",
            "code": "conflict",
            "param": "packageId",
            "hint": "modify_package_expiry moves its end",
        }
    )
    assert stage.writes() == before


async def test_new_dates_with_a_key_are_answered_again(stage: PackagesStage) -> None:
    package = await stage.assign()
    path, body = f"{stage.path}/{package.id}/active-period", {"start": "2027-03-01"}
    first = await stage.http.put(path, json=body, headers={"Idempotency-Key": "once"})
    again = await stage.http.put(path, json=body, headers={"Idempotency-Key": "once"})
    assert (first.status_code, again.status_code, again.content) == (200, 200, first.content)


async def test_dates_that_mean_nothing_are_refused(stage: PackagesStage) -> None:
    for body in ({}, {"start": "2027-03-08T00:00:00", "end": "2027-03-08T00:00:00"}, {"end": "2027-02-30"}):
        said = await stage.http.put(f"{stage.path}/1/active-period", json=body)
        assert said.status_code == 400
    assert stage.world.sandbox.calls == []
