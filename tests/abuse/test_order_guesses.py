"""Whoever guesses orders: every miss looks like every other, and ten a minute are all there are, by whatever way they come."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from registry.limits import Limits
from registry.ports import SharedSecrets
from tests.shop_pages.market import SHOP_PATH, PagesMarket, open_market, order_of, token_of

WAYS = [("GET", ""), ("GET", "/usage"), ("GET", "/top-up-options"), ("POST", "/cancel"), ("POST", "/top-up-checkouts/tuc_x/cancel")]


@pytest.fixture
async def market(tmp_path: Path) -> AsyncGenerator[PagesMarket]:
    """Without a storefront key: an order's id is all that its reader has to know."""
    async with open_market(tmp_path) as market:
        market.counter.world.pipeline.secrets = SharedSecrets()
        yield market


def wrong(at: int) -> str:
    """An id that could be an order's."""
    return f"ord_{at:026d}"


def faceless(answer: httpx.Response) -> tuple[object, ...]:
    """All of an answer but the number of its request."""
    own = answer.headers["request-id"]
    headers = sorted((name, value) for name, value in answer.headers.items() if name != "request-id")
    return answer.status_code, answer.content.replace(own.encode(), b""), tuple(headers)


@pytest.mark.long
@pytest.mark.parametrize(("method", "way"), WAYS)
async def test_a_miss_is_the_same_bytes_whatever_was_guessed(market: PagesMarket, method: str, way: str) -> None:
    async with market.browser() as browser:
        number, order = order_of(await market.bought(browser)), token_of(browser)
        near = order[:-1] + ("1" if order.endswith("0") else "0")
        guesses = [wrong(0), number, near, near.upper(), "ord_", "x", "%F0%9F%98%80", f"tuc_{near[4:]}", "ord_" + "z" * 4000]
        answers = [await browser.http.request(method, f"/api/orders/{guess}{way}") for guess in guesses]
    assert len({faceless(answer) for answer in answers}) == 1
    assert (answers[0].status_code, answers[0].json()["code"], answers[0].headers["cache-control"]) == (404, "not_found", "no-store")


@pytest.mark.long
async def test_a_page_of_a_wrong_order_is_the_same_bytes_and_nobody_s_to_keep(market: PagesMarket) -> None:
    async with market.browser() as browser:
        await market.bought(browser)
        near = (order := token_of(browser))[:-1] + ("1" if order.endswith("0") else "0")
        answers = [
            (await browser.get(f"{SHOP_PATH}/orders/{guess}")).answer for guess in (wrong(0), near, near.upper(), "x", "ord_" + "z" * 4000)
        ]
    assert len({faceless(answer) for answer in answers}) == 1
    assert (answers[0].status_code, answers[0].headers["cache-control"]) == (404, "no-store")


@pytest.mark.long
async def test_pages_and_calls_share_ten_misses_a_minute_of_an_address(market: PagesMarket) -> None:
    async with market.browser("203.0.113.7") as guesser, market.browser("203.0.113.8") as buyer:
        number, order = order_of(await market.bought(buyer)), token_of(buyer)
        page = f"{SHOP_PATH}/orders/{order}"
        market.counter.world.pipeline.rate_limiter.limits = Limits()
        said = [(await guesser.http.request(method, f"/api/orders/{wrong(at)}{way}")).status_code for at, (method, way) in enumerate(WAYS)]
        said += [(await guesser.get(f"{SHOP_PATH}/orders/{wrong(at)}")).status for at in range(3)]
        said += [(await guesser.post(f"{SHOP_PATH}/orders/{wrong(9)}/{act}", {"plan": "nordic"})).status for act in ("cancel", "top-up")]
        assert said == [404] * 10
        found = [(await guesser.http.get(f"/api/orders/{id}")) for id in (wrong(10), order)] + [(await guesser.get(page)).answer]
        assert [answer.status_code for answer in found] == [429] * 3
        assert {answer.headers["retry-after"] for answer in found} == {"6"}
        assert [(await buyer.http.get(f"/api/orders/{order}")).status_code, (await buyer.get(page)).status] == [200, 200]
        market.counter.world.clock.advance(6)
        assert (await guesser.get(page)).status == 200
        assert [(await guesser.http.get(f"/api/orders/{wrong(at)}")).status_code for at in range(2)] == [404, 429]
    assert (await market.counter.row(number)).cancelled_at is None
