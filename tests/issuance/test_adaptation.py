"""Products with `adapt`: the package that is issued gets the product's own data and days, or the eSIM is not handed out."""

from typing import Any

import httpx
import pytest

from operations.ledger.adaptation import PackageAdaptations
from operations.ledger.reconciliation import Reconciliation
from operations.plans import BYTES_PER_MB
from simulators.network.entities import Package
from simulators.network.faults import NetworkFault
from storage.orphans import recover_orphans
from storage.package_adaptations import ADAPTATION_LEASE_MS
from storage.replicas import REPLICA_LEASE_SECONDS
from tests.connectivity.requests import INTENTS
from tests.issuance.stage import IssuanceStage, replay_of
from tests.issuance.test_live_intents import define_product
from tests.network_facts import DRAW

SET_LIMITS, SET_EXPIRY = "modifySubscriberPrepaidPackageLimits", "modifySubscriberPrepaidPackageExpDate"
DATA_MB, DAYS = 3000, 14
"""More data than the template's 1073 MB, and fewer days than its 30."""
LEASE_SECONDS = ADAPTATION_LEASE_MS / 1000


async def adapted(stage: IssuanceStage) -> str:
    return await define_product(stage, data_mb=DATA_MB, validity_days=DAYS, adapt=True)


async def package_of(stage: IssuanceStage) -> Package:
    """The one package that was drawn."""
    iccid = (await stage.ledger())[0].iccid
    assert iccid is not None
    return (await stage.line(iccid)).packages[0]


async def has_terms(stage: IssuanceStage) -> bool:
    package = await package_of(stage)
    return (package.data_limit, package.period_days) == (DATA_MB * BYTES_PER_MB, DAYS)


async def settle(stage: IssuanceStage) -> list[str]:
    reports: list[str] = []
    await PackageAdaptations(stage.world.pipeline.deps, reports.append).step()
    return reports


async def read(stage: IssuanceStage, intent: str) -> dict[str, Any]:
    return (await stage.http.get(f"{INTENTS}/{intent}")).json()


async def issued_events(stage: IssuanceStage) -> int:
    events = (await stage.http.get("/v1/connectivity/events")).json()["data"]
    return sum(event["type"] == "esim.issued" for event in events)


def sent(stage: IssuanceStage) -> tuple[int, int, int]:
    return len(stage.sent(DRAW)), len(stage.sent(SET_LIMITS)), len(stage.sent(SET_EXPIRY))


async def test_the_package_has_the_products_data_and_days_before_the_esim_is_handed_out(stage: IssuanceStage) -> None:
    said = await stage.intend(plan=await adapted(stage))
    assert (said.status_code, said.json()["status"], said.json()["error"]) == (201, "succeeded", None)
    assert said.json()["esim"]["activation_code"] and said.json()["plan"]["adapt"] is True
    assert await has_terms(stage) and sent(stage) == (1, 1, 1) and await issued_events(stage) == 1
    packages = (await stage.http.get(f"/v1/subscribers/{said.json()['esim']['iccid']}/packages")).json()["data"]
    assert [(each["pckdatabyte"], each["perioddays"]) for each in packages] == [(DATA_MB * BYTES_PER_MB, DAYS)]
    assert replay_of(await stage.intend(plan=said.json()["plan"]["id"])) == (201, said.content, "true")
    stage.world.clock.advance(86_400)
    await settle(stage)
    assert sent(stage) == (1, 1, 1)


async def test_a_product_without_adapt_leaves_the_package_as_its_template_makes_it(stage: IssuanceStage) -> None:
    said = await stage.intend(plan=await define_product(stage))
    assert said.json()["status"] == "succeeded"
    package = await package_of(stage)
    assert (package.data_limit, package.period_days, *sent(stage)) == (1 << 30, 30, 1, 0, 0)


async def test_an_adapted_product_is_also_issued_by_a_confirmation(stage: IssuanceStage) -> None:
    waiting = (await stage.http.post(INTENTS, json={}, headers={"Idempotency-Key": "w"})).json()["id"]
    said = await stage.http.post(f"{INTENTS}/{waiting}/confirm", json={"plan": await adapted(stage)})
    assert (said.status_code, said.json()["status"]) == (200, "succeeded") and await has_terms(stage)


LOST = {
    "limits dropped before": NetworkFault(SET_LIMITS, drop_before=True),
    "limits dropped after": NetworkFault(SET_LIMITS, drop_after=True),
    "limits malformed": NetworkFault(SET_LIMITS, malformed=True),
    "expiry dropped before": NetworkFault(SET_EXPIRY, drop_before=True),
    "expiry dropped after": NetworkFault(SET_EXPIRY, drop_after=True),
    "expiry status 500": NetworkFault(SET_EXPIRY, status=500),
    "expiry code 3": NetworkFault(SET_EXPIRY, code=3),
}


@pytest.mark.cases
@pytest.mark.parametrize("trouble", LOST)
async def test_an_adaptation_of_unknown_outcome_is_settled_by_reading_the_package(stage: IssuanceStage, trouble: str) -> None:
    product = await adapted(stage)
    stage.trouble(LOST[trouble])
    said = await stage.intend(plan=product)
    intent = said.json()
    assert (said.status_code, intent["status"], intent["esim"], intent["error"]["code"]) == (201, "processing", None, "package_adapting")
    assert await issued_events(stage) == 0 and await stage.states() == {intent["id"]: "issued"}
    took_effect = {SET_LIMITS: (await package_of(stage)).data_limit != 1 << 30, SET_EXPIRY: (await package_of(stage)).period_days != 30}
    before = {method: len(stage.sent(method)) for method in took_effect}
    await settle(stage)
    assert await read(stage, intent["id"]) == intent  # not due yet
    await stage.live_on(6)
    await settle(stage)
    told = await read(stage, intent["id"])
    assert (told["status"], told["error"]) == ("succeeded", None) and await has_terms(stage) and await issued_events(stage) == 1
    again = await stage.intend(plan=product)
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (told, "true")
    sent_again = {method: len(stage.sent(method)) - count for method, count in before.items()}
    assert sent_again == {method: int(not effect) for method, effect in took_effect.items()}
    assert stage.dispatches() == 1


async def test_a_refused_adaptation_keeps_the_esim_back_until_somebody_sets_the_package(stage: IssuanceStage) -> None:
    product = await adapted(stage)
    stage.trouble(NetworkFault(SET_LIMITS, code=14, times=None))
    intent = (await stage.intend(plan=product)).json()
    assert (intent["status"], intent["esim"], intent["error"]["code"]) == ("processing", None, "package_not_adapted")
    assert "LPA:" not in str(intent) and "modify_package_limits" in intent["error"]["message"]
    for _ in range(3):
        await stage.live_on(3600)
        await settle(stage)
    assert (await read(stage, intent["id"]))["status"] == "processing" and await issued_events(stage) == 0
    stage.world.sandbox.faults.clear()
    package = await package_of(stage)
    package.data_limit, package.period_days = DATA_MB * BYTES_PER_MB, DAYS
    before = sent(stage)
    await stage.live_on(6 * 3600)
    await settle(stage)
    assert (await read(stage, intent["id"]))["status"] == "succeeded" and sent(stage) == before


async def test_an_esim_whose_package_was_not_adapted_can_be_taken_back(stage: IssuanceStage) -> None:
    product = await adapted(stage)
    stage.trouble(NetworkFault(SET_LIMITS, code=14))
    intent = (await stage.intend(plan=product)).json()["id"]
    assert (await stage.give_back(intent)).json()["data"]["status"] == "rolled_back"
    before = sent(stage)
    for _ in range(3):
        await stage.live_on(3600)
        await settle(stage)
    told = await read(stage, intent)
    assert (told["status"], told["error"]["code"], sent(stage)) == ("failed", "rolled_back", before)


@pytest.mark.long
@pytest.mark.parametrize("reached", [SET_LIMITS, SET_EXPIRY])
async def test_a_process_that_dies_between_the_draw_and_the_adaptation_leaves_it_to_the_next(stage: IssuanceStage, reached: str) -> None:
    product = await adapted(stage)

    def die(method: str) -> None:
        if method == reached:
            raise SystemExit

    stage.road.seen = die
    with pytest.raises((SystemExit, BaseExceptionGroup)):
        await stage.intend(plan=product)
    stage.road.seen = lambda method: None
    intent = (await stage.http.get(INTENTS)).json()["data"][0]
    assert (intent["status"], intent["esim"], await stage.states()) == ("processing", None, {intent["id"]: "issued"})
    await stage.live_on(LEASE_SECONDS + REPLICA_LEASE_SECONDS)
    await stage.world.store.write(recover_orphans, now=stage.world.clock.now())
    await settle(stage)
    told = await read(stage, intent["id"])
    assert told["status"] == "succeeded" and await has_terms(stage) and stage.dispatches() == 1
    assert (await stage.intend(plan=product)).json() == told
    stage.world.faults.clear()


async def test_a_draw_of_unknown_outcome_is_adapted_once_it_is_found(stage: IssuanceStage) -> None:
    product = await adapted(stage)
    stage.trouble(NetworkFault(DRAW, drop_after=True))
    intent = (await stage.intend(plan=product)).json()
    assert (intent["status"], intent["error"]["code"], sent(stage)) == ("processing", "OUTCOME_UNKNOWN", (1, 0, 0))
    await stage.live_on(1)
    reports: list[str] = []
    assert (await Reconciliation(stage.world.pipeline.deps, reports.append).step(), reports) == (1, [])
    assert (await read(stage, intent["id"]))["error"]["code"] == "package_adapting"
    assert (await stage.intend(plan=product)).json()["error"]["code"] == "package_adapting"
    await settle(stage)
    told = await read(stage, intent["id"])
    assert told["status"] == "succeeded" and await has_terms(stage) and await issued_events(stage) == 1
    assert (await stage.intend(plan=product)).json() == told and sent(stage) == (1, 1, 1)


async def test_what_was_not_drawn_is_not_adapted_and_is_forgotten_in_a_week(stage: IssuanceStage) -> None:
    product = await adapted(stage)
    await stage.take_stock_away()
    said: httpx.Response = await stage.intend(plan=product)
    assert said.json()["error"]["code"] == "no_inventory"
    await stage.live_on(8 * 86_400)
    assert await settle(stage) == [] and sent(stage) == (1, 0, 0)
