"""What becomes of an order that was paid: the eSIM, the money back, or somebody who is told."""

import re
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from operations.ledger.esims import open_esim_profile
from operations.storefronts.sales.checkout import begin_order
from operations.storefronts.sales.order_fulfilment import Fulfilment
from registry.caller import Role
from registry.limits import Limits
from simulators.processor.checkout import complete_checkout
from storage.orders import order_of_token
from storage.organisations import add_member
from storage.people import create_person
from storage.storefronts import write_storefront
from storage.upstream_connections import set_connection
from tests.fulfilment.floor import ACCOUNT, BUYER, Floor
from tests.network_facts import DRAW, HOUR, MINUTE
from tests.top_ups.counter import NORDIC

OPERATOR = "help@fjord.test"


@pytest.mark.long
async def test_a_paid_order_is_an_esim_of_the_buyers_and_a_mail_with_its_code(on_both: Floor) -> None:
    floor = on_both
    order = await floor.paid()
    assert await floor.end(order) == ("paid", None, None)
    await floor.work()
    row, ledger = await floor.row(order), await floor.ledger(order)
    assert ledger is not None and row.iccid is not None and row.esim is not None
    assert (row.status, row.refund, row.package_id, row.ready_at) == ("ready", None, ledger.package_id, floor.shop.world.clock.now())
    assert (ledger.state, ledger.held, ledger.operation, ledger.principal) == ("issued", row.iccid, "fulfil_storefront_order", "worker")
    profile = open_esim_profile(row.iccid, row.esim, keyring=floor.deps.keyring, organisation=row.organisation, intent=order)
    [letter] = await floor.letters()
    assert letter.to == BUYER and letter.attachment is not None
    assert (letter.attachment.name, letter.attachment.media_type) == ("esim.png", "image/png")
    assert letter.attachment.content.startswith(b"\x89PNG\r\n")
    link = re.search(r"https://reseller\.test/shop/fjord/orders/(ord_[0-9a-z]{26})\n", letter.text)
    assert link is not None and await floor.shop.world.store.read(order_of_token, token=link[1]) == order
    assert str(profile.activation_code) in letter.text
    await floor.work(3, every=600)
    assert (await floor.told(), floor.draws(), len(await floor.letters())) == ([row.iccid], 1, 1)


async def mailed(floor: Floor, language: str) -> tuple[str, str]:
    """Subject and text of the mail about an order in a language."""
    shop = floor.shop
    begun = await begin_order(shop.deps, shop=shop.shop, plan=shop.plans["nordic"], language=language, now=shop.world.clock.now())
    await shop.pay(begun.order)
    await shop.told()
    await floor.work()
    letter = (await floor.letters())[-1]
    return letter.subject, re.sub(r"ord_[0-9a-z]{26}", "ord_x", letter.text.replace(begun.order, "onr_x"))


@pytest.mark.long
async def test_the_mails_are_in_the_language_of_the_order_or_in_english(floor: Floor) -> None:
    assert await mailed(floor, "en") == snapshot(
        (
            "Your eSIM from Fjord",
            """\
Thank you for your order at Fjord: Nordic.

Your eSIM is ready. Scan the attached QR code with the phone that is to
use it, or open this page on the phone. It also has the steps, and shows
how much data is left:

https://reseller.test/shop/fjord/orders/ord_x

The code as text:

LPA:1$smdp.spx-roaming.test$K2-EEHCUZ3-CKVPNUS278F

If the phone asks for the two parts of the code, they are these:

SM-DP+ address: smdp.spx-roaming.test
Activation code: K2-EEHCUZ3-CKVPNUS278F

Whoever has the code or the page can install the eSIM, once. So keep this
mail to yourself.

Questions? Write to help@fjord.test, and name the order onr_x.
""",
        )
    )
    assert await mailed(floor, "de") == snapshot(
        (
            "Ihre eSIM von Fjord",
            """\
Danke für Ihre Bestellung bei Fjord: Nordic.

Ihre eSIM ist fertig. Scannen Sie den angehängten QR-Code mit dem
Telefon, das sie nutzen soll, oder öffnen Sie auf dem Telefon diese
Seite. Dort stehen auch die Schritte und wie viele Daten übrig sind:

https://reseller.test/shop/fjord/orders/ord_x

Der Code als Text:

LPA:1$smdp.spx-roaming.test$K2-PX9UVAW-STSQT5Z2790

Fragt das Telefon nach den beiden Teilen des Codes, sind es diese:

SM-DP+-Adresse: smdp.spx-roaming.test
Aktivierungscode: K2-PX9UVAW-STSQT5Z2790

Wer den Code oder die Seite hat, kann die eSIM einmal installieren.
Behalten Sie diese E-Mail deshalb für sich.

Fragen? Schreiben Sie an help@fjord.test und nennen Sie die Bestellung onr_x.
""",
        )
    )
    assert (await mailed(floor, "xx"))[0] == "Your eSIM from Fjord"


async def test_what_a_promotion_makes_free_is_delivered(floor: Floor) -> None:
    begun = await floor.shop.begin()
    async with floor.shop.world.payments.turn(writes=True) as state:
        session = (await floor.row(begun.order)).session or ""
        state.book(floor.shop.payee).sessions[session].discount = 1000
        complete_checkout(state, floor.shop.payee, session, None)
    await floor.shop.told()
    await floor.work()
    row = await floor.row(begun.order)
    assert (row.status, row.paid_amount, row.email) == ("ready", 0, None)
    assert await floor.letters() == []


async def test_without_a_free_esim_the_money_goes_back_at_once_and_the_buyer_is_told(floor: Floor) -> None:
    order = await floor.paid()
    await floor.empty_stock()
    await floor.work(2)
    assert await floor.end(order) == ("failed", "no_inventory", "done")
    assert floor.refunds() == [1000]
    [letter] = await floor.letters()
    assert (letter.to, letter.attachment, letter.subject) == (BUYER, None, "Your order at Fjord could not be delivered")
    assert "€10.00 goes back to the card" in letter.text
    await floor.shop.told()
    await floor.work(5, every=HOUR)
    assert (floor.refunds(), floor.draws(), len(await floor.letters()), await floor.is_settled_well(order)) == ([1000], 1, 1, True)


@pytest.mark.parametrize(
    ("fault", "code"),
    [({"code": 14}, "issuance_failed"), ({"code": 6}, "no_inventory")],
)
async def test_a_sure_refusal_gives_the_money_back(floor: Floor, fault: dict[str, int], code: str) -> None:
    order = await floor.paid()
    floor.strike(**fault)
    await floor.work(2)
    assert (await floor.end(order), floor.refunds()) == (("failed", code, "done"), [1000])


async def test_the_traffic_limit_of_the_charging_system_is_waited_for(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(code=100, times=20)
    await floor.work()
    assert (await floor.end(order), await floor.ledger(order)) == (("paid", None, None), None)
    floor.shop.world.sandbox.faults.clear()
    await floor.work(1, every=10)
    assert ((await floor.row(order)).status, await floor.gone()) == ("ready", 1)


async def test_a_template_that_is_gone_fails_at_once(floor: Floor) -> None:
    order = await floor.paid()
    network = await floor.shop.world.network()
    network.templates[NORDIC].deleted = True
    floor.shop.world.clock.advance(120)  # what was read of templates is kept for a minute
    await floor.work(2)
    assert (await floor.end(order), floor.draws()) == (("failed", "template_not_visible", "done"), 0)


@pytest.mark.long
async def test_what_never_left_is_tried_again_until_it_does(floor: Floor) -> None:
    floor.shop.road.refused.add(DRAW)
    order = await floor.paid()
    await floor.work(10, every=MINUTE)
    assert (await floor.end(order), await floor.ledger(order)) == (("paid", None, None), None)
    floor.shop.road.refused.clear()
    await floor.work(1, every=5 * MINUTE)
    assert ((await floor.row(order)).status, floor.draws()) == ("ready", 1)


@pytest.mark.long
async def test_what_did_not_leave_for_an_hour_goes_back(floor: Floor) -> None:
    floor.shop.road.refused.add(DRAW)
    order = await floor.paid()
    await floor.work(11, every=5 * MINUTE)
    assert (await floor.row(order)).status == "paid"
    await floor.work(3, every=5 * MINUTE)
    assert (await floor.end(order), floor.refunds(), floor.draws()) == (("failed", "provider_unreachable", "done"), [1000], 0)


async def connect(floor: Floor, account: int | None) -> None:
    """The owner is connected to an account, or to none."""
    of, mode = floor.shop.me.organisation, None if account is None else "managed"
    await floor.shop.world.store.write(set_connection, organisation=of, mode=mode, account_id=account, own_token=None)


@pytest.mark.long
async def test_an_owner_who_was_disconnected_has_an_hour_to_come_back(floor: Floor) -> None:
    orders = [await floor.paid(), await floor.paid()]
    await connect(floor, None)
    await floor.work(5, every=10)
    assert {(await floor.row(order)).status for order in orders} == {"paid"}
    await connect(floor, ACCOUNT)
    await floor.work(1, every=5 * MINUTE)
    assert [(await floor.row(order)).status for order in orders] == ["ready", "ready"]
    late = await floor.paid()
    await connect(floor, None)
    await floor.work(14, every=5 * MINUTE)
    assert (await floor.end(late), floor.refunds()) == (("failed", "provider_unreachable", "done"), [1000])


async def test_a_lost_answer_needs_review_once_and_reconciliation_gives_the_buyer_the_esim(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(drop_after=True)
    await floor.work(3, every=5)
    assert await floor.end(order) == ("needs_review", "OUTCOME_UNKNOWN", None)
    [told] = await floor.letters()
    assert (told.to, told.subject) == (OPERATOR, f"An order needs review: {order}")
    await floor.reconcile()
    row = await floor.row(order)
    assert (row.status, row.code, await floor.told()) == ("ready", None, [row.iccid])
    assert [letter.to for letter in await floor.letters()] == [OPERATOR, BUYER]
    await floor.work(3, every=HOUR)
    assert (floor.draws(), await floor.gone(), floor.refunds(), await floor.is_settled_well(order)) == (1, 1, [], True)


@pytest.mark.long
async def test_a_draw_without_effect_is_given_back_after_a_quarter_of_an_hour(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(drop_before=True)
    await floor.work()
    await floor.reconcile(14 * MINUTE)
    assert (await floor.row(order)).status == "needs_review"
    await floor.reconcile(2 * MINUTE)
    await floor.work(2)
    assert (await floor.end(order), floor.refunds(), await floor.gone()) == (("failed", "issuance_failed", "done"), [1000], 0)
    assert [letter.to for letter in await floor.letters()] == [OPERATOR, BUYER]


@pytest.mark.long
async def test_without_a_support_address_the_admins_are_told(floor: Floor) -> None:
    world, shop = floor.shop.world, floor.shop.shop
    await world.store.write(write_storefront, row=shop._replace(support_email=None))
    for name, role in (("ada", Role.ADMIN), ("bo", Role.MEMBER)):
        person, now = world.ids.new("usr_"), world.clock.now()
        await world.store.write(create_person, id=person, now=now, email=f"{name}@fjord.test")
        await world.store.write(add_member, person=person, organisation=shop.organisation, role=role, now=now)
    await floor.paid()
    floor.strike(drop_after=True)
    await floor.work()
    assert [letter.to for letter in await floor.letters()] == ["ada@fjord.test"]


@pytest.mark.long
async def test_what_is_written_upstream_is_paced_and_fails_nothing(floor: Floor) -> None:
    orders = [await floor.paid() for _ in range(12)]
    await floor.work()
    assert sorted([(await floor.row(order)).status for order in orders]) == ["paid"] * 2 + ["ready"] * 10
    await floor.work(1, every=1)
    assert {(await floor.row(order)).status for order in orders} == {"ready"}
    assert (floor.draws(), [(await floor.row(order)).tries for order in orders]) == (12, [0] * 12)


@pytest.mark.long
async def test_without_burst_limits_nothing_waits_for_a_token(floor: Floor) -> None:
    orders = [await floor.paid() for _ in range(12)]
    pace = replace(floor.deps.rate_limiter, limits=Limits(burst_enabled=False))
    worker = Fulfilment(replace(floor.deps, rate_limiter=pace), floor.shop.reports.append)
    await worker.step()
    assert {(await floor.row(order)).status for order in orders} == {"ready"}
