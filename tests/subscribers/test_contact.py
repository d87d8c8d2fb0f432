"""Whom a line belongs to."""

import pytest

from tests.subscribers.staged import LineStage


@pytest.mark.cases
@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"firstName": "Ingrid", "lastName": "Solberg"}, "Ingrid Solberg"),
        ({"first_name": "Ingrid", "last_name": "Solberg"}, "Ingrid Solberg"),
        ({"firstName": " Ingrid ", "lastName": " Solberg"}, "Ingrid Solberg"),
        ({"firstName": "Ingrid"}, "Ingrid"),
        ({"lastName": "Solberg"}, "Solberg"),
        ({"firstName": "Ødegård", "lastName": "李"}, "Ødegård 李"),
    ],
)
async def test_first_and_last_name_become_the_one_name(stage: LineStage, body: dict[str, object], name: str) -> None:
    line = stage.line
    line.company, line.email, line.phone = "Before", "before@example.test", "+471"
    answer = await stage.ask("contact", body)
    assert (answer.status_code, answer.json()) == (200, {"data": {"name": name}})
    assert (line.name, line.company, line.email, line.phone) == (name, "Before", "before@example.test", "+471")


@pytest.mark.rule("4.2.19")
async def test_everything_may_change_at_once(stage: LineStage) -> None:
    body = {"firstName": "Ingrid", "company": "Fjell AS", "email": "ingrid@fjell.test", "phoneNumber": "+4791234567"}
    answer = await stage.ask("contact", body)
    expected = {"name": "Ingrid", "company": "Fjell AS", "email": "ingrid@fjell.test", "phoneNumber": "+4791234567"}
    assert (answer.status_code, answer.json()) == (200, {"data": expected})
    line = stage.line
    assert (line.name, line.company, line.email, line.phone) == ("Ingrid", "Fjell AS", "ingrid@fjell.test", "+4791234567")


async def test_what_is_left_out_or_null_stays(stage: LineStage) -> None:
    name = stage.line.name
    answer = await stage.ask("contact", {"company": "Fjell AS", "firstName": None})
    assert (answer.json(), stage.line.name, stage.line.company) == ({"data": {"company": "Fjell AS"}}, name, "Fjell AS")
    assert stage.writes() == [("modifySubscriberContactInfo", {"subscriber": {"subscriberId": stage.line.id}, "company": "Fjell AS"})]


@pytest.mark.parametrize("body", [{}, {"firstName": None}, {"email": None, "company": None}])
async def test_something_has_to_change(stage: LineStage, body: dict[str, object]) -> None:
    answer = await stage.ask("contact", body)
    assert (answer.status_code, answer.json()["error"], stage.sent()) == (
        400,
        "give at least one of firstName, lastName, company, email, phoneNumber",
        [],
    )


@pytest.mark.cases
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("firstName", "   "),
        ("lastName", "two\nlines"),
        ("company", "\x00"),
        ("email", "nobody"),
        ("email", "a@b@c"),
        ("email", "a b@c.test"),
        ("email", "a@b.test\n"),
        ("phoneNumber", "0047 912"),
        ("phoneNumber", "+"),
    ],
)
async def test_a_contact_that_cannot_be_right_changes_nothing(stage: LineStage, field: str, value: object) -> None:
    before = repr(stage.line)
    answer = await stage.ask("contact", {field: value, "company": "Fjell"} if field != "company" else {field: value})
    assert (answer.status_code, stage.sent(), repr(stage.line)) == (400, [], before)
    if value != "\x00":  # refused before anybody looks at fields
        assert answer.json()["param"] == field
