"""Calls at the same time, on both databases."""

import asyncio
from collections.abc import Sequence

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operations.catalogue import CATALOGUE
from registry.limits import Limits
from registry.ports import SharedSecrets
from tests.connectivity.live import live_intent
from tests.connectivity.requests import INTENTS, USAGE, create, events, issued, report
from tests.connectivity.test_observations import ATTACH, observe
from tests.connectivity.test_products import PRODUCTS, define
from tests.connectivity.test_usage import INGEST_USAGE, USAGE_LINE, key_of, percents
from tests.length import examples
from tests.network_facts import INTERNAL
from tests.stage import opened_on_both
from tests.world import Credentials, World, open_world

world = opened_on_both(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False), secrets=SharedSecrets(internal=INTERNAL))


async def test_a_whole_life_on_either_database(http: httpx.AsyncClient, pro: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    product = (await define(pro)).json()
    assert (await pro.get(PRODUCTS, params={"starting_after": "cnp_z"})).json()["data"] == [product]
    assert (await pro.get("/v1/connectivity/plans")).json()["data"][2:] == [product]
    waiting = (await create(http, "w", metadata={"ü": ""})).json()
    intent = (await http.post(f"{INTENTS}/{waiting['id']}/confirm", json={"plan": "test_eu_1gb"})).json()
    assert (await http.get(INTENTS)).json()["data"] == [intent]
    record = (await report(http, "u", intent["id"], 0.1)).json()
    assert (await http.get(USAGE, params={"intent": intent["id"]})).json()["data"] == [record]
    line = USAGE_LINE | {"iccid": intent["esim"]["iccid"], "bytes": 2**53 - 1}
    assert [(await bridge.post(INGEST_USAGE, json=line | {"ref": ref})).json()["stored"] for ref in "aba"] == [True, True, False]
    await observe(bridge, "package.usage", iccid=intent["esim"]["iccid"], data={"used_bytes": 5, "mcc": "208"})
    types = [event["type"] for event in await events(http)]
    assert types == ["esim.issued", *["usage.threshold_reached"] * 3, "esim.first_attach"]


async def test_64_calls_at_once_with_one_key_make_one_intent(http: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(create(http, "k", plan="test_eu_1gb") for _ in range(64)))
    bodies = {answer.content for answer in answers if answer.status_code == 201}
    busy = [answer for answer in answers if answer.status_code != 201]
    assert len(bodies) == 1
    assert {(answer.status_code, answer.json()["code"]) for answer in busy} <= {(409, "idempotency_in_progress")}
    assert len((await http.get(INTENTS)).json()["data"]) == 1
    assert len(await events(http)) == 1


@pytest.mark.long
async def test_of_64_confirmations_at_once_one_issues_the_esim(http: httpx.AsyncClient) -> None:
    id = (await create(http, "w")).json()["id"]
    plans = ["test_eu_1gb", "test_global_1gb"] * 32
    answers = await asyncio.gather(*(http.post(f"{INTENTS}/{id}/confirm", json={"plan": plan}) for plan in plans))
    bodies = {answer.content for answer in answers if answer.status_code == 200}
    assert len(bodies) == 1
    assert sorted({answer.status_code for answer in answers}) == [200, 409]
    assert len(await events(http)) == 1


@pytest.mark.long
@settings(max_examples=examples(4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.integers(1, 300), min_size=2, max_size=12))
async def test_reports_at_the_same_time_tell_each_threshold_once(http: httpx.AsyncClient, parts: Sequence[int]) -> None:
    id = (await issued(http, key_of(parts)))["id"]
    await asyncio.gather(*(report(http, f"{id}-{number}", id, part) for number, part in enumerate(parts)))
    assert await percents(http, id) == [percent for percent in (50, 80, 100) if sum(parts) >= percent * 10]


@pytest.mark.long
async def test_64_copies_of_a_line_at_once_count_once(
    http: httpx.AsyncClient, bridge: httpx.AsyncClient, world: World, caller: Credentials
) -> None:
    id = await live_intent(world, caller.organisation, data_mb=60)
    answers = await asyncio.gather(*(bridge.post(INGEST_USAGE, json=USAGE_LINE) for _ in range(64)))
    assert sorted(answer.json()["stored"] for answer in answers) == [False] * 63 + [True]
    assert await percents(http, id) == [50, 80]


async def test_64_attachments_at_once_are_one_event(http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    await asyncio.gather(*(observe(bridge, "network.attach", iccid=iccid, data={"mcc": "208"}) for _ in range(64)))
    assert len(await events(http, ATTACH)) == 1
