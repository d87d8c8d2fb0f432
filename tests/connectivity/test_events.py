"""Events over HTTP: lists, retries, deliveries, and who may see them."""

import httpx
import pytest
from inline_snapshot import Is, snapshot

from tests.clients.webhooks.receiver import receiver, status_answer
from tests.deliveries.post_office import PostOffice, open_post_office, read
from tests.stage import opened

PATH = "/v1/connectivity/events"


office = opened(open_post_office)


def shown(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["data"]]


@pytest.mark.rule("2.6.2")
@pytest.mark.rule("4.1.12")
@pytest.mark.rule("6.4")
@pytest.mark.rule("8.6")
async def test_the_list_is_newest_first_twenty_at_most_and_goes_on_after_an_id(office: PostOffice) -> None:
    events = [await office.emit(f"{number}") for number in range(25)][::-1]
    first = await office.http.get(PATH)
    assert (shown(first), first.json()["has_more"]) == (events[:20], True)
    rest = await office.http.get(PATH, params={"starting_after": events[19]})
    assert (shown(rest), rest.json()["has_more"]) == (events[20:], False)
    assert shown(await office.http.get(PATH, params={"limit": "3", "starting_after": events[4]})) == events[5:8]


@pytest.mark.rule("4.1.12")
async def test_the_list_can_be_kept_to_one_intent(office: PostOffice) -> None:
    mine = [await office.emit(f"a{number}", intent="cni_a") for number in range(3)][::-1]
    await office.emit("b", intent="cni_b")
    assert shown(await office.http.get(PATH, params={"intent": "cni_a"})) == mine
    assert shown(await office.http.get(PATH, params={"intent": "cni_a", "starting_after": mine[0]})) == mine[1:]
    assert shown(await office.http.get(PATH, params={"intent": "cni_none"})) == []


@pytest.mark.rule("2.6.1")
@pytest.mark.rule("4.1.13")
async def test_one_event_is_the_object_of_the_specification(office: PostOffice) -> None:
    event = await office.emit()
    answer = await office.http.get(f"{PATH}/{event}")
    assert answer.json() == snapshot(
        {
            "id": Is(event),
            "object": "connectivity.event",
            "type": "esim.issued",
            "livemode": False,
            "created": 1800014400,
            "data": {"intent": "cni_1", "iccid": "8999012345678901237", "plan": "test_é"},
        }
    )


@pytest.mark.rule("4.1.21")
async def test_a_retry_sends_the_same_event_again_with_a_new_timestamp(office: PostOffice) -> None:
    async with receiver(status_answer("200 OK")) as there:
        _, secret = await office.endpoint(there.url())
        event = await office.emit()
        worker = office.worker()
        await worker.step()
        office.clock.advance(1000)
        answer = await office.http.post(f"{PATH}/{event}/retry")
        assert answer.json() == (await office.http.get(f"{PATH}/{event}")).json()
        await worker.step()
    one, two = map(read, there.requests)
    assert one.body == two.body
    assert one.headers["webhook-id"] == two.headers["webhook-id"] == event
    assert int(two.headers["webhook-timestamp"]) - int(one.headers["webhook-timestamp"]) == 1000
    assert two.verified(secret, office.clock.now() + 299) == answer.json()
    with pytest.raises(Exception, match="too old"):
        two.verified(secret, office.clock.now() + 301)


async def test_a_retry_reaches_an_endpoint_made_after_the_event(office: PostOffice) -> None:
    event = await office.emit()
    async with receiver(status_answer("200 OK")) as there:
        await office.endpoint(there.url())
        worker = office.worker()
        assert await worker.step() == 0
        await office.http.post(f"{PATH}/{event}/retry")
        assert await worker.step() == 1
    assert await office.states(event) == [("delivered", ["ok"])]


@pytest.mark.long
@pytest.mark.rule("4.1.14")
async def test_a_hundred_retries_make_no_second_event_and_no_second_delivery(office: PostOffice) -> None:
    async with receiver(status_answer("200 OK")) as there:
        await office.endpoint(there.url())
        event = await office.emit()
        worker = office.worker()
        for _ in range(100):
            office.clock.advance(6)
            assert (await office.http.post(f"{PATH}/{event}/retry")).status_code == 200
            await worker.step()
    assert shown(await office.http.get(PATH)) == [event]
    (delivery,) = await office.deliveries(event)
    assert (delivery["state"], len(there.requests)) == ("delivered", 100)
    assert {read(request).headers["webhook-id"] for request in there.requests} == {event}


async def test_the_eleventh_retry_of_a_minute_is_refused_and_the_next_minute_is_free(office: PostOffice) -> None:
    event, other = await office.emit("one"), await office.emit("two")
    for _ in range(10):
        assert (await office.http.post(f"{PATH}/{event}/retry")).status_code == 200
    office.clock.advance(15)
    answer = await office.http.post(f"{PATH}/{event}/retry")
    body = answer.json()
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "45")
    del body["request_id"]
    assert body == snapshot(
        {
            "error": Is(f"{event} was retried 10 times in this minute; do it again from 2027-01-15T12:01:00Z on"),
            "code": "rate_limited",
            "limit": 10,
            "used": 10,
            "reset_at": "2027-01-15T12:01:00Z",
            "upgrade_url": "https://reseller.test/upgrade",
        }
    )
    assert (await office.http.post(f"{PATH}/{other}/retry")).status_code == 200
    office.clock.advance(45)
    assert (await office.http.post(f"{PATH}/{event}/retry")).status_code == 200


async def test_a_retry_with_the_same_idempotency_key_counts_once(office: PostOffice) -> None:
    event, key = await office.emit(), {"Idempotency-Key": "again"}
    answers = [await office.http.post(f"{PATH}/{event}/retry", headers=key) for _ in range(12)]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.content for answer in answers} == {answers[0].content}
    assert [answer.headers.get("idempotent-replayed") for answer in answers] == [None] + ["true"] * 11


async def test_deliveries_show_every_attempt(office: PostOffice) -> None:
    async with receiver(status_answer("502 Bad")) as there:
        endpoint, _ = await office.endpoint(there.url())
        event = await office.emit()
        await office.worker().step()
    answer = await office.http.get(f"{PATH}/{event}/deliveries")
    body = answer.json()
    assert body["data"][0].pop("id").startswith("dlv_")
    assert body == snapshot(
        {
            "object": "list",
            "data": [
                {
                    "object": "connectivity.delivery",
                    "event": Is(event),
                    "endpoint": Is(endpoint),
                    "state": "pending",
                    "attempts": [
                        {
                            "number": 1,
                            "at": "2027-01-15T12:00:00Z",
                            "outcome": "status:502",
                            "milliseconds": 0.0,
                            "next_attempt_at": "2027-01-15T12:00:05Z",
                        }
                    ],
                    "created_at": "2027-01-15T12:00:00Z",
                }
            ],
            "has_more": False,
        }
    )


async def test_deliveries_come_in_pages(office: PostOffice) -> None:
    endpoints = [(await office.endpoint("http://127.0.0.1:9/"))[0] for _ in range(3)]
    event = await office.emit()
    first = (await office.http.get(f"{PATH}/{event}/deliveries", params={"limit": "2"})).json()
    assert [each["endpoint"] for each in first["data"]] == endpoints[:0:-1]
    assert first["has_more"]
    after = {"limit": "2", "starting_after": first["data"][-1]["id"]}
    rest = (await office.http.get(f"{PATH}/{event}/deliveries", params=after)).json()
    assert ([each["endpoint"] for each in rest["data"]], rest["has_more"]) == (endpoints[:1], False)
