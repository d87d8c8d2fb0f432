"""What may be changed of an invoice, and when."""

import asyncio
from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.invoices.billing import INVOICES, Billing
from tests.stage import without_request_id

DAY = 86_400
NOW = 1_800_014_400
TEXTS: dict[str, Any] = {
    "recipient_name": "Fjord Ferries AS",
    "recipient_email": "accounts@fjord.example",
    "notes": "Thank you.\nBank: NO93",
    "due_at": NOW + DAY,
}


@pytest.mark.rule("4.4.25")
async def test_what_is_given_changes_and_what_is_left_out_stays(bill: Billing) -> None:
    made = await bill.draft()
    bill.world.clock.advance(5)
    first = (await bill.update(made["id"], **TEXTS)).json()
    assert first == {**made, **TEXTS, "updated_at": NOW + 5}
    second = (await bill.update(made["id"], recipient_name="Fjord AS", notes=None)).json()
    assert second == {**first, "recipient_name": "Fjord AS", "notes": None}
    assert (await bill.update(made["id"])).json() == second
    assert (await bill.update(made["id"], status="draft")).json() == second


@pytest.mark.rule("3.2.2")
async def test_sending_stamps_the_moment_once(bill: Billing) -> None:
    made = await bill.draft()
    bill.world.clock.advance(DAY)
    first = await bill.send(made["id"], recipient_name="Fjord Ferries AS")
    assert first.status_code == 200
    stamped = {"status": "sent", "issued_at": NOW + DAY, "due_at": NOW + 31 * DAY, "updated_at": NOW + DAY}
    document = {"pdf_url": f"https://reseller.test{INVOICES}/{made['id']}/pdf"}
    assert first.json() == {**made, **stamped, **document, "recipient_name": "Fjord Ferries AS"}
    bill.world.clock.advance(DAY)
    again = await bill.send(made["id"])
    assert (again.status_code, again.json()) == (200, first.json())
    assert await bill.read(made["id"]) == {**await bill.read(made["id"]), **first.json()}


async def test_sending_makes_the_document(bill: Billing) -> None:
    made = await bill.draft()
    sent = (await bill.send(made["id"])).json()
    assert (made["pdf_url"], sent["pdf_url"]) == (None, f"https://reseller.test{INVOICES}/{made['id']}/pdf")
    answer = await bill.http.get(f"{INVOICES}/{made['id']}/pdf")
    assert (answer.status_code, answer.headers["content-type"], answer.content[:5]) == (200, "application/pdf", b"%PDF-")


@pytest.mark.cases
@pytest.mark.parametrize(("field", "value"), [*TEXTS.items(), *((name, None) for name in TEXTS)])
@pytest.mark.parametrize("state", ["sent", "void"])
async def test_what_has_left_draft_is_not_edited(bill: Billing, state: str, field: str, value: Any) -> None:
    made = await bill.draft()
    await bill.update(made["id"], recipient_name="A", recipient_email="a@b.example", notes="n", due_at=NOW + 5)
    before = (await (bill.send if state == "sent" else bill.void)(made["id"])).json()
    for wish in ({}, {"status": "sent"}):
        answer = await bill.update(made["id"], **{field: value}, **wish)
        assert (answer.status_code, answer.json()["code"]) == (409, "invoice_not_editable")
    assert (await bill.read(made["id"]))["updated_at"] == before["updated_at"]
    assert (await bill.read(made["id"]))[field] == before[field]


async def test_the_refusal_of_an_edit_says_what_can_be_done(bill: Billing) -> None:
    made = await bill.draft()
    await bill.send(made["id"])
    assert without_request_id(await bill.update(made["id"], notes="x")) == snapshot(
        {
            "error": "notes: the invoice is sent, and only drafts are edited",
            "code": "invoice_not_editable",
            "param": "notes",
            "hint": "void_invoice voids it, and create_invoice makes another one of the same period",
        }
    )


async def test_a_call_that_is_repeated_after_sending_is_no_edit(bill: Billing) -> None:
    made = await bill.draft()
    first = await bill.send(made["id"], recipient_name="A", due_at=NOW + 60)
    bill.world.clock.advance(120)
    assert (await bill.send(made["id"], recipient_name="A", due_at=NOW + 60)).json() == first.json()


async def test_a_stored_answer_is_replayed_after_the_invoice_was_sent(bill: Billing) -> None:
    made = await bill.draft()
    first = await bill.update(made["id"], key="edit", notes="x")
    await bill.update(made["id"], notes="y")
    await bill.send(made["id"])
    again = await bill.update(made["id"], key="edit", notes="x")
    assert (again.status_code, again.content) == (200, first.content)


@pytest.mark.rule("3.2.4")
@pytest.mark.parametrize("state", ["draft", "sent", "void"])
async def test_paid_is_not_set_by_a_call(bill: Billing, state: str) -> None:
    made = await bill.draft()
    if state != "draft":
        await (bill.send if state == "sent" else bill.void)(made["id"])
    answer = await bill.update(made["id"], status="paid")
    assert answer.status_code == 400
    assert without_request_id(answer) == snapshot(
        {
            "error": "status: paid cannot be set",
            "code": "invalid_request",
            "param": "status",
            "hint": "An invoice becomes paid when the payment processor tells of the payment, and in no other way",
        }
    )
    assert (await bill.read(made["id"]))["status"] == state


async def test_void_is_set_by_another_call(bill: Billing) -> None:
    made = await bill.draft()
    answer = await bill.update(made["id"], status="void")
    assert answer.status_code == 400
    assert without_request_id(answer) == snapshot(
        {
            "error": "status: void cannot be set",
            "code": "invalid_request",
            "param": "status",
            "hint": "void_invoice (DELETE on the same path) voids an invoice",
        }
    )


async def test_what_was_sent_becomes_no_draft_and_what_is_void_is_not_sent(bill: Billing) -> None:
    sent, void = await bill.draft(), (await bill.create()).json()
    await bill.send(sent["id"])
    await bill.void(void["id"])
    for invoice, wish in ((sent, "draft"), (void, "draft"), (void, "sent")):
        answer = await bill.update(invoice["id"], status=wish)
        assert (answer.status_code, answer.json()["code"], answer.json()["param"]) == (409, "invoice_not_editable", "status")


@pytest.mark.rule("3.2.3")
@pytest.mark.rule("4.4.26")
async def test_voiding_keeps_the_row_and_is_safe_to_repeat(bill: Billing) -> None:
    drafted, sent = await bill.draft(), (await bill.create()).json()
    await bill.send(sent["id"])
    for invoice in (drafted["id"], sent["id"]):
        before = await bill.read(invoice)
        first = await bill.void(invoice)
        assert (first.status_code, first.json()["status"]) == (200, "void")
        bill.world.clock.advance(60)
        assert ((await bill.void(invoice)).status_code, (await bill.void(invoice)).json()) == (200, first.json())
        after = await bill.read(invoice)
        assert {**after, "updated_at": 0} == {**before, "status": "void", "updated_at": 0}


@pytest.mark.cases
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("recipient_name", ""),
        ("recipient_name", "   "),
        ("recipient_name", "\u202e\u200b"),
        ("recipient_name", "a\nb"),
        ("recipient_name", "a\x1b[2J"),
        ("recipient_name", "a\x85"),
        ("recipient_email", "ada"),
        ("recipient_email", "Ada <ada@example.com>"),
        ("recipient_email", "a@b.example\r\nBcc: c@d.example"),
        ("recipient_email", "a@b.example, c@d.example"),
        ("notes", "a\x07"),
        ("due_at", NOW),
        ("due_at", NOW - 1),
        ("due_at", NOW + 730 * DAY + 1),
        ("org_id", "org_1"),
        ("total_cents", 1),
        ("paid_at", NOW),
    ],
)
async def test_a_field_that_is_wrong_or_not_theirs_is_named_and_changes_nothing(bill: Billing, field: str, value: Any) -> None:
    made = await bill.draft()
    answer = await bill.update(made["id"], **{field: value})
    assert (answer.status_code, answer.json()["param"]) == (400, field)
    assert (await bill.read(made["id"]))["updated_at"] == made["updated_at"]
    assert "b.example" not in answer.text


@pytest.mark.cases
@pytest.mark.parametrize(
    "name",
    ["<img src=x onerror=alert(1)>", '=HYPERLINK("https://x.example")', "a\u202etxt.exe", "{{ 7 * 7 }} #set page()", "n" * 200, "日本"],
)
async def test_a_hostile_name_is_a_text_and_is_kept_as_it_was_sent(bill: Billing, name: str) -> None:
    made = await bill.draft()
    assert (await bill.update(made["id"], recipient_name=name)).json()["recipient_name"] == name
    assert (await bill.send(made["id"])).json()["recipient_name"] == name


async def test_a_day_to_pay_by_that_is_over_is_not_sent(bill: Billing) -> None:
    made = await bill.draft()
    await bill.update(made["id"], due_at=NOW + 60)
    bill.world.clock.advance(60)
    answer = await bill.send(made["id"])
    assert answer.status_code == 400
    assert without_request_id(answer) == snapshot(
        {
            "error": "due_at: 1800014460 (2027-01-15T12:01:00Z) must be in the future, and at most 730 days away: at most 1863086460",
            "code": "invalid_request",
            "param": "due_at",
            "hint": "Unix seconds; now it is 1800014460. null lets it be 30 days after sending",
        }
    )
    assert (await bill.send(made["id"], due_at=NOW + 730 * DAY)).json()["due_at"] == NOW + 730 * DAY


async def test_edits_at_the_same_time_are_all_made(bill: Billing) -> None:
    made = await bill.draft()
    await asyncio.gather(*(bill.update(made["id"], **{name: value}) for name, value in TEXTS.items()))
    found = await bill.read(made["id"])
    assert {name: found[name] for name in TEXTS} == TEXTS


async def test_of_sending_and_editing_at_once_what_is_sent_is_what_was_answered(bill: Billing) -> None:
    made = await bill.draft()
    edited, sent = await asyncio.gather(bill.update(made["id"], notes="late"), bill.send(made["id"]))
    found = await bill.read(made["id"])
    assert found["notes"] == ("late" if edited.status_code == 200 else None)
    assert found["status"] == ("sent" if sent.status_code == 200 else "draft")
    assert sent.status_code in (200, 409) and edited.status_code in (200, 409)


async def test_a_downgrade_between_the_check_and_the_commit_changes_nothing(bill: Billing) -> None:
    """The document is set in a thread: meanwhile the tier changes, and the transaction that would send looks again (abuse case 45)."""
    made = await bill.draft()

    async def downgrade() -> None:
        await asyncio.sleep(0)
        await bill.world.move_to(Tier.FREE, bill.who.organisation)

    answer, _ = await asyncio.gather(bill.send(made["id"]), downgrade())
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert (await bill.read(made["id"]))["status"] == "draft"
