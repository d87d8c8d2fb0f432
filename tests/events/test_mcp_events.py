"""MCP Events, by a client that was written from the draft alone: JSON-RPC over HTTP, and a receiver with TLS."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from clients.webhooks.sender import WebhookSender
from operations.catalogue import CATALOGUE
from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import event_entry
from operations.ledger.event_placing import EventPlacing
from operations.ledger.event_rights import ChooserRights
from registry.caller import Approval, Money, Restrictions, Role, SpendLimits, Tier
from registry.limits import Limits
from storage.event_log import log_event, sweep_event_log
from storage.webhook_endpoints import MOST_ENDPOINTS
from tests.clients.webhooks.authority import self_signed
from tests.clients.webhooks.receiver import HookReceiver, receiver
from tests.deliveries import post_office
from tests.deliveries.post_office import LOOPBACK, QUICK, read
from tests.http.test_answers import parameters
from tests.mcp.house import MODERN, House, open_house
from tests.registry.ledgers import audited
from tests.stage import opened, opened_on_both
from tests.world import Credentials
from transports.worker.retention import retention_chore
from transports.worker.worker import Worker

LEGACY = "2025-11-25"
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
NOT_FOUND, FORBIDDEN, EXHAUSTED, UNSUPPORTED, CALLBACK_FAILED = -32011, -32012, -32013, -32014, -32015
INVALID_PARAMS, NO_METHOD = -32602, -32601


@dataclass(slots=True)
class EventClient:
    """A client that knows the draft and nothing of ours."""

    house: House
    secret: str
    era: str

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The response: a result or an error."""
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        given = {**params, "_meta": meta} if self.era == MODERN else params
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": given}
        answer = await self.house.post(body, secret=self.secret, **{"mcp-protocol-version": self.era})
        text = answer.text
        said = orjson.loads(text.split("data: ", 1)[1] if text.startswith("event:") or "\ndata: " in text else text)
        assert said["id"] == 7
        return said

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        said = await self.send(method, **params)
        assert "result" in said, said
        return said["result"]

    async def error(self, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
        said = (await self.send(method, **params))["error"]
        return said["code"], said.get("data") or {}

    async def capabilities(self) -> dict[str, Any]:
        if self.era == MODERN:
            return (await self.result("server/discover"))["capabilities"]
        client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "draft", "version": "1"}}
        return (await self.result("initialize", **client))["capabilities"]

    async def subscribe(self, url: str, name: str = "esim.issued", **more: Any) -> dict[str, Any]:
        return await self.send("events/subscribe", name=name, delivery={"mode": "webhook", "url": url, "secret": SECRET}, **more)

    async def unsubscribe(self, url: str, name: str = "esim.issued") -> dict[str, Any]:
        return await self.send("events/unsubscribe", name=name, arguments={}, delivery={"url": url})


@dataclass(slots=True)
class Stage:
    """The service with the methods, and an admin of an organisation in each era."""

    house: House
    who: Credentials
    sender: WebhookSender
    tls: Any
    workers: list[Worker] = field(default_factory=list[Worker])

    def client(self, era: str = MODERN, who: Credentials | None = None, secret: str = "") -> EventClient:
        return EventClient(self.house, secret or (who or self.who).secret, era)

    async def happens(self, name: str = "esim.issued", organisation: str = "") -> str:
        """An event is written and gets its place; its id."""
        world, declared = self.house.world, EVENT_TYPES[name]
        of = organisation or self.who.organisation
        now, id = world.clock.now(), world.ids.new("evt_")
        event = event_entry(declared, declared.example, organisation=of, id=id, now=now, livemode=True)
        await world.store.write(log_event, event=event)
        await EventPlacing(world.pipeline.deps).step()
        return event.id

    async def deliver(self) -> None:
        """A worker sends what is due."""
        world = self.house.world
        rights = ChooserRights(world.pipeline.deps.internal_calls.operations_in)
        worker = Worker(
            store=world.store,
            keyring=world.pipeline.deps.keyring,
            sender=self.sender,
            clock=world.clock,
            ids=world.ids,
            report=print,
            rights=rights,
            chores=[],
        )
        while await worker.step():
            pass

    @asynccontextmanager
    async def receiving(self, echo: bool = True, status: str = "200 OK") -> AsyncGenerator[HookReceiver]:
        """A receiver that repeats the challenge of a verification, as the draft asks of it, or does not. `status`: its answer to events."""
        there: list[HookReceiver] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            del reader
            asked = orjson.loads(read(there[0].requests[-1]).body)
            body = orjson.dumps({"challenge": asked.get("challenge")}) if echo else b"{}"
            line = "200 OK" if "type" in asked else status
            writer.write(b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (line.encode(), len(body), body))
            await writer.drain()

        async with receiver(answer, self.tls) as made:
            there.append(made)
            yield made


def url_of(there: HookReceiver) -> str:
    return there.url("localhost", "https")


def events_of(there: HookReceiver) -> list[post_office.Post]:
    """What was sent, the verifications left out."""
    return [post for post in map(read, there.requests) if "type" not in orjson.loads(post.body)]


@asynccontextmanager
async def open_stage(folder: Path, *, events: bool = True, url: str | None = None) -> AsyncGenerator[Stage]:
    server, client = self_signed(folder, "localhost")

    async def lookup(name: str) -> list[str]:
        del name
        return ["127.0.0.1"]

    async with open_house(folder, catalogue=CATALOGUE, limits=Limits(burst_enabled=False), url=url, events=events) as house:
        world = house.world
        sender = WebhookSender(world.clock, exempt=LOOPBACK, limits=QUICK, tls=client, lookup=lookup)
        world.pipeline.deps = replace(world.pipeline.deps, webhook_exempt=LOOPBACK, callbacks=sender)
        try:
            yield Stage(house, await world.caller(Tier.ENTERPRISE), sender, server)
        finally:
            await sender.aclose()
        assert world.faults == []


stage = opened(open_stage)
on_both = opened_on_both(open_stage)
both_eras = pytest.mark.parametrize("era", [MODERN, LEGACY])


@both_eras
async def test_a_server_that_was_not_told_the_date_of_the_draft_has_none_of_it(tmp_path: Path, era: str) -> None:
    async with open_stage(tmp_path, events=False) as plain:
        client = plain.client(era)
        assert "events" not in await client.capabilities()
        for method in ("events/list", "events/poll", "events/subscribe", "events/unsubscribe"):
            assert (await client.error(method))[0] == NO_METHOD


@pytest.mark.long
@both_eras
async def test_a_server_names_the_capability_and_lists_its_types_with_their_schemas(stage: Stage, era: str) -> None:
    client = stage.client(era)
    assert (await client.capabilities())["events"] == {}
    listed = {each["name"]: each for each in (await client.result("events/list"))["events"]}
    paid = listed["esim.issued"]
    assert listed.keys() == EVENT_TYPES.keys()
    assert paid["delivery"] == ["poll", "webhook"]
    assert paid["inputSchema"] == {"type": "object", "properties": {}, "additionalProperties": False}
    assert paid["payloadSchema"]["type"] == "object"
    assert paid["description"] == EVENT_TYPES["esim.issued"].about


@both_eras
async def test_a_client_that_polls_from_now_on_gets_what_happens_then_and_once(stage: Stage, era: str) -> None:
    client = stage.client(era)
    await stage.happens()
    first = await client.result("events/poll", name="esim.issued", arguments={}, cursor=None)
    assert (first["events"], first["truncated"], first["hasMore"]) == ([], False, False)
    assert first["nextPollMs"] >= 1000
    ids = [await stage.happens(), await stage.happens()]
    await stage.happens("usage.threshold_reached")
    second = await client.result("events/poll", name="esim.issued", cursor=first["cursor"], timeoutMs=1000)
    assert [each["eventId"] for each in second["events"]] == ids
    assert second["events"][0] == {
        "eventId": ids[0],
        "name": "esim.issued",
        "timestamp": "2027-01-15T12:00:00Z",
        "data": EVENT_TYPES["esim.issued"].example,
        "_meta": {"connectivity/livemode": True},
    }
    assert (await client.result("events/poll", name="esim.issued", cursor=second["cursor"]))["events"] == []


async def test_a_client_that_takes_one_event_at_a_time_misses_none(stage: Stage) -> None:
    client = stage.client()
    ids = [await stage.happens() for _ in range(3)]
    cursor, found, more = "0", list[str](), True
    while more:
        said = await client.result("events/poll", name="esim.issued", cursor=cursor, maxEvents=1)
        found += [each["eventId"] for each in said["events"]]
        cursor, more = said["cursor"], said["hasMore"]
    assert found == ids


async def test_a_client_that_wants_nothing_old_is_told_that_something_was_left_out(stage: Stage) -> None:
    client = stage.client()
    await stage.happens()
    stage.house.world.clock.advance(600)
    young = await stage.happens()
    said = await client.result("events/poll", name="esim.issued", cursor="0", maxAgeMs=300_000)
    assert ([each["eventId"] for each in said["events"]], said["truncated"]) == ([young], True)


@both_eras
async def test_a_cursor_that_is_too_old_is_answered_with_what_is_left_and_truncated(stage: Stage, era: str) -> None:
    client, world = stage.client(era), stage.house.world
    await stage.happens()
    world.clock.advance(100)
    left = await stage.happens()
    await world.store.write(sweep_event_log, before=world.clock.now() - 50, most=10)
    said = await client.result("events/poll", name="esim.issued", cursor="0")
    assert ([each["eventId"] for each in said["events"]], said["truncated"]) == ([left], True)
    assert (await client.result("events/poll", name="esim.issued", cursor=said["cursor"]))["truncated"] is False


@both_eras
async def test_a_type_that_there_is_not_or_that_is_for_others_is_refused_as_the_draft_says(stage: Stage, era: str) -> None:
    world = stage.house.world
    member = await world.caller(Tier.ENTERPRISE, Role.MEMBER, organisation=stage.who.organisation)
    admins = next(name for name, declared in EVENT_TYPES.items() if declared.admin)
    code, data = await stage.client(era).error("events/poll", name="esim.eaten")
    assert (code, data["kind"]) == (NOT_FOUND, "event")
    code, data = await stage.client(era, member).error("events/poll", name=admins)
    assert (code, data["code"]) == (FORBIDDEN, "role_required")
    assert admins not in {each["name"] for each in (await stage.client(era, member).result("events/list"))["events"]}


async def test_a_key_for_some_toolsets_sees_the_types_that_these_show(stage: Stage) -> None:
    world = stage.house.world

    async def client_of(*toolsets: str) -> EventClient:
        _, secret = await world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(toolsets=toolsets))
        return stage.client(secret=secret)

    for toolsets, code in ((("events",), "credential_restricted"), (("connectivity",), "credential_restricted")):
        refused, data = await (await client_of(*toolsets)).error("events/poll", name="esim.issued")
        assert (refused, data["code"]) == (FORBIDDEN, code)
    both = await client_of("events", "connectivity")
    assert "esim.issued" in {each["name"] for each in (await both.result("events/list"))["events"]}
    assert (await both.result("events/poll", name="esim.issued"))["events"] == []


@pytest.mark.cases
@both_eras
@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"name": "esim.issued", "cursor": "yesterday"}, "cursor"),
        ({"name": "esim.issued", "cursor": "99"}, "cursor"),
        ({"name": "esim.issued", "maxEvents": 0}, "maxEvents"),
        ({"name": "esim.issued", "arguments": {"shop": "s"}}, "arguments"),
        ({"arguments": {}}, "name"),
    ],
)
async def test_a_poll_that_breaks_a_rule_is_invalid_and_names_the_field(stage: Stage, era: str, params: dict[str, Any], param: str) -> None:
    code, data = await stage.client(era).error("events/poll", **params)
    assert (code, data["param"]) == (INVALID_PARAMS, param)


@both_eras
async def test_a_subscriber_gets_a_signed_delivery_with_the_header_of_the_subscription(stage: Stage, era: str) -> None:
    client, clock = stage.client(era), stage.house.world.clock
    async with stage.receiving() as there:
        granted = (await client.subscribe(url_of(there), arguments={}, ttlMs=600_000))["result"]
        verification = read(there.requests[0])
        assert verification.verified(SECRET, clock.now()) == {
            "type": "verification",
            "challenge": orjson.loads(verification.body)["challenge"],
        }
        assert verification.headers["webhook-id"].startswith("msg_verification_")
        event = await stage.happens()
        await stage.happens("usage.threshold_reached")
        await stage.deliver()
        [post] = events_of(there)
    assert post.verified(SECRET, clock.now()) == {
        "eventId": event,
        "name": "esim.issued",
        "timestamp": "2027-01-15T12:00:00Z",
        "data": EVENT_TYPES["esim.issued"].example,
        "_meta": {"connectivity/livemode": True},
        "cursor": "1",
    }
    assert post.headers["webhook-id"] == event
    assert post.headers["x-mcp-subscription-id"] == verification.headers["x-mcp-subscription-id"] == granted["id"]
    assert (granted["refreshBefore"], granted["cursor"], granted["truncated"]) == ("2027-01-15T12:10:00Z", "0", False)


async def test_a_subscriber_with_a_cursor_gets_what_has_happened_since(stage: Stage) -> None:
    async with stage.receiving() as there:
        ids = [await stage.happens(), await stage.happens()]
        granted = (await stage.client().subscribe(url_of(there), cursor="0"))["result"]
        await stage.deliver()
        assert sorted(post.headers["webhook-id"] for post in events_of(there)) == sorted(ids)
    assert granted["cursor"] == "0"


@both_eras
async def test_a_subscription_that_was_ended_is_sent_nothing_more(stage: Stage, era: str) -> None:
    client = stage.client(era)
    async with stage.receiving() as there:
        await client.subscribe(url_of(there))
        await stage.happens()
        assert "result" in await client.unsubscribe(url_of(there))
        await stage.happens()
        await stage.deliver()
        assert events_of(there) == []
        again = await client.unsubscribe(url_of(there))
    assert (again["error"]["code"], again["error"]["data"]["kind"]) == (NOT_FOUND, "subscription")


@pytest.mark.long
async def test_a_subscription_begins_goes_on_and_ends_on_either_database(on_both: Stage) -> None:
    client, world = on_both.client(), on_both.house.world
    async with on_both.receiving() as there:
        ids = [await on_both.happens(), await on_both.happens()]
        first = (await client.subscribe(url_of(there), cursor="1", ttlMs=60_000))["result"]
        assert first["cursor"] == "1"
        await on_both.deliver()
        assert [post.headers["webhook-id"] for post in events_of(there)] == ids[1:]
        assert (await client.subscribe(url_of(there), ttlMs=60_000))["result"]["cursor"] == "2"
        world.clock.advance(60)
        await on_both.happens()
        await on_both.deliver()
        assert len(events_of(there)) == 1
        said = await client.result("events/poll", name="esim.issued", cursor="2")
        assert (len(said["events"]), said["cursor"]) == (1, "3")
        assert (await client.subscribe(url_of(there), cursor="2"))["result"]["id"] == first["id"]
        await on_both.deliver()
        assert len(events_of(there)) == 2
        assert "result" in await client.unsubscribe(url_of(there))


@pytest.mark.cases
@pytest.mark.parametrize(("status", "attempts"), [("413 Payload Too Large", 1), ("410 Gone", 1), ("503 Service Unavailable", 2)])
async def test_an_event_that_is_too_large_or_unwanted_is_not_sent_again_and_the_next_one_is(
    stage: Stage, status: str, attempts: int
) -> None:
    async with stage.receiving(status=status) as there:
        await stage.client().subscribe(url_of(there))
        await stage.happens()
        for _ in range(2):
            await stage.deliver()
            stage.house.world.clock.advance(60)
        assert len(events_of(there)) == attempts
        await stage.happens()
        await stage.deliver()
        assert len(events_of(there)) == attempts + 1


async def test_a_subscription_ends_at_its_time_and_its_endpoint_is_swept(stage: Stage) -> None:
    client, world = stage.client(), stage.house.world
    async with stage.receiving() as there:
        await client.subscribe(url_of(there), ttlMs=60_000)
        world.clock.advance(59)
        await stage.happens()
        await stage.deliver()
        assert len(events_of(there)) == 1
        await stage.happens()
        world.clock.advance(1)
        await stage.deliver()
        assert len(events_of(there)) == 1
    assert (await client.unsubscribe(url_of(there)))["error"]["code"] == NOT_FOUND
    async with world.client(stage.who.secret) as http:
        assert len((await http.get("/v1/connectivity/webhook_endpoints")).json()["data"]) == 1
        await retention_chore(world.store, world.clock, print).run()
        assert (await http.get("/v1/connectivity/webhook_endpoints")).json()["data"] == []


async def test_a_subscription_that_is_renewed_keeps_its_id_and_signs_with_both_secrets(stage: Stage) -> None:
    client, world = stage.client(), stage.house.world
    async with stage.receiving() as there:
        first = (await client.subscribe(url_of(there), ttlMs=60_000))["result"]
        world.clock.advance(50)
        delivery = {"mode": "webhook", "url": url_of(there), "secret": OTHER_SECRET}
        second = await client.result("events/subscribe", name="esim.issued", delivery=delivery, ttlMs=60_000, cursor=first["cursor"])
        assert second["id"] == first["id"]
        world.clock.advance(50)
        await stage.happens()
        await stage.deliver()
        [post] = events_of(there)
        assert post.verified(SECRET, world.clock.now()) == post.verified(OTHER_SECRET, world.clock.now())
        assert there.connections == 2  # one verification for both, and the delivery


async def test_a_subscription_ends_with_the_credential_that_subscribed_until_another_one_renews_it(stage: Stage) -> None:
    world = stage.house.world
    key, secret = await world.key(stage.who.person, stage.who.organisation)
    async with stage.receiving() as there:
        await stage.client(secret=secret).subscribe(url_of(there))
        await world.revoke(replace(stage.who, key_id=key))
        await stage.happens()
        await stage.deliver()
        assert events_of(there) == []
        await stage.client().subscribe(url_of(there))
        await stage.happens()
        await stage.deliver()
        assert len(events_of(there)) == 1


async def test_a_key_for_other_lines_is_told_of_its_own_alone(stage: Stage) -> None:
    world, iccid = stage.house.world, str(EVENT_TYPES["esim.issued"].example["iccid"])
    found = list[tuple[int, int]]()
    for line in (iccid, "8988303000000912345"):
        _, secret = await world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(iccids=(line,)))
        client = stage.client(secret=secret)
        async with stage.receiving() as there:
            begin = await client.result("events/poll", name="esim.issued")
            await client.subscribe(url_of(there))
            await stage.happens()
            await stage.deliver()
            polled = await client.result("events/poll", name="esim.issued", cursor=begin["cursor"])
            found.append((len(polled["events"]), len(events_of(there))))
            await client.unsubscribe(url_of(there))
    assert found == [(1, 1), (0, 0)]


async def test_nobody_else_ends_a_subscription(stage: Stage) -> None:
    world = stage.house.world
    stranger, colleague = await world.caller(Tier.PRO), await world.caller(Tier.PRO, organisation=stage.who.organisation)
    async with stage.receiving() as there:
        await stage.client().subscribe(url_of(there))
        for other in (stranger, colleague):
            assert (await stage.client(who=other).unsubscribe(url_of(there)))["error"]["code"] == NOT_FOUND
        await stage.happens()
        await stage.deliver()
        assert len(events_of(there)) == 1


@pytest.mark.long
async def test_a_subscription_counts_among_the_endpoints_of_the_organisation(stage: Stage) -> None:
    client = stage.client()
    async with stage.receiving() as there:
        for number in range(MOST_ENDPOINTS):
            assert "result" in await client.subscribe(f"{url_of(there)}/{number}")
        refused = (await client.subscribe(f"{url_of(there)}/more"))["error"]
        assert (refused["code"], refused["data"]["limit"], refused["data"]["max"]) == (EXHAUSTED, "subscriptions", 16)
        assert "result" in await client.unsubscribe(f"{url_of(there)}/0")
        assert "result" in await client.subscribe(f"{url_of(there)}/more")


@both_eras
@pytest.mark.parametrize(
    ("url", "reason"), [("https://10.0.0.1/hook", "connection_refused"), ("https://localhost:1/hook", "connection_refused")]
)
async def test_a_receiver_that_cannot_be_reached_is_an_error_of_the_callback(stage: Stage, era: str, url: str, reason: str) -> None:
    refused = (await stage.client(era).subscribe(url))["error"]
    assert (refused["code"], refused["data"]["reason"], refused["data"]["param"]) == (CALLBACK_FAILED, reason, "delivery.url")


async def test_a_receiver_that_does_not_repeat_the_challenge_is_sent_nothing(stage: Stage) -> None:
    async with stage.receiving(echo=False) as there:
        refused = (await stage.client().subscribe(url_of(there)))["error"]
        await stage.happens()
        await stage.deliver()
        assert there.connections == 1
    assert (refused["code"], refused["data"]["reason"]) == (CALLBACK_FAILED, "challenge_failed")


@pytest.mark.parametrize(
    ("delivery", "code"),
    [
        ({"mode": "webhook", "url": "http://localhost/hook", "secret": SECRET}, INVALID_PARAMS),
        ({"mode": "webhook", "url": "localhost", "secret": SECRET}, INVALID_PARAMS),
        ({"mode": "webhook", "url": "https://localhost/hook", "secret": "whsec_c2hvcnQ="}, INVALID_PARAMS),
        ({"mode": "webhook", "url": "https://localhost/hook", "secret": SECRET.removeprefix("whsec_")}, INVALID_PARAMS),
        ({"mode": "webhook", "url": "https://localhost/hook"}, INVALID_PARAMS),
        ("https://localhost/hook", INVALID_PARAMS),
        ({"mode": "push", "url": "https://localhost/hook", "secret": SECRET}, UNSUPPORTED),
    ],
)
async def test_a_delivery_that_breaks_a_rule_is_refused_and_its_secret_not_repeated(stage: Stage, delivery: object, code: int) -> None:
    said = await stage.client().send("events/subscribe", name="esim.issued", delivery=delivery)
    assert said["error"]["code"] == code
    assert SECRET.removeprefix("whsec_") not in str(said)
    assert "c2hvcnQ" not in str(said)


@pytest.mark.parametrize(
    "restrictions",
    [
        Restrictions(approval=Approval.EVERY_WRITE),
        Restrictions(limits=(SpendLimits(per_day=Money(1000, "EUR")),)),
        Restrictions(limits=(SpendLimits(approve_above=Money(1000, "EUR")),)),
    ],
)
async def test_a_key_whose_webhooks_wait_for_a_person_polls_and_does_not_subscribe(stage: Stage, restrictions: Restrictions) -> None:
    world = stage.house.world
    _, secret = await world.key(stage.who.person, stage.who.organisation, restrictions=restrictions)
    client = stage.client(secret=secret)
    assert (await client.subscribe("https://localhost/hook"))["error"]["code"] == FORBIDDEN
    assert (await client.result("events/poll", name="esim.issued"))["events"] == []


async def test_the_endpoint_of_a_subscription_is_shown_and_left_to_its_client(stage: Stage) -> None:
    client, world = stage.client(), stage.house.world
    async with stage.receiving() as there, world.client(stage.who.secret) as http:
        granted = (await client.subscribe(url_of(there)))["result"]
        [endpoint] = (await http.get("/v1/connectivity/webhook_endpoints")).json()["data"]
        assert (endpoint["types"], endpoint["description"]) == (["esim.issued"], f"MCP subscription {granted['id']}")
        path = f"/v1/connectivity/webhook_endpoints/{endpoint['id']}"
        for refused in (
            await http.patch(path, json={"types": ["*"]}),
            await http.post(f"{path}/rotate"),
            await http.post(f"{path}/test", json={"type": "esim.issued"}),
        ):
            assert (refused.status_code, refused.json()["code"]) == (409, "mcp_subscription")
        assert (await http.delete(path)).status_code == 200
        assert (await client.unsubscribe(url_of(there)))["error"]["code"] == NOT_FOUND


@both_eras
async def test_a_call_of_a_method_is_charged_and_audited_as_every_call_is(stage: Stage, era: str) -> None:
    world, client = stage.house.world, stage.client(era)

    async def used() -> int:
        async with world.client(stage.who.secret) as http:
            return -parameters((await http.get("/v1/connectivity/event_types")).headers["ratelimit"])["r"]

    before = await used()
    async with stage.receiving() as there:
        await client.result("events/list")
        await client.result("events/poll", name="esim.issued")
        await client.subscribe(url_of(there))
        await client.error("events/poll", name="esim.eaten")
    assert await used() == before + 4  # this look, too; what is refused before it begins costs nothing
    await world.journal.flush()
    rows = [row for row in await world.store.read(audited) if row.surface == "mcp"]
    assert sorted((row.operation, row.outcome) for row in rows) == [
        ("list_mcp_events", "ok"),
        ("poll_mcp_events", "event_not_found"),
        ("poll_mcp_events", "ok"),
        ("subscribe_mcp_events", "ok"),
    ]


@pytest.mark.long
async def test_nobody_is_flooded_with_questions_whether_they_want_to_be_sent_to(stage: Stage) -> None:
    async with stage.receiving(echo=False) as there:
        answers = [await stage.client().subscribe(f"{url_of(there)}/{number}") for number in range(62)]
        codes = [each["error"]["code"] for each in answers]
        assert (codes, len(there.requests)) == ([CALLBACK_FAILED] * 60 + [EXHAUSTED] * 2, 60)
        assert answers[-1]["error"]["data"]["code"] == "rate_limited"
        stage.house.world.clock.advance(3601)
        assert (await stage.client().subscribe(url_of(there)))["error"]["code"] == CALLBACK_FAILED
