"""Invoices, promotion codes and checkout pages over the wire."""

from dataclasses import replace

import pytest

from clients.payments.invoices import PROCESSOR_LINES_LIMIT
from clients.payments.records import (
    CheckoutSession,
    InvoiceLine,
    Money,
    NewCheckout,
    NewInvoice,
    NewPromotion,
    ProcessorInvoice,
    PromotionCode,
)
from registry.errors import NotFound, PaymentsError, PaymentsRefused
from tests.clients.payments.processor import CLOSE, CONNECTED, EMAIL, ProcessorAnswer, fails, invoice_body, session, vendor

NEW = NewInvoice(
    key="inv_1",
    number="INV-2026-000001",
    currency="EUR",
    lines=(InvoiceLine("8988303000000000001", 4000), InvoiceLine("Platform fee", 200)),
    fee=200,
    due_at=1_802_000_000,
    recipient_name="Nørd & Co",
    recipient_email=EMAIL,
    metadata={"invoice": "inv_1"},
)
DRAFT = ProcessorInvoice("in_1", "draft", 4200, 0, "EUR", None, None, {"invoice": "inv_1"})
CUSTOMER = ProcessorAnswer({"id": "cus_1", "object": "customer"})
ITEM = ProcessorAnswer({"id": "ii_1", "object": "invoiceitem"})
BEGUN = ProcessorAnswer(invoice_body(total=0))
PAGE = "https://pay.vendor.example/i/1"
OPEN = invoice_body(status="open", hosted_invoice_url=PAGE)
PAID = invoice_body(status="paid", amount_paid=4200, status_transitions={"paid_at": 1_800_000_900})


async def test_an_invoice_is_drafted_with_its_own_lines_only_and_every_call_has_a_key_of_its_own() -> None:
    async with vendor(CUSTOMER, BEGUN, ITEM, ITEM, ProcessorAnswer(invoice_body())) as (there, client):
        assert await client.draft_invoice(CONNECTED, NEW) == DRAFT
    assert [(asked.method, asked.path, asked.key) for asked in there.asked] == [
        ("POST", "/v1/customers", "inv_1-customer"),
        ("POST", "/v1/invoices", "inv_1-invoice"),
        ("POST", "/v1/invoiceitems", "inv_1-line-1"),
        ("POST", "/v1/invoiceitems", "inv_1-line-2"),
        ("GET", "/v1/invoices/in_1", None),
    ]
    assert {asked.headers["stripe-account"] for asked in there.asked} == {CONNECTED}
    customer, begun, first, *_ = there.asked
    assert customer.form == {"name": "Nørd & Co", "email": EMAIL, "metadata[invoice]": "inv_1"}
    assert begun.form == {
        "customer": "cus_1",
        "currency": "eur",
        "collection_method": "send_invoice",
        "due_date": "1802000000",
        "auto_advance": "false",
        "pending_invoice_items_behavior": "exclude",
        "number": "INV-2026-000001",
        "application_fee_amount": "200",
        "metadata[invoice]": "inv_1",
    }
    assert first.form == {
        "customer": "cus_1",
        "invoice": "in_1",
        "currency": "eur",
        "amount": "4000",
        "description": "8988303000000000001",
    }


async def test_an_invoice_without_a_fee_names_none() -> None:
    async with vendor(CUSTOMER, BEGUN, ITEM, ITEM, ProcessorAnswer(invoice_body())) as (there, client):
        await client.draft_invoice(CONNECTED, replace(NEW, fee=0))
    assert "application_fee_amount" not in there.asked[1].form


async def test_what_broke_off_is_gone_through_again_with_the_same_keys_and_values() -> None:
    broken = ProcessorAnswer(instead=CLOSE)
    script = [CUSTOMER, BEGUN, ITEM, broken, broken, broken, CUSTOMER, BEGUN, ITEM, ITEM, ProcessorAnswer(invoice_body())]
    async with vendor(*script) as (there, client):
        with pytest.raises(PaymentsError) as unknown:
            await client.draft_invoice(CONNECTED, NEW)
        assert await client.draft_invoice(CONNECTED, NEW) == DRAFT
    assert unknown.value.outcome_unknown
    sent = [(asked.path, asked.key, asked.form) for asked in there.asked]
    assert sent[:4] == sent[6:10]
    assert sent[3] == sent[4] == sent[5]


async def test_more_lines_than_the_processor_takes_end_in_one_for_the_rest() -> None:
    lines = tuple(InvoiceLine(f"line {number}", number) for number in range(1, PROCESSOR_LINES_LIMIT + 11))
    async with vendor(CUSTOMER, BEGUN, *[ITEM] * PROCESSOR_LINES_LIMIT, ProcessorAnswer(invoice_body())) as (there, client):
        await client.draft_invoice(CONNECTED, replace(NEW, lines=lines))
    items = [asked.form for asked in there.asked if asked.path == "/v1/invoiceitems"]
    assert (len(items), items[-1]["description"]) == (PROCESSOR_LINES_LIMIT, "11 more lines")
    assert sum(int(item["amount"]) for item in items) == sum(line.amount for line in lines)


async def test_a_draft_is_finalised_and_sent_without_going_on_by_itself() -> None:
    async with vendor(ProcessorAnswer(invoice_body()), ProcessorAnswer(OPEN), ProcessorAnswer(OPEN)) as (there, client):
        sent = await client.send_invoice(CONNECTED, "in_1", key="inv_1")
    assert (sent.status, sent.pay_url, PAGE in repr(sent)) == ("open", PAGE, False)
    assert [(asked.method, asked.path, asked.key, asked.form) for asked in there.asked] == [
        ("GET", "/v1/invoices/in_1", None, {}),
        ("POST", "/v1/invoices/in_1/finalize", there.asked[1].key, {"auto_advance": "false"}),
        ("POST", "/v1/invoices/in_1/send", "inv_1-send", {}),
    ]


async def test_a_refused_line_takes_the_draft_with_it_so_that_its_number_is_free() -> None:
    gone = ProcessorAnswer({"id": "in_1", "object": "invoice", "deleted": True})
    async with vendor(CUSTOMER, BEGUN, ITEM, fails(400, code="amount_too_large"), gone) as (there, client):
        with pytest.raises(PaymentsRefused) as refused:
            await client.draft_invoice(CONNECTED, NEW)
    assert (refused.value.processor_code, there.asked[-1].method, there.asked[-1].path) == (
        "amount_too_large",
        "DELETE",
        "/v1/invoices/in_1",
    )
    missing = fails(404, code="resource_missing", param="invoice")
    async with vendor(CUSTOMER, BEGUN, missing) as (there, client):
        with pytest.raises(PaymentsRefused) as refused:
            await client.draft_invoice(CONNECTED, NEW)
    assert refused.value.processor_code == "resource_missing"


@pytest.mark.parametrize("script", [(ITEM, fails(429)), (fails(403, code="account_invalid"),), (fails(400), fails(401))])
async def test_a_draft_that_was_begun_is_not_told_as_not_begun(script: tuple[ProcessorAnswer, ...]) -> None:
    async with vendor(CUSTOMER, BEGUN, *script) as (_, client):
        with pytest.raises(PaymentsError) as failed:
            await client.draft_invoice(CONNECTED, NEW)
    assert failed.value.outcome_unknown and not failed.value.before_execution
    async with vendor(CUSTOMER, fails(429)) as (_, client):
        with pytest.raises(PaymentsError) as failed:
            await client.draft_invoice(CONNECTED, NEW)
    assert failed.value.before_execution


async def test_an_invoice_that_is_finalised_and_not_sent_is_not_told_as_left_alone() -> None:
    async with vendor(ProcessorAnswer(invoice_body()), ProcessorAnswer(OPEN), fails(429)) as (_, client):
        with pytest.raises(PaymentsError) as failed:
            await client.send_invoice(CONNECTED, "in_1", key="inv_1")
    assert failed.value.outcome_unknown


async def test_a_finalisation_that_was_heard_the_first_time_is_gone_on_with_and_a_refused_one_is_refused_anew() -> None:
    refused = fails(400, code="invoice_not_editable")
    async with vendor(ProcessorAnswer(invoice_body()), refused, ProcessorAnswer(OPEN), ProcessorAnswer(OPEN)) as (there, client):
        assert (await client.send_invoice(CONNECTED, "in_1", key="inv_1")).status == "open"
    assert [asked.path.rpartition("/")[2] for asked in there.asked] == ["in_1", "finalize", "in_1", "send"]
    async with vendor(
        ProcessorAnswer(invoice_body()),
        refused,
        ProcessorAnswer(invoice_body()),
        ProcessorAnswer(invoice_body()),
        refused,
        ProcessorAnswer(invoice_body()),
    ) as (there, client):
        for _ in range(2):
            with pytest.raises(PaymentsRefused):
                await client.send_invoice(CONNECTED, "in_1", key="inv_1")
    assert there.asked[1].key != there.asked[4].key


async def test_one_that_broke_off_between_the_two_is_sent_by_the_repetition() -> None:
    async with vendor(ProcessorAnswer(OPEN)) as (there, client):
        assert (await client.send_invoice(CONNECTED, "in_1", key="inv_1")).status == "open"
    assert [asked.key for asked in there.asked] == [None, "inv_1-send"]


async def test_one_that_is_paid_is_not_sent_again() -> None:
    async with vendor(ProcessorAnswer(PAID)) as (there, client):
        found = await client.send_invoice(CONNECTED, "in_1", key="inv_1")
    assert (found.status, found.amount_paid, found.paid_at, len(there.asked)) == ("paid", 4200, 1_800_000_900, 1)


async def test_an_open_invoice_is_voided_and_a_void_one_left() -> None:
    void = ProcessorAnswer(invoice_body(status="void"))
    async with vendor(ProcessorAnswer(OPEN), void) as (there, client):
        assert (await client.void_invoice(CONNECTED, "in_1", key="void-1")).status == "void"
        assert (await client.void_invoice(CONNECTED, "in_1", key="void-1")).status == "void"
    assert [(asked.method, asked.path, asked.key) for asked in there.asked] == [
        ("GET", "/v1/invoices/in_1", None),
        ("POST", "/v1/invoices/in_1/void", "void-1"),
        ("GET", "/v1/invoices/in_1", None),
    ]


async def test_a_draft_is_deleted_and_told_as_void_though_the_first_deletion_was_not_heard_of() -> None:
    gone = ProcessorAnswer({"id": "in_1", "object": "invoice", "deleted": True})
    async with vendor(ProcessorAnswer(invoice_body()), gone) as (there, client):
        assert await client.void_invoice(CONNECTED, "in_1", key="k") == replace(DRAFT, status="void")
    assert (there.asked[1].method, there.asked[1].path) == ("DELETE", "/v1/invoices/in_1")
    async with vendor(ProcessorAnswer(invoice_body()), ProcessorAnswer(instead=CLOSE), fails(404, code="resource_missing", param="id")) as (
        there,
        client,
    ):
        assert (await client.void_invoice(CONNECTED, "in_1", key="k")).status == "void"
    assert [asked.method for asked in there.asked] == ["GET", "DELETE", "DELETE"]


async def test_a_paid_invoice_is_not_voided_and_an_unknown_one_not_found() -> None:
    async with vendor(ProcessorAnswer(PAID), fails(400, code="invoice_not_editable")) as (_, client):
        with pytest.raises(PaymentsRefused) as refused:
            await client.void_invoice(CONNECTED, "in_1", key="k")
    assert refused.value.processor_code == "invoice_not_editable"
    async with vendor(fails(404, code="resource_missing", param="id")) as (_, client):
        with pytest.raises(NotFound):
            await client.void_invoice(CONNECTED, "in_1", key="k")


PERCENT = NewPromotion("pro_1", "WELCOME-10", 1250, None, 100, 1_802_000_000)


@pytest.mark.parametrize(
    ("promotion", "coupon"),
    [
        (PERCENT, {"percent_off": "12.5"}),
        (replace(PERCENT, percent_off_bps=10000), {"percent_off": "100.0"}),
        (replace(PERCENT, percent_off_bps=None, amount_off=Money(500, "USD")), {"amount_off": "500", "currency": "usd"}),
    ],
)
async def test_a_promotion_is_a_coupon_and_a_code_for_it(promotion: NewPromotion, coupon: dict[str, str]) -> None:
    made = {"id": "promo_1", "object": "promotion_code", "code": "WELCOME-10", "active": True}
    whole = {**made, "promotion": {"type": "coupon", "coupon": {"id": "cpn_1", "object": "coupon"}}}
    by_id = {**made, "promotion": {"type": "coupon", "coupon": "cpn_1"}}
    for answer in (by_id, whole):
        async with vendor(ProcessorAnswer({"id": "cpn_1", "object": "coupon"}), ProcessorAnswer(answer)) as (there, client):
            assert await client.create_promotion(CONNECTED, promotion) == PromotionCode("promo_1", "cpn_1", "WELCOME-10", True)
        first, second = there.asked
        assert (first.path, first.key) == ("/v1/coupons", "pro_1-coupon")
        assert first.form == {"duration": "once", "name": "WELCOME-10", **coupon}
        assert (second.path, second.key) == ("/v1/promotion_codes", "pro_1-code")
        assert second.form == {
            "promotion[type]": "coupon",
            "promotion[coupon]": "cpn_1",
            "code": "WELCOME-10",
            "max_redemptions": "100",
            "expires_at": "1802000000",
        }


SESSION = CheckoutSession("cs_test_1", "open", "unpaid", 1999, "GBP", None, 1_800_003_600, metadata={"order": "ord_1"})
CHECKOUT = NewCheckout("ord_1", "Nordic 1 GB", 1999, "GBP", 20, "https://s.example/ok", "https://s.example/no", metadata={"order": "ord_1"})


async def test_a_checkout_sells_one_thing_and_its_payment_carries_the_fee_and_the_marks() -> None:
    full = replace(CHECKOUT, email=EMAIL, promotions=True, expires_at=1_800_003_600)
    async with vendor(ProcessorAnswer(session())) as (there, client):
        made = await client.create_checkout(CONNECTED, full)
        await client.create_checkout(CONNECTED, replace(CHECKOUT, fee=0))
    assert replace(made, url=None, email=None) == SESSION
    assert (made.url, made.email) == ("https://pay.vendor.example/c/cs_test_1", EMAIL)
    assert EMAIL not in repr(made) and "pay.vendor" not in repr(made)
    plain = {
        "mode": "payment",
        "line_items[0][quantity]": "1",
        "line_items[0][price_data][currency]": "gbp",
        "line_items[0][price_data][unit_amount]": "1999",
        "line_items[0][price_data][product_data][name]": "Nordic 1 GB",
        "payment_intent_data[metadata][order]": "ord_1",
        "success_url": "https://s.example/ok",
        "cancel_url": "https://s.example/no",
        "metadata[order]": "ord_1",
    }
    more = {
        "payment_intent_data[application_fee_amount]": "20",
        "allow_promotion_codes": "true",
        "customer_email": EMAIL,
        "expires_at": "1800003600",
    }
    assert [(asked.path, asked.key) for asked in there.asked] == [("/v1/checkout/sessions", "ord_1")] * 2
    assert [asked.form for asked in there.asked] == [plain | more, plain]


async def test_a_page_of_an_account_that_sells_nothing_is_read() -> None:
    setup = session(status=None, payment_status="no_payment_required", amount_total=None, currency=None, customer_details=None)
    async with vendor(ProcessorAnswer(setup)) as (_, client):
        found = await client.find_checkout(CONNECTED, "cs_test_1")
    assert (found.status, found.amount_total, found.currency, found.email) == ("open", 0, "", None)


async def test_a_checkout_expires_and_one_that_is_over_is_told_as_it_is() -> None:
    over = fails(400)
    async with vendor(ProcessorAnswer(session(status="expired", url=None))) as (there, client):
        assert (await client.expire_checkout(CONNECTED, "cs_test_1")).status == "expired"
    assert (there.asked[0].method, there.asked[0].path) == ("POST", "/v1/checkout/sessions/cs_test_1/expire")
    async with vendor(over, ProcessorAnswer(session(status="complete", payment_status="paid", payment_intent="pi_9"))) as (_, client):
        found = await client.expire_checkout(CONNECTED, "cs_test_1")
    assert (found.status, found.payment_status, found.payment_intent) == ("complete", "paid", "pi_9")
    async with vendor(over, ProcessorAnswer(session())) as (_, client):
        with pytest.raises(PaymentsRefused):
            await client.expire_checkout(CONNECTED, "cs_test_1")
