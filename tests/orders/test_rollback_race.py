"""Promise 9: operators and the storefront take one order's eSIM back at once, on either database: one release, one final state."""

import os

import httpx
import pytest

from simulators.network.faults import NetworkFault
from storage.replicas import renew_replica
from tests.issuance.stage import FREE_ESIMS, another_process, at_once
from tests.network_facts import DELETE
from tests.orders.stage import ORDERS_KEY, OrdersShop, open_orders_shop
from tests.stage import opened_on_both

FREE = "changeSimStatus"
ROUNDS = int(os.environ.get("ROLLBACK_ROUNDS", "6"))
"""Of one operator and one storefront on each database; 200 by command: ROLLBACK_ROUNDS=200 python3 ./run test tests/orders -k race"""


shop = opened_on_both(open_orders_shop, concurrency=64)


def told(answers: list[httpx.Response]) -> set[tuple[int, str | None, str | None]]:
    return {(answer.status_code, answer.json().get("code"), answer.headers.get("Retry-After")) for answer in answers}


DONE_OR_WAIT = {(200, None, None), (409, "idempotency_in_progress", "1")}


@pytest.mark.long
@pytest.mark.rule("3.6.6")
async def test_32_operators_race_one_storefront_and_the_esim_is_released_once(shop: OrdersShop) -> None:
    id, other = await shop.ready(), await another_process(shop)
    tokens = [await shop.token(id) for _ in range(32)]
    async with other.client(shop.me.secret) as http, other.client(ORDERS_KEY) as server:
        doors = [shop.http, http] * 16
        operators = [
            lambda token=token, door=door: shop.ask_to_return(id, token=token, http=door) for token, door in zip(tokens, doors, strict=True)
        ]
        answers = await at_once([*operators[:16], lambda: shop.take_back(id), *operators[16:]])
        assert told(answers) <= DONE_OR_WAIT and 200 in {answer.status_code for answer in answers}
        rows = [(await shop.give_back(id, http=door)).json()["data"] for door in (shop.http, http)]
        orders = [(await shop.take_back(id, http=door)).json() for door in (shop.server, server)]
    assert len(shop.sent(DELETE)) == 1 and len(shop.sent(FREE)) == 1
    assert {row["status"] for row in rows} == {order["status"] for order in orders} == {"rolled_back"}
    assert rows[0] == rows[1] and orders[0] == orders[1] == await shop.read(id)
    assert await shop.free() == FREE_ESIMS


@pytest.mark.long
async def test_one_operator_and_the_storefront_race_again_and_again(shop: OrdersShop) -> None:
    other = await another_process(shop)
    for number in range(1, ROUNDS + 1):
        for world in (shop.world, other):
            await world.store.write(renew_replica, replica=world.journal.replica, now=shop.world.clock.now())
        id = await shop.ready()
        token = await shop.token(id)
        async with other.client(ORDERS_KEY) as server:
            ways = [
                lambda id=id, token=token: shop.ask_to_return(id, token=token),
                lambda id=id, server=server: shop.take_back(id, http=server),
            ]
            answers = await at_once(ways if number % 2 else ways[::-1])
        assert told(answers) <= DONE_OR_WAIT and 200 in {answer.status_code for answer in answers}
        assert (len(shop.sent(DELETE)), len(shop.sent(FREE))) == (number, number)
        order, row = (await shop.take_back(id)).json(), (await shop.give_back(id)).json()["data"]
        assert order["status"] == row["status"] == "rolled_back" and order["cancelled_at"] == row["updated_at"]
        assert await shop.free() == FREE_ESIMS
        shop.world.clock.advance(61)  # each process remembers for a minute which eSIM a draw named


@pytest.mark.long
async def test_a_release_that_nobody_knows_of_is_the_same_to_both(shop: OrdersShop) -> None:
    id = await shop.ready()
    tokens = [await shop.token(id) for _ in range(4)]
    shop.trouble(NetworkFault(FREE, drop_after=True))
    await at_once([*[lambda token=token: shop.ask_to_return(id, token=token) for token in tokens], lambda: shop.take_back(id)])
    final = [await shop.take_back(id), await shop.give_back(id)]
    assert [(said.status_code, said.json()["code"], said.json()["details"]["status"]) for said in final] == [
        (502, "MANUAL_RECONCILIATION_REQUIRED", "rollback_unknown")
    ] * 2
    assert (await shop.read(id))["status"] == "rollback_unknown"
    assert (len(shop.sent(DELETE)), len(shop.sent(FREE))) == (1, 1)
