"""What a line may do: flags that are named change, the others stay."""

from itertools import product

import pytest

from simulators.network.entities import Line
from simulators.network.methods.subscribers import subscriber_view
from tests.subscribers.staged import LineStage

FLAGS = ("data", "moc", "mtc", "sms")


def allowed(line: Line) -> dict[str, bool]:
    return {"data": line.allowed_data, "moc": line.allowed_moc, "mtc": line.allowed_mtc, "sms": line.allowed_mo_sms}


def permit(line: Line, flags: tuple[bool, ...]) -> None:
    line.allowed_data, line.allowed_moc, line.allowed_mtc, line.allowed_mo_sms = flags


@pytest.mark.long
@pytest.mark.rule("4.2.47")
async def test_each_flag_changes_alone_from_every_state(stage: LineStage) -> None:
    for before in product((True, False), repeat=4):
        for name in FLAGS:
            permit(stage.line, before)
            expected = dict(zip(FLAGS, before, strict=True)) | {name: not dict(zip(FLAGS, before, strict=True))[name]}
            answer = await stage.ask("traffic-restrictions", {name: expected[name]})
            assert (answer.status_code, answer.json(), allowed(stage.line)) == (200, {"data": expected}, expected)


async def test_all_four_may_be_named_and_all_four_are_sent(stage: LineStage) -> None:
    wanted = {"data": True, "moc": False, "mtc": False, "sms": False}
    answer = await stage.ask("traffic-restrictions", wanted)
    assert (answer.json(), allowed(stage.line)) == ({"data": wanted}, wanted)
    sent = {"dataAllowed": True, "mocAllowed": False, "mtcAllowed": False, "smsMoAllowed": False}
    assert stage.writes() == [("setSubscriberTrafficRestrictions", {"subscriber": {"subscriberId": stage.line.id}, **sent})]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("data", "dataAllowed"),
        ("data", "data_allowed"),
        ("moc", "mocAllowed"),
        ("moc", "moc_allowed"),
        ("mtc", "mtcAllowed"),
        ("mtc", "mtc_allowed"),
        ("sms", "smsMoAllowed"),
        ("sms", "sms_mo_allowed"),
    ],
)
async def test_the_network_s_own_names_are_taken(stage: LineStage, name: str, spelling: str) -> None:
    answer = await stage.ask("traffic-restrictions", {spelling: False})
    assert (answer.status_code, allowed(stage.line)) == (200, dict.fromkeys(FLAGS, True) | {name: False})
    assert (await stage.ask("traffic-restrictions", {name: True, spelling: False})).status_code == 400


async def test_a_flag_that_the_network_does_not_tell_is_not_guessed(stage: LineStage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "allowedMtc" in subscriber_view(stage.network, stage.line)
    monkeypatch.setattr(
        "simulators.network.methods.subscribers.subscriber_view",
        lambda *given, **named: {name: value for name, value in subscriber_view(*given, **named).items() if name != "allowedMtc"},
    )
    answer = await stage.ask("traffic-restrictions", {"moc": False}, key="k")
    assert (answer.status_code, answer.json()["hint"]) == (400, "Name all four: data, moc, mtc, sms")
    assert (stage.writes(), await stage.claims(), allowed(stage.line)) == ([], {}, dict.fromkeys(FLAGS, True))
    answer = await stage.ask("traffic-restrictions", {"data": True, "moc": False, "mtc": True, "sms": True}, key="k")
    assert (answer.status_code, stage.line.allowed_moc) == (200, False)
