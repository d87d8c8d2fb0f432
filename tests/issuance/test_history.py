"""What is swept of issuances and keys, in every order of calls, sweeps and repeats: a key draws once, for ever, on both databases."""

import random
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import sqlalchemy as sa

from simulators.network.faults import NetworkFault
from storage.cdr_events import CDR_DIGESTS_REVISION as RECORDS_REVISION
from storage.engine.migrate import current_schema
from storage.engine.sql import Command, Connection, Query
from storage.expired_keys import EXPIRED_KEY
from storage.intents import IntentLabelTable, IntentTable, UsageRecordTable
from storage.replicas import EXPIRED_KEYS_REVISION, ReplicaTable, end_replica
from tests.connectivity.requests import INTENTS
from tests.connectivity.test_products import PRODUCTS
from tests.databases import sqlite_url
from tests.issuance.stage import IssuanceStage, open_issuance_stage
from tests.network_facts import DRAW
from tests.stage import opened_on_both
from transports.settings import SHORTEST_HISTORY
from transports.worker.retention import retention_chore

DAY = 86_400.0
USAGE = "/v1/connectivity/usage_records"
PRODUCT = {"name": "Week", "data_mb": 1, "validity_days": 7, "price_cents": 9, "currency": "EUR", "package_template_id": 55010}
INTENT, RECORD, LABEL, REPLICA = IntentTable.table, UsageRecordTable.table, IntentLabelTable.table, ReplicaTable.table


class Small(NamedTuple):
    """What is left of a key."""

    operation: str
    status: int
    iccid: str | None


class Rows(NamedTuple):
    rows: int


SMALL = Query(
    Small,
    sa.select(*(EXPIRED_KEY.c[name] for name in Small._fields)).order_by(
        EXPIRED_KEY.c.operation, EXPIRED_KEY.c.claimed, EXPIRED_KEY.c.iccid
    ),
)
COUNTS = {each.name: Query(Rows, sa.select(sa.func.count().label("rows")).select_from(each)) for each in (INTENT, RECORD, LABEL)}
# As a process of the schema before writes it.
OLD_PROGRAM = Command(sa.insert(REPLICA).values(id="rpl_old", expires_at=sa.bindparam("until"), key_ids="", revision=""))


def small(connection: Connection) -> list[Small]:
    return sorted(connection.all(SMALL), key=lambda row: (row.operation, row.iccid or ""))


def count(connection: Connection, *, of: str) -> int:
    found = connection.first(COUNTS[of])
    assert found is not None
    return found.rows


def run_old_program(connection: Connection, *, until: float) -> None:
    connection.run(OLD_PROGRAM, until=until)


stage = opened_on_both(open_issuance_stage)


async def sweep(stage: IssuanceStage, days: float = 31) -> None:
    """So many days later everything is removed that may be."""
    await stage.live_on(days * DAY)
    for _ in range(2):  # the first run only closes the database to older programs
        await retention_chore(stage.world.store, stage.world.clock, print, SHORTEST_HISTORY).run()


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


EXPIRED_ANSWER = (409, "idempotency_key_expired")


@pytest.mark.long
async def test_no_key_of_a_call_that_draws_or_stores_is_ever_free_again(stage: IssuanceStage) -> None:
    async def post(path: str, key: str, body: dict[str, Any]) -> httpx.Response:
        return await stage.http.post(path, json=body, headers={"Idempotency-Key": key})

    labelled = {"plan": "test_eu_1gb", "metadata": {"order": "1042"}}
    test = await post(INTENTS, "test", labelled)
    calls = [
        (INTENTS, "test", labelled),
        (INTENTS, "live", {"plan": "nordic-1gb-30d"}),
        (PRODUCTS, "product", {**PRODUCT, "countries": ["NO"]}),
        (USAGE, "usage", {"intent": test.json()["id"], "quantity_mb": 5}),
    ]
    for path, key, body in calls:
        assert (await post(path, key, body)).status_code == 201
    drawn = (await stage.issue("stock")).json()["data"]["iccid"]
    live = (await post(INTENTS, "live", {"plan": "nordic-1gb-30d"})).json()
    dispatches = stage.dispatches()
    assert dispatches == 2

    await sweep(stage)
    assert await stage.world.store.read(small) == [
        ("create_connectivity_intent", 201, None),
        ("create_connectivity_intent", 201, live["esim"]["iccid"]),
        ("create_connectivity_product", 201, None),
        ("create_connectivity_usage_record", 201, None),
        ("issue_esim_from_inventory", 201, drawn),
    ]
    # The test intent and its record are gone, the live one stays with its line.
    assert await stage.world.store.read(count, of="intent") == 1
    assert await stage.world.store.read(count, of="usage_record") == 0
    assert await stage.world.store.read(count, of="intent_label") == 0
    assert (await stage.http.get(f"{INTENTS}/{live['id']}")).json() == live
    for path, key, body in calls:
        if path != USAGE:  # its intent is gone, which is said first
            assert code(await post(path, key, body)) == EXPIRED_ANSWER
    assert code(await post(*calls[-1])) == (404, "not_found")
    assert code(await stage.issue("stock")) == EXPIRED_ANSWER
    assert code(await stage.issue('"stock"')) == EXPIRED_ANSWER
    assert code(await stage.issue("stock", validityPeriod=9)) == (409, "idempotency_key_reused")
    assert stage.dispatches() == dispatches
    given_back = await stage.give_back("stock")  # the row of the ledger has its eSIM, so it is whole
    assert given_back.status_code == 200
    await sweep(stage)
    assert "stock" not in await stage.states()
    assert code(await stage.issue("stock")) == EXPIRED_ANSWER
    assert stage.dispatches() == dispatches


async def test_no_older_program_starts_where_keys_have_been_removed(tmp_path: Path) -> None:
    async with open_issuance_stage(tmp_path) as stage:
        url = sqlite_url(tmp_path)
        assert current_schema(url).works_from == "0015"
        await stage.live_on(0)
        await retention_chore(stage.world.store, stage.world.clock, print).run()
        assert current_schema(url).works_from == "0015"  # nothing is to be removed
        await sweep(stage, 0)
        assert current_schema(url).works_from == max(EXPIRED_KEYS_REVISION, RECORDS_REVISION)


async def test_a_key_that_failed_draws_nothing_after_its_row_was_removed(stage: IssuanceStage) -> None:
    stage.trouble(NetworkFault(DRAW, code=8))
    refused = await stage.issue("k")
    assert refused.status_code >= 400 and stage.dispatches() == 1
    await sweep(stage)
    assert await stage.ledger() == []
    assert code(await stage.issue("k")) == EXPIRED_ANSWER
    assert stage.dispatches() == 1


async def test_an_unknown_outcome_is_swept_by_nothing(stage: IssuanceStage) -> None:
    stage.trouble(NetworkFault(DRAW, drop_after=True))
    lost = await stage.issue("k")
    assert code(lost) == (502, "OUTCOME_UNKNOWN")
    await sweep(stage)
    assert code(await stage.issue("k")) == (502, "OUTCOME_UNKNOWN")
    assert await stage.world.store.read(small) == []
    assert stage.dispatches() == 1


@pytest.mark.long
async def test_nothing_is_swept_while_a_program_runs_that_would_not_find_the_key(stage: IssuanceStage) -> None:
    first = await stage.issue("k")
    now = stage.world.clock.now()
    await stage.world.store.write(run_old_program, until=now + 40 * DAY)
    await sweep(stage)
    again = await stage.issue("k")
    assert (again.status_code, again.content, again.headers["Idempotent-Replayed"]) == (201, first.content, "true")
    await stage.world.store.write(end_replica, replica="rpl_old", now=now)
    await sweep(stage, 0)
    assert code(await stage.issue("k")) == EXPIRED_ANSWER


@pytest.mark.parametrize("seed", range(2))
async def test_in_any_order_of_calls_sweeps_and_returns_a_key_draws_at_most_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with open_issuance_stage(tmp_path) as stage:
        draws = dict.fromkeys("abcd", 0)
        expired = set[str]()
        for _ in range(16):
            key, before = chance.choice("abcd"), stage.dispatches()
            match chance.randrange(5):
                case 0:
                    await sweep(stage, chance.choice((1, 20, 31)))
                case 1 if key in "ab" and draws[key]:
                    asked = await stage.ask_to_return(key)
                    if asked.status_code == 202:
                        await stage.ask_to_return(key, token=asked.json()["confirm_token"])
                case 2:
                    stage.trouble(NetworkFault(DRAW, code=8) if chance.random() < 0.5 else NetworkFault(DRAW, drop_after=True))
                    continue
                case _:
                    said = await (stage.issue(key) if key in "ab" else stage.intend(key))
                    draws[key] += stage.dispatches() - before
                    has_expired = said.json().get("code") == "idempotency_key_expired"
                    assert has_expired or key not in expired
                    expired |= {key} if has_expired else set()
            assert draws[key] <= 1 and sum(draws.values()) == stage.dispatches()
        assert stage.dispatches() > 0
