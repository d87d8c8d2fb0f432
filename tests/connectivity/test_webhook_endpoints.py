"""Webhook endpoints over HTTP: their URLs, their number, their secrets."""

import asyncio
import base64
from pathlib import Path
from typing import cast

import httpx
import pytest
from inline_snapshot import Is, snapshot

from registry.caller import Tier
from storage.outbox import AttemptOutcome, acknowledge_attempts, claim_deliveries
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.databases import migrated_postgres, required_database
from tests.deliveries.post_office import PostOffice, open_post_office, read
from tests.stage import opened

PATH = "/v1/connectivity/webhook_endpoints"
URL = "https://hooks.example.com/esim"


office = opened(open_post_office)


async def listed(http: httpx.AsyncClient) -> list[dict[str, object]]:
    return (await http.get(PATH)).json()["data"]


@pytest.mark.rule("2.5.1")
@pytest.mark.rule("2.5.3")
@pytest.mark.rule("4.1.16")
async def test_the_answer_shows_the_secret_and_the_list_does_not(office: PostOffice) -> None:
    answer = await office.http.post(PATH, json={"url": URL})
    body = answer.json()
    secret, endpoint = body.pop("secret"), body["id"]
    assert answer.status_code == 201
    assert endpoint.startswith("we_")
    assert body == snapshot(
        {
            "id": Is(endpoint),
            "object": "connectivity.webhook_endpoint",
            "url": "https://hooks.example.com/esim",
            "status": "enabled",
            "created": 1800014400,
        }
    )
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert (await office.http.get(PATH)).json() == {"object": "list", "data": [body], "has_more": False}


@pytest.mark.rule("2.5.2")
@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "https://169.254.169.254/latest",
        "https://user:pass@hooks.example.com/",
        "ftp://hooks.example.com/",
        "/esim",
        "",
    ],
)
async def test_a_url_that_must_not_be_reached_is_refused_and_changes_nothing(office: PostOffice, url: str) -> None:
    answer = await office.http.post(PATH, json={"url": url})
    assert (answer.status_code, answer.json()["code"], answer.json()["param"]) == (400, "invalid_request", "url")
    assert "pass@" not in answer.text
    assert await listed(office.http) == []


async def test_a_refused_url_does_not_use_the_idempotency_key_up(office: PostOffice) -> None:
    key = {"Idempotency-Key": "k"}
    assert (await office.http.post(PATH, json={"url": "http://hooks.example.com/"}, headers=key)).status_code == 400
    assert (await office.http.post(PATH, json={"url": URL}, headers=key)).status_code == 201
    replay = await office.http.post(PATH, json={"url": URL}, headers=key)
    assert (replay.status_code, replay.headers["idempotent-replayed"]) == (201, "true")
    assert [each["id"] for each in await listed(office.http)] == [replay.json()["id"]]


async def create_32(office: PostOffice) -> None:
    answers = await asyncio.gather(*(office.http.post(PATH, json={"url": f"{URL}/{number}"}) for number in range(32)))
    assert sorted(answer.status_code for answer in answers) == [201] * 16 + [409] * 16
    refused = next(answer.json() for answer in answers if answer.status_code == 409)
    assert (refused["code"], "16" in refused["error"]) == ("webhook_endpoint_limit", True)
    assert len(await listed(office.http)) == 16
    other = await office.world.caller(Tier.FREE)
    async with office.world.client(other.secret) as http:
        assert (await http.post(PATH, json={"url": URL})).status_code == 201


async def test_sixteen_of_32_concurrent_creations_succeed(office: PostOffice) -> None:
    await create_32(office)


@pytest.mark.long
@pytest.mark.postgres
async def test_sixteen_of_32_concurrent_creations_succeed_on_postgresql(tmp_path: Path) -> None:
    with required_database(migrated_postgres()) as url:
        async with open_post_office(tmp_path, url) as office:
            await create_32(office)


@pytest.mark.rule("2.5.4")
@pytest.mark.rule("3.4.1")
async def test_deleting_says_so_and_frees_a_place(office: PostOffice) -> None:
    endpoints = [(await office.endpoint(URL))[0] for _ in range(16)]
    answer = await office.http.delete(f"{PATH}/{endpoints[0]}")
    assert answer.json() == {"id": endpoints[0], "object": "connectivity.webhook_endpoint", "deleted": True}
    assert (await office.http.delete(f"{PATH}/{endpoints[0]}")).status_code == 404
    await office.endpoint(URL)


async def test_rotating_shows_a_new_secret_once(office: PostOffice) -> None:
    endpoint, old = await office.endpoint(URL)
    answer = await office.http.post(f"{PATH}/{endpoint}/rotate")
    body = answer.json()
    assert body.pop("secret") not in ("", old)
    assert [body] == await listed(office.http)


async def test_replaying_to_a_disabled_endpoint_is_refused_with_the_way_out(office: PostOffice) -> None:
    async with receiver(status_answer("410 Gone")) as there:
        endpoint, _ = await office.endpoint(there.url())
        await office.emit()
        await office.worker().step()
    answer = await office.http.post(f"{PATH}/{endpoint}/replay", json={})
    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_endpoint_disabled")
    enabled = await office.http.post(f"{PATH}/{endpoint}/enable")
    assert enabled.json()["status"] == "enabled"
    assert "secret" not in enabled.json()
    again = await office.http.post(f"{PATH}/{endpoint}/replay")
    assert again.json() == {"object": "connectivity.replay", "replayed": 1, "brought_forward": 0}


async def test_the_eleventh_replay_of_a_minute_is_refused_restarts_nothing_and_the_next_minute_is_free(office: PostOffice) -> None:
    async with receiver(status_answer("410 Gone")) as there:
        endpoint, _ = await office.endpoint(there.url())
        for _ in range(10):
            assert (await office.http.post(f"{PATH}/{endpoint}/replay")).json()["replayed"] == 0
        event = await office.emit()
        await office.worker().step()
        assert (await office.http.post(f"{PATH}/{endpoint}/enable")).status_code == 200
    before = await office.states(event)
    office.clock.advance(15)
    answer = await office.http.post(f"{PATH}/{endpoint}/replay")
    body = answer.json()
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "45")
    del body["request_id"]
    assert body == snapshot(
        {
            "error": Is(f"{endpoint} was replayed 10 times in this minute; do it again from 2027-01-15T12:01:00Z on"),
            "code": "rate_limited",
            "limit": 10,
            "used": 10,
            "reset_at": "2027-01-15T12:01:00Z",
            "upgrade_url": "https://reseller.test/upgrade",
        }
    )
    assert await office.states(event) == before
    other, _ = await office.endpoint(URL)
    assert (await office.http.post(f"{PATH}/{other}/replay")).status_code == 200
    office.clock.advance(45)
    assert (await office.http.post(f"{PATH}/{endpoint}/replay")).json()["replayed"] == 1


async def test_ten_of_twelve_concurrent_replays_are_made(office: PostOffice) -> None:
    endpoint, _ = await office.endpoint(URL)
    answers = await asyncio.gather(*(office.http.post(f"{PATH}/{endpoint}/replay") for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 10 + [429] * 2


@pytest.mark.parametrize("since", [-1, 1.5, "yesterday", 2**60, True])
async def test_a_since_that_is_no_time_is_refused(office: PostOffice, since: object) -> None:
    endpoint, _ = await office.endpoint(URL)
    assert (await office.http.post(f"{PATH}/{endpoint}/replay", json={"since": since})).status_code == 400


async def sent_again(office: PostOffice, endpoint: str, delivery: object) -> object:
    answer = await office.http.post(f"{PATH}/{endpoint}/replay", json={"delivery": delivery})
    assert answer.status_code == 200, answer.text
    return answer.json()["replayed"]


async def one_delivery(office: PostOffice, event: str) -> dict[str, object]:
    (delivery,) = await office.deliveries(event)
    return delivery


async def only_one_is_sent_again(office: PostOffice) -> None:
    worker = office.worker()
    async with receiver(status_answer("200 OK")) as there:
        endpoint, secret = await office.endpoint(there.url())
        arrived = await office.emit("arrived")
        await worker.step()
        named = (await one_delivery(office, arrived))["id"]
        office.clock.advance(60)
        assert await sent_again(office, endpoint, named) == 1
        assert await sent_again(office, endpoint, named) == 0  # it is on its way: nothing is doubled
        assert await worker.step() == 1
    first, again = (read(request) for request in there.requests)
    assert (first.body, first.headers["webhook-id"]) == (again.body, again.headers["webhook-id"])
    again.verified(secret, office.clock.now())
    assert [attempt["number"] for attempt in attempts_of(await one_delivery(office, arrived))] == [1, 2]


def attempts_of(delivery: dict[str, object]) -> list[dict[str, object]]:
    return cast(list[dict[str, object]], delivery["attempts"])


async def test_a_delivery_that_arrived_is_sent_again_when_it_is_named(office: PostOffice) -> None:
    await only_one_is_sent_again(office)


@pytest.mark.long
@pytest.mark.postgres
async def test_a_delivery_that_arrived_is_sent_again_when_it_is_named_on_postgresql(tmp_path: Path) -> None:
    with required_database(migrated_postgres()) as url:
        async with open_post_office(tmp_path, url) as office:
            await only_one_is_sent_again(office)


async def test_of_several_failed_deliveries_only_the_named_one_is_sent_again(office: PostOffice) -> None:
    async with receiver(status_answer("410 Gone")) as there:
        endpoint, _ = await office.endpoint(there.url())
        events = [await office.emit(f"{number}") for number in range(3)]
        await office.worker().step()
        await office.http.post(f"{PATH}/{endpoint}/enable")
    assert await sent_again(office, endpoint, (await one_delivery(office, events[1]))["id"]) == 1
    assert [(await office.states(event))[0][0] for event in events] == ["failed", "pending", "failed"]


async def test_a_delivery_that_waits_or_is_under_way_is_not_doubled(office: PostOffice) -> None:
    endpoint, _ = await office.endpoint(URL)
    event = await office.emit()
    named = (await one_delivery(office, event))["id"]
    assert await sent_again(office, endpoint, named) == 0
    now_ms = int(office.clock.now() * 1000)
    (row,) = (await office.store.write(claim_deliveries, token="one", now_ms=now_ms, most=9)).leased
    assert await sent_again(office, endpoint, named) == 0
    done = AttemptOutcome(row.id, row.endpoint_id, "one", now_ms, "ok", 5, "ok", None)
    assert await office.store.write(acknowledge_attempts, outcomes=[done]) == 1  # its lease was left to it
    assert await office.states(event) == [("delivered", ["ok"])]


async def test_an_unknown_delivery_and_one_of_another_endpoint_are_the_same_404_and_count_no_replay(office: PostOffice) -> None:
    endpoint, _ = await office.endpoint(URL)
    stranger = await office.world.caller(Tier.FREE)
    async with office.world.client(stranger.secret) as http:
        await http.post(PATH, json={"url": URL})
    foreign = await office.emit("theirs", organisation=stranger.organisation)
    async with office.world.client(stranger.secret) as http:
        theirs = (await http.get(f"/v1/connectivity/events/{foreign}/deliveries")).json()["data"][0]["id"]
    event = await office.emit("ours")
    other, _ = await office.endpoint(URL)
    ours = (await one_delivery(office, event))["id"]
    errors: set[str] = set()
    for where, named in ((endpoint, theirs), (endpoint, "dlv_0"), (other, ours)) * 4:
        answer = await office.http.post(f"{PATH}/{where}/replay", json={"delivery": named})
        assert (answer.status_code, answer.json()["code"], answer.json()["param"]) == (404, "not_found", "delivery")
        errors.add(answer.json()["error"].replace(str(named), "dlv_0").replace(where, "we_0"))
    assert errors == {"The webhook endpoint we_0 has no delivery dlv_0"}


async def test_a_time_and_a_delivery_together_are_refused_with_the_way_out(office: PostOffice) -> None:
    endpoint, _ = await office.endpoint(URL)
    answer = await office.http.post(f"{PATH}/{endpoint}/replay", json={"since": 5, "delivery": "dlv_0"})
    body = answer.json()
    del body["request_id"]
    assert answer.status_code == 400
    assert body == snapshot(
        {
            "error": "since (5) and delivery (dlv_0) were given together; one delivery is sent again whenever it was queued",
            "code": "invalid_request",
            "param": "since",
            "hint": "Send delivery alone for one delivery, or since alone for all that failed since then",
        }
    )


async def test_a_secret_stands_in_no_other_answer_no_event_no_log_and_no_byte_of_the_database(office: PostOffice, tmp_path: Path) -> None:
    async with receiver(status_answer("500 Oops")) as there:
        created = await office.http.post(PATH, json={"url": there.url()}, headers={"Idempotency-Key": "k"})
        endpoint, secrets = created.json()["id"], [created.json()["secret"]]
        secrets.append((await office.http.post(f"{PATH}/{endpoint}/rotate")).json()["secret"])
        event = await office.emit()
        await office.worker().step()
    paths = (PATH, "/v1/connectivity/events", f"/v1/connectivity/events/{event}", f"/v1/connectivity/events/{event}/deliveries")
    seen = [(await office.http.get(path)).content for path in paths] + there.requests
    seen.append((await office.http.post(f"{PATH}/{endpoint}/enable")).content)
    await office.world.journal.flush()
    seen += [repr(office.world.lines).encode(), repr(office.reports).encode()]
    seen += [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    for secret in secrets:
        key = secret.removeprefix("whsec_").encode()
        raw = base64.b64decode(key)
        assert not [data for data in seen if key in data or raw in data or raw.hex().encode() in data]
