"""cancel_top_up_checkout: an open page is closed, a paid one is not, and what nobody can tell is not guessed."""

import httpx
import pytest
from inline_snapshot import snapshot

from tests.orders.stage import OrdersShop
from tests.stage import without_request_id

SESSIONS = "/v1/checkout/sessions"


async def cancel(shop: OrdersShop, order: str, session: str, http: httpx.AsyncClient | None = None) -> httpx.Response:
    return await (http or shop.server).post(f"/api/orders/{order}/top-up-checkouts/{session}/cancel", json={})


async def status(shop: OrdersShop, session: str) -> str:
    return (await shop.world.pipeline.deps.payments.find_checkout(shop.payee, session)).status


async def trouble(shop: OrdersShop, kind: str, path: str, method: str, *, after: bool = False) -> None:
    """What the processor's next calls meet; `after`: they take effect all the same."""
    await shop.world.ask_payments("POST", "faults", {"trouble": kind, "path": path, "method": method, "after": after, "times": 9})


@pytest.mark.rule("4.6.13")
@pytest.mark.parametrize("by", ["top-up", "session"])
async def test_an_open_checkout_is_expired(shop: OrdersShop, by: str) -> None:
    order = await shop.ready()
    top_up = await shop.order(top_up_of=order)
    session = await shop.checkout(top_up)
    said = await cancel(shop, order, top_up if by == "top-up" else session)
    assert (said.status_code, said.json()) == (
        200,
        {"id": top_up, "object": "storefront.top_up_checkout", "order": order, "status": "expired"},
    )
    assert await status(shop, session) == "expired"
    assert (await cancel(shop, order, session)).content == said.content


async def test_one_that_expired_by_itself_is_expired(shop: OrdersShop) -> None:
    order = await shop.ready()
    session = await shop.checkout(top_up := await shop.order(top_up_of=order))
    shop.world.clock.advance(25 * 3600)
    said = await cancel(shop, order, top_up)
    assert (said.status_code, said.json()["status"], await status(shop, session)) == (200, "expired", "expired")


@pytest.mark.rule("4.6.13")
@pytest.mark.rule("7.13")
@pytest.mark.parametrize("told", [True, False])
async def test_a_paid_one_is_not(shop: OrdersShop, told: bool) -> None:
    order = await shop.ready()
    session = await shop.checkout(top_up := await shop.order(top_up_of=order))
    await shop.pay_at(session)
    if told:
        await shop.world.settle_payments()
        assert (await shop.stored(top_up)).status == "paid"
    said = await cancel(shop, order, session)
    assert (said.status_code, said.json()["code"]) == (409, "checkout_already_paid")
    assert await status(shop, session) == "complete"


async def test_the_refusal_of_a_paid_one_says_what_comes(shop: OrdersShop) -> None:
    order = await shop.ready()
    said = await cancel(shop, order, await shop.paid(top_up_of=order))
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "This top-up was paid for, so its checkout is not expired; nothing was changed",
            "code": "checkout_already_paid",
            "hint": "GET /api/orders/{orderId} tells where the top-up stands",
        }
    )


@pytest.mark.cases
@pytest.mark.rule("4.6.13")
@pytest.mark.rule("7.14")
@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "rate_limited", "garbage"])
@pytest.mark.parametrize(("path", "method"), [(SESSIONS + "/*", "GET"), ("*/expire", "POST")])
async def test_what_the_processor_does_not_say_is_not_guessed(shop: OrdersShop, kind: str, path: str, method: str) -> None:
    order = await shop.ready()
    session = await shop.checkout(top_up := await shop.order(top_up_of=order))
    await trouble(shop, kind, path, method)
    said = await cancel(shop, order, session)
    assert (said.status_code, said.json()["code"]) == (502, "payment_state_unverifiable")
    await shop.world.ask_payments("DELETE", "faults")
    assert (await cancel(shop, order, top_up)).json()["status"] == "expired"


async def test_the_words_for_what_could_not_be_found_out(shop: OrdersShop) -> None:
    order = await shop.ready()
    said = await cancel(shop, order, await shop.order(top_up_of=order))  # whose page was not named to us yet
    assert said.status_code == 502
    assert without_request_id(said) == snapshot(
        {
            "error": "Whether this top-up was paid for could not be found out, so its checkout may be open; "
            "nothing is known to have changed",
            "code": "payment_state_unverifiable",
            "hint": "Repeat the call in a minute; a checkout that nobody pays expires by itself within an hour of its beginning",
        }
    )


async def test_a_payment_that_is_under_way_is_not_guessed(shop: OrdersShop) -> None:
    order = await shop.ready()
    session = await shop.checkout(await shop.order(top_up_of=order))
    async with shop.world.payments.turn(writes=True) as state:
        state.book(shop.payee).sessions[session].status = "complete"
    said = await cancel(shop, order, session)
    assert (said.status_code, said.json()["code"]) == (502, "payment_state_unverifiable")


async def test_an_account_that_let_the_service_go_proves_nothing(shop: OrdersShop) -> None:
    order = await shop.ready()
    session = await shop.checkout(top_up := await shop.order(top_up_of=order))
    await shop.world.ask_payments("POST", f"accounts/{shop.payee}", {"do": "deauthorize"})
    assert (await cancel(shop, order, session)).status_code == 502
    assert (await shop.stored(top_up)).status == "pending_payment"


async def test_only_a_top_up_of_this_very_order_is_found(shop: OrdersShop) -> None:
    order, other = await shop.ready(), await shop.paid()
    session = await shop.checkout(top_up := await shop.order(top_up_of=other))
    own = await shop.checkout(await shop.order())
    named = (top_up, session, own, order, "tuc_" + "0" * 26, "cs_test_1", "%F0%9F%98%80")
    answers = [await cancel(shop, order, name) for name in named]
    assert {answer.status_code for answer in answers} == {404}
    assert len({str(without_request_id(answer)) for answer in answers}) == 1
    assert (await cancel(shop, top_up, session)).status_code == 404
    assert await status(shop, session) == "open"
