"""Reading an account back from the processor mends what its events did not tell."""

import pytest

from clients.payments.records import ApplicationFee, InvoiceLine, NewInvoice, ProcessorPage
from storage.invoices import find_invoice
from tests.billing_money.stage import START, MoneyStage, charge_json, event_json
from tests.billing_money.test_platform_fees import keep_invoice

LISTS = ("charges", "refunds", "disputes", "payouts", "fees")


async def busy(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR", fee=100, metadata={"order": "ord_1"}, outcome="available")
    ask = shop.world.pipeline.deps.payments
    await ask.refund(shop.account, charge=made, amount=1000, reason=None, key="a", metadata={})
    await ask.pay_out(shop.account, amount=500, currency="EUR", key="b", metadata={})
    await shop.world.ask_payments("POST", "disputes", {"account": shop.account, "charge": made})


async def test_an_account_is_read_back_as_its_events_would_have_told_it(shop: MoneyStage) -> None:
    await busy(shop)
    assert await shop.sync() == 5
    read = [await shop.listed(what) for what in LISTS]
    assert [len(page["data"]) for page in read] == [1] * 5
    shop.world.clock.advance(5)
    assert await shop.sync() == 0, "what was said again later is not news"
    await shop.world.settle_payments()
    assert [await shop.listed(what) for what in LISTS] == read
    assert [row.amount for row in await shop.platform_fees() if "refunded" not in row.ref] == [100]


async def test_anothers_fees_are_not_taken_for_ours(shop: MoneyStage) -> None:
    rival = await shop.world.caller()
    account = await shop.world.connect_payments(rival)
    await shop.world.charge(account, 10_000, "EUR", fee=100)
    assert await shop.sync() == 0
    assert (await shop.listed("fees"))["data"] == []


@pytest.mark.long
async def test_more_than_a_page_is_read(shop: MoneyStage) -> None:
    for _ in range(101):
        await shop.world.charge(shop.account, 100, "EUR")
    assert await shop.sync() == 101


async def test_what_events_told_later_is_not_undone_by_an_older_reading(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    await shop.tell(event_json("charge.refunded", charge_json(made, amount_refunded=10), account=shop.account, created=START + 60))
    await shop.sync()
    assert (await shop.listed("charges"))["data"][0]["amount_refunded"] == 10


@pytest.mark.long
async def test_an_invoice_that_was_paid_unheard_becomes_paid(shop: MoneyStage) -> None:
    organisation = shop.who.organisation
    ask = shop.world.pipeline.deps.payments
    wanted = NewInvoice(
        key="inv_1",
        number="INV-2027-000001",
        currency="EUR",
        lines=(InvoiceLine("Data", 10_100),),
        fee=100,
        due_at=START + 86_400,
        recipient_name="Fjord",
        recipient_email="pay@fjord.example",
        metadata={"invoice": "inv_1"},
    )
    drafted = await ask.draft_invoice(shop.account, wanted)
    await ask.send_invoice(shop.account, drafted.id, key="send inv_1")
    await shop.world.store.write(keep_invoice, organisation=organisation, account=shop.account, id="inv_1", at=drafted.id)
    await shop.sync()
    found = await shop.world.store.read(find_invoice, invoice="inv_1", organisation=organisation)
    assert found is not None and found.status == "sent"
    await shop.world.ask_payments("POST", f"invoices/{drafted.id}", {})
    await shop.sync()
    await shop.world.settle_payments()
    found = await shop.world.store.read(find_invoice, invoice="inv_1", organisation=organisation)
    assert found is not None and found.status == "paid"
    # One fee, although the processor told of the invoice, its charge and its fee.
    assert [(row.ref[:4], row.amount) for row in await shop.platform_fees()] == [("fee_", 100)]


async def test_a_payout_that_was_sent_while_a_long_reading_went_on_is_not_given_up(
    shop: MoneyStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on none of the lists that were read before it, however long ago that is by now."""
    await shop.world.charge(shop.account, 10_000, "EUR", outcome="available")
    ask = shop.world.pipeline.deps.payments
    listed = ask.list_fees

    async def slow(*, limit: int, starting_after: str | None = None, charge: str | None = None) -> ProcessorPage[ApplicationFee]:
        await shop.trouble("timeout", "/v1/payouts", after=True)
        await shop.pay_out("key", amount=1000, currency="EUR")
        await shop.calm()
        shop.world.clock.advance(1000)
        return await listed(limit=limit, starting_after=starting_after, charge=charge)

    monkeypatch.setattr(ask, "list_fees", slow)
    await shop.sync()
    monkeypatch.undo()
    assert (await shop.pay_out("key", amount=1000, currency="EUR")).json()["code"] == "OUTCOME_UNKNOWN"
    await shop.sync()
    assert (await shop.pay_out("key", amount=1000, currency="EUR")).json()["id"] == shop.at_processor("payouts")[0].id
