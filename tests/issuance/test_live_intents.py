"""Intents with a plan that draws an eSIM: products, plans of the live catalogue, and confirmations."""

import threading
from typing import Any

import anyio
import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Money, Restrictions, Role, SpendLimits, Tier
from simulators.network.faults import NetworkFault
from storage.engine.sql import runs_in_thread
from tests.connectivity.requests import INTENTS
from tests.connectivity.test_products import PRODUCTS
from tests.issuance.lost_access import LOST_ACCESS, move
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import FREE_ESIMS, PLAN_SLUG, IssuanceStage, replay_of
from tests.network_facts import ACCOUNT, DRAW, TEMPLATE
from tests.registry import ledgers
from tests.stage import without_request_id

LIVE_INTENT = {
    "id": "cni_01mcckg2g00000000000000009",
    "object": "connectivity.intent",
    "status": "succeeded",
    "livemode": True,
    "plan": {
        "id": "nordic-1gb-30d",
        "object": "connectivity.plan",
        "name": "Nordic 1GB 30d",
        "data_mb": 1073,
        "unlimited": False,
        "validity_days": 30,
        "countries": ["DK", "FI", "IS", "NO", "SE"],
        "livemode": True,
        "price": None,
    },
    "esim": {
        "iccid": "8988303700000101276",
        "activation_code": "LPA:1$smdp.spx-roaming.test$K2-EEHCUZ3-CKVPNUS278F",
        "qr_code": "LPA:1$smdp.spx-roaming.test$K2-EEHCUZ3-CKVPNUS278F",
        "smdp_address": "smdp.spx-roaming.test",
        "matching_id": "K2-EEHCUZ3-CKVPNUS278F",
    },
    "metadata": {},
    "error": None,
    "created": 1800014400,
}
"""As it is answered, but for its metadata."""


async def define_product(stage: IssuanceStage, http: httpx.AsyncClient | None = None, **fields: Any) -> str:
    body = {
        "name": "Nordic week",
        "data_mb": 1000,
        "validity_days": 7,
        "price_cents": 900,
        "currency": "EUR",
        "countries": ["NO"],
        "package_template_id": TEMPLATE,
        **fields,
    }
    said = await (http or stage.http).post(PRODUCTS, json=body, headers={"Idempotency-Key": f"p{len(fields)}"})
    assert said.status_code == 201, said.text
    return said.json()["id"]


async def confirm(stage: IssuanceStage, intent: str, plan: str = PLAN_SLUG, http: httpx.AsyncClient | None = None) -> httpx.Response:
    return await (http or stage.http).post(f"{INTENTS}/{intent}/confirm", json={"plan": plan})


@pytest.mark.rule("3.1.3")
async def test_a_live_plan_draws_one_esim_from_the_caller_s_account(stage: IssuanceStage) -> None:
    said = await stage.intend(metadata={"order": "1042"})
    assert said.status_code == 201
    assert said.json() == {**LIVE_INTENT, "metadata": {"order": "1042"}}
    assert [call.payload for call in stage.sent()] == [{"packageTemplateId": TEMPLATE, "accountForSubs": ACCOUNT}]
    assert (await stage.http.get(f"{INTENTS}/{said.json()['id']}")).json() == said.json()
    events = (await stage.http.get("/v1/connectivity/events")).json()["data"]
    assert [(event["type"], event["livemode"], event["data"]) for event in events] == snapshot(
        [("esim.issued", True, {"intent": "cni_01mcckg2g00000000000000009", "iccid": "8988303700000101276", "plan": "nordic-1gb-30d"})]
    )
    assert await stage.free() == FREE_ESIMS - 1


@pytest.mark.rule("2.3.3")
async def test_a_product_draws_from_the_account_it_is_pinned_to(stage: IssuanceStage) -> None:
    owner = await stage.world.caller(Tier.ENTERPRISE, token="sandbox-7001-token")
    async with stage.world.client(owner.secret) as http:
        pinned, loose = await define_product(stage, http, account_id=8103), await define_product(stage, http)
        assert [(await stage.intend(plan, http=http, plan=plan)).json()["status"] for plan in (pinned, loose)] == ["succeeded"] * 2
        shown = (await stage.intend(pinned, http=http, plan=pinned)).json()["plan"]
    assert [call.payload for call in stage.sent()] == [
        {"packageTemplateId": TEMPLATE, "accountForSubs": 8103},
        {"packageTemplateId": TEMPLATE, "accountForSubs": 8101},
    ]
    assert (shown["id"], shown["price"]) == (pinned, {"amount": 900, "currency": "EUR"})


async def test_a_product_that_is_pinned_to_an_account_one_lost_draws_nothing(stage: IssuanceStage) -> None:
    pinned = await define_product(stage, account_id=ACCOUNT)
    await move(stage.world, stage.me)
    said = await stage.intend(plan=pinned)
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "The product draws from account 8101, which is not yours; nothing was drawn",
            "code": "account_not_found",
            "hint": "Define a product without account_id, or with one of list_reseller_accounts",
        }
    )
    assert stage.dispatches() == 0 and await stage.ledger() == []


@pytest.mark.rule("3.1.5")
async def test_the_same_key_and_body_return_the_same_intent_for_ever(stage: IssuanceStage) -> None:
    first = await stage.intend()
    stage.world.clock.advance(400 * 86_400)
    assert replay_of(await stage.intend()) == (201, first.content, "true")
    other = await stage.intend(plan="nordic-5gb-30d")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert "8988" not in other.text and stage.dispatches() == 1


async def test_a_plan_that_left_the_catalogue_keeps_its_answer(stage: IssuanceStage) -> None:
    first = await stage.intend()
    (await stage.world.network()).templates[TEMPLATE].deleted = True
    stage.world.clock.advance(120)
    assert replay_of(await stage.intend()) == (201, first.content, "true")
    assert (await stage.intend("new")).status_code == 404


@pytest.mark.rule("2.4.5")
async def test_without_a_free_esim_the_intent_has_failed_for_good(stage: IssuanceStage) -> None:
    await stage.take_stock_away()
    first = await stage.intend()
    assert (first.status_code, first.json()["status"], first.json()["error"]) == snapshot(
        (201, "failed", {"code": "no_inventory", "message": "Account 8101 has no free eSIM; nothing was drawn"})
    )
    assert replay_of(await stage.intend()) == (201, first.content, "true")
    assert (await confirm(stage, first.json()["id"])).json()["code"] == "intent_not_confirmable"
    assert stage.dispatches() == 1 and (await stage.http.get("/v1/connectivity/events")).json()["data"] == []


async def test_a_refused_connection_leaves_no_intent_and_a_free_key(stage: IssuanceStage) -> None:
    stage.road.refused.add(DRAW)
    said = await stage.intend()
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")
    assert (await stage.http.get(INTENTS)).json()["data"] == [] and await stage.ledger() == []
    stage.road.refused.clear()
    assert (await stage.intend()).json()["status"] == "succeeded"


@pytest.mark.cases
@pytest.mark.parametrize("why", LOST_ACCESS)
async def test_whoever_lost_access_sees_nothing_of_what_was_drawn(stage: IssuanceStage, why: str) -> None:
    esim = (await stage.intend()).json()["esim"]
    change, status, code = LOST_ACCESS[why]
    await change(stage.world, stage.me)
    said = await stage.intend()
    assert (said.status_code, said.json()["code"]) == (status, code)
    assert esim["iccid"] not in said.text and esim["activation_code"] not in said.text
    assert stage.dispatches() == 1


@pytest.mark.parametrize(
    ("tier", "mode", "status", "code"), [(Tier.FREE, "managed", 402, "upgrade_required"), (Tier.PRO, None, 409, "org_not_connected")]
)
async def test_a_live_plan_needs_write_access_and_a_connection(
    stage: IssuanceStage, tier: Tier, mode: str | None, status: int, code: str
) -> None:
    who = await stage.world.caller(tier, mode=mode, account=ACCOUNT if mode else None)
    async with stage.world.client(who.secret) as http:
        said = await stage.intend(http=http)
        waiting = (await http.post(INTENTS, json={}, headers={"Idempotency-Key": "w"})).json()["id"]
        later = await confirm(stage, waiting, http=http)
    assert [(each.status_code, each.json()["code"]) for each in (said, later)] == [(status, code)] * 2
    assert stage.dispatches() == 0


@pytest.mark.rule("3.1.4")
async def test_a_waiting_intent_gets_its_esim_when_a_live_plan_is_confirmed(stage: IssuanceStage) -> None:
    waiting = (await stage.http.post(INTENTS, json={"metadata": {"order": "7"}}, headers={"Idempotency-Key": "w"})).json()
    assert (waiting["status"], stage.dispatches()) == ("requires_plan", 0)
    said = await confirm(stage, waiting["id"])
    assert said.status_code == 200
    assert said.json() == {**LIVE_INTENT, "metadata": {"order": "7"}}
    again = await confirm(stage, waiting["id"])
    assert (again.status_code, again.content) == (200, said.content)
    other = await confirm(stage, waiting["id"], "nordic-5gb-30d")
    assert (other.status_code, other.json()["code"]) == (409, "intent_not_confirmable")
    assert (await confirm(stage, waiting["id"], "test_eu_1gb")).status_code == 409
    assert stage.dispatches() == 1
    assert len((await stage.http.get("/v1/connectivity/events")).json()["data"]) == 1


@pytest.mark.parametrize(
    ("fault", "status"), [(NetworkFault(DRAW, drop_after=True), "processing"), (NetworkFault(DRAW, code=14), "failed")]
)
async def test_a_confirmation_is_never_sent_a_second_time(stage: IssuanceStage, fault: NetworkFault, status: str) -> None:
    waiting = (await stage.http.post(INTENTS, json={}, headers={"Idempotency-Key": "w"})).json()["id"]
    stage.trouble(fault)
    first = await confirm(stage, waiting)
    assert (first.status_code, first.json()["status"]) == (200, status)
    again = await confirm(stage, waiting)
    assert (again.status_code, stage.dispatches()) == (200 if status == "processing" else 409, 1)


async def test_a_confirmation_that_began_while_another_drew_draws_nothing_once_that_one_has_failed(stage: IssuanceStage) -> None:
    """It was found to make nothing due, since the other call was drawing the eSIM: no limit of money would count what it draws."""
    world, waiting = stage.world, (await stage.http.post(INTENTS, json={}, headers={"Idempotency-Key": "w"})).json()
    limits = Restrictions(limits=(SpendLimits(per_day=Money(1_000_000, "EUR")),))
    _, secret = await world.key(stage.me.person, stage.me.organisation, restrictions=limits)
    gate = stage.road.gates[DRAW] = RoadGate()
    stage.road.refused.add(DRAW)
    write, later = threading.Event(), list[httpx.Response]()

    async def confirm_within_limits() -> None:
        async with world.client(secret) as http:
            later.append(await confirm(stage, waiting["id"], http=http))

    async with anyio.create_task_group() as group, held(gate, lambda: confirm(stage, waiting["id"])) as first:
        group.start_soon(world.store.write, runs_in_thread(lambda connection: write.wait(60)))
        await anyio.wait_all_tasks_blocked()  # from here on whoever writes waits, one behind the other
        gate.open.set()
        await anyio.wait_all_tasks_blocked()
        group.start_soon(confirm_within_limits)
        await anyio.wait_all_tasks_blocked()
        stage.road.refused.clear()
        write.set()
    assert (first[0].status_code, first[0].json()["code"]) == (502, "ocs_error")
    assert (later[0].status_code, without_request_id(later[0])) == snapshot(
        (
            409,
            {
                "error": "Another call was confirming this intent when this one began, and ended without an eSIM; this one did nothing",
                "code": "intent_not_confirmable",
                "hint": "Confirm it once more",
            },
        )
    )
    assert stage.dispatches() == 0 and await stage.ledger() == [] and await stage.free() == FREE_ESIMS
    assert (await stage.http.get(f"{INTENTS}/{waiting['id']}")).json() == waiting
    assert (await confirm(stage, waiting["id"])).json()["status"] == "succeeded"


async def test_a_confirmation_that_was_never_sent_may_be_tried_again(stage: IssuanceStage) -> None:
    waiting = (await stage.http.post(INTENTS, json={"metadata": {"a": "b"}}, headers={"Idempotency-Key": "w"})).json()
    stage.road.refused.add(DRAW)
    assert (await confirm(stage, waiting["id"])).status_code == 502
    assert (await stage.http.get(f"{INTENTS}/{waiting['id']}")).json() == waiting and await stage.ledger() == []
    stage.road.refused.clear()
    assert (await confirm(stage, waiting["id"])).json()["status"] == "succeeded"


@pytest.mark.rule("2.4.5")
async def test_an_intent_is_seen_processing_while_its_esim_is_drawn(stage: IssuanceStage) -> None:
    gate = stage.road.gates[DRAW] = RoadGate()
    async with held(gate, stage.intend) as answers:
        rows = (await stage.http.get(INTENTS)).json()["data"]
        assert [(row["status"], row["esim"], row["error"]) for row in rows] == [("processing", None, None)]
        busy = await stage.intend()
        assert (busy.status_code, busy.headers["Retry-After"]) == (409, "1")
        confirmed = await confirm(stage, rows[0]["id"])
        assert (confirmed.status_code, confirmed.json()["status"]) == (200, "processing")
    assert answers[0].json()["id"] == rows[0]["id"] and answers[0].json()["status"] == "succeeded"
    assert stage.dispatches() == 1


@pytest.mark.parametrize("role", list(Role))
async def test_a_downgrade_while_the_stock_is_looked_at_sends_nothing(stage: IssuanceStage, role: Role) -> None:
    who = await stage.world.caller(Tier.PRO, role, mode="managed", account=ACCOUNT)
    gate = stage.road.gates["listSubscriber"] = RoadGate()
    async with stage.world.client(who.secret) as http, held(gate, lambda: stage.intend(http=http)) as answers:
        await stage.world.move_to(Tier.FREE, who.organisation)
    assert (answers[0].status_code, answers[0].json()["code"]) == (401, "unauthorized")
    assert stage.dispatches() == 0 and await stage.ledger() == [] and await stage.world.store.read(ledgers.claimed) == []
