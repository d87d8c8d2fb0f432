"""list_issuances: the ledger of an organisation as its people and keys see it, in pages, without what installs an eSIM."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions
from storage.issuance import mark_issuance_failed
from tests.issuance.stage import INVENTORY_PATH, PLAN_SLUG
from tests.mcp.house import request
from tests.network_facts import ACCOUNT, DRAW, HOUR, SIBLING, TEMPLATE
from tests.stage import OperatorStage, open_operator

LEDGER = "/v1/issuances"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[OperatorStage]:
    async with open_operator(tmp_path, CATALOGUE, OperatorStage) as made:
        yield made


async def draw(stage: OperatorStage, key: str, *, http: httpx.AsyncClient | None = None) -> httpx.Response:
    """One more second later, so that the order is known."""
    stage.world.clock.advance(1)
    given = {"accountId": ACCOUNT, "packageTemplateId": TEMPLATE}
    return await (http or stage.http).post(INVENTORY_PATH, json=given, headers={"X-Idempotency-Key": key})


async def drawn(stage: OperatorStage, key: str) -> str:
    said = await draw(stage, key)
    assert said.status_code == 201, said.text
    return said.json()["data"]["iccid"]


async def listed(http: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    said = await http.get(LEDGER, params=asked)
    assert said.status_code == 200, said.text
    assert "LPA:" not in said.text and "K2-" not in said.text
    return said.json()


async def keys(http: httpx.AsyncClient, **asked: Any) -> list[str]:
    return [row["idempotency_key"] for row in (await listed(http, **asked))["data"]]


async def test_the_ledger_shows_what_became_of_each_key_at_both_doors(stage: OperatorStage) -> None:
    iccid = await drawn(stage, "sold")
    stage.world.clock.advance(1)
    made = await stage.http.post("/v1/connectivity/intents", json={"plan": PLAN_SLUG}, headers={"Idempotency-Key": "k"})
    intent = made.json()["id"]
    stage.trouble(DRAW, times=1, drop_before=True)
    assert (await draw(stage, "lost")).json()["code"] == "OUTCOME_UNKNOWN"
    stage.trouble(DRAW, times=1, code=6)
    assert (await draw(stage, "refused")).json()["code"] == "no_inventory"
    answer = await listed(stage.http)
    refused, lost, asked, sold = answer["data"]
    shown = ("idempotency_key", "state", "iccid", "error", "settle_from")
    assert [sold[name] for name in shown] == ["sold", "issued", iccid, None, None]
    assert (asked["idempotency_key"], asked["intent"], asked["iccid"]) == (intent, intent, made.json()["esim"]["iccid"])
    assert (refused["state"], refused["error"]["code"], refused["iccid"]) == ("failed", "no_inventory", None)
    assert (lost["state"], lost["error"]["code"]) == ("outcome_unknown", "not_looked_into")
    assert "not looked into yet" in lost["error"]["message"]
    assert (lost["created_at"], lost["settle_from"]) == ("2027-01-15T12:00:03Z", "2027-01-16T12:00:03Z")
    assert await keys(stage.http, state="outcome_unknown") == ["lost"]
    assert await keys(stage.http, iccid=iccid) == ["sold"] and await keys(stage.http, iccid=iccid, state="failed") == []
    assert (await stage.confirmed(f"{INVENTORY_PATH}/sold", method="DELETE")).status_code == 200
    (given_back,) = (await listed(stage.http, iccid=iccid))["data"]
    assert (given_back["state"], given_back["iccid"]) == ("rolled_back", iccid)
    called = request("tools/call", name="list_issuances", arguments={"state": "issued"})
    tool = await stage.house.post(called, secret=stage.who.secret, path="/mcp?toolsets=subscribers")
    assert tool.json()["result"]["structuredContent"] == await listed(stage.http, state="issued")


async def test_pages_show_every_row_once_and_only_the_own_organisations(stage: OperatorStage) -> None:
    for key in ("a", "b", "c", "d", "e"):
        if key == "c":
            stage.trouble(DRAW, times=1, code=6)
        await draw(stage, key)
    other = await stage.beside(account=ACCOUNT)
    assert (await draw(stage, "theirs", http=other)).status_code == 201
    first = await listed(stage.http, limit=2)
    assert [row["idempotency_key"] for row in first["data"]] == ["e", "d"] and first["has_more"] is True
    assert await keys(stage.http, limit=2, starting_after="d") == ["c", "b"]
    last = await listed(stage.http, limit=2, starting_after="b")
    assert [row["idempotency_key"] for row in last["data"]] == ["a"] and last["has_more"] is False
    assert await keys(stage.http, limit=2, starting_after="d", state="issued") == ["b", "a"]
    assert await keys(other) == ["theirs"]
    for unknown in ("theirs", "nobodys"):
        said = await stage.http.get(LEDGER, params={"starting_after": unknown})
        assert (said.status_code, said.json()["param"]) == (400, "starting_after")


async def restricted(stage: OperatorStage, **restrictions: Any) -> httpx.AsyncClient:
    _, secret = await stage.world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(**restrictions))
    return await stage.clients.enter_async_context(stage.world.client(secret))


@pytest.mark.long
async def test_a_key_for_some_lines_tags_or_accounts_sees_what_is_theirs(stage: OperatorStage) -> None:
    iccids = [await drawn(stage, key) for key in ("a", "b", "c")]
    tagged = await stage.http.post("/v1/tags/trucks/lines", json={"iccids": iccids[:1]}, headers={"Idempotency-Key": "tag"})
    assert tagged.status_code == 200, tagged.text
    lines = await restricted(stage, iccids=tuple(iccids[:2]))
    assert await keys(lines) == ["b", "a"] and await keys(lines, limit=1, starting_after="b") == ["a"]
    assert (await lines.get(LEDGER, params={"starting_after": "c"})).status_code == 400
    assert (await lines.get(LEDGER, params={"iccid": iccids[2]})).status_code == 403
    narrow = ({"tags": ("trucks",)}, {"account_ids": (ACCOUNT,)}, {"account_ids": (SIBLING,)})
    trucks, accounts, others = [await restricted(stage, **held) for held in narrow]
    assert await keys(trucks) == ["a"] == await keys(trucks, iccid=iccids[0]) and await keys(trucks, iccid=iccids[1]) == []
    assert (await trucks.get(LEDGER, params={"starting_after": "b"})).status_code == 400
    assert await keys(accounts, limit=2) == ["c", "b"] and await keys(accounts, limit=2, starting_after="b") == ["a"]
    assert await keys(accounts, iccid=iccids[1], state="issued") == ["b"] and await keys(accounts, state="failed") == []
    assert await keys(others) == [] == await keys(others, iccid=iccids[1])
    both = await restricted(stage, tags=("trucks",), account_ids=(SIBLING,))
    assert await keys(both) == []
    assert (await (await restricted(stage, toolsets=("billing",))).get(LEDGER)).status_code == 403


async def test_what_a_person_settled_says_so_without_their_words(stage: OperatorStage) -> None:
    stage.trouble(DRAW, times=1, drop_before=True)
    await draw(stage, "lost")
    stage.world.clock.advance(HOUR)
    of = {"organisation": stage.who.organisation, "key": "lost"}
    await stage.world.store.write(mark_issuance_failed, **of, now=stage.world.clock.now(), note="settled by usr_1: Ada looked")
    (row,) = (await listed(stage.http, state="failed"))["data"]
    assert row["error"] == {"code": "settled_by_person", "message": "A person looked, and said that no eSIM was drawn"}
