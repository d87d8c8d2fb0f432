"""A line's phone number and price lists."""

import pytest

from tests.subscribers.staged import LineStage


@pytest.mark.parametrize("body", [{"phoneNumber": "+4790000001"}, {"phone_number": "4790000001"}, {"msisdn": "+4790000001"}])
@pytest.mark.rule("4.2.40")
async def test_a_real_number_is_assigned_without_its_plus(stage: LineStage, body: dict[str, object]) -> None:
    answer = await stage.ask("phone-number", {"phoneType": "real", **body})
    assert (answer.status_code, answer.json()) == (200, {"data": {"phoneType": "real", "phoneNumber": "4790000001"}})
    line = stage.line
    assert (line.number, line.numbers[-1].real, line.numbers[-2].end is None) == ("4790000001", True, False)


@pytest.mark.rule("4.2.40")
async def test_the_internal_number_comes_back(stage: LineStage) -> None:
    await stage.ask("phone-number", {"phoneType": "real", "phoneNumber": "+4790000001"})
    answer = await stage.ask("phone-number", {"phoneType": "fake"})
    assert (answer.status_code, answer.json()) == (200, {"data": {"phoneType": "fake"}})
    assert (stage.line.number, stage.line.numbers[-1].real) == (stage.line.own_number, False)


async def test_a_number_that_comes_with_fake_is_not_sent_and_the_answer_says_so(stage: LineStage) -> None:
    answer = await stage.ask("phone-number", {"phoneType": "fake", "phoneNumber": "+4790000001"})
    note = "phoneNumber was ignored: the charging system restores the line's own number"
    assert (answer.status_code, answer.json()) == (200, {"data": {"phoneType": "fake", "note": note}})
    assert (stage.writes(), stage.line.number) == (
        [("affectSubscriberFakePhoneNumber", {"subscriberId": stage.line.id})],
        stage.line.own_number,
    )


async def test_a_number_that_another_line_has_is_refused(stage: LineStage) -> None:
    other = stage.in_status()[1]
    answer = await stage.ask("phone-number", {"phoneType": "real", "phoneNumber": other.number})
    assert (answer.status_code, answer.json()["ocs_code"], stage.line.number) == (409, 4, stage.line.own_number)


@pytest.mark.cases
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"phoneType": "real"}, None),
        ({"phoneType": "real", "phoneNumber": None}, None),
        ({"phoneType": "real", "phoneNumber": "+04790000001"}, "phoneNumber"),
        ({"phoneType": "real", "phoneNumber": "12345"}, "phoneNumber"),
        ({"phoneType": "real", "phoneNumber": "+4790000001\n"}, "phoneNumber"),
        ({"phoneType": "real", "phoneNumber": "٤٧٩٠٠٠٠٠٠١"}, "phoneNumber"),
    ],
)
async def test_a_number_that_is_none_changes_nothing(stage: LineStage, body: dict[str, object], param: str | None) -> None:
    answer = await stage.ask("phone-number", body)
    assert (answer.status_code, answer.json().get("param"), stage.sent()) == (400, param, [])
    assert stage.line.number == stage.line.own_number


PLANS = pytest.mark.parametrize(
    ("path", "known", "foreign", "aliases", "method"),
    [
        ("mobile-plan", 530, (531, 512, 999), ("planId", "plan_id", "mobilePlanId", "mobile_plan_id"), "modifySubscriberMobilePlan"),
        ("voip-plan", 92, (95, 94, 999), ("planId", "plan_id", "voipPlanId", "voip_plan_id"), "modifySubscriberVoipPlan"),
    ],
)


def plan(stage: LineStage, path: str) -> int | None:
    return stage.line.mobile_plan_id if path == "mobile-plan" else stage.line.voip_plan_id


@PLANS
@pytest.mark.rule("4.2.23", "4.2.24")
async def test_a_plan_is_chosen_in_every_spelling_and_removed_with_null(
    stage: LineStage, path: str, known: int, foreign: tuple[int, ...], aliases: tuple[str, ...], method: str
) -> None:
    for name in aliases:
        chosen = await stage.ask(path, {name: known})
        assert (chosen.status_code, chosen.json(), plan(stage, path)) == (200, {"data": {"planId": known}}, known)
        removed = await stage.ask(path, {name: None})
        assert (removed.status_code, removed.json(), plan(stage, path)) == (200, {"data": {"planId": None}}, None)
    assert {sent for sent, _ in stage.writes()} == {method}
    assert (await stage.ask(path, {aliases[0]: known, aliases[2]: known})).status_code == 400


@PLANS
async def test_a_plan_of_another_reseller_a_deleted_one_and_none_at_all_are_not_found_alike(
    stage: LineStage, path: str, known: int, foreign: tuple[int, ...], aliases: tuple[str, ...], method: str
) -> None:
    answers = [await stage.ask(path, {"planId": number}, key=f"k{number}") for number in foreign]
    assert [(answer.status_code, answer.json()["param"]) for answer in answers] == [(404, "planId")] * len(foreign)
    assert len({(answer.json()["error"], answer.json()["hint"]) for answer in answers}) == 1
    assert (stage.writes(), await stage.claims(), plan(stage, path)) == ([], {}, None)


async def test_a_plan_that_is_new_is_found_although_a_list_is_kept(stage: LineStage) -> None:
    assert (await stage.ask("voip-plan", {"planId": 92})).status_code == 200
    stage.network.voip_tariffs[96] = stage.network.voip_tariffs[92]._replace(id=96)
    seen = len(stage.sent())
    assert (await stage.ask("voip-plan", {"planId": 96})).status_code == 200
    assert (stage.line.voip_plan_id, stage.sent(seen).count("listSubscriberVoipTariff")) == (96, 1)


async def test_a_list_is_read_once_a_minute(stage: LineStage) -> None:
    for _ in range(3):
        await stage.ask("voip-plan", {"planId": 92})
    assert stage.sent().count("listSubscriberVoipTariff") == 1
    stage.world.clock.advance(61)
    await stage.ask("voip-plan", {"planId": 92})
    assert stage.sent().count("listSubscriberVoipTariff") == 2
