"""The control API: what a test does to the processor beside its wire."""

import pytest

from simulators.processor.call import ProcessorRefusal
from simulators.processor.control import OUTCOME_CARDS, PROCESSOR_CONTROL_PATHS
from tests.payments_pages.shop import PagesShop


async def paid(shop: PagesShop, outcome: str = "available", amount: int = 5000) -> str:
    body = {"account": shop.account, "amount": amount, "currency": "usd", "outcome": outcome}
    return str((await shop.ask("POST", "charges", body))["id"])


@pytest.mark.parametrize("outcome", OUTCOME_CARDS)
async def test_a_payment_has_the_outcome_that_was_ordered(shop: PagesShop, outcome: str) -> None:
    charge = await shop.processor.find_charge(shop.account, await paid(shop, outcome))
    refused = {"declined": "card_declined", "no_funds": "card_declined"}
    assert (charge.status, charge.failure_code) == ("failed" if outcome in refused else "succeeded", refused.get(outcome))
    assert charge.disputed is (outcome in ("disputed", "inquiry"))
    assert len((await shop.processor.list_reviews(shop.account, limit=10)).data) == (outcome == "reviewed")


async def test_disputes_reviews_and_payouts_begin_and_end_at_a_word(shop: PagesShop) -> None:
    first, second = await paid(shop), await paid(shop)
    dispute = await shop.ask("POST", "disputes", {"account": shop.account, "charge": first, "reason": "duplicate", "amount": 100})
    assert (dispute["amount"], dispute["reason"]) == (100, "duplicate")
    ended = await shop.ask("POST", f"disputes/{dispute['id']}", {"account": shop.account, "outcome": "won"})
    assert ended["status"] == "won"
    review = await shop.ask("POST", "reviews", {"account": shop.account, "charge": second})
    assert review["charge"] == second
    for status in ("paid", "failed"):
        payout = await shop.processor.pay_out(shop.account, amount=100, currency="USD", key=status, metadata={})
        assert (await shop.ask("POST", f"payouts/{payout.id}", {"account": shop.account, "status": status}))["status"] == status


async def test_an_account_is_restricted_let_go_and_its_bank_closed_at_a_word(shop: PagesShop) -> None:
    path = f"accounts/{shop.account}"
    await shop.ask("POST", path, {"do": "restrict", "due": ["company.tax_id"]})
    found = await shop.processor.find_account(shop.account)
    assert (found.charges_enabled, found.currently_due) == (False, ("company.tax_id",))
    await shop.ask("POST", path, {"do": "enable"})
    await shop.ask("POST", path, {"do": "bank_fails"})
    await paid(shop)
    payout = await shop.processor.pay_out(shop.account, amount=100, currency="USD", key="out", metadata={})
    await shop.told()
    await shop.ask("POST", "clock", {"advance": 3 * 86_400})
    assert "payout.failed" in await shop.told()
    assert {one.id: one.status for one in (await shop.processor.list_payouts(shop.account, limit=10)).data}[payout.id] == "failed"
    code = (await shop.ask("POST", path, {"do": "authorize"}))["code"]
    assert await shop.processor.attach(str(code)) == shop.account
    await shop.ask("POST", path, {"do": "deauthorize"})
    assert "account.application.deauthorized" in await shop.told()


@pytest.mark.long
async def test_an_account_with_weeks_of_payments_is_made_at_a_word(shop: PagesShop) -> None:
    made = await shop.ask("POST", "past", {"name": "Old hands", "days": 30})
    account = str(made["id"])
    assert made["charges_enabled"] is True
    charges = (await shop.processor.list_charges(account, limit=100)).data
    assert len(charges) >= 30 and {charge.status for charge in charges} == {"succeeded", "failed"}
    assert (await shop.processor.list_payouts(account, limit=100)).data
    assert (await shop.processor.list_value_lists(account, limit=10)).data
    assert await shop.told() == []


async def test_people_pay_invoices_and_checkouts_at_a_word(shop: PagesShop) -> None:
    invoice, session = await shop.invoice(), await shop.checkout()
    with pytest.raises(ProcessorRefusal, match="declined"):
        await shop.ask("POST", f"invoices/{invoice.id}", {"outcome": "declined"})
    assert (await shop.ask("POST", f"invoices/{invoice.id}"))["status"] == "paid"
    assert (await shop.ask("POST", f"checkouts/{session.id}", {"email": "b@example.com"}))["status"] == "complete"
    for path in ("invoices/in_none", "checkouts/cs_none"):
        with pytest.raises(ProcessorRefusal, match="No such"):
            await shop.ask("POST", path)


async def test_the_state_is_told_in_numbers(shop: PagesShop) -> None:
    await paid(shop)
    answer = await shop.ask("GET", "state")
    assert answer["accounts"] == [
        {
            "id": shop.account,
            "kind": "express",
            "connected": True,
            "charges_enabled": True,
            "charges": 1,
            "refunds": 0,
            "payouts": 0,
            "disputes": 0,
            "invoices": 0,
        }
    ]
    assert (answer["now"], answer["hooks_waiting"]) == (int(shop.clock.now()), 3)


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", "charges", {"amount": 1, "currency": "usd"}, "account: Field required"),
        ("POST", "charges", {"account": "acct_none", "amount": 1, "currency": "usd"}, "No such account: 'acct_none'"),
        ("POST", "charges", {"account": "{account}", "amount": 0, "currency": "usd"}, "amount: "),
        ("POST", "charges", {"account": "{account}", "amount": 10, "currency": "usd", "fee": 11}, "fee: must not be more"),
        ("POST", "charges", {"account": "{account}", "amount": 10, "currency": "us"}, "currency: "),
        ("POST", "charges", {"account": "{account}", "amount": 10, "currency": "usd", "outcome": "x"}, "outcome: "),
        ("POST", "charges", {"account": "{account}", "amount": 10, "currency": "usd", "x": 1}, "x: "),
        ("POST", "charges", [], "body: "),
        ("POST", "accounts/acct_none", {"do": "enable"}, "No such account"),
        ("POST", "disputes", {"account": "{account}", "charge": "ch_none"}, "No such charge"),
        ("POST", "payouts/po_none", {"account": "{account}", "status": "paid"}, "No such payout"),
        ("POST", "hooks", {"redeliver": "evt_none"}, "No such event"),
        ("POST", "clock", {"advance": -1}, "advance: "),
        ("GET", "charges", None, "no GET /control/charges; there are: GET /control/state"),
        ("POST", "nothing", None, "no POST /control/nothing"),
    ],
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(shop: PagesShop, method: str, path: str, body: object, said: str) -> None:
    before = await shop.ask("GET", "state")
    told = {**body, "account": body["account"].format(account=shop.account)} if isinstance(body, dict) and "account" in body else body
    with pytest.raises(ProcessorRefusal) as refused:
        await shop.ask(method, path, told)
    assert said in refused.value.message
    assert await shop.ask("GET", "state") == before


def test_everything_that_can_be_asked_is_listed() -> None:
    assert len(PROCESSOR_CONTROL_PATHS) == len(set(PROCESSOR_CONTROL_PATHS)) == 18
