"""The pages on which recipients of invoices and buyers pay."""

import pytest

from tests.payments_pages.shop import CANCEL, PagesShop, path_of


async def test_a_recipient_reads_an_invoice_and_pays_it_and_everybody_is_told(shop: PagesShop) -> None:
    invoice = await shop.invoice()
    await shop.told()
    path = path_of(invoice.pay_url)
    seen = await shop.browser.get(path)
    for part in ("Invoice INV-1", "For Ada Berg", "Data, January", "20.00 USD", "25.00 USD", "due 29 Jan 2027"):
        assert part in seen.page.text, part
    paid = await shop.browser.send(seen.page.form(path), card="pays")
    assert (paid.status, paid.path) == (200, path)
    assert "Paid on 15 Jan 2027, 12:00 UTC" in paid.page.text and paid.page.forms == []
    found = await shop.processor.find_invoice(shop.account, invoice.id)
    assert (found.status, found.amount_paid, dict(found.metadata)) == ("paid", 2500, {"our": "INV-1"})
    assert [type for type in await shop.told() if type in ("invoice.paid", "charge.succeeded", "application_fee.created")] == [
        "application_fee.created",
        "charge.succeeded",
        "invoice.paid",
    ]


async def test_a_declined_card_leaves_the_invoice_open_and_says_why(shop: PagesShop) -> None:
    path = path_of((await shop.invoice()).pay_url)
    seen = await shop.browser.get(path)
    declined = await shop.browser.send(seen.page.form(path), card="no_funds")
    assert (declined.status, "Your card has insufficient funds." in declined.page.text) == (402, True)
    assert declined.page.form(path).fields["card"] == "no_funds"
    assert "invoice.payment_failed" in await shop.told()
    paid = await shop.browser.send(declined.page.form(path), card="pays")
    assert paid.status == 200 and "Thank you" in paid.page.text


async def test_a_paid_invoice_is_not_paid_twice(shop: PagesShop) -> None:
    path = path_of((await shop.invoice()).pay_url)
    form = (await shop.browser.get(path)).page.form(path)
    await shop.browser.send(form)
    again = await shop.browser.send(form)
    assert (again.status, "Invoice is already paid" in again.page.text) == (400, True)
    assert len((await shop.processor.list_charges(shop.account, limit=10)).data) == 1


async def test_an_invoice_that_was_taken_back_says_so(shop: PagesShop) -> None:
    invoice = await shop.invoice()
    path = path_of(invoice.pay_url)
    form = (await shop.browser.get(path)).page.form(path)
    await shop.processor.void_invoice(shop.account, invoice.id, key="void-1")
    seen = await shop.browser.get(path)
    assert "was taken back" in seen.page.text and seen.page.forms == []
    assert (await shop.browser.send(form)).status == 400


async def test_a_disputed_card_pays_and_then_asks_for_the_money_back(shop: PagesShop) -> None:
    path = path_of((await shop.invoice()).pay_url)
    seen = await shop.browser.get(path)
    assert "4000 0000 0000 0259: pays, and its owner disputes it at once" in seen.page.text
    await shop.browser.send(seen.page.form(path), card="disputed")
    told = await shop.told()
    assert "invoice.paid" in told and "charge.dispute.created" in told
    [dispute] = (await shop.processor.list_disputes(shop.account, limit=10)).data
    assert (dispute.amount, dispute.reason) == (2500, "fraudulent")


async def test_a_buyer_pays_and_comes_back_with_the_sessions_id(shop: PagesShop) -> None:
    session = await shop.checkout()
    path = path_of(session.url)
    seen = await shop.browser.get(path)
    assert "Europe 1 GB" in seen.page.text and "10.00 USD" in seen.page.text and "Promotion code" not in seen.page.text
    done = await shop.browser.send(seen.page.form(path), "Pay", email="buyer@example.com")
    assert done.way == [f"https://shop.example/thanks?session={session.id}"]
    found = await shop.processor.find_checkout(shop.account, session.id)
    assert (found.status, found.payment_status, found.amount_total, found.email) == ("complete", "paid", 1000, "buyer@example.com")
    assert "checkout.session.completed" in await shop.told()
    assert "It was paid" in (await shop.browser.get(path)).page.text


async def test_a_promotion_code_makes_it_cheaper_and_a_wrong_one_says_so(shop: PagesShop) -> None:
    await shop.promotion("SPRING", 2500)
    path = path_of((await shop.checkout(email="buyer@example.com", promotions=True)).url)
    seen = await shop.browser.get(path)
    assert "The receipt goes to buyer@example.com" in seen.page.text
    wrong = await shop.browser.send(seen.page.form(path), "Pay", promotion="AUTUMN")
    assert (wrong.status, "This code is invalid." in wrong.page.text) == (400, True)
    assert wrong.page.form(path).fields["promotion"] == "AUTUMN"
    declined = await shop.browser.send(wrong.page.form(path), "Pay", promotion="spring", card="declined")
    assert (declined.status, "-2.50 USD" in declined.page.text, "7.50 USD" in declined.page.text) == (402, True, True)
    assert (await shop.browser.send(declined.page.form(path), "Pay", card="pays")).status == 303
    assert (await shop.processor.list_charges(shop.account, limit=10)).data[0].amount == 750


async def test_with_all_of_it_off_no_card_is_charged(shop: PagesShop) -> None:
    await shop.promotion("FREE", 10_000)
    session = await shop.checkout(promotions=True)
    path = path_of(session.url)
    form = (await shop.browser.get(path)).page.form(path)
    assert (await shop.browser.send(form, "Pay", email="buyer@example.com", promotion="FREE", card="declined")).status == 303
    found = await shop.processor.find_checkout(shop.account, session.id)
    assert (found.payment_status, found.amount_total, found.payment_intent) == ("no_payment_required", 0, None)


@pytest.mark.parametrize("email", ["", "no address", "@", "a@b", f"{'a' * 65}@example.com"])
async def test_a_buyer_without_an_address_is_asked_for_one_and_pays_nothing(shop: PagesShop, email: str) -> None:
    path = path_of((await shop.checkout()).url)
    seen = await shop.browser.send((await shop.browser.get(path)).page.form(path), "Pay", email=email)
    assert (seen.status, "Type in the e-mail address" in seen.page.text) == (400, True)
    assert (await shop.processor.list_charges(shop.account, limit=10)).data == []


async def test_a_buyer_who_goes_back_has_paid_nothing_and_may_return(shop: PagesShop) -> None:
    session = await shop.checkout()
    path = path_of(session.url)
    assert (await shop.browser.send((await shop.browser.get(path)).page.form(path), "Go back")).way == [CANCEL]
    assert (await shop.processor.find_checkout(shop.account, session.id)).status == "open"
    assert (await shop.browser.get(path)).status == 200


async def test_a_checkout_that_took_too_long_is_over(shop: PagesShop) -> None:
    session = await shop.checkout()
    path = path_of(session.url)
    form = (await shop.browser.get(path)).page.form(path)
    shop.clock.advance(86_400)
    assert ((await shop.browser.get(path)).status, (await shop.browser.send(form, "Pay", email="a@example.com")).status) == (410, 410)
    assert (await shop.processor.find_checkout(shop.account, session.id)).status == "expired"
    assert "checkout.session.expired" in await shop.told()


@pytest.mark.parametrize("card", ["", "4242424242424242"])
async def test_a_card_that_is_not_offered_pays_nothing(shop: PagesShop, card: str) -> None:
    path = path_of((await shop.invoice()).pay_url)
    seen = await shop.browser.post(path, {"card": card, "do": "pay"})
    assert (seen.status, "Choose a test card" in seen.page.text) == (400, True)
    checkout = path_of((await shop.checkout(email="buyer@example.com")).url)
    assert (await shop.browser.post(checkout, {"card": card, "do": "pay"})).status == 400
