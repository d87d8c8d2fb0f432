"""Intents: create, read, list, and what the store keeps of them."""

import asyncio
from pathlib import Path

import httpx
import pytest
from inline_snapshot import snapshot
from stdnum import luhn

from operations.ledger.esims import luhn_digit
from registry.caller import Tier
from tests.connectivity.requests import INTENTS, create, events, issued
from tests.stage import without_request_id
from tests.world import World


@pytest.mark.rule("2.4.1")
@pytest.mark.rule("2.4.3")
@pytest.mark.rule("3.1.2")
async def test_a_test_plan_issues_an_esim_at_once(http: httpx.AsyncClient) -> None:
    answer = await create(http, "k", plan="test_eu_1gb", metadata={"order": "1042"})
    assert answer.status_code == 201
    assert answer.json()["plan"] == (await http.get("/v1/connectivity/plans")).json()["data"][1]
    assert {**answer.json(), "plan": None} == snapshot(
        {
            "id": "cni_01mcckg2g00000000000000009",
            "object": "connectivity.intent",
            "status": "succeeded",
            "livemode": False,
            "plan": None,
            "esim": {
                "iccid": "8999806986354554454",
                "activation_code": "LPA:1$smdp.test.invalid$TEST-P9R6-R66S-YZ7S-R8ZD",
                "qr_code": "LPA:1$smdp.test.invalid$TEST-P9R6-R66S-YZ7S-R8ZD",
                "smdp_address": "smdp.test.invalid",
                "matching_id": "TEST-P9R6-R66S-YZ7S-R8ZD",
            },
            "metadata": {"order": "1042"},
            "error": None,
            "created": 1800014400,
        }
    )


@pytest.mark.rule("2.4.2")
@pytest.mark.rule("2.4.5")
@pytest.mark.rule("3.1.1")
async def test_without_a_plan_the_intent_waits_for_one(http: httpx.AsyncClient) -> None:
    answer = await create(http, "k")
    assert answer.status_code == 201
    assert answer.json() == snapshot(
        {
            "id": "cni_01mcckg2g00000000000000009",
            "object": "connectivity.intent",
            "status": "requires_plan",
            "livemode": False,
            "plan": None,
            "esim": None,
            "metadata": {},
            "error": None,
            "created": 1800014400,
        }
    )
    assert await events(http) == []


async def test_an_intent_without_any_body_says_what_was_done_and_what_comes_next(http: httpx.AsyncClient) -> None:
    answer = await http.post(INTENTS, headers={"Idempotency-Key": "k"})
    made = answer.json()
    assert (answer.status_code, made.pop("hint")) == (
        201,
        f"No body came, so no plan was named and no eSIM was issued: the intent waits for one. POST {INTENTS}/{made['id']}/confirm with a "
        "plan of GET /v1/connectivity/plans issues it",
    )
    assert (await http.get(f"{INTENTS}/{made['id']}")).json() == made
    again = await http.post(INTENTS, headers={"Idempotency-Key": "k"})
    assert (again.content, again.headers["Idempotent-Replayed"]) == (answer.content, "true")
    confirmed = await http.post(f"{INTENTS}/{made['id']}/confirm", json={"plan": "test_eu_1gb"})
    assert confirmed.json()["status"] == "succeeded" and "hint" not in confirmed.json()


@pytest.mark.rule("4.1.7")
async def test_an_intent_reads_as_it_was_created(http: httpx.AsyncClient) -> None:
    for key, body in (("one", {"plan": "test_global_1gb", "metadata": {"a": "ü"}}), ("two", {})):
        made = await create(http, key, **body)
        read = await http.get(f"{INTENTS}/{made.json()['id']}")
        assert (read.status_code, read.content) == (200, made.content)


@pytest.mark.rule("3.1.5")
async def test_a_second_call_with_the_same_key_returns_the_same_intent(http: httpx.AsyncClient) -> None:
    first = await create(http, "k", plan="test_eu_1gb")
    second = await create(http, "k", plan="test_eu_1gb", metadata={})
    assert (second.status_code, second.content, second.headers["Idempotent-Replayed"]) == (201, first.content, "true")
    assert len((await http.get(INTENTS)).json()["data"]) == 1
    assert len(await events(http)) == 1


async def test_a_key_serves_for_ever(http: httpx.AsyncClient, world: World) -> None:
    first = await create(http, "k", plan="test_eu_1gb")
    world.clock.advance(400 * 86_400)
    assert (await create(http, "k", plan="test_eu_1gb")).content == first.content


async def test_iccids_have_their_check_digit_and_differ(http: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(create(http, f"k{n}", plan="test_eu_1gb") for n in range(100)))
    iccids = [answer.json()["esim"]["iccid"] for answer in answers]
    assert len(set(iccids)) == 100
    assert all(iccid.startswith("8999") and len(iccid) == 19 and luhn.is_valid(iccid) for iccid in iccids)


@pytest.mark.parametrize("number", ["8999000000000000000", "899988888888888888", "89991234567890123"])
def test_the_check_digit_is_luhns(number: str) -> None:
    assert luhn_digit(number) == luhn.calc_check_digit(number)


async def test_a_drawn_iccid_that_is_taken_is_refused_with_503_and_the_key_stays_good(
    http: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(type(world.ids), "bytes", lambda _, count: b"\x07" * count)
        await issued(http, "one")
        answer = await create(http, "two", plan="test_eu_1gb")
        assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (503, "store_unavailable", "1")
    assert (await create(http, "two", plan="test_eu_1gb")).status_code == 201
    assert len((await http.get(INTENTS)).json()["data"]) == len(await events(http)) == 2


@pytest.mark.rule("2.4.4")
@pytest.mark.rule("4.1.6")
@pytest.mark.rule("8.4")
async def test_intents_are_listed_newest_first_20_at_a_time(http: httpx.AsyncClient, pro: httpx.AsyncClient) -> None:
    made = [(await create(http, f"k{n}")).json()["id"] for n in range(25)]
    page = (await http.get(INTENTS)).json()
    assert ([intent["id"] for intent in page["data"]], page["has_more"]) == (made[:4:-1], True)
    rest = (await http.get(INTENTS, params={"starting_after": made[5]})).json()
    assert ([intent["id"] for intent in rest["data"]], rest["has_more"]) == (made[4::-1], False)
    assert len((await http.get(INTENTS, params={"limit": 100})).json()["data"]) == 25
    assert (await pro.get(INTENTS)).json() == {"object": "list", "data": [], "has_more": False}


async def test_intents_are_found_by_their_status_and_by_when_they_were_made(http: httpx.AsyncClient, world: World) -> None:
    made = list[str]()
    for number in range(6):
        plan = {"plan": "test_eu_1gb"} if number % 2 else {}
        made.append((await http.post(INTENTS, json=plan, headers={"Idempotency-Key": f"k{number}"})).json()["id"])
        world.clock.advance(60)
    start = int(world.clock.now()) - 360

    async def found(**asked: object) -> list[int]:
        page = (await http.get(INTENTS, params={name: str(value) for name, value in asked.items()})).json()
        return [made.index(intent["id"]) for intent in page["data"]]

    assert await found(status="requires_plan") == [4, 2, 0] and await found(status="succeeded") == [5, 3, 1]
    assert await found(status="failed") == []
    assert await found(since=start + 60, until=start + 240) == [3, 2, 1]
    assert await found(status="requires_plan", since=start + 60, until=start + 241) == [4, 2]
    assert await found(status="requires_plan", starting_after=made[4], limit=1) == [2]
    assert await found(until=start + 240, starting_after=made[2]) == [1, 0]
    assert await found(since=start + 240, until=start + 60) == []
    refused = await http.get(INTENTS, params={"status": "lost"})
    assert (refused.status_code, refused.json()["param"]) == (400, "status")


async def test_intents_are_found_by_a_value_of_their_metadata_under_one_key_or_any(http: httpx.AsyncClient, pro: httpx.AsyncClient) -> None:
    labels = [{"order": "1042"}, {"order": "1042", "also": "1042", "shop": "Øst"}, {"note": "1042"}, {"order": "10420"}, {}]
    made = list[str]()
    for number, metadata in enumerate(labels):
        plan = {"plan": "test_eu_1gb"} if number == 1 else {}
        made.append((await http.post(INTENTS, json={**plan, "metadata": metadata}, headers={"Idempotency-Key": f"k{number}"})).json()["id"])

    async def found(**asked: str) -> list[int]:
        return [made.index(intent["id"]) for intent in (await http.get(INTENTS, params=asked)).json()["data"]]

    assert await found(metadata_value="1042") == [2, 1, 0] and await found(metadata_value="104") == []
    assert await found(metadata_value="1042", metadata_key="order") == [1, 0] and await found(metadata_value="Øst") == [1]
    assert await found(metadata_value="1042", status="requires_plan") == [2, 0]
    assert await found(metadata_value="1042", metadata_key="order", status="succeeded") == [1]
    assert await found(metadata_value="1042", starting_after=made[2], limit="1") == [1]
    assert (await pro.get(INTENTS, params={"metadata_value": "1042"})).json()["data"] == []
    refused = (await http.get(INTENTS, params={"metadata_key": "order"})).json()
    assert (refused["param"], "metadata_value=1042" in refused["hint"]) == ("metadata_key", True)
    assert (await http.get(INTENTS, params={"metadata_value": ""})).json()["param"] == "metadata_value"


@pytest.mark.parametrize("plan", ["test_mars_1gb", "cnp!", "Nordic 1 GB", "--", "nordic_1gb", "test_"])
async def test_an_unknown_plan_is_404_and_names_the_field(http: httpx.AsyncClient, plan: str) -> None:
    answer = await create(http, "k", plan=plan)
    assert (answer.status_code, answer.json()["code"], answer.json()["param"]) == (404, "not_found", "plan")
    assert (await create(http, "k", plan="test_eu_1gb")).status_code == 201


@pytest.mark.rule("7.4")
@pytest.mark.parametrize("plan", ["cnp_01k0a8w7zv6q4k3m2n1p0r9s8t", "nordic-1gb-30d"])
async def test_a_live_plan_needs_write_access(http: httpx.AsyncClient, plan: str) -> None:
    answer = await create(http, "k", plan=plan)
    assert (answer.status_code, answer.json()["required_tier"]) == (402, "pro")


async def test_a_live_plan_needs_a_connected_organisation(pro: httpx.AsyncClient) -> None:
    answer = await create(pro, "k", plan="nordic-1gb-30d")
    assert answer.status_code == 409
    assert without_request_id(answer) == snapshot(
        {
            "error": "The organisation Reseller has no connected account; connect it at connect_url or switch organisation",
            "code": "org_not_connected",
            "hint": "Test plans need no account: use test_global_1gb or test_eu_1gb; list_connectivity_plans names every plan",
            "error_code": "org_not_connected",
            "active_org": {"id": "org_01mcckg2g00000000000000004", "name": "Reseller"},
            "switch_to": {"id": "org_01mcckg2g00000000000000004", "name": "Reseller"},
            "connected_orgs": [],
            "connect_url": "https://reseller.test/connect",
        }
    )
    assert (await create(pro, "k", plan="cnp_01k0a8w7zv6q4k3m2n1p0r9s8t")).status_code == 404


async def test_an_account_that_the_network_does_not_have_draws_nothing(world: World) -> None:
    caller = await world.caller(Tier.PRO, mode="managed", account=4711)
    async with world.client(caller.secret) as http:
        answer = await create(http, "k", plan="nordic-1gb-30d")
        assert answer.status_code == 409
        assert without_request_id(answer) == snapshot(
            {
                "error": "Your organisation is connected to account 4711, which the charging system does not have for this service",
                "code": "account_not_found",
                "hint": "Whoever runs the service connects it to an account that exists: reseller org connect",
            }
        )
        assert (await http.get(INTENTS)).json()["data"] == []


@pytest.mark.cases
@pytest.mark.rule("2.4.2")
@pytest.mark.parametrize(
    "metadata",
    [
        {f"k{n}": "v" for n in range(51)},
        {"k" * 41: "v"},
        {"a[b]": "v"},
        {"a\n": "v"},
        {"a": "v" * 501},
        {"a": "two\nlines"},
        {"a": "\x85"},
        {f"k{n}": "é" * 250 for n in range(40)},
        None,
    ],
)
async def test_metadata_that_breaks_a_rule_is_refused(http: httpx.AsyncClient, metadata: object) -> None:
    answer = await create(http, "k", plan="test_eu_1gb", metadata=metadata)
    assert answer.status_code == 400
    assert answer.json()["param"].startswith("metadata")
    assert (await http.get(INTENTS)).json()["data"] == []


async def test_metadata_at_its_limits_is_kept(http: httpx.AsyncClient) -> None:
    metadata = {f"{n:040}": "v" * (500 if n < 28 else 10) for n in range(50)} | {"0" * 40: "ü"}
    assert (await create(http, "k", metadata=metadata)).json()["metadata"] == metadata


@pytest.mark.rule("2.6.1")
@pytest.mark.rule("6.1")
async def test_the_event_names_the_esim_and_not_its_activation_code(http: httpx.AsyncClient) -> None:
    intent = await issued(http)
    assert await events(http) == snapshot(
        [
            {
                "id": "evt_01mcckg2g0000000000000000c",
                "object": "connectivity.event",
                "type": "esim.issued",
                "livemode": False,
                "created": 1800014400,
                "data": {"intent": "cni_01mcckg2g00000000000000009", "iccid": "8999806986354554454", "plan": "test_eu_1gb"},
            }
        ]
    )
    text = (await http.get("/v1/connectivity/events")).text
    assert "LPA:" not in text
    assert str(intent["esim"]["matching_id"]) not in text


async def test_no_activation_code_stands_in_the_database_or_the_log(http: httpx.AsyncClient, world: World, tmp_path: Path) -> None:
    codes = [str((await issued(http, f"k{n}"))["esim"]["matching_id"]) for n in range(20)]
    waiting = (await create(http, "w")).json()["id"]
    answer = await http.post(f"{INTENTS}/{waiting}/confirm", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": "c"})
    codes.append(answer.json()["esim"]["matching_id"])
    await world.journal.flush()
    dump = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith("service.db"))
    assert waiting.encode() in dump
    assert [code for code in codes if code.encode() in dump] == []
    assert b"LPA:1$" not in dump
    assert [line for line in world.lines if "LPA:" in str(line) or "TEST-" in str(line)] == []


async def test_the_picture_shows_the_activation_code_and_is_not_cached(http: httpx.AsyncClient) -> None:
    intent = await issued(http)
    for format, media, start in (("svg", "image/svg+xml", b"<?xml"), ("png", "image/png", b"\x89PNG")):
        answer = await http.get(f"{INTENTS}/{intent['id']}/qr.{format}")
        assert (answer.status_code, answer.headers["Content-Type"], answer.headers["Cache-Control"]) == (200, media, "no-store")
        assert answer.content.startswith(start)
    other = await issued(http, "other")
    assert (await http.get(f"{INTENTS}/{other['id']}/qr.png")).content != answer.content


async def test_there_is_no_picture_before_there_is_an_esim(http: httpx.AsyncClient) -> None:
    id = (await create(http, "k")).json()["id"]
    answer = await http.get(f"{INTENTS}/{id}/qr.svg")
    assert answer.status_code == 409
    assert without_request_id(answer) == snapshot(
        {
            "error": "This intent is requires_plan and has no eSIM yet",
            "code": "esim_not_issued",
            "param": "id",
            "hint": "First give it a plan with confirm_connectivity_intent",
        }
    )


async def test_pictures_are_svg_or_png(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"{INTENTS}/{(await issued(http))['id']}/qr.gif")
    assert (answer.status_code, answer.json()["param"]) == (400, "format")
