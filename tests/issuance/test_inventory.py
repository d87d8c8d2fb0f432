"""issue_esim_from_inventory: one eSIM per key, for ever, and only for those who may."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.caller import Role, Tier
from registry.clock import DAY_SECONDS
from tests.connectivity.requests import INTENTS
from tests.issuance.lost_access import LOST_ACCESS
from tests.issuance.stage import INVENTORY_PATH, IssuanceStage, replay_of
from tests.mcp.house import open_house
from tests.mcp.refusals import refusal_of
from tests.network_facts import ACCOUNT, TEMPLATE
from tests.registry import ledgers
from tests.stage import without_request_id


@pytest.mark.rule("4.2.48")
async def test_an_esim_is_drawn_from_stock(stage: IssuanceStage) -> None:
    said = await stage.issue(validityPeriod=30)
    assert said.status_code == 201
    assert said.json() == snapshot(
        {
            "data": {
                "iccid": "8988303700000101276",
                "smdpServer": "smdp.spx-roaming.test",
                "activationCode": "K2-EEHCUZ3-CKVPNUS278F",
                "urlQrCode": "LPA:1$smdp.spx-roaming.test$K2-EEHCUZ3-CKVPNUS278F",
                "subscriberId": 910127,
                "esimId": 760127,
                "subsPackageId": 3300366,
                "userSimName": "Fjord Mobile_910127",
                "idempotencyKey": "k",
                "status": "issued",
            }
        }
    )
    iccid = said.json()["data"]["iccid"]
    assert [call.payload for call in stage.sent()] == [{"packageTemplateId": TEMPLATE, "accountForSubs": ACCOUNT, "validityPeriod": 30}]
    assert (await stage.line(iccid)).sim.status == "AFFECTED"
    assert await stage.states() == {"k": "issued"}


async def test_esim_issued_tells_of_it_once_and_without_its_code(stage: IssuanceStage) -> None:
    code = (await stage.issue()).json()["data"]["activationCode"]
    await stage.issue()
    events = (await stage.http.get("/v1/connectivity/events")).json()
    assert events == snapshot(
        {
            "object": "list",
            "data": [
                {
                    "id": "evt_01mcckg2g0000000000000000b",
                    "object": "connectivity.event",
                    "type": "esim.issued",
                    "livemode": True,
                    "created": 1800014400,
                    "data": {
                        "intent": None,
                        "iccid": "8988303700000101276",
                        "plan": None,
                        "idempotency_key": "k",
                        "package_template_id": 55010,
                    },
                }
            ],
            "has_more": False,
        }
    )
    assert code not in orjson.dumps(events).decode()


@pytest.mark.cases
@pytest.mark.parametrize(
    ("window", "sent"),
    [
        ({}, {}),
        ({"validityPeriod": 7}, {"validityPeriod": 7}),
        (
            {"activePeriod": {"start": "2027-02-01T00:00:00Z", "end": "2027-02-08T00:00:00Z"}},
            {"activePeriod": {"start": "2027-02-01T00:00:00", "end": "2027-02-08T00:00:00"}},
        ),
    ],
)
async def test_the_window_is_sent_as_it_was_given(stage: IssuanceStage, window: dict[str, Any], sent: dict[str, Any]) -> None:
    assert (await stage.issue(**window)).status_code == 201
    assert [call.payload for call in stage.sent()] == [{"packageTemplateId": TEMPLATE, "accountForSubs": ACCOUNT, **sent}]


@pytest.mark.rule("4.2.49")
async def test_the_same_key_and_body_draw_one_esim_for_ever(stage: IssuanceStage) -> None:
    first = await stage.issue()
    for days in (0, 1, 29, 3650):
        stage.world.clock.advance(days * DAY_SECONDS)
        assert replay_of(await stage.issue()) == (201, first.content, "true")
        assert await stage.charged() == 0 + (days == 0)
    assert stage.dispatches() == 1


@pytest.mark.cases
@pytest.mark.parametrize(
    "other",
    [
        {"template": 55011},
        {"validityPeriod": 31},
        {"validityPeriod": None},
        {"activePeriod": {"start": "2027-02-01T00:00:00Z", "end": "2027-02-08T00:00:00Z"}, "validityPeriod": None},
    ],
)
@pytest.mark.rule("4.2.50")
async def test_the_same_key_with_another_body_is_409_and_draws_nothing(stage: IssuanceStage, other: dict[str, Any]) -> None:
    await stage.issue(validityPeriod=30)
    body: dict[str, Any] = {"validityPeriod": 30, **other}
    said = await stage.issue(**body)
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "This idempotency key was used with other input; its first answer stands and nothing was done now",
            "code": "idempotency_key_reused",
            "param": "idempotency_key",
            "hint": "Use a new key for a new request; repeat the very same input to get the first answer again",
        }
    )
    assert stage.dispatches() == 1 and "8988" not in said.text


@pytest.mark.rule("4.2.50")
async def test_the_same_key_with_another_account_is_409_and_draws_nothing(stage: IssuanceStage) -> None:
    owner = await stage.world.caller(Tier.ENTERPRISE, token="sandbox-7001-token")
    async with stage.world.client(owner.secret) as http:
        assert (await stage.issue(http=http)).status_code == 201
        said = await stage.issue(http=http, account=8102)
    assert (said.status_code, said.json()["code"]) == (409, "idempotency_key_reused")
    assert stage.dispatches() == 1


@pytest.mark.parametrize("key", ["ord_1", "cni_1"])
async def test_keys_that_look_like_ids_of_ours_are_refused(stage: IssuanceStage, key: str) -> None:
    said = await stage.issue(key)
    assert (said.status_code, said.json()["code"], said.json()["param"]) == (400, "invalid_request", "idempotency_key")
    assert stage.dispatches() == 0 and await stage.ledger() == []


@pytest.mark.rule("4.2.51")
async def test_what_is_not_there_draws_nothing_and_leaves_the_key_free(stage: IssuanceStage) -> None:
    for said in (await stage.issue(template=99_999), await stage.issue(account=99_999)):
        assert (said.status_code, said.json()["code"]) == (404, "not_found")
    assert stage.dispatches() == 0 and await stage.ledger() == []
    assert (await stage.issue()).status_code == 201


@pytest.mark.rule("4.2.51")
async def test_an_own_token_reaches_all_accounts_of_its_reseller_and_no_other(stage: IssuanceStage) -> None:
    owner = await stage.world.caller(Tier.ENTERPRISE, token="sandbox-7001-token")
    async with stage.world.client(owner.secret) as http:
        assert [(await stage.issue(f"k{account}", http=http, account=account)).status_code for account in (8101, 8104)] == [201, 201]
        assert (await stage.issue("other", http=http, account=8201)).status_code == 404
    assert [(row.key, row.state) for row in await stage.ledger()] == [("k8101", "issued"), ("k8104", "issued")]


async def test_a_window_that_is_over_draws_nothing_and_frees_the_key(stage: IssuanceStage) -> None:
    over = {"start": "2025-12-21", "end": "2025-12-22"}
    said = await stage.issue(activePeriod=over)
    assert (said.status_code, said.json()["param"], stage.dispatches()) == (400, "activePeriod.end", 0)
    assert (await stage.issue()).status_code == 201


async def test_an_account_without_a_free_esim_is_a_lasting_409(stage: IssuanceStage) -> None:
    await stage.take_stock_away()
    first = await stage.issue()
    assert first.status_code == 409
    assert without_request_id(first) == snapshot(
        {
            "error": "Account 8101 has no free eSIM; nothing was drawn",
            "code": "no_inventory",
            "hint": "esim_status_per_account counts the free ones; take eSIMs back with rollback_esim_issuance, "
            "or ask your provider for more",
        }
    )
    network = await stage.world.network()
    next(iter(network.lines_of(ACCOUNT))).sim.status = "FREE"
    assert replay_of(await stage.issue()) == (409, first.content, "true")
    assert await stage.states() == {"k": "failed"} and stage.dispatches() == 1
    assert (await stage.issue("another")).status_code == 201


@pytest.mark.cases
@pytest.mark.parametrize("why", LOST_ACCESS)
@pytest.mark.rule("4.2.50")
async def test_whoever_lost_access_sees_nothing_of_what_was_drawn(stage: IssuanceStage, why: str) -> None:
    shown = (await stage.issue()).json()["data"]
    change, status, code = LOST_ACCESS[why]
    await change(stage.world, stage.me)
    said = await stage.issue()
    assert (said.status_code, said.json()["code"]) == (status, code)
    assert not [name for name in ("iccid", "activationCode", "urlQrCode") if shown[name] in said.text]
    assert stage.dispatches() == 1


async def test_a_new_api_key_of_the_same_person_replays(stage: IssuanceStage) -> None:
    first = await stage.issue()
    await stage.world.revoke(stage.me)
    _, secret = await stage.world.key(stage.me.person, stage.me.organisation)
    async with stage.world.client(secret) as http:
        assert replay_of(await stage.issue(http=http)) == (201, first.content, "true")
    assert stage.dispatches() == 1


async def test_a_colleague_s_retry_is_a_replay(stage: IssuanceStage) -> None:
    first = await stage.issue()
    colleague = await stage.world.caller(role=Role.MEMBER, organisation=stage.me.organisation)
    async with stage.world.client(colleague.secret) as http:
        assert replay_of(await stage.issue(http=http)) == (201, first.content, "true")
    assert stage.dispatches() == 1


async def test_the_key_of_another_organisation_is_another_key(stage: IssuanceStage) -> None:
    mine = await stage.issue()
    other = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
    async with stage.world.client(other.secret) as http:
        theirs = await stage.issue(http=http)
        assert replay_of(await stage.issue(http=http)) == (201, theirs.content, "true")
    assert mine.json()["data"]["iccid"] != theirs.json()["data"]["iccid"]
    assert replay_of(await stage.issue()) == (201, mine.content, "true")
    assert stage.dispatches() == 2


@pytest.mark.long
async def test_a_network_that_refuses_the_connection_frees_the_key_and_costs_nothing(stage: IssuanceStage) -> None:
    stage.road.refused.add("affectPackageToSubscriber")
    said = await stage.issue()
    assert said.status_code == 502
    assert without_request_id(said) == snapshot(
        {
            "error": "The charging system could not be reached (refused), so the call was not sent. Check its address; try again later.",
            "code": "ocs_error",
        }
    )
    assert await stage.ledger() == [] and await stage.world.store.read(ledgers.claimed) == []
    assert await stage.charged() == 0
    stage.road.refused.clear()
    assert (await stage.issue(template=55011)).status_code == 201  # not even the body is bound to it
    assert (stage.dispatches(), await stage.charged()) == (1, 1)


async def test_no_activation_code_lies_open_in_the_database(stage: IssuanceStage, tmp_path: Path) -> None:
    shown = (await stage.issue()).json()["data"]
    for file in tmp_path.glob("service.db*"):
        raw = file.read_bytes()
        assert shown["activationCode"].encode() not in raw
    row = (await stage.ledger())[0]
    assert (row.iccid, row.held) == (shown["iccid"], shown["iccid"])


async def test_a_key_is_one_key_at_both_doors(tmp_path: Path) -> None:
    async with open_house(tmp_path, catalogue=CATALOGUE) as house:
        me = await house.world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
        body = {"accountId": ACCOUNT, "packageTemplateId": TEMPLATE}
        async with house.world.client(me.secret) as http, house.connect(me, query="?toolsets=subscribers") as tools:
            missing = await tools.call_tool("issue_esim_from_inventory", body)
            first = await tools.call_tool("issue_esim_from_inventory", {**body, "idempotency_key": "k"})
            again = await http.post(INVENTORY_PATH, json=body, headers={"X-Idempotency-Key": "k"})
            other = await http.post(INVENTORY_PATH, json={**body, "validityPeriod": 3}, headers={"X-Idempotency-Key": "l"})
            reused = await tools.call_tool("issue_esim_from_inventory", {**body, "idempotency_key": "l"})
            intents: dict[str, Any] = (await http.get(INTENTS)).json()
        assert refusal_of(missing)["code"] == "idempotency_key_required"
        assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
        assert first.structured_content == again.json()
        assert other.status_code == 201
        assert refusal_of(reused)["code"] == "idempotency_key_reused"
        assert intents["data"] == []
        assert [call.method for call in house.world.sandbox.calls].count("affectPackageToSubscriber") == 2
