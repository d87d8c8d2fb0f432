"""rollback_storefront_order: the operator's row and steps, and outcomes that are told apart."""

import pytest
from inline_snapshot import snapshot

from simulators.network.faults import NetworkFault
from storage.upstream_connections import set_connection
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import ISSUANCE_WRITES
from tests.network_facts import DELETE, TEMPLATE
from tests.orders.stage import OrdersShop


@pytest.mark.long
@pytest.mark.rule("3.6.6")
async def test_a_ready_order_goes_back_to_stock(shop: OrdersShop) -> None:
    free = await shop.free()
    id = await shop.ready()
    before = await shop.read(id)
    shop.world.clock.advance(60)
    said = await shop.take_back(id)
    assert (said.status_code, said.json()) == (
        200,
        {**before, "status": "rolled_back", "esim": None, "cancelled_at": "2027-01-15T12:01:00Z"},
    )
    assert await shop.free() == free and await shop.states() == {id: "rolled_back"}
    assert await shop.read(id) == said.json()


async def test_again_it_answers_as_before_and_sends_nothing(shop: OrdersShop) -> None:
    id = await shop.ready()
    first, asked = await shop.take_back(id), len(shop.world.sandbox.calls)
    shop.world.clock.advance(60)
    assert (await shop.take_back(id)).content == first.content
    assert shop.methods(asked) == []


@pytest.mark.rule("3.6.6")
async def test_the_operator_s_roll_back_is_the_order_s(shop: OrdersShop) -> None:
    id = await shop.ready()
    assert (await shop.give_back(id)).json()["data"]["status"] == "rolled_back"
    order = await shop.read(id)
    assert (order["status"], order["esim"]) == ("rolled_back", None)
    assert (await shop.take_back(id)).json() == order
    assert len(shop.sent(DELETE)) == 1


@pytest.mark.cases
@pytest.mark.rule("3.6.7")
@pytest.mark.parametrize("state", ["pending_payment", "paid", "failed", "needs_review"])
async def test_only_a_ready_order_is_rolled_back(shop: OrdersShop, state: str) -> None:
    if state == "needs_review":
        id = await shop.paid()
        shop.trouble(NetworkFault("affectPackageToSubscriber", drop_after=True))
        await shop.fulfil(id)
    else:
        id = await {"pending_payment": shop.order, "paid": shop.paid, "failed": shop.failed}[state]()
    asked = len(shop.world.sandbox.calls)
    said = await shop.take_back(id)
    assert (said.status_code, said.json()["code"]) == (409, "order_not_ready") and f"this one is {state}" in said.json()["error"]
    assert shop.methods(asked) == []


async def test_a_line_with_another_package_stays(shop: OrdersShop) -> None:
    id = await shop.ready()
    iccid = (await shop.read(id))["esim"]["iccid"]
    await shop.http.post(f"/v1/subscribers/{iccid}/packages", json={"packageTemplateId": TEMPLATE}, headers={"Idempotency-Key": "more"})
    said = await shop.take_back(id)
    assert (said.status_code, said.json()["code"]) == (409, "line_has_packages")
    assert (await shop.read(id))["status"] == "ready" and shop.sent(DELETE) == []


@pytest.mark.rule("3.6.3")
@pytest.mark.rule("4.6.11")
async def test_an_ambiguous_answer_is_told_apart_and_nothing_further_is_sent(shop: OrdersShop) -> None:
    id = await shop.ready()
    shop.trouble(NetworkFault(DELETE, drop_after=True))
    said = await shop.take_back(id)
    assert (said.status_code, said.json()["code"], said.json()["outcome_unknown"]) == (502, "MANUAL_RECONCILIATION_REQUIRED", True)
    details = said.json()["details"]
    assert (details["idempotency_key"], details["status"]) == (id, "rollback_unknown")
    order = await shop.read(id)
    assert order["status"] == "rollback_unknown"
    assert order["esim"] is None
    assert order["error"] == snapshot(
        {
            "code": "MANUAL_RECONCILIATION_REQUIRED",
            "message": "What became of the eSIM could not be found out by itself: the shop's owner has to look, and was told",
        }
    )
    asked = len(shop.world.sandbox.calls)
    for _ in range(3):
        shop.world.clock.advance(86_400)
        assert (await shop.take_back(id)).status_code == 502
    assert [name for name in shop.methods(asked) if name in ISSUANCE_WRITES] == []


async def test_what_was_never_sent_leaves_the_order_ready(shop: OrdersShop) -> None:
    id = await shop.ready()
    shop.road.refused.add(DELETE)
    said = await shop.take_back(id)
    assert (said.status_code, said.json()["code"], "outcome_unknown" in said.json()) == (502, "ocs_error", False)
    assert (await shop.read(id))["status"] == "ready"
    shop.road.refused.clear()
    assert (await shop.take_back(id)).status_code == 200


async def test_while_it_runs_others_are_told_to_wait_and_the_page_shows_it(shop: OrdersShop) -> None:
    id = await shop.ready()
    gate = shop.road.gates[DELETE] = RoadGate()
    async with held(gate, lambda: shop.take_back(id)) as answers:
        waiting = await shop.take_back(id)
        assert (waiting.status_code, waiting.json()["code"], waiting.headers["Retry-After"]) == (409, "idempotency_in_progress", "1")
        assert (await shop.read(id))["status"] == "rollback_pending"
        assert (await shop.server.get(f"/api/orders/{id}/usage")).status_code == 409
    assert answers[0].json()["status"] == "rolled_back"


@pytest.mark.parametrize("account", [8102, None])
async def test_an_organisation_that_lost_its_account_gives_nothing_back(shop: OrdersShop, account: int | None) -> None:
    id = await shop.ready()
    mode = None if account is None else "managed"
    await shop.world.store.write(set_connection, organisation=shop.me.organisation, mode=mode, account_id=account, own_token=None)
    said = await shop.take_back(id)
    assert (said.status_code, said.json()["code"]) == ((502, "ocs_error") if account is None else (409, "order_not_ready"))
    assert shop.sent(DELETE) == [] and await shop.states() == {id: "issued"}


async def test_operators_issue_nothing_under_an_order_s_id(shop: OrdersShop) -> None:
    said = await shop.issue(await shop.paid())
    assert (said.status_code, said.json()["param"]) == (400, "idempotency_key")
