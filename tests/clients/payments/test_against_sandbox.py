"""Every question of the port, asked of the simulated processor over its wire."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import pytest

from clients.payments.client import ProcessorClient
from clients.payments.outcome import AccountDetached
from clients.payments.records import (
    ApplicationFee,
    Balance,
    Charge,
    ConnectedAccount,
    InvoiceLine,
    Money,
    NewCheckout,
    NewInvoice,
    NewPromotion,
    PayoutTiming,
    ProcessorEvent,
    ProcessorInvoice,
    Refund,
)
from registry.errors import NotFound, PaymentsError, PaymentsRefused
from simulators.processor.simulated_processor import SimulatedProcessor
from tests.clients.clock import ManualClock
from transports.payments import simulated_processor

PAGES = "https://shop.example/sandbox/payments"
SECRET = "whsec_c2FuZGJveC1zZWNyZXQtMTIz"


@dataclass
class Stage:
    """A processor, the client of it, and one account that is ready for business."""

    sandbox: SimulatedProcessor
    client: ProcessorClient
    clock: ManualClock
    account: str = ""

    async def act(self, path: str, **body: object) -> dict[str, object]:
        return cast("dict[str, object]", await self.sandbox.control("POST", path, body))

    async def charge(self, **changes: object) -> str:
        body = {"account": self.account, "amount": 1250, "currency": "EUR", "fee": 13, "metadata": {"order": "ord_1"}, **changes}
        return cast("str", (await self.act("charges", **body))["id"])

    async def events(self) -> list[ProcessorEvent]:
        told = list[ProcessorEvent]()

        async def post(url: str, body: bytes, headers: object) -> int:
            signature = dict(cast("dict[str, str]", headers))["stripe-signature"]
            told.append(self.client.read_event(body, signature, self.clock.now()))
            return 200

        await self.sandbox.deliver(post)
        return told


@asynccontextmanager
async def stage() -> AsyncGenerator[Stage]:
    clock = ManualClock()
    sandbox = SimulatedProcessor(
        wall=clock.now,
        pages_url=PAGES,
        key="sk_test_simulated_processor",
        webhook_secret=SECRET,
        webhook_url="https://shop.example/v1/operator-billing/payments-webhook",
    )
    client = simulated_processor(sandbox)
    try:
        made = await client.create_account(key="org_1", email="owner@tenant.example", country="DE", metadata={"organisation": "org_1"})
        await sandbox.control("POST", f"accounts/{made.id}", {"do": "enable"})
        yield Stage(sandbox, client, clock, made.id)
    finally:
        await client.aclose()


async def test_an_account_is_made_once_under_a_key_and_enabled_by_its_owner() -> None:
    async with stage() as on:
        made = await on.client.create_account(key="org_2", email=None, country=None, metadata={"organisation": "org_2"})
        again = await on.client.create_account(key="org_2", email=None, country=None, metadata={"organisation": "org_2"})
        ready = await on.client.find_account(on.account)
        with pytest.raises(PaymentsRefused) as reused:
            await on.client.create_account(key="org_2", email=None, country="FR", metadata={})
    assert (made, made.kind, made.charges_enabled, bool(made.currently_due)) == (again, "express", False, True)
    assert ready == ConnectedAccount(on.account, "express", True, True, True, "EUR", (), {"organisation": "org_1"})
    assert reused.value.processor_code == "idempotency_error"


async def test_pages_are_for_one_person_and_express_accounts_have_their_own() -> None:
    async with stage() as on:
        fresh = await on.client.create_account(key="org_2", email=None, country=None, metadata={})
        link = await on.client.onboarding_link(fresh.id, return_url="https://s.example/b", refresh_url="https://s.example/r")
        other = await on.client.onboarding_link(fresh.id, return_url="https://s.example/b", refresh_url="https://s.example/r")
        login = await on.client.dashboard_link(on.account)
        with pytest.raises(PaymentsRefused):
            await on.client.dashboard_link(fresh.id)
    assert link.url.startswith(PAGES) and link.url != other.url and login.url.startswith(PAGES)
    assert link.expires_at is not None and link.expires_at > on.clock.now() and login.expires_at is None


async def test_a_standard_account_is_let_in_by_a_code_that_is_good_once() -> None:
    async with stage() as on:
        standard = cast("str", (await on.act("accounts", connected=False))["id"])
        with pytest.raises(AccountDetached):
            await on.client.find_account(standard)
        code = cast("str", (await on.act(f"accounts/{standard}", do="authorize"))["code"])
        assert await on.client.attach(code) == standard
        assert (await on.client.find_account(standard)).kind == "standard"
        for wrong in (code, "ac_never_given"):
            with pytest.raises(PaymentsRefused) as refused:
                await on.client.attach(wrong)
            assert refused.value.processor_code == "invalid_grant"
        assert (on.client.authorize_url(state="s", return_url="https://s.example/cb") or "").startswith(f"{PAGES}/oauth/authorize?")


async def test_an_account_that_lets_the_service_go_is_told_and_closed() -> None:
    async with stage() as on:
        await on.events()
        await on.act(f"accounts/{on.account}", do="deauthorize")
        told = {(event.type, event.account, event.record) for event in await on.events()}
        assert ("account.application.deauthorized", on.account, None) in told
        for ask in (on.client.find_account(on.account), on.client.balance_of(on.account)):
            with pytest.raises(AccountDetached):
                await ask


async def test_a_payout_schedule_is_set_and_kept() -> None:
    async with stage() as on:
        for schedule in (
            PayoutTiming("manual"),
            PayoutTiming("daily"),
            PayoutTiming("weekly", weekday="friday"),
            PayoutTiming("monthly", month_day=31),
        ):
            done = await on.client.set_schedule(on.account, schedule, key=f"k-{schedule.interval}")
            assert (done.interval, done.weekday, done.month_day) == (schedule.interval, schedule.weekday, schedule.month_day)
            assert await on.client.schedule_of(on.account) == done
        assert (await on.client.set_schedule(on.account, PayoutTiming("daily", delay_days=9), key="k")).delay_days == 9
        with pytest.raises(PaymentsRefused):
            await on.client.set_schedule(on.account, PayoutTiming("weekly", weekday="sunday"), key="sunday")


async def test_a_charge_its_fee_its_refund_and_the_balance_agree() -> None:
    async with stage() as on:
        charge = await on.charge(outcome="available")
        found = await on.client.find_charge(on.account, charge)
        fees = await on.client.list_fees(limit=10)
        refund = await on.client.refund(
            on.account, charge=charge, amount=500, reason="requested_by_customer", key="r-1", metadata={"by": "us"}
        )
        again = await on.client.refund(
            on.account, charge=charge, amount=500, reason="requested_by_customer", key="r-1", metadata={"by": "us"}
        )
        after, balance = await on.client.find_charge(on.account, charge), await on.client.balance_of(on.account)
        assert await on.client.find_refund(on.account, refund.id) == refund == again
        assert (await on.client.list_refunds(on.account, limit=10, charge=charge)).data == [refund]
        [fee] = fees.data
        left = (await on.client.list_fees(limit=10, charge=charge)).data
        own = await on.client.own_balance()
    assert (found.amount, found.currency, found.status, found.application_fee, found.metadata) == (
        1250,
        "EUR",
        "succeeded",
        fee.id,
        {"order": "ord_1"},
    )
    assert isinstance(fee, ApplicationFee) and (fee.account, fee.amount, fee.charge, fee.amount_refunded) == (on.account, 13, charge, 0)
    assert [one.amount_refunded for one in left] == [5]
    assert isinstance(refund, Refund) and (refund.amount, refund.status, refund.charge) == (500, "succeeded", charge)
    assert (after.amount_refunded, after.refunded) == (500, False)
    assert isinstance(balance, Balance) and not balance.live and {one.currency for one in balance.available} == {"EUR"}
    assert not own.live


async def test_a_charge_without_a_fee_is_refunded_without_one() -> None:
    async with stage() as on:
        charge = await on.charge(fee=0)
        assert (await on.client.refund(on.account, charge=charge, amount=1250, reason=None, key="r", metadata={})).amount == 1250
        assert (await on.client.find_charge(on.account, charge)).refunded
        with pytest.raises(PaymentsRefused) as refused:
            await on.client.refund(on.account, charge=charge, amount=1, reason=None, key="r2", metadata={})
    assert refused.value.processor_code == "charge_already_refunded"


async def test_more_than_was_paid_is_not_given_back() -> None:
    async with stage() as on:
        charge = await on.charge()
        with pytest.raises(PaymentsRefused) as refused:
            await on.client.refund(on.account, charge=charge, amount=1251, reason=None, key="r", metadata={})
    assert (refused.value.processor_code, refused.value.param) == ("amount_too_large", "amount")


async def test_lists_are_pages_newest_first() -> None:
    async with stage() as on:
        made = list[str]()
        for _ in range(5):
            made.insert(0, await on.charge())
            on.clock.advance(1)
        first = await on.client.list_charges(on.account, limit=3)
        rest = await on.client.list_charges(on.account, limit=3, starting_after=first.data[-1].id)
        with pytest.raises(PaymentsRefused) as refused:
            await on.client.list_charges(on.account, limit=3, starting_after="ch_unknown")
    assert ([one.id for one in first.data + rest.data], first.has_more, rest.has_more) == (made, True, False)
    assert refused.value.param == "starting_after"


async def test_an_unknown_thing_is_not_found_and_a_foreign_one_neither() -> None:
    async with stage() as on:
        charge = await on.charge()
        other = await on.client.create_account(key="org_2", email=None, country=None, metadata={})
        for ask in (
            on.client.find_charge(on.account, "ch_unknown"),
            on.client.find_charge(other.id, charge),
            on.client.find_refund(on.account, "re_unknown"),
            on.client.find_dispute(on.account, "du_unknown"),
            on.client.find_invoice(on.account, "in_unknown"),
            on.client.find_checkout(on.account, "cs_unknown"),
            on.client.refund(other.id, charge=charge, amount=1, reason=None, key="k", metadata={}),
            on.client.approve_review(on.account, "prv_unknown", key="k"),
            on.client.add_to_value_list(on.account, "rsl_unknown", "x", key="k"),
        ):
            with pytest.raises(NotFound):
                await ask
        with pytest.raises(AccountDetached):
            await on.client.find_charge("acct_unknown", charge)


async def test_money_goes_to_the_bank_as_far_as_there_is_any() -> None:
    async with stage() as on:
        await on.charge(outcome="available")
        [available] = (await on.client.balance_of(on.account)).available
        payout = await on.client.pay_out(on.account, amount=available.amount, currency="EUR", key="po-1", metadata={"by": "us"})
        with pytest.raises(PaymentsRefused) as refused:
            await on.client.pay_out(on.account, amount=1, currency="EUR", key="po-2", metadata={})
        await on.events()
        await on.act(f"payouts/{payout.id}", account=on.account, status="paid")
        [listed] = (await on.client.list_payouts(on.account, limit=10)).data
        told = {event.type for event in await on.events()}
    assert (payout.amount, payout.currency, payout.automatic, payout.metadata) == (available.amount, "EUR", False, {"by": "us"})
    assert (listed.id, listed.status, refused.value.processor_code) == (payout.id, "paid", "balance_insufficient")
    assert "payout.paid" in told


async def test_a_dispute_is_answered_in_two_steps_and_handed_in_once() -> None:
    async with stage() as on:
        charge = await on.charge()
        dispute = cast("str", (await on.act("disputes", account=on.account, charge=charge))["id"])
        before = await on.client.find_dispute(on.account, dispute)
        kept = await on.client.answer_dispute(on.account, dispute, {"product_description": "An eSIM"}, submit=False, key="e-1")
        handed_in = await on.client.answer_dispute(on.account, dispute, {"uncategorized_text": "It was used."}, submit=True, key="e-2")
        listed = (await on.client.list_disputes(on.account, limit=10)).data
        with pytest.raises(PaymentsRefused):
            await on.client.answer_dispute(on.account, dispute, {"uncategorized_text": "Again."}, submit=True, key="e-3")
    assert (before.status, before.charge, before.amount, before.evidence_submissions) == ("needs_response", charge, 1250, 0)
    assert before.evidence_due_by is not None and before.evidence_due_by > on.clock.now()
    assert (kept.status, kept.evidence_submissions) == ("needs_response", 0)
    assert (handed_in.status, handed_in.evidence_submissions, listed) == ("under_review", 1, [handed_in])


async def test_a_review_is_approved_and_a_list_takes_a_value() -> None:
    async with stage() as on:
        charge = await on.charge()
        review = cast("str", (await on.act("reviews", account=on.account, charge=charge))["id"])
        [waiting] = (await on.client.list_reviews(on.account, limit=10)).data
        closed = await on.client.approve_review(on.account, review, key="k")
        assert (await on.client.list_reviews(on.account, limit=10)).data == []
        made = {"authorization": f"Bearer {on.sandbox.key}", "stripe-account": on.account}
        await on.sandbox.handle("POST", "/v1/radar/value_lists", "", made, b"alias=our_block_list&name=Blocked&item_type=email")
        emails = next(one for one in (await on.client.list_value_lists(on.account, limit=100)).data if one.alias == "our_block_list")
        item = await on.client.add_to_value_list(on.account, emails.id, "bad@buyer.example", key="v")
        with pytest.raises(PaymentsRefused):
            await on.client.add_to_value_list(on.account, emails.id, "no address", key="v2")
    assert (waiting.id, waiting.open, waiting.charge) == (review, True, charge)
    assert (closed.open, closed.reason) == (False, "approved")
    assert (item.value_list, item.value) == (emails.id, "bad@buyer.example")


def new_invoice(on: Stage, key: str = "inv_1", number: str = "INV-2026-000001") -> NewInvoice:
    return NewInvoice(
        key=key,
        number=number,
        currency="EUR",
        lines=(InvoiceLine("8988303000000000001", 4000), InvoiceLine("Platform fee", 200)),
        fee=200,
        due_at=int(on.clock.now()) + 30 * 86_400,
        recipient_name="Nørd & Co",
        recipient_email="billing@customer.example",
        metadata={"invoice": key},
    )


async def test_an_invoice_is_drafted_sent_and_paid() -> None:
    async with stage() as on:
        wanted = new_invoice(on)
        draft, again = await on.client.draft_invoice(on.account, wanted), await on.client.draft_invoice(on.account, wanted)
        sent = await on.client.send_invoice(on.account, draft.id, key="inv_1")
        resent = await on.client.send_invoice(on.account, draft.id, key="inv_1")
        await on.act(f"invoices/{draft.id}")
        paid = await on.client.find_invoice(on.account, draft.id)
        assert await on.client.send_invoice(on.account, draft.id, key="inv_1") == paid
        with pytest.raises(PaymentsRefused):
            await on.client.void_invoice(on.account, draft.id, key="void")
        told = await on.events()
        fees = (await on.client.list_fees(limit=10)).data
    assert draft == again == ProcessorInvoice(draft.id, "draft", 4200, 0, "EUR", None, None, {"invoice": "inv_1"})
    assert (sent.status, resent.status, (sent.pay_url or "").startswith(PAGES)) == ("open", "open", True)
    assert (paid.status, paid.amount_paid, paid.paid_at is not None) == ("paid", 4200, True)
    [event] = [event for event in told if event.type == "invoice.paid"]
    assert (event.account, event.record) == (on.account, paid)
    assert [event.type for event in told].count("invoice.sent") == 1
    assert [fee.amount for fee in fees] == [200]


@pytest.mark.parametrize("broken", range(5))
async def test_a_drafting_that_broke_off_anywhere_is_repeated_without_a_second_line(broken: int) -> None:
    async with stage() as on:
        wanted = new_invoice(on)
        await on.sandbox.control("POST", "faults", {"trouble": "closed", "method": "*", "skip": broken, "times": 3, "after": True})
        with pytest.raises(PaymentsError):
            await on.client.draft_invoice(on.account, wanted)
        await on.sandbox.control("DELETE", "faults")
        draft = await on.client.draft_invoice(on.account, wanted)
        state = cast("dict[str, list[dict[str, object]]]", await on.sandbox.control("GET", "state"))
    assert draft.total == 4200
    assert [account["invoices"] for account in state["accounts"]] == [1]


async def test_a_number_that_is_taken_is_refused() -> None:
    async with stage() as on:
        await on.client.draft_invoice(on.account, new_invoice(on))
        with pytest.raises(PaymentsRefused):
            await on.client.draft_invoice(on.account, new_invoice(on, key="inv_2"))


async def test_an_invoice_is_taken_back_as_a_draft_and_when_it_is_open() -> None:
    async with stage() as on:
        first = await on.client.draft_invoice(on.account, new_invoice(on))
        assert (await on.client.void_invoice(on.account, first.id, key="v")).status == "void"
        second = await on.client.draft_invoice(on.account, new_invoice(on, "inv_2"))
        await on.client.send_invoice(on.account, second.id, key="inv_2")
        for _ in range(2):
            assert (await on.client.void_invoice(on.account, second.id, key="v2")).status == "void"
        with pytest.raises(NotFound):
            await on.client.find_invoice(on.account, first.id)
        assert (await on.client.send_invoice(on.account, second.id, key="inv_2")).status == "void"


def new_checkout(**changes: object) -> NewCheckout:
    given: dict[str, object] = {
        "key": "ord_1",
        "text": "Nordic 1 GB",
        "amount": 2000,
        "currency": "EUR",
        "fee": 20,
        "success_url": "https://s.example/ok",
        "cancel_url": "https://s.example/no",
        "metadata": {"order": "ord_1"},
    }
    return NewCheckout(**(given | changes))  # pyright: ignore[reportArgumentType]


async def test_a_checkout_is_paid_with_a_promotion_and_its_charge_carries_the_marks() -> None:
    async with stage() as on:
        promotion = NewPromotion("pro_1", "WELCOME-10", 1250, None, 5, int(on.clock.now()) + 86_400)
        code, again = await on.client.create_promotion(on.account, promotion), await on.client.create_promotion(on.account, promotion)
        amount = await on.client.create_promotion(on.account, NewPromotion("pro_2", "FIVE", None, Money(500, "EUR"), None, None))
        with pytest.raises(PaymentsRefused):
            await on.client.create_promotion(on.account, NewPromotion("pro_3", "FIVE", 100, None, None, None))
        page = await on.client.create_checkout(on.account, new_checkout(promotions=True, email="buyer@example.com"))
        await on.act(f"checkouts/{page.id}", promotion="WELCOME-10")
        done = await on.client.find_checkout(on.account, page.id)
        [charge] = (await on.client.list_charges(on.account, limit=1)).data
        told = await on.events()
        assert await on.client.expire_checkout(on.account, page.id) == done
    assert code == again and code.active and amount.code == "FIVE" and amount.coupon != code.coupon
    assert (page.status, page.payment_status, page.amount_total, page.currency) == ("open", "unpaid", 2000, "EUR")
    assert (page.url or "").startswith(PAGES)
    assert (done.status, done.payment_status, done.amount_total, done.metadata) == ("complete", "paid", 1750, {"order": "ord_1"})
    assert isinstance(charge, Charge) and (charge.amount, charge.payment_intent, charge.metadata["order"]) == (
        1750,
        done.payment_intent,
        "ord_1",
    )
    [event] = [event for event in told if event.type == "checkout.session.completed"]
    assert (event.account, event.record) == (on.account, done)


async def test_a_checkout_that_nobody_paid_expires() -> None:
    async with stage() as on:
        page = await on.client.create_checkout(on.account, new_checkout())
        assert await on.client.create_checkout(on.account, new_checkout()) == page
        assert (await on.client.expire_checkout(on.account, page.id)).status == "expired"
        assert (await on.client.expire_checkout(on.account, page.id)).status == "expired"


async def test_every_event_that_it_tells_is_believed_and_read() -> None:
    async with stage() as on:
        charge = await on.charge(outcome="available")
        await on.client.refund(on.account, charge=charge, amount=1, reason=None, key="r", metadata={})
        await on.act("disputes", account=on.account, charge=await on.charge())
        await on.act("reviews", account=on.account, charge=await on.charge())
        told = await on.events()
    kinds = {event.type for event in told}
    assert {"account.updated", "charge.succeeded", "charge.refunded", "refund.created", "charge.dispute.created", "review.opened"} <= kinds
    assert "application_fee.created" in kinds
    read = ("account.updated", "charge.", "refund.", "review.", "application_fee.created", "application_fee.refunded")
    assert [event.type for event in told if event.record is None and event.type.startswith(read)] == []
    assert len({event.id for event in told}) == len(told)
    assert {event.account for event in told if event.type.startswith("application_fee")} == {None}


@pytest.mark.parametrize(
    ("trouble", "after", "code"),
    [
        ("closed", False, "OUTCOME_UNKNOWN"),
        ("closed", True, "OUTCOME_UNKNOWN"),
        ("error", False, "OUTCOME_UNKNOWN"),
        ("garbage", False, "OUTCOME_UNKNOWN"),
        ("timeout", False, "OUTCOME_UNKNOWN"),
        ("rate_limited", False, "payments_error"),
    ],
)
async def test_a_write_that_meets_trouble_thrice_may_have_happened_and_happens_once_under_its_key(
    trouble: str, after: bool, code: str
) -> None:
    async with stage() as on:
        charge = await on.charge()
        fault = {"trouble": trouble, "path": "/v1/refunds", "times": 3, "after": after}
        await on.sandbox.control("POST", "faults", fault)

        async def give_back() -> Refund:
            return await on.client.refund(on.account, charge=charge, amount=500, reason=None, key="r-1", metadata={})

        with pytest.raises(PaymentsError) as failed:
            await give_back()
        await on.sandbox.control("DELETE", "faults")
        assert (await give_back()).amount == 500
        assert (await on.client.find_charge(on.account, charge)).amount_refunded == 500
    assert (failed.value.error_code, failed.value.outcome_unknown) == (code, code == "OUTCOME_UNKNOWN")


async def test_one_trouble_is_met_by_another_try_that_does_it_once() -> None:
    async with stage() as on:
        charge = await on.charge()
        await on.sandbox.control("POST", "faults", {"trouble": "closed", "path": "/v1/refunds", "times": 2, "after": True})
        await on.client.refund(on.account, charge=charge, amount=500, reason=None, key="r-1", metadata={})
        assert (await on.client.find_charge(on.account, charge)).amount_refunded == 500
