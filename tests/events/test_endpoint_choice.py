"""What endpoints choose, whose rights they hold, and sends that only try them."""

import orjson
import pytest
import sqlalchemy as sa

from operations.event_types.endpoint import ORGANISATION_ENDPOINT_DISABLED
from operations.event_types.esim import ESIM_FIRST_ATTACH, ESIM_ISSUED
from operations.event_types.order import ORDER_CREATED
from registry.caller import Restrictions, Role
from storage.engine.sql import Command, Connection
from storage.event_log import sweep_event_log
from storage.line_tags import LINE_TAG, TagOfLine
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.deliveries.post_office import read
from tests.events.log_office import LogOffice

KNOWN, OTHER = "8999012345678901237", "8999012345678901238"


PUT_TAG = Command(sa.insert(LINE_TAG).values({name: sa.bindparam(name) for name in TagOfLine._fields}))


def put_tag(connection: Connection, *, tag: TagOfLine) -> None:
    connection.run(PUT_TAG, **tag._asdict())


def bodies(raw: list[bytes]) -> list[dict[str, object]]:
    """What a receiver got."""
    return [orjson.loads(read(each).body) for each in raw]


@pytest.mark.long
async def test_an_endpoint_gets_what_it_has_chosen_and_one_that_never_chose_the_three_of_old(on_both: LogOffice) -> None:
    async with receiver(status_answer("200 OK")) as old, receiver(status_answer("200 OK")) as new:
        await on_both.office.endpoint(old.url())
        chosen, secret = await on_both.office.endpoint(new.url())
        answer = await on_both.choose(chosen, types=["organisation.*", "esim.first_attach"], description="Shop desk")
        assert answer.status_code == 200, answer.text
        assert (answer.json()["types"], answer.json()["description"]) == (["organisation.*", "esim.first_attach"], "Shop desk")
        issued = await on_both.office.emit()
        disabled = await on_both.write(ORGANISATION_ENDPOINT_DISABLED)
        await on_both.deliver()
        assert [body["id"] for body in bodies(old.requests)] == [issued]
        assert [body["id"] for body in bodies(new.requests)] == [disabled]
        event = read(new.requests[0]).verified(secret, on_both.world.clock.now())
        assert event == {
            "id": disabled,
            "object": "connectivity.event",
            "type": "organisation.endpoint_disabled",
            "livemode": True,
            "created": int(on_both.world.clock.now()),
            "data": ORGANISATION_ENDPOINT_DISABLED.example,
        }
        back = await on_both.choose(chosen, types=None)
        assert "types" not in back.json()
        again = await on_both.office.emit("twice")
        await on_both.deliver()
        assert [bodies(each.requests)[-1]["id"] for each in (old, new)] == [again, again]


async def test_types_that_are_given_too_early_are_refused_with_the_operation_that_takes_them(office: LogOffice) -> None:
    early = await office.http.post("/v1/connectivity/webhook_endpoints", json={"url": "https://hooks.example.com/", "types": ["order.*"]})
    assert (early.status_code, early.json()["code"], early.json()["param"]) == (400, "unknown_field", "types")
    assert early.json()["hint"] == "Remove it; update_webhook_endpoint sets it afterwards. Known fields: url"


async def test_an_endpoint_with_tags_gets_the_events_of_lines_that_have_one(office: LogOffice) -> None:
    async with receiver(status_answer("200 OK")) as there:
        endpoint, _ = await office.office.endpoint(there.url())
        alone = await office.choose(endpoint, tags=["vip"])
        assert (alone.status_code, alone.json()["param"]) == (400, "tags")
        assert (await office.choose(endpoint, types=["*"], tags=["vip"])).status_code == 200
        await office.world.store.write(put_tag, tag=TagOfLine(office.organisation, KNOWN, "vip", 1, "p", 0))
        mine = await office.write(ESIM_ISSUED, iccid=KNOWN)
        await office.write(ESIM_ISSUED, iccid=OTHER)
        await office.write(ORGANISATION_ENDPOINT_DISABLED)
        await office.deliver()
        assert [body["id"] for body in bodies(there.requests)] == [mine]


async def test_a_selection_that_names_no_type_or_none_that_its_maker_may_read_is_refused(office: LogOffice) -> None:
    endpoint, _ = await office.office.endpoint("https://127.0.0.1/hook")
    member = await office.world.caller(role=Role.MEMBER, organisation=office.organisation)
    unknown = await office.choose(endpoint, types=["esim.*", "ordre.*"])
    assert (unknown.status_code, unknown.json()["param"]) == (400, "types")
    assert "'ordre.*'" in unknown.json()["error"]
    nothing = await office.choose(endpoint)
    assert nothing.status_code == 400
    async with office.world.client(member.secret) as http:
        blind = await office.choose(endpoint, http, types=["organisation.*"])
    assert (blind.status_code, blind.json()["param"]) == (400, "types")
    stranger = await office.world.caller()
    async with office.world.client(stranger.secret) as http:
        assert (await office.choose(endpoint, http, types=["*"])).status_code == 404


async def test_an_endpoint_holds_the_rights_of_who_chose_and_ends_with_them(on_both: LogOffice) -> None:
    world, caller = on_both.world, on_both.office.caller
    key, secret = await world.key(caller.person, on_both.organisation, restrictions=Restrictions(toolsets=("connectivity", "events")))
    async with receiver(status_answer("200 OK")) as there:
        endpoint, _ = await on_both.office.endpoint(there.url())
        async with world.client(secret) as http:
            assert (await on_both.choose(endpoint, http, types=["esim.*"])).status_code == 200
        seen = await on_both.write(ESIM_FIRST_ATTACH)
        await on_both.deliver()
        assert [body["id"] for body in bodies(there.requests)] == [seen]
        waiting = await on_both.write(ESIM_FIRST_ATTACH)
        await on_both.place()
        assert (await on_both.http.delete(f"/v1/api-keys/{key}")).status_code == 200
        await on_both.deliver()
        assert [body["id"] for body in bodies(there.requests)] == [seen]
        assert await on_both.office.states(waiting) == [("failed", ["not_readable"])]
        assert await on_both.office.status(endpoint) == "disabled"
        await on_both.place()
        told = [each["data"] for each in await on_both.stream(types="organisation.endpoint_disabled") if "id" in each and "data" in each]
        assert [each["data"] for each in told] == [{"endpoint": endpoint, "reason": "chooser_ended"}]
        refused = await on_both.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/enable")
        assert (refused.status_code, refused.json()["code"]) == (409, "chooser_ended")
        assert (await on_both.choose(endpoint, types=["esim.*"])).status_code == 200
        assert (await on_both.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/enable")).status_code == 200
        later = await on_both.write(ESIM_FIRST_ATTACH)
        await on_both.deliver()
        assert [body["id"] for body in bodies(there.requests)] == [seen, later]


async def test_an_endpoint_that_answers_gone_is_an_event_once(office: LogOffice) -> None:
    async with receiver(status_answer("410 Gone")) as there:
        endpoint, _ = await office.office.endpoint(there.url())
        await office.office.emit("one")
        await office.office.emit("two")
        await office.deliver()
        await office.place()
        told = [each["data"]["data"] for each in await office.stream(types="organisation.*") if "data" in each and "id" in each]
        assert told == [{"endpoint": endpoint, "reason": "gone"}]


async def test_another_address_keeps_the_secret_and_gets_what_waits(office: LogOffice) -> None:
    async with receiver(status_answer("500 Oops")) as broken, receiver(status_answer("200 OK")) as mended:
        endpoint, secret = await office.office.endpoint(broken.url())
        event = await office.office.emit()
        await office.deliver()
        inside = await office.choose(endpoint, url="https://10.0.0.7/hook")
        assert (inside.status_code, inside.json()["param"]) == (400, "url")
        assert (await office.choose(endpoint, url=mended.url())).json()["url"] == mended.url()
        office.world.clock.advance(3600)
        await office.deliver()
        assert read(mended.requests[0]).verified(secret, office.world.clock.now())
        assert bodies(mended.requests)[0]["id"] == event


@pytest.mark.long
async def test_a_test_send_is_marked_and_tried_once_and_stands_in_no_list(on_both: LogOffice) -> None:
    path = "/v1/connectivity/webhook_endpoints/{}/test"
    async with receiver(status_answer("503 Busy")) as there:
        endpoint, _ = await on_both.office.endpoint(there.url())
        sent = await on_both.http.post(path.format(endpoint), json={"type": "organisation.endpoint_disabled"})
        assert (sent.status_code, sent.json()["state"]) == (200, "pending")
        await on_both.deliver()
        body = bodies(there.requests)[0]
        assert (body["test"], body["livemode"], body["type"]) == (True, False, "organisation.endpoint_disabled")
        on_both.world.clock.advance(86_400)
        await on_both.deliver()
        assert len(there.requests) == 1 and await on_both.office.status(endpoint) == "enabled"
        assert [each for each in await on_both.stream() if "id" in each] == []
        assert (await on_both.http.get("/v1/connectivity/events", params={"types": "*"})).json()["data"] == []
        listed = (await on_both.http.get("/v1/connectivity/deliveries", params={"endpoint": endpoint})).json()["data"]
        assert [(each["event"], each["state"], each["attempts"]) for each in listed] == [(body["id"], "failed", 1)]
        [went] = (await on_both.http.get(f"/v1/connectivity/events/{body['id']}/deliveries")).json()["data"]
        assert [attempt["outcome"] for attempt in went["attempts"]] == ["status:503"]
        assert (await on_both.http.get(f"/v1/connectivity/events/{body['id']}")).status_code == 404
        wrong = await on_both.http.post(path.format(endpoint), json={"type": "order.payed"})
        assert (wrong.status_code, wrong.json()["param"]) == (400, "type")
        for _ in range(10):
            last = await on_both.http.post(path.format(endpoint), json={"type": "esim.issued"})
            assert last.status_code == 200, last.text
        over = await on_both.http.post(path.format(endpoint), json={"type": "esim.issued"})
        assert (over.status_code, over.json()["code"]) == (429, "rate_limited")


async def test_an_event_of_the_log_is_sent_again_to_those_that_chose_it(office: LogOffice) -> None:
    async with receiver(status_answer("200 OK")) as there:
        endpoint, _ = await office.office.endpoint(there.url())
        await office.choose(endpoint, types=["organisation.*"])
        event = await office.write(ORGANISATION_ENDPOINT_DISABLED)
        await office.deliver()
        for _ in range(10):
            assert (await office.http.post(f"/v1/connectivity/events/{event}/retry")).status_code == 200
        assert (await office.http.post(f"/v1/connectivity/events/{event}/retry")).status_code == 429
        await office.deliver()
        assert [body["id"] for body in bodies(there.requests)] == [event, event]


async def test_what_failed_and_is_kept_no_more_does_not_stand_in_the_way_of_what_happens_now(on_both: LogOffice) -> None:
    async with receiver(status_answer("410 Gone")) as gone, receiver(status_answer("200 OK")) as there:
        endpoint, _ = await on_both.office.endpoint(gone.url())
        assert (await on_both.choose(endpoint, types=["order.*"])).status_code == 200
        for number in range(3):
            await on_both.write(ORDER_CREATED, order=f"onr_{number}")
        await on_both.deliver()
        on_both.world.clock.advance(91 * 86_400)
        assert await on_both.world.store.write(sweep_event_log, before=on_both.world.clock.now() - 86_400, most=9) == 3
        assert (await on_both.choose(endpoint, url=there.url())).status_code == 200
        assert (await on_both.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/enable")).status_code == 200
        replayed = await on_both.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/replay")
        assert replayed.json()["replayed"] == 3
        new = await on_both.write(ORDER_CREATED)
        await on_both.deliver()
        assert [body["id"] for body in bodies(there.requests)] == [new]
        listed = (await on_both.http.get("/v1/connectivity/deliveries", params={"endpoint": endpoint})).json()["data"]
        assert [each["state"] for each in listed] == ["delivered", "failed", "failed", "failed"]


async def test_an_endpoint_that_chooses_while_an_event_waits_for_its_place_gets_it_once(on_both: LogOffice) -> None:
    async with receiver(status_answer("200 OK")) as first, receiver(status_answer("200 OK")) as second:
        begins, _ = await on_both.office.endpoint(first.url())
        ends, _ = await on_both.office.endpoint(second.url())
        assert (await on_both.choose(ends, types=["esim.*"])).status_code == 200
        event = await on_both.office.emit()
        await on_both.worker.step()
        assert (await on_both.choose(begins, types=["esim.*"])).status_code == 200
        assert (await on_both.choose(ends, types=None)).status_code == 200
        await on_both.deliver()
        assert [body["id"] for body in bodies(first.requests)] == [event]
        assert [body["id"] for body in bodies(second.requests)] == [event]
