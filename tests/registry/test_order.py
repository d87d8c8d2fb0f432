"""The order of the stages: who is asked what first."""

from typing import Any

import pytest

from registry.call import Call, Surface
from registry.caller import Caller, Role, Tier
from registry.operation import Scope
from tests.registry import things
from tests.registry.bench import Bench, statuses
from tests.world import Credentials


class Body:
    """A body that knows whether it was read."""

    def __init__(self, content: bytes) -> None:
        self.content, self.reads = content, 0

    async def read(self, limit: int) -> bytes:
        assert limit == 256 * 1024
        self.reads += 1
        return self.content


def posted(bench: Bench, body: Body, credential: str | None, operation: object = things.make_thing, **fields: object) -> Call:
    assert isinstance(operation, type(things.make_thing))
    call = Call(operation, "http", bench.world.ids.new("req_"), credential=credential, read_body=body.read)
    call.idempotency_key = fields.get("key")  # pyright: ignore[reportAttributeAccessIssue]  # a text, or nothing
    return call


async def test_a_caller_without_a_credential_is_refused_before_the_body_is_read(bench: Bench) -> None:
    body = Body(b"not json")
    for credential in (None, "", "ak_wrong", "a.b.c"):
        assert (await bench.answer(posted(bench, body, credential))).status == 401
    assert body.reads == 0


async def test_a_caller_over_the_burst_limit_or_below_the_scope_is_refused_before_the_body_is_read(bench: Bench) -> None:
    body = Body(b"not json")
    free = await bench.world.caller(Tier.FREE)
    assert (await bench.answer(posted(bench, body, free.secret, things.move_thing))).status == 402
    assert body.reads == 0
    assert (await bench.answer(posted(bench, body, free.secret, things.make_thing))).code == "invalid_json"
    assert body.reads == 1


@pytest.mark.rule("5.2.2")
async def test_a_scope_is_missed_before_the_input_is_looked_at(bench: Bench) -> None:
    free = await bench.world.caller(Tier.FREE)
    said = await bench.ask(things.administer, free, nonsense=1)
    assert (said.status, said.code) == (402, "upgrade_required")


@pytest.mark.rule("5.3.1")
async def test_a_connection_is_missed_before_the_input_is_looked_at(bench: Bench, pro: Credentials) -> None:
    assert (await bench.ask(things.order_thing, pro, key="k", nonsense=1)).code == "org_not_connected"


async def test_the_input_is_looked_at_before_access_asks_anything(bench: Bench, pro: Credentials) -> None:
    assert (await bench.ask(things.use_owned, pro, name="x", nonsense=1)).code == "unknown_field"
    assert (await bench.ask(things.use_owned, pro, name="x")).code == "not_found"


async def test_access_is_asked_again_before_an_answer_is_replayed(bench: Bench, pro: Credentials) -> None:
    await bench.store.write(things.add, name="owner x")
    first = await bench.ask(things.use_owned, pro, key="k", name="x")
    again = await bench.ask(things.use_owned, pro, key="k", name="x")
    assert (first.status, first.json) == (200, {"name": "X", "count": 1})
    assert again.body == first.body
    other = await bench.ask(things.use_owned, pro, key="k", name="y")
    assert (other.status, other.code) == (404, "not_found")


async def test_rights_are_checked_before_an_answer_is_replayed(bench: Bench) -> None:
    caller = await bench.world.caller(Tier.PRO)
    first = await bench.ask(things.move_thing, caller, key="k", name="canary")
    assert first.status == 200
    await bench.world.move_to(Tier.FREE, caller.organisation)
    refused = await bench.ask(things.move_thing, caller, key="k", name="canary")
    assert refused.status == 402 and b"canary" not in refused.body
    await bench.world.move_to(Tier.PRO, caller.organisation)
    assert (await bench.ask(things.move_thing, caller, key="k", name="canary")).body == first.body


@pytest.mark.cases
@pytest.mark.parametrize("end", ["revoked", "removed", "expired"])
async def test_a_caller_whose_credential_ended_gets_no_replay(bench: Bench, end: str) -> None:
    world = bench.world
    organisation, person = await world.organisation(Tier.PRO), await world.person()
    await world.join(person, organisation)
    key_id, secret = await world.key(person, organisation, expires_at=int(bench.clock.now()) + 60 if end == "expired" else None)
    caller = Credentials(organisation, person, key_id, secret)
    assert (await bench.ask(things.make_thing, caller, key="k", name="canary")).status == 201
    if end == "revoked":
        await world.revoke(caller)
    elif end == "removed":
        await world.leave(person, organisation)
    else:
        bench.clock.advance(60)
    refused = await bench.ask(things.make_thing, caller, key="k", name="canary")
    assert refused.status == 401 and b"canary" not in refused.body
    assert (await bench.counters()) == {"canary": 1}


async def test_a_malformed_call_mints_no_token_and_claims_no_key(bench: Bench, pro: Credentials) -> None:
    said = await bench.ask(things.remove_thing, pro, key="k", name="")
    assert said.status == 400
    assert await bench.claimed() == [] and await bench.counters() == {}
    assert (await bench.ask(things.remove_thing, pro, key="k", name="fine")).status == 202


async def test_a_key_that_is_required_is_missed_with_its_header_name(bench: Bench, pro: Credentials) -> None:
    said = await bench.ask(things.keep_thing, pro, name="x")
    assert (said.status, said.code, said.json["param"]) == (400, "idempotency_key_required", "idempotency_key")
    assert "Idempotency-Key" in str(said.json["error"])


@pytest.mark.cases
@pytest.mark.parametrize("key", ["", " ", "a b", "é", "k" * 256, "a\x7f", "a\n"])
async def test_a_key_is_1_to_255_visible_ascii_characters(bench: Bench, pro: Credentials, key: str) -> None:
    said = await bench.ask(things.keep_thing, pro, key=key, name="x")
    assert (said.status, said.code) == (400, "invalid_request")
    assert await bench.counters() == {}


async def test_the_longest_key_is_taken(bench: Bench, pro: Credentials) -> None:
    assert (await bench.ask(things.keep_thing, pro, key="~" * 255, name="x")).status == 201


async def test_a_caller_given_by_a_door_is_not_asked_for_a_credential(bench: Bench, pro: Credentials) -> None:
    local = Caller("local", pro.person, pro.organisation, "Reseller", Tier.PRO, Role.MEMBER, int(Scope.READ | Scope.ANY))
    assert (await bench.ask(things.make_thing, caller=local, surface="cli", name="x")).status == 201
    assert (await bench.ask(things.begin_session_only, caller=local, surface="cli", name="x")).status == 401


@pytest.mark.cases
@pytest.mark.parametrize(("size", "status"), [(5, 201), (5.0, 201), (5.5, 400), ("5", 400), (True, 400), (None, 201), (1e300, 400)])
async def test_an_integer_may_be_written_with_a_fraction_of_nothing(bench: Bench, pro: Credentials, size: object, status: int) -> None:
    said = await bench.ask(things.make_thing, pro, name="x", size=size)
    assert (said.status, said.json.get("param")) == (status, None if status == 201 else "size")


async def test_five_and_five_point_nothing_are_the_same_input(bench: Bench, pro: Credentials) -> None:
    first = await bench.ask(things.make_thing, pro, key="k", name="x", size=5)
    assert (await bench.ask(things.make_thing, pro, key="k", name="x", size=5.0)).body == first.body


async def test_a_refusal_repeats_no_control_characters(bench: Bench, pro: Credentials) -> None:
    bad: list[dict[str, Any]] = [{"tags": {"a\x1b[31m\u202e": 5}}, {"a\x1b[31m\u202e": 5}, {"size": "a\x1b[31m\u202e"}]
    for given in bad:
        said = await bench.ask(things.make_thing, pro, name="x", **given)
        assert said.status == 400
        assert all(character.isprintable() for value in said.json.values() for character in str(value))


@pytest.mark.long
async def test_64_different_calls_at_once_have_64_effects(bench: Bench, pro: Credentials) -> None:
    answers = await bench.at_once(64, things.make_thing, pro, name="x")
    assert statuses(answers) == {201: 64}
    assert sorted(int(str(each.json["count"])) for each in answers) == list(range(1, 65))


@pytest.mark.cases
@pytest.mark.parametrize(("surface", "name"), [("http", "Idempotency-Key"), ("mcp", "idempotency_key"), ("cli", "--idempotency-key")])
async def test_a_missing_key_is_called_what_the_door_calls_it(bench: Bench, pro: Credentials, surface: Surface, name: str) -> None:
    said = await bench.ask(things.keep_thing, pro, surface=surface, name="x")
    assert (said.code, said.json["param"]) == ("idempotency_key_required", "idempotency_key")
    assert str(said.json["error"]).startswith(f"{name}: missing; ")
    said = await bench.ask(things.keep_thing, pro, surface=surface, key="a b", name="x")
    assert str(said.json["error"]).startswith(f"{name}: must be ")
