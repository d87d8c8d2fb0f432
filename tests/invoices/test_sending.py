"""Sending through the payment processor, when it works, when it fails, and when several do it at once."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from inline_snapshot import snapshot

from clients.payments.records import InvoiceLine, NewInvoice
from storage.invoices import find_invoice
from tests.documents.reader import pages_of
from tests.invoices.billing import GB, INVOICES, SIM, Billing, invoice_of
from tests.stage import without_request_id
from tests.world import World

TO: dict[str, Any] = {"recipient_name": "Fjord Ferries AS", "recipient_email": "accounts@fjord.example"}
DAY = 86_400


@pytest.fixture
async def account(bill: Billing) -> str:
    return await bill.world.connect_payments(bill.who)


def held(world: World, account: str) -> dict[str, Any]:
    return dict(world.payments.state.book(account).invoices)


def statuses(world: World, account: str) -> list[str]:
    return sorted(row.status for row in held(world, account).values())


async def fail(world: World, trouble: str, path: str, **more: Any) -> None:
    """The next call of the processor on this path meets trouble, and the client's own repetitions of it too."""
    await world.ask_payments("POST", "faults", {"trouble": trouble, "path": path, "times": 20, **more})


async def mend(world: World) -> None:
    await world.payments.control("DELETE", "faults")


@pytest.mark.long
async def test_the_day_on_the_document_is_that_of_the_invoice_also_at_midnight(
    bill: Billing, account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = bill.world.clock

    def ticking() -> float:
        clock.advance(1)
        return clock.wall

    for before in range(9):
        made = await bill.draft()
        clock.advance(DAY - clock.wall % DAY - before)
        with monkeypatch.context() as patch:
            patch.setattr(clock, "now", ticking)
            sent = (await bill.send(made["id"], **TO)).json()
        (text,) = pages_of((await bill.http.get(f"{INVOICES}/{made['id']}/pdf")).content)
        assert f"Issued {datetime.fromtimestamp(sent['issued_at'], UTC):%d %b %Y}" in text


async def sending(bill: Billing, invoice: str) -> int:
    row = await bill.world.store.read(find_invoice, invoice=invoice, organisation=bill.who.organisation)
    assert row is not None
    return row.sending


@pytest.mark.rule("3.2.6")
async def test_sending_makes_and_sends_one_invoice_at_the_processor(bill: Billing, account: str) -> None:
    made = await bill.draft((SIM, 0, 4 * GB))
    answer = await bill.send(made["id"], **TO)
    assert answer.status_code == 200
    before = invoice_of(made)
    assert answer.json().keys() == before.keys()
    assert {name: value for name, value in answer.json().items() if before[name] != value} == snapshot(
        {
            "status": "sent",
            "payments_connect_account_id": "acct_13ICouwyVRvWpouX",
            "payments_invoice_id": "in_FK7GCeWKsy8zcOZ6kKMEdZcZ",
            "recipient_name": "Fjord Ferries AS",
            "recipient_email": "accounts@fjord.example",
            "pdf_url": "https://reseller.test/v1/invoices/inv_01mcckg2g0000000000000000e/pdf",
            "payment_url": "https://reseller.test/sandbox/payments/invoices/xm15BGBbav6bPbrhaShd50JJ",
            "issued_at": 1800014400,
            "due_at": 1802606400,
        }
    )
    ((id, there),) = held(bill.world, account).items()
    processor = bill.world.pipeline.deps.payments
    found = await processor.find_invoice(account, id)
    assert (found.id, found.status, found.total, found.currency) == (answer.json()["payments_invoice_id"], "open", 1010, "USD")
    assert (found.pay_url, dict(found.metadata)) == (answer.json()["payment_url"], {"invoice": made["id"]})
    assert (there.number, there.fee_amount, there.due_date, there.sent_at) == ("INV-2027-000001", 10, 1_802_606_400, 1_800_014_400)
    items = bill.world.payments.state.book(account).items
    assert [(items[item].description, items[item].amount) for item in there.items] == snapshot(
        [("Mobile data December 2026, 1 SIM, invoice INV-2027-000001", 1000), ("Platform fee", 10)]
    )


async def test_sending_again_asks_the_processor_nothing(bill: Billing, account: str) -> None:
    made = await bill.draft()
    first = await bill.send(made["id"], **TO)
    calls = len(bill.world.payments.calls)
    assert (await bill.send(made["id"], **TO)).json() == (await bill.send(made["id"])).json() == first.json()
    assert (len(bill.world.payments.calls), statuses(bill.world, account)) == (calls, ["open"])


async def test_a_key_replays_its_answer_and_sends_nothing_again(bill: Billing, account: str) -> None:
    made = await bill.draft()
    first, again = [await bill.send(made["id"], key="k", **TO) for _ in range(2)]
    assert (first.status_code, again.content, again.headers["Idempotent-Replayed"]) == (200, first.content, "true")
    assert statuses(bill.world, account) == ["open"]


@pytest.mark.parametrize("missing", list(TO))
async def test_an_invoice_for_nobody_is_not_sent(bill: Billing, account: str, missing: str) -> None:
    made = await bill.draft()
    answer = await bill.send(made["id"], **{name: value for name, value in TO.items() if name != missing})
    assert (answer.status_code, answer.json()["param"], answer.json()["code"]) == (400, missing, "invalid_request")
    assert ((await bill.read(made["id"]))["status"], held(bill.world, account)) == ("draft", {})
    assert (await bill.send(made["id"], **TO)).status_code == 200, "what was refused must not stand in the way"


async def test_an_account_that_is_not_ready_is_not_used(bill: Billing) -> None:
    account = await bill.world.connect_payments(bill.who, active=False)
    made = await bill.draft()
    sent = (await bill.send(made["id"])).json()
    assert (sent["status"], sent["payments_invoice_id"], sent["payments_connect_account_id"]) == ("sent", None, None)
    assert held(bill.world, account) == {}


async def test_an_invoice_of_nothing_is_not_handed_over(bill: Billing, account: str) -> None:
    made = await bill.draft(GB, price=0)
    sent = (await bill.send(made["id"])).json()
    assert (sent["status"], sent["payments_invoice_id"], held(bill.world, account)) == ("sent", None, {})


async def test_a_hostile_name_reaches_the_recipient_without_what_turns_its_text(bill: Billing, account: str) -> None:
    made = await bill.draft()
    sent = (await bill.send(made["id"], **{**TO, "recipient_name": "Fjord\u202e \u200bsgnirtS"})).json()
    assert sent["recipient_name"] == "Fjord\u202e \u200bsgnirtS"
    (customer,) = bill.world.payments.state.book(account).customers.values()
    assert customer.name == "Fjord sgnirtS"


async def test_all_that_misses_of_the_recipient_is_told_at_once(bill: Billing, account: str) -> None:
    made = await bill.draft()
    bare, named = await bill.send(made["id"]), await bill.send(made["id"], recipient_name="Fjord Ferries AS")
    assert [(said.status_code, said.json()["error"], said.json()["param"], said.json()["hint"]) for said in (bare, named)] == snapshot(
        [
            (
                400,
                "recipient_name, recipient_email: missing; your account at the payment processor is active, so the invoice is sent "
                "through it to a recipient",
                "recipient_name",
                'Send along: {"status": "sent", "recipient_name": ..., "recipient_email": ...}',
            ),
            (
                400,
                "recipient_email: missing; your account at the payment processor is active, so the invoice is sent through it to a "
                "recipient",
                "recipient_email",
                'Send along: {"status": "sent", "recipient_email": ...}',
            ),
        ]
    )
    assert statuses(bill.world, account) == []


@pytest.mark.rule("3.2.4")
async def test_the_processors_word_makes_it_paid_and_a_paid_one_stays(bill: Billing, account: str) -> None:
    made = await bill.draft()
    sent = (await bill.send(made["id"], **TO)).json()
    bill.world.clock.advance(DAY)
    await bill.world.ask_payments("POST", f"invoices/{sent['payments_invoice_id']}", {})
    assert set(await bill.world.settle_payments()) == {200}
    paid = {name: value for name, value in (await bill.read(made["id"])).items() if name in sent}
    assert paid == {**sent, "status": "paid", "paid_at": 1_800_014_400 + DAY, "updated_at": 1_800_014_400 + DAY}
    refused = [await bill.void(made["id"]), await bill.update(made["id"], notes="x"), await bill.send(made["id"])]
    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [
        (409, "invoice_paid"),
        (409, "invoice_not_editable"),
        (409, "invoice_not_editable"),
    ]


@pytest.mark.rule("3.2.3")
async def test_voiding_takes_it_back_at_the_processor(bill: Billing, account: str) -> None:
    made = await bill.draft()
    sent = (await bill.send(made["id"], **TO)).json()
    answer = await bill.void(made["id"])
    assert (answer.status_code, answer.json()) == (200, {**sent, "status": "void"})
    assert statuses(bill.world, account) == ["void"]
    assert (await bill.void(made["id"])).json() == answer.json()


async def test_one_that_was_paid_while_it_was_voided_is_paid(bill: Billing, account: str) -> None:
    made = await bill.draft()
    sent = (await bill.send(made["id"], **TO)).json()
    await bill.world.ask_payments("POST", f"invoices/{sent['payments_invoice_id']}", {})
    answer = await bill.void(made["id"])
    assert answer.status_code == 409
    assert without_request_id(answer) == snapshot(
        {
            "error": "The invoice is paid, and a paid invoice cannot be voided; nothing was done",
            "code": "invoice_paid",
            "hint": "operator_billing_create_refund gives money back, where it was paid through the processor; "
            "operator_billing_list_charges names the charge: look for the total and the time of payment",
        }
    )
    assert (await bill.read(made["id"]))["status"] == "paid"
    await bill.world.settle_payments()
    assert (await bill.read(made["id"]))["status"] == "paid"


# Where it breaks: the path at the processor, and whether the call took effect.
STEPS = [
    ("/v1/customers", False),
    ("/v1/customers", True),
    ("/v1/invoices", False),
    ("/v1/invoices", True),
    ("/v1/invoiceitems", False),
    ("/v1/invoiceitems", True),
    ("*/finalize", False),
    ("*/finalize", True),
    ("*/send", False),
    ("*/send", True),
]


@pytest.mark.cases
@pytest.mark.parametrize("trouble", ["timeout", "error", "garbage"])
@pytest.mark.parametrize(("path", "after"), STEPS)
async def test_whatever_breaks_sending_again_completes_it_once(
    bill: Billing, account: str, trouble: str, path: str, *, after: bool
) -> None:
    made = await bill.draft()
    await fail(bill.world, trouble, path, after=after)
    broken = await bill.send(made["id"], key="k", **TO)
    assert (broken.status_code, broken.json()["code"]) == (502, "OUTCOME_UNKNOWN")
    assert (await sending(bill, made["id"]), (await bill.read(made["id"]))["status"]) == (1, "draft")
    edit = await bill.update(made["id"], recipient_name="Somebody else")
    assert (edit.status_code, edit.json()["code"]) == (409, "invoice_not_editable")
    await mend(bill.world)
    assert (await bill.send(made["id"], key="k", **TO)).content == broken.content
    bill.world.clock.advance(7200)
    answer = await bill.send(made["id"])
    assert (answer.status_code, answer.json()["status"]) == (200, "sent"), answer.text
    assert statuses(bill.world, account) == ["open"]
    assert len(bill.world.payments.state.book(account).customers) == 1
    assert answer.json()["pdf_url"] is not None


@pytest.mark.cases
@pytest.mark.parametrize(("path", "after"), STEPS)
async def test_whatever_broke_voiding_leaves_nothing_to_be_paid(bill: Billing, account: str, path: str, *, after: bool) -> None:
    made = await bill.draft()
    await fail(bill.world, "error", path, after=after)
    assert (await bill.send(made["id"], **TO)).status_code == 502
    await mend(bill.world)
    answer = await bill.void(made["id"])
    assert (answer.status_code, answer.json()["status"]) == (200, "void")
    assert set(statuses(bill.world, account)) <= {"void"}
    assert await sending(bill, made["id"]) == 0


async def test_what_never_left_leaves_a_draft_that_can_be_edited(bill: Billing, account: str) -> None:
    made = await bill.draft()
    await fail(bill.world, "rate_limited", "/v1/customers")
    answer = await bill.send(made["id"], key="k", **TO)
    assert (answer.status_code, answer.json()["code"]) == (502, "payments_error")
    assert await sending(bill, made["id"]) == 0
    await mend(bill.world)
    assert (await bill.update(made["id"], recipient_name="Somebody else")).status_code == 200
    assert (await bill.send(made["id"], key="k", **TO)).json()["status"] == "sent", "the key is free"
    assert statuses(bill.world, account) == ["open"]


async def test_what_the_processor_refuses_is_a_draft_again(bill: Billing, account: str) -> None:
    made = await bill.draft()
    processor = bill.world.pipeline.deps.payments
    line = InvoiceLine("Something else", 1)
    theirs = NewInvoice("own", made["invoice_number"], "USD", (line,), 0, 1_810_000_000, "Other", "other@fjord.example")
    taken = await processor.draft_invoice(account, theirs)
    answer = await bill.send(made["id"], key="k", **TO)
    assert (answer.status_code, answer.json()["code"]) == (400, "payments_refused")
    assert ((await bill.read(made["id"]))["status"], await sending(bill, made["id"])) == ("draft", 0)
    assert (await bill.send(made["id"], key="k", **TO)).content == answer.content
    assert (await bill.update(made["id"], recipient_name="Somebody else")).status_code == 200
    await processor.void_invoice(account, taken.id, key="own")
    assert (await bill.send(made["id"])).json()["status"] == "sent"
    assert statuses(bill.world, account) == ["open"]


async def test_a_number_that_is_too_long_for_the_processor_stays_ours(bill: Billing, account: str) -> None:
    await bill.config(invoice_prefix="SIXTEEN-LETTERS-")
    made = await bill.draft()
    assert (await bill.send(made["id"], **TO)).json()["invoice_number"] == "SIXTEEN-LETTERS--2027-000001"
    (there,) = held(bill.world, account).values()
    assert there.number != made["invoice_number"]


async def test_a_draft_that_somebody_removed_at_the_processor_is_made_anew(bill: Billing, account: str) -> None:
    made = await bill.draft()
    await fail(bill.world, "error", "*/finalize")
    await bill.send(made["id"], **TO)
    await mend(bill.world)
    (there,) = held(bill.world, account)
    await bill.world.pipeline.deps.payments.void_invoice(account, there, key="owner")
    assert (await bill.send(made["id"])).status_code in (404, 409)
    answer = await bill.send(made["id"])
    assert (answer.status_code, answer.json()["status"]) == (200, "sent"), answer.text
    assert statuses(bill.world, account) == ["open"]


async def test_a_draft_that_comes_to_something_else_there_is_not_sent(bill: Billing, account: str) -> None:
    made = await bill.draft()
    await fail(bill.world, "error", "*/finalize")
    await bill.send(made["id"], **TO)
    await mend(bill.world)
    book = bill.world.payments.state.book(account)
    next(iter(book.items.values())).amount += 1
    answer = await bill.send(made["id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "processor_invoice_differs"), answer.text
    assert (await bill.send(made["id"])).json()["status"] == "sent"
    assert statuses(bill.world, account) == ["open"]


async def test_an_account_that_was_let_go_leaves_a_draft(bill: Billing, account: str) -> None:
    made = await bill.draft()
    await bill.world.ask_payments("POST", f"accounts/{account}", {"do": "deauthorize"})
    answer = await bill.send(made["id"], **TO)
    assert (answer.status_code, answer.json()["code"]) == (502, "payments_error")
    assert (await sending(bill, made["id"]), (await bill.void(made["id"])).json()["status"]) == (0, "void")


@pytest.mark.long
async def test_of_eight_sends_at_once_the_recipient_gets_one_invoice(bill: Billing, account: str) -> None:
    made = await bill.draft()
    await bill.update(made["id"], **TO)
    answers = await asyncio.gather(*(bill.send(made["id"]) for _ in range(8)))
    assert {answer.status_code for answer in answers} <= {200, 409, 502}
    last = await bill.send(made["id"])
    assert (last.status_code, last.json()["status"], statuses(bill.world, account)) == (200, "sent", ["open"])
    assert {answer.json()["payments_invoice_id"] for answer in answers if answer.status_code == 200} == {last.json()["payments_invoice_id"]}


@pytest.mark.long
async def test_of_sending_and_voiding_at_once_nothing_can_be_paid_that_is_void(bill: Billing, account: str) -> None:
    async def void(id: str, wait: int) -> int:
        for _ in range(4 * wait):
            await asyncio.sleep(0)
        return (await bill.void(id)).status_code

    for wait in range(12):
        id, before = (await bill.draft())["id"], held(bill.world, account).keys()
        await bill.update(id, **TO)
        sent, voided = await asyncio.gather(bill.send(id), void(id, wait))
        assert voided in (200, 409)
        status = (await bill.read(id))["status"]
        there = {row.status for key, row in held(bill.world, account).items() if key not in before}
        assert (status, there) in [("void", {"void"}), ("void", set[str]()), ("sent", {"open"})], (sent.text, voided)


async def test_one_that_was_paid_while_we_had_lost_sight_of_it_is_paid(bill: Billing, account: str) -> None:
    made = await bill.draft()
    await fail(bill.world, "error", "*/send", after=True)
    assert (await bill.send(made["id"], **TO)).status_code == 502
    await mend(bill.world)
    (there,) = held(bill.world, account)
    await bill.world.ask_payments("POST", f"invoices/{there}", {})
    assert set(await bill.world.settle_payments()) == {200}
    found = await bill.read(made["id"])
    assert (found["status"], found["payments_invoice_id"], found["issued_at"], await sending(bill, made["id"])) == (
        "paid",
        there,
        1_800_014_400,
        0,
    )


async def test_the_document_is_kept_as_it_was_sent(bill: Billing, account: str) -> None:
    made = await bill.draft()
    await bill.send(made["id"], **TO)
    first = (await bill.http.get(f"{INVOICES}/{made['id']}/pdf")).content
    await bill.void(made["id"])
    assert (await bill.http.get(f"{INVOICES}/{made['id']}/pdf")).content == first
