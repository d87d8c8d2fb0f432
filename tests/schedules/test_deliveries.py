"""What a schedule's webhook is told, and that it is apart from the organisation's own endpoints."""

from dataclasses import replace

import orjson
import pytest
from inline_snapshot import snapshot

from registry.errors import OcsError
from storage.outbox import next_delivery_due
from storage.rekey import SEALED_COLUMNS, reseal
from storage.sealing import Keyring, new_key_setting
from storage.webhook_endpoints import enqueue_event
from tests.clients.webhooks.receiver import HookReceiver, receiver, status_answer
from tests.deliveries.post_office import read
from tests.schedules.bureau import SCHEDULES, Body, Bureau, script
from tests.world import CountingIds

EVENTS, ENDPOINTS = "/v1/connectivity/events", "/v1/connectivity/webhook_endpoints"


async def reported(bureau: Bureau, there: HookReceiver) -> tuple[Body, Body]:
    """A schedule whose first report was made, and told."""
    made = await bureau.create(webhook_url=there.url())
    bureau.clock.advance(86_400)
    runs = bureau.replica()
    await runs.fire()
    await runs.step()
    assert await bureau.post() == 1
    return made, orjson.loads(read(there.requests[-1]).body)


@pytest.mark.rule("6.5")
async def test_the_webhook_is_told_of_a_report_signed_with_its_own_secret(on_both: Bureau) -> None:
    async with receiver(status_answer("200 OK")) as there:
        made, event = await reported(on_both, there)
    post = read(there.requests[0])
    assert post.verified(made["secret"], on_both.clock.now()) == event
    assert event == snapshot(
        {
            "id": "evt_01mcf5wsg00000000100000003",
            "object": "intelligence.event",
            "type": "intelligence.report",
            "livemode": True,
            "created": 1800100800,
            "data": {
                "schedule": "sch_01mcckg2g00000000000000009",
                "report": "rep_01mcf5wsg00000000100000001",
                "composite": "fleet_health",
                "state": "done",
                "boundary": "2027-01-16T05:00:00Z",
                "headline": "3 lines are well",
                "figures": [{"label": "Lines", "kind": "number", "value": 3}, {"label": "Cost", "kind": "money", "value": 1.5}],
                "report_url": "https://reseller.test/v1/intelligence/schedules/sch_01mcckg2g00000000000000009/report?report=rep_01mcf5wsg00000000100000001",
            },
        }
    )
    assert post.headers["webhook-id"] == event["id"]
    address = event["data"]["report_url"].removeprefix("https://reseller.test")
    answer = await on_both.http.get(address)
    assert (answer.status_code, answer.json()["id"]) == (200, event["data"]["report"])


async def test_a_report_that_failed_is_told_without_its_reason(bureau: Bureau) -> None:
    script().refusals = [OcsError("About line 8999012345678901237", code="x")] * 3
    async with receiver(status_answer("200 OK")) as there:
        made, runs = await bureau.create(webhook_url=there.url()), bureau.replica()
        await bureau.run(made)
        for _ in range(3):
            await runs.step()
            bureau.clock.advance(300)
        assert await bureau.post() == 1
    told = orjson.loads(read(there.requests[0]).body)["data"]
    assert (told["state"], told["headline"], told["figures"]) == ("failed", "The report could not be made", [])
    assert b"8999012345678901237" not in there.requests[0]


async def test_its_endpoint_and_its_events_are_in_no_list_and_answer_to_nothing(on_both: Bureau) -> None:
    bureau = on_both
    async with receiver(status_answer("200 OK")) as there:
        _, event = await reported(bureau, there)
    assert (await bureau.http.get(ENDPOINTS)).json()["data"] == []
    assert (await bureau.http.get(EVENTS)).json()["data"] == []
    assert (await bureau.http.get(EVENTS, params={"limit": 1, "starting_after": "evt_z"})).json()["data"] == []
    answers = [
        await bureau.http.get(f"{EVENTS}/{event['id']}"),
        await bureau.http.get(f"{EVENTS}/{event['id']}/deliveries"),
        await bureau.http.post(f"{EVENTS}/{event['id']}/retry"),
    ]
    hidden = await bureau.hidden()
    answers += [await bureau.http.post(f"{ENDPOINTS}/{hidden}/{what}") for what in ("rotate", "enable", "replay")]
    answers.append(await bureau.http.delete(f"{ENDPOINTS}/{hidden}"))
    assert {answer.status_code for answer in answers} == {404}


async def test_other_events_go_to_the_endpoints_and_reports_to_the_schedule(on_both: Bureau) -> None:
    bureau = on_both
    async with receiver(status_answer("200 OK")) as own, receiver(status_answer("200 OK")) as there:
        await bureau.http.post(ENDPOINTS, json={"url": own.url()})
        await reported(bureau, there)
        assert (len(own.requests), len(there.requests)) == (0, 1)
        owner, now_ms = bureau.caller.organisation, int(bureau.clock.now() * 1000)
        await bureau.world.store.write(
            enqueue_event, event="evt_1", type="esim.issued", organisation=owner, now_ms=now_ms, ids=bureau.world.ids
        )
        assert await bureau.world.store.read(next_delivery_due) is not None
        assert await bureau.endpoints_of("evt_1") == [own.url()]


async def test_fifty_schedules_with_webhooks_leave_the_sixteen_endpoints_free(bureau: Bureau) -> None:
    for _ in range(17):
        await bureau.create(webhook_url="https://hooks.example.com/reports")
    for _ in range(16):
        answer = await bureau.http.post(ENDPOINTS, json={"url": "https://hooks.example.com/own"})
        assert answer.status_code == 201, answer.text


async def test_a_webhook_that_was_disabled_is_sent_to_again_when_somebody_runs_the_schedule(on_both: Bureau) -> None:
    bureau = on_both
    async with receiver(status_answer("410 Gone")) as there:
        made, _ = await reported(bureau, there)
        assert (await bureau.http.get(SCHEDULES)).json()["data"][0]["webhook_status"] == "disabled"
        runs = bureau.replica()
        bureau.clock.advance(86_400)
        await runs.fire()
        await runs.step()
        assert await bureau.post() == 0
        there.answer = status_answer("200 OK")
        await bureau.run(made)
        assert (await bureau.http.get(SCHEDULES)).json()["data"][0]["webhook_status"] == "enabled"
        await runs.step()
        assert await bureau.post() == 1


async def test_a_deleted_schedules_webhook_gets_nothing_more(bureau: Bureau) -> None:
    async with receiver(status_answer("500 Oops")) as there:
        made, _ = await reported(bureau, there)
        assert (await bureau.http.delete(f"{SCHEDULES}/{made['id']}")).status_code == 200
        bureau.clock.advance(3600)
        assert await bureau.post() == 0
        assert len(there.requests) == 1
    assert await bureau.world.store.read(next_delivery_due) is None


async def test_events_of_reports_are_forgotten_after_thirty_days(on_both: Bureau) -> None:
    bureau = on_both
    async with receiver(status_answer("200 OK")) as there:
        await reported(bureau, there)
        bureau.clock.advance(31 * 86_400)
        runs = bureau.replica()
        await runs.fire()
        await runs.step()
        await bureau.post()
    assert await bureau.events() == [orjson.loads(read(there.requests[-1]).body)["id"]]


async def test_the_secret_of_a_schedule_outlives_a_change_of_the_keyring(bureau: Bureau) -> None:
    old, new = new_key_setting(CountingIds(bureau.clock).bytes), new_key_setting(bureau.world.ids.bytes)
    async with receiver(status_answer("200 OK")) as there:
        made = await bureau.create(webhook_url=there.url())
        column = next(each for each in SEALED_COLUMNS if each.name == "webhook_endpoint.secret")
        done = await reseal(bureau.world.store, Keyring(f"{new},{old}", bureau.world.ids.bytes), column)
        assert done.resealed == 1
        bureau.world.pipeline.deps = replace(bureau.world.pipeline.deps, keyring=Keyring(new, bureau.world.ids.bytes))
        await bureau.run(made)
        await bureau.replica().step()
        assert await bureau.post() == 1
    read(there.requests[0]).verified(made["secret"], bureau.clock.now())
