"""Moving ranges of lines: whose every single one must be."""

from dataclasses import replace
from typing import Any

import pytest

from registry.caller import Restrictions, Role, Tier
from simulators.network.entities import Line
from tests.accounts.stage import AccountsStage
from tests.network_facts import OWN_TOKEN

PATH = "/v1/accounts/8101/move-subscribers"


def span(lines: list[Line], **body: object) -> dict[str, object]:
    """The range of neighbouring lines, to the fleet account."""
    numbers = sorted(line.iccid for line in lines)
    return {"rangeType": "ICCID", "rangeStart": numbers[0], "rangeEnd": numbers[-1], "destAccount": 8102, **body}


def neighbours(stage: AccountsStage) -> list[Line]:
    """Ten lines of 8101 whose range holds nothing else."""
    return sorted(stage.lines(8101), key=lambda line: line.iccid)[:10]


@pytest.mark.rule("4.2.4")
async def test_a_range_is_moved_and_the_repeated_call_is_told_the_same(stage: AccountsStage) -> None:
    lines = neighbours(stage)
    for _ in range(2):
        said = await stage.own.post(PATH, json=span(lines), headers={"Idempotency-Key": "move-1"})
        assert (said.status_code, said.json()) == (200, {"data": {"moved": 10}})
    assert {line.account_id for line in lines} == {8102}
    assert len(stage.calls("moveSubscriberRangeToAccount")) == 1


async def test_a_range_of_imsis_is_moved(stage: AccountsStage) -> None:
    lines = neighbours(stage)
    numbers = sorted(line.imsi for line in lines)
    body = {"range_type": "IMSI", "range_start": numbers[0], "range_end": numbers[-1], "destAccountId": 8102, "srcAccountId": 8101}
    said = await stage.own.post(PATH, json=body)
    assert said.json() == {"data": {"moved": 10}}
    assert stage.calls("moveSubscriberRangeToAccount") == [
        {"rangeType": "IMSI", "rangeStart": numbers[0], "rangeEnd": numbers[-1], "srcAccountId": 8101, "destAccount": 8102}
    ]


async def test_one_strange_line_in_the_range_stops_the_move_as_an_empty_range_does(stage: AccountsStage) -> None:
    lines = neighbours(stage)
    kind = (7001, lines[0].sim.sponsor_id)
    profile = next(number for number, row in stage.network.profiles.items() if (row.reseller_id, row.sponsor_id) == kind)
    body = span(lines, destAccount=8101, destNetworkProfileId=profile)
    lines[4].account_id = 8103
    strange = await stage.managed.post(PATH, json=body)
    start = lines[0].iccid[:13]
    empty = await stage.managed.post(PATH, json={**body, "rangeStart": f"{start}999998", "rangeEnd": f"{start}999999"})
    assert [strange.status_code, empty.status_code] == [404, 404]
    assert {**strange.json(), "request_id": ""} == {**empty.json(), "request_id": ""}
    assert (await stage.own.post(PATH, json=span(lines))).status_code == 404
    assert stage.calls("moveSubscriberRangeToAccount") == []
    lines[4].account_id = 8101
    assert (await stage.managed.post(PATH, json=body)).json() == {"data": {"moved": 10}}
    assert {line.profile_id for line in lines} == {profile}


async def test_a_former_number_of_a_strange_line_counts(stage: AccountsStage) -> None:
    lines, stranger = neighbours(stage), stage.lines(8103)[0]
    row = stranger.imsis[0]
    stranger.imsis.insert(0, replace(row, id=1, imsi="901700099999999", iccid=lines[3].iccid, end=row.start))
    assert (await stage.own.post(PATH, json=span(lines))).status_code == 404


async def test_lists_that_are_cut_off_are_read_digit_by_digit(stage: AccountsStage) -> None:
    stage.network.row_cap = 3
    lines = neighbours(stage)
    assert (await stage.own.post(PATH, json=span(lines))).json() == {"data": {"moved": 10}}
    asked = stage.calls("listSubscriber")
    assert len(asked) < 30


async def test_more_lines_than_can_be_checked_are_not_moved(stage: AccountsStage) -> None:
    stage.network.row_cap = 0
    said = await stage.own.post(PATH, json=span(neighbours(stage)))
    assert (said.status_code, said.json()["param"]) == (400, "rangeEnd")
    assert stage.calls("moveSubscriberRangeToAccount") == []


async def test_another_resellers_account_needs_a_profile(stage: AccountsStage) -> None:
    stage.network.resellers[7002].parent_id = 7001
    lines = neighbours(stage)
    without = await stage.own.post(PATH, json=span(lines, destAccount=8201))
    assert (without.status_code, without.json()["param"]) == (400, "destNetworkProfileId")
    unknown = await stage.own.post(PATH, json=span(lines, destAccount=8201, destNetworkProfileId=1))
    assert (unknown.status_code, unknown.json()["param"]) == (404, "destNetworkProfileId")
    profile = next(
        number for number, row in stage.network.profiles.items() if row.reseller_id == 7002 and row.sponsor_id == lines[0].sim.sponsor_id
    )
    wanted = span(lines, destAccount=8201, destNetworkProfileId=profile)
    asked = (await stage.own.post(PATH, json=wanted)).json()
    assert asked["message"].startswith("This will move the lines ") and "of the reseller 7002. They lose all packages" in asked["message"]
    assert {line.reseller_id for line in lines} == {7001}
    said = await stage.own.post(PATH, json=wanted, headers={"X-Confirm-Token": asked["confirm_token"]})
    assert said.json() == {"data": {"moved": 10}}
    assert {line.reseller_id for line in lines} == {7002}


@pytest.mark.parametrize(("role", "no_admin", "code"), [("member", False, "role_required"), ("admin", True, "credential_restricted")])
async def test_lines_leave_their_reseller_by_no_member_and_no_key_without_admin(
    stage: AccountsStage, role: str, no_admin: bool, code: str
) -> None:
    stage.network.resellers[7002].parent_id = 7001
    lines = neighbours(stage)
    profile = next(
        number for number, row in stage.network.profiles.items() if row.reseller_id == 7002 and row.sponsor_id == lines[0].sim.sponsor_id
    )
    person, organisation = await stage.world.person(), await stage.world.organisation(Tier.PRO, token=OWN_TOKEN)
    await stage.world.join(person, organisation, Role(role))
    _, secret = await stage.world.key(person, organisation, restrictions=Restrictions(no_admin=no_admin))
    async with stage.world.client(secret) as http:
        said = await http.post(PATH, json=span(lines, destAccount=8201, destNetworkProfileId=profile))
        assert (said.status_code, said.json()["code"]) == (403, code)
        within = await http.post(PATH, json=span(lines))  # to an account of the same reseller they go at once
    assert (within.status_code, {line.reseller_id for line in lines}) == (200, {7001})


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"rangeStart": "8988303700000", "rangeEnd": "8988303700009"}, "rangeStart"),
    ({"rangeStart": "89883037000001000"}, "rangeEnd"),
    ({"rangeStart": "8988303709999999999"}, "rangeEnd"),
    ({"rangeStart": "٣" * 19}, "rangeStart"),
    ({"rangeType": "MSISDN"}, "rangeType"),
    ({"srcAccountId": 8102}, "srcAccountId"),
    ({"destAccount": 8101}, "destAccount"),
    ({"destAccount": True}, "destAccount"),
    ({"destAccountId": 8103}, "destAccountId"),
]


async def test_a_malformed_range_asks_nobody(stage: AccountsStage) -> None:
    for change, param in MALFORMED:
        said = await stage.own.post(PATH, json=span(neighbours(stage), **change))
        assert (said.status_code, said.json()["param"]) == (400, param)
        assert stage.calls() == []
