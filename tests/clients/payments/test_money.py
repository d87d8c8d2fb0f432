"""Money and fraud over the wire: what is sent, and what is made of the answer."""

import pytest
import stripe

from clients.payments.records import (
    ApplicationFee,
    Balance,
    Charge,
    Dispute,
    Money,
    Payout,
    ProcessorPage,
    Refund,
    Review,
    ValueList,
    ValueListItem,
)
from tests.clients.payments.processor import (
    CONNECTED,
    EMAIL,
    ProcessorAnswer,
    charge_body,
    dispute_body,
    fee_body,
    listing,
    payout_body,
    refund_body,
    review,
    shaped,
    vendor,
)

CHARGE = Charge("ch_1", 1250, 0, "EUR", "succeeded", False, False, 1_800_000_000, "pi_1", "fee_1", None, {"order": "ord_1"})
REFUND = Refund("re_1", 500, "EUR", "pending", "ch_1", "pi_1", "requested_by_customer", 1_800_000_100)
PAYOUT = Payout("po_1", 9000, "USD", "in_transit", False, 1_800_086_400, 1_800_000_200, None, {"by": "us"})
DISPUTE = Dispute("du_1", 1250, "EUR", "needs_response", "fraudulent", "ch_1", "pi_1", 1_800_600_000, 0, 1_800_000_300)
FEE = ApplicationFee("fee_1", CONNECTED, 13, 0, "EUR", "ch_1", 1_800_000_001)
REVIEW = Review("prv_1", True, "rule", "ch_1", "pi_1", 1_800_000_400)


async def test_balances_are_told_by_currency_of_an_account_and_of_the_service() -> None:
    answer = shaped(
        stripe.Balance,
        object="balance",
        livemode=True,
        available=[{"amount": 700, "currency": "eur", "source_types": {"card": 700}}, {"amount": -5, "currency": "usd"}],
        pending=[],
    )
    async with vendor(ProcessorAnswer(answer)) as (there, client):
        expected = Balance(True, (Money(700, "EUR"), Money(-5, "USD")), ())
        assert (await client.balance_of(CONNECTED), await client.own_balance()) == (expected, expected)
    assert [(asked.path, asked.headers.get("stripe-account")) for asked in there.asked] == [
        ("/v1/balance", CONNECTED),
        ("/v1/balance", None),
    ]


async def test_a_charge_is_found_in_its_account_whether_its_parts_are_told_whole_or_by_id() -> None:
    whole = charge_body(payment_intent={"id": "pi_1", "object": "payment_intent"}, application_fee=fee_body())
    async with vendor(ProcessorAnswer(charge_body()), ProcessorAnswer(whole)) as (there, client):
        assert (await client.find_charge(CONNECTED, "ch_1"), await client.find_charge(CONNECTED, "ch_1")) == (CHARGE, CHARGE)
    asked = there.asked[0]
    assert (asked.method, asked.path, asked.query, asked.headers["stripe-account"]) == ("GET", "/v1/charges/ch_1", {}, CONNECTED)
    assert asked.key is None


async def test_a_charge_of_which_the_optional_is_missing_is_read() -> None:
    bare = {
        name: value
        for name, value in charge_body().items()
        if name not in ("payment_intent", "application_fee", "failure_code", "metadata")
    }
    async with vendor(ProcessorAnswer(bare)) as (_, client):
        assert await client.find_charge(CONNECTED, "ch_1") == Charge("ch_1", 1250, 0, "EUR", "succeeded", False, False, 1_800_000_000)


async def test_a_page_of_a_list_is_asked_for_by_size_and_place() -> None:
    async with vendor(listing(charge_body(), charge_body(id="ch_2"), has_more=True)) as (there, client):
        page = await client.list_charges(CONNECTED, limit=2, starting_after="ch_0")
    assert ([found.id for found in page.data], page.has_more) == (["ch_1", "ch_2"], True)
    assert (there.asked[0].path, there.asked[0].query) == ("/v1/charges", {"limit": "2", "starting_after": "ch_0"})


async def test_every_list_is_read() -> None:
    value_list = {"id": "rsl_1", "object": "radar.value_list", "alias": "block", "name": "Blocked", "item_type": "email", "created": 9}
    answers = (
        listing(refund_body()),
        listing(payout_body()),
        listing(dispute_body()),
        listing(fee_body()),
        listing(review()),
        listing(value_list),
    )
    async with vendor(*answers) as (there, client):
        assert await client.list_refunds(CONNECTED, limit=1, charge="ch_1") == ProcessorPage([REFUND], False)
        assert await client.list_payouts(CONNECTED, limit=1) == ProcessorPage([PAYOUT], False)
        assert await client.list_disputes(CONNECTED, limit=1) == ProcessorPage([DISPUTE], False)
        assert await client.list_fees(limit=1, charge="ch_1") == ProcessorPage([FEE], False)
        assert await client.list_reviews(CONNECTED, limit=1) == ProcessorPage([REVIEW], False)
        assert await client.list_value_lists(CONNECTED, limit=1) == ProcessorPage(
            [ValueList("rsl_1", "block", "Blocked", "email", 9)], False
        )
    assert [(asked.path, asked.query.get("charge"), asked.headers.get("stripe-account")) for asked in there.asked] == [
        ("/v1/refunds", "ch_1", CONNECTED),
        ("/v1/payouts", None, CONNECTED),
        ("/v1/disputes", None, CONNECTED),
        ("/v1/application_fees", "ch_1", None),
        ("/v1/reviews", None, CONNECTED),
        ("/v1/radar/value_lists", None, CONNECTED),
    ]


async def test_a_refund_gives_the_fee_back_where_one_was_taken_and_goes_out_under_the_key_of_its_caller() -> None:
    async with vendor(
        ProcessorAnswer(charge_body()),
        ProcessorAnswer(refund_body()),
        ProcessorAnswer(charge_body(application_fee=None)),
        ProcessorAnswer(refund_body()),
    ) as (there, client):
        made = await client.refund(CONNECTED, charge="ch_1", amount=500, reason="duplicate", key="k-1", metadata={"by": "org_1"})
        await client.refund(CONNECTED, charge="ch_1", amount=500, reason=None, key="k-2", metadata={})
    assert made == REFUND
    read, first, _, second = there.asked
    assert (read.method, read.path) == ("GET", "/v1/charges/ch_1")
    assert (first.method, first.path, first.key, first.headers["stripe-account"]) == ("POST", "/v1/refunds", "k-1", CONNECTED)
    assert first.form == {
        "charge": "ch_1",
        "amount": "500",
        "reason": "duplicate",
        "refund_application_fee": "true",
        "metadata[by]": "org_1",
    }
    assert (second.key, second.form) == ("k-2", {"charge": "ch_1", "amount": "500"})


@pytest.mark.parametrize("key", ["ключ", "two words", "x" * 256, "a\r\nStripe-Account: acct_2", "half \ud800"])
async def test_a_key_that_no_header_can_carry_travels_as_its_hash(key: str) -> None:
    async with vendor(ProcessorAnswer(payout_body())) as (there, client):
        for other in (key, key, key + "!"):
            await client.pay_out(CONNECTED, amount=9000, currency="USD", key=other, metadata={})
    keys = [asked.key or "" for asked in there.asked]
    assert keys[0] == keys[1] != keys[2] and len(keys[0]) == 71 and keys[0].startswith("sha256-")
    assert {asked.headers["stripe-account"] for asked in there.asked} == {CONNECTED}


async def test_a_refund_is_found_and_one_without_a_status_is_pending() -> None:
    async with vendor(ProcessorAnswer(refund_body(status=None, charge=None, failure_reason="declined"))) as (there, client):
        found = await client.find_refund(CONNECTED, "re_1")
    assert (found.status, found.charge, found.failure_reason, there.asked[0].path) == ("pending", None, "declined", "/v1/refunds/re_1")


async def test_a_payout_names_its_currency_in_the_wires_letters() -> None:
    async with vendor(ProcessorAnswer(payout_body())) as (there, client):
        assert await client.pay_out(CONNECTED, amount=9000, currency="USD", key="k", metadata={"by": "us"}) == PAYOUT
    [asked] = there.asked
    assert (asked.path, asked.key, asked.form) == ("/v1/payouts", "k", {"amount": "9000", "currency": "usd", "metadata[by]": "us"})


async def test_a_dispute_is_answered_with_what_is_given_and_handed_in_when_asked() -> None:
    async with vendor(ProcessorAnswer(dispute_body())) as (there, client):
        assert await client.find_dispute(CONNECTED, "du_1") == DISPUTE
        given = {"product_description": "An eSIM", "customer_email_address": EMAIL}
        await client.answer_dispute(
            CONNECTED, "du_1", {"product_description": "An eSIM", "customer_email_address": EMAIL}, submit=True, key="k"
        )
        await client.answer_dispute(CONNECTED, "du_1", {}, submit=False, key="k2")
    read, submitted, kept = there.asked
    assert (read.method, read.path, submitted.method, submitted.path) == ("GET", "/v1/disputes/du_1", "POST", "/v1/disputes/du_1")
    assert submitted.form == {**{f"evidence[{name}]": value for name, value in given.items()}, "submit": "true"}
    assert (submitted.key, kept.form["submit"]) == ("k", "false")


def test_every_word_of_evidence_is_one_that_the_processor_takes() -> None:
    from stripe.params import DisputeUpdateParamsEvidence

    from clients.payments.records import EvidenceTexts

    assert EvidenceTexts.__optional_keys__ <= set(DisputeUpdateParamsEvidence.__annotations__)


async def test_a_review_is_approved_and_a_value_added_to_a_list() -> None:
    item = {"id": "rsli_1", "object": "radar.value_list_item", "value_list": "rsl_1", "value": EMAIL, "created": 7}
    async with vendor(ProcessorAnswer(review(open=False, reason="approved")), ProcessorAnswer(item)) as (there, client):
        closed = await client.approve_review(CONNECTED, "prv_1", key="k1")
        added = await client.add_to_value_list(CONNECTED, "rsl_1", EMAIL, key="k2")
    assert (closed.open, closed.reason, added) == (False, "approved", ValueListItem("rsli_1", "rsl_1", EMAIL, 7))
    assert EMAIL not in repr(added)
    assert [(asked.path, asked.key, asked.form) for asked in there.asked] == [
        ("/v1/reviews/prv_1/approve", "k1", {}),
        ("/v1/radar/value_list_items", "k2", {"value_list": "rsl_1", "value": EMAIL}),
    ]
