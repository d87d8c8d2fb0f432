"""Invoices that the processor mails and collects."""

from typing import Any

import pytest
import stripe

from simulators.processor.call import ProcessorRefusal
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.invoices import find_invoice_by_slug, pay_invoice_by_card
from tests.sandbox_payments.processor import DAY, GOOD, PAGES_ADDRESS, ClockedProcessor, processor_with_account, words


def test_an_invoice_is_drafted_sent_and_paid_on_its_page() -> None:
    p, account, at = processor_with_account()
    draft = p.invoice(account, 1_000, 250, number="INV-2026-000001", fee=12)
    assert (draft.status, draft.total, draft.hosted_invoice_url, draft.number) == ("draft", 1_250, None, "INV-2026-000001")
    sent = p.v1.invoices.send_invoice(draft.id, None, at)
    assert (sent.status, sent.amount_remaining, words(sent.metadata)) == ("open", 1_250, {"invoice": "inv_1"})
    assert sent.hosted_invoice_url is not None and sent.hosted_invoice_url.startswith(f"{PAGES_ADDRESS}/invoices/")
    assert find_invoice_by_slug(p.state, sent.hosted_invoice_url.rsplit("/", 1)[1]) == (account, p.state.book(account).invoices[draft.id])
    p.advance(60)
    pay_invoice_by_card(p.state, account, draft.id, GOOD)
    paid = p.v1.invoices.retrieve(draft.id, {"expand": ["payments"]}, at)
    assert (paid.status, paid.amount_paid, paid.amount_remaining) == ("paid", 1_250, 0)
    assert paid.status_transitions.paid_at == int(p.now)
    charge = p.v1.charges.list(None, at).data[0]
    assert (charge.amount, charge.application_fee_amount, charge.customer) == (1_250, 12, draft.customer)
    assert p.v1.application_fees.list().data[0].amount == 12
    assert p.types(account)[-6:] == [
        "charge.succeeded",
        "payment_intent.succeeded",
        "invoice.updated",
        "invoice.paid",
        "invoice.payment_succeeded",
        "invoice_payment.paid",
    ]
    with pytest.raises(ProcessorRefusal, match="already paid"):
        pay_invoice_by_card(p.state, account, draft.id, GOOD)


def test_a_declined_card_leaves_the_invoice_open_for_another() -> None:
    p, account, _ = processor_with_account()
    invoice = p.v1.invoices.send_invoice(p.invoice(account, 900).id, None, {"stripe_account": account})
    with pytest.raises(ProcessorRefusal, match="insufficient funds"):
        pay_invoice_by_card(p.state, account, invoice.id, PaymentCard("4000000000009995"))
    assert p.v1.invoices.retrieve(invoice.id, None, {"stripe_account": account}).status == "open"
    assert p.types(account)[-2:] == ["invoice.payment_failed", "invoice.updated"]
    pay_invoice_by_card(p.state, account, invoice.id, GOOD)
    found = p.v1.invoices.retrieve(invoice.id, None, {"stripe_account": account})
    assert (found.status, found.attempt_count) == ("paid", 2)


def test_an_invoice_over_nothing_is_paid_as_soon_as_it_is_final() -> None:
    p, account, at = processor_with_account()
    done = p.v1.invoices.send_invoice(p.invoice(account, 500, -500).id, None, at)
    assert (done.status, done.amount_paid, done.total) == ("paid", 0, 0)
    assert p.v1.charges.list(None, at).data == []
    assert "invoice.paid" in p.types(account)


def test_what_an_invoice_cannot_do_in_its_state_is_refused() -> None:
    p, account, at = processor_with_account()
    draft = p.invoice(account, 900).id
    with pytest.raises(stripe.InvalidRequestError, match="cannot be voided"):
        p.v1.invoices.void_invoice(draft, None, at)
    final = p.v1.invoices.finalize_invoice(draft, None, at).id
    for wrong in (
        lambda: p.v1.invoices.finalize_invoice(final, None, at),
        lambda: p.v1.invoices.delete(final, None, at),
        lambda: p.v1.invoices.update(final, {"description": "other"}, at),
        lambda: p.v1.invoice_items.create({"customer": customer(p, account), "invoice": final, "amount": 1}, at),
    ):
        with pytest.raises(stripe.InvalidRequestError):
            wrong()
    assert words(p.v1.invoices.update(final, {"metadata": {"note": "kept"}}, at).metadata) == {"invoice": "inv_1", "note": "kept"}
    assert p.v1.invoices.void_invoice(final, None, at).status == "void"
    with pytest.raises(ProcessorRefusal, match="cannot be paid: it is void"):
        pay_invoice_by_card(p.state, account, final, GOOD)


def customer(p: ClockedProcessor, account: str) -> str:
    return next(iter(p.state.book(account).customers))


def test_a_number_is_used_once_in_an_account() -> None:
    p = ClockedProcessor()
    mine, other = p.account(), p.account()
    p.invoice(mine, 1, number="A-1")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        p.invoice(mine, 1, number="A-1")
    assert refused.value.param == "number"
    assert p.invoice(other, 1, number="A-1").number == "A-1"


def test_an_invoice_without_a_number_of_ours_gets_one_of_the_customers() -> None:
    p, account, _ = processor_with_account()
    final = p.v1.invoices.finalize_invoice(p.invoice(account, 1).id, None, {"stripe_account": account})
    assert final.number is not None and final.number.endswith("-0001")


def test_a_fee_is_for_connected_accounts_and_not_above_the_total() -> None:
    p, account, _ = processor_with_account()
    with pytest.raises(stripe.InvalidRequestError, match="on behalf of another account"):
        p.v1.invoices.create({"customer": p.v1.customers.create({"email": "a@b.example"}).id, "application_fee_amount": 1})
    with pytest.raises(stripe.InvalidRequestError, match="larger than the invoice's total"):
        p.v1.invoices.finalize_invoice(p.invoice(account, 100, fee=101).id, None, {"stripe_account": account})


@pytest.mark.long
def test_an_invoice_holds_250_lines_of_its_own_currency() -> None:
    p, account, at = processor_with_account()
    invoice = p.invoice(account, *range(1, 251))
    assert (invoice.total, len(invoice.lines.data), invoice.lines.has_more) == (31_375, 10, True)
    assert [line.amount for line in p.v1.invoices.line_items.list(invoice.id, {"limit": 3}, at).data] == [1, 2, 3]
    assert sum(line.amount for line in p.v1.invoices.line_items.list(invoice.id, {"limit": 100}, at).auto_paging_iter()) == 31_375
    line: Any = {"customer": invoice.customer, "invoice": invoice.id, "amount": 1, "currency": "usd"}
    with pytest.raises(stripe.InvalidRequestError, match="maximum of 250"):
        p.v1.invoice_items.create(line, at)
    with pytest.raises(stripe.InvalidRequestError, match="does not match the currency"):
        p.v1.invoice_items.create({**line, "invoice": p.invoice(account).id, "customer": newest(p, account), "currency": "eur"}, at)


def newest(p: ClockedProcessor, account: str) -> str:
    return list(p.state.book(account).customers)[-1]


def test_an_invoice_that_is_mailed_says_when_it_is_due_and_has_an_address() -> None:
    p, _, at = processor_with_account()
    nameless = p.v1.customers.create({"name": "N"}, at).id
    for asked, param in (
        ({"collection_method": "send_invoice"}, "days_until_due"),
        ({"collection_method": "send_invoice", "due_date": int(p.now)}, "due_date"),
        ({"collection_method": "send_invoice", "due_date": int(p.now) + DAY}, "collection_method"),
        ({"due_date": int(p.now) + DAY}, "due_date"),
    ):
        wanted: Any = {"customer": nameless, **asked}
        with pytest.raises(stripe.InvalidRequestError) as refused:
            p.v1.invoices.create(wanted, at)
        assert refused.value.param == param


def test_a_change_that_is_refused_changes_nothing_of_a_draft() -> None:
    p, account, _ = processor_with_account()
    draft = p.invoice(account, 100, fee=1)
    wrong: Any = {"application_fee_amount": 2, "description": "other", "metadata": {"k" * 41: "v"}}
    with pytest.raises(stripe.InvalidRequestError):
        p.v1.invoices.update(draft.id, wrong, {"stripe_account": account})
    row = p.state.book(account).invoices[draft.id]
    assert (row.fee_amount, row.description) == (1, None)
