"""A key in quotes is the key that they hold, at every door; one that was stored with its quotes before stays what it was."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from registry.policy import key_spellings, unquoted_key
from storage.claims import take_claim
from tests.connectivity.requests import INTENTS
from tests.issuance.before import spell
from tests.issuance.stage import FREE_ESIMS, INVENTORY_PATH, IssuanceStage, another_process, at_once, open_issuance_stage, replay_of
from tests.length import examples
from tests.mcp.house import open_house
from tests.network_facts import DELETE
from tests.world import Credentials, World, open_world

OPERATION = {"inventory": "issue_esim_from_inventory", "intent": "create_connectivity_intent"}
TEST_PLAN = {"plan": "test_eu_1gb"}


@asynccontextmanager
async def many_at_once(folder: Path, url: str | None) -> AsyncGenerator[IssuanceStage]:
    async with open_issuance_stage(folder, url, concurrency=64) as stage:
        yield stage


async def issued_before(stage: IssuanceStage, spelling: str, kind: str = "inventory", account: int = 8101) -> httpx.Response:
    """An eSIM that the release before drew under a key in quotes."""
    made = await (stage.issue("before", account=account) if kind == "inventory" else stage.intend("before"))
    assert made.status_code == 201
    keyring, organisation = stage.world.pipeline.deps.keyring, stage.me.organisation
    named = {"organisation": organisation, "operation": OPERATION[kind], "key": "before"}
    await stage.world.store.write(spell, keyring=keyring, spelling=spelling, **named)
    return made


@pytest.mark.parametrize("kind", ["inventory", "intent"])
async def test_a_key_in_quotes_and_its_content_draw_one_esim(stage: IssuanceStage, kind: str) -> None:
    draw = stage.issue if kind == "inventory" else stage.intend
    for drawn, (first, second) in enumerate((('"live-1"', "live-1"), ("live-2", '"live-2"'), (r'"a\"b\\c"', r'a"b\c')), 1):
        made, again = await draw(first), await draw(second)
        assert replay_of(again) == (201, made.content, "true")
        assert stage.dispatches() == drawn and await stage.free() == FREE_ESIMS - drawn


async def test_the_content_is_what_is_stored(stage: IssuanceStage) -> None:
    made = (await stage.issue('"live-1"')).json()["data"]
    assert made["idempotencyKey"] == "live-1" and await stage.states() == {"live-1": "issued"}
    event = (await stage.http.get("/v1/connectivity/events")).json()["data"][0]
    assert event["data"]["idempotency_key"] == "live-1"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["inventory", "intent"])
async def test_64_calls_with_both_spellings_at_two_servers_are_one_dispatch(tmp_path: Path, database_url: str | None, kind: str) -> None:
    async with many_at_once(tmp_path, database_url) as stage:
        other = await another_process(stage)
        async with other.client(stage.me.secret) as http:
            draw = stage.issue if kind == "inventory" else stage.intend
            asked = [(door, key) for door in (stage.http, http) for key in ("live-1", '"live-1"', r'"\"live-1\""', '"live-1"')] * 8
            answers = await at_once([lambda door=door, key=key: draw(key, http=door) for door, key in asked])
        made = [answer for answer in answers if answer.status_code == 201]
        busy = [answer.json()["code"] for answer in answers if answer.status_code != 201]
        assert len({answer.content for answer in made}) == 1 and set(busy) <= {"idempotency_in_progress"}
        assert stage.dispatches() == 1 and await stage.free() == FREE_ESIMS - 1


@pytest.mark.parametrize("kind", ["inventory", "intent"])
async def test_a_key_that_was_stored_with_its_quotes_stays_what_it_was(stage: IssuanceStage, kind: str) -> None:
    before = await issued_before(stage, '"live-1"', kind)
    draw = stage.issue if kind == "inventory" else stage.intend
    assert replay_of(await draw('"live-1"')) == (201, before.content, "true")
    new = await draw("live-1")
    assert new.status_code == 201 and new.content != before.content and "Idempotent-Replayed" not in new.headers
    assert replay_of(await draw('"live-1"')) == (201, before.content, "true")
    assert replay_of(await draw("live-1")) == (201, new.content, "true")
    assert stage.dispatches() == 2


async def test_other_input_under_the_other_spelling_is_refused(stage: IssuanceStage) -> None:
    await stage.issue('"live-1"')
    other = await stage.issue("live-1", validityPeriod=7)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    await issued_before(stage, '"old"')
    other = await stage.issue('"old"', validityPeriod=7)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert stage.dispatches() == 2


async def test_a_roll_back_names_the_key_in_either_spelling(stage: IssuanceStage) -> None:
    await stage.issue("live-1")
    token = await stage.token('"live-1"')
    back = await stage.ask_to_return("live-1", token=token)
    assert (back.status_code, back.json()["data"]["idempotency_key"], back.json()["data"]["status"]) == (200, "live-1", "rolled_back")
    again = await stage.give_back('"live-1"')
    assert again.json() == back.json() and len(stage.sent(DELETE)) == 1


async def test_a_roll_back_of_a_key_that_was_stored_with_its_quotes_takes_back_that_one(stage: IssuanceStage) -> None:
    await issued_before(stage, '"live-1"')
    await stage.issue("live-1")
    await stage.give_back('"live-1"')
    assert await stage.states() == {'"live-1"': "rolled_back", "live-1": "issued"}


async def test_a_key_in_quotes_cannot_begin_as_our_own_do(stage: IssuanceStage) -> None:
    for key in ('"ord_1"', '"cni_1"', r'"\"ord_1\""'):
        refused = await stage.issue(key)
        assert (refused.status_code, refused.json()["param"]) == (400, "idempotency_key")
        assert "kept for the service's own issuances" in refused.json()["error"] and stage.dispatches() == 0


async def test_quotes_that_hold_no_key_are_refused(stage: IssuanceStage) -> None:
    for key in ('""', r'"\"\""', '"two words"', '"' + "x" * 256 + '"', '"' * 3 + "x" * 253, "x" * 256):
        refused = await stage.issue(key)
        assert (refused.status_code, refused.json()["code"], refused.json()["param"]) == (400, "invalid_request", "idempotency_key")
    assert await stage.states() == {} and await stage.charged() == 0


async def test_empty_quotes_that_were_a_key_before_stay_one(stage: IssuanceStage) -> None:
    before = await issued_before(stage, '""')
    assert replay_of(await stage.issue('""')) == (201, before.content, "true")


async def test_what_is_no_well_formed_string_is_the_key_as_it_is(stage: IssuanceStage) -> None:
    keys = ('"a', 'a"', '"a"b', '"a"b"', '"a";p=1', r'"\a"', r'"a\"', "'a'", "\\")
    for key in keys:
        assert (await stage.issue(key)).json()["data"]["idempotencyKey"] == key
    assert await stage.states() == dict.fromkeys(keys, "issued")


async def test_the_longest_key_may_be_quoted(stage: IssuanceStage) -> None:
    for key in ("x" * 255, '"' + "\\" * 253 + "x"):
        quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
        made = await stage.issue(quoted)
        assert replay_of(await stage.issue(key)) == (201, made.content, "true")
        assert (await stage.give_back(quoted)).status_code == 200


async def test_two_headers_that_spell_one_key_are_one_key(stage: IssuanceStage) -> None:
    for path, body in ((INVENTORY_PATH, {"accountId": 8101, "packageTemplateId": 55010}), (INTENTS, TEST_PLAN)):
        first = await stage.http.post(path, json=body, headers={"X-Idempotency-Key": "a"})
        for one, other in (("a", "a"), ('"a"', "a"), ("a", '"a"'), (r'"\"a\""', '"a"'), ('"a"', None), (None, '"a"')):
            headers = {name: key for name, key in (("Idempotency-Key", one), ("X-Idempotency-Key", other)) if key is not None}
            assert replay_of(await stage.http.post(path, json=body, headers=headers)) == (201, first.content, "true")


async def test_two_headers_with_different_keys_are_refused_by_every_operation(stage: IssuanceStage) -> None:
    pairs = [("a", "b"), ('"a"', "b"), ('"a"', '"b"'), ("a", ""), ('"a', "a")]
    for operation in CATALOGUE.operations.values():
        path = operation.path.replace("{", "").replace("}", "")
        for one, other in pairs[: None if operation.once is not None and operation.once.required else 1]:
            headers = {"Idempotency-Key": one, "X-Idempotency-Key": other}
            refused = await stage.http.request(operation.method, path, headers=headers)
            assert (refused.status_code, refused.json()["error"]) == (
                400,
                "Idempotency-Key and X-Idempotency-Key: given with different values",
            ), operation.id


async def test_a_claim_of_before_that_was_never_sent_leaves_the_key_to_its_content(tmp_path: Path, database_url: str | None) -> None:
    async with many_at_once(tmp_path, database_url) as stage:
        named = {"organisation": stage.me.organisation, "operation": OPERATION["inventory"], "key": '"live-1"'}
        lost = partial(
            take_claim, **named, fingerprint=b"", owner="rpl_gone", lease="req_gone", now=int(stage.world.clock.now()), state="claimed"
        )
        await stage.world.store.write(partial(lost, expires_at=None))
        busy = await stage.issue('"live-1"')
        assert (busy.status_code, busy.json()["code"], busy.headers["Retry-After"]) == (409, "idempotency_in_progress", "1")
        answers = await at_once([lambda key=key: stage.issue(key) for key in ('"live-1"', "live-1") * 8])
        assert {answer.content for answer in answers if answer.status_code == 201} == {(await stage.issue("live-1")).content}
        assert stage.dispatches() == 1 and await stage.states() == {"live-1": "issued"}


async def test_a_tool_takes_the_key_in_quotes(tmp_path: Path) -> None:
    async with open_house(tmp_path, catalogue=CATALOGUE, limits=Limits(burst_enabled=False)) as house:
        who = await house.world.caller(Tier.PRO)
        async with house.connect(who) as client:
            made = await client.call_tool("create_connectivity_intent", TEST_PLAN | {"idempotency_key": '"live-1"'})
        async with house.world.client(who.secret) as http:
            again = await http.post(INTENTS, json=TEST_PLAN, headers={"Idempotency-Key": "live-1"})
        assert made.structured_content == again.json() and again.headers["Idempotent-Replayed"] == "true"


def quoted(text: str) -> str:
    """A string of a structured field (RFC 9651 section 4.1.6)."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquoted(text: str) -> str | None:
    """RFC 9651 section 4.2.5, word for word; None where it says that parsing fails."""
    output, rest = "", list(text)
    if not rest or rest.pop(0) != '"':
        return None
    while rest:
        char = rest.pop(0)
        if char == "\\":
            if not rest or (char := rest.pop(0)) not in ('"', "\\"):
                return None
            output += char
        elif char == '"':
            return output if not rest else None
        elif not " " <= char <= "~":
            return None
        else:
            output += char
    return None


PIECES = st.text(alphabet='ab"\\', max_size=4)
SPELLINGS = st.one_of(PIECES, PIECES.map(quoted), PIECES.map(quoted).map(quoted), PIECES.map(lambda text: f'"{text}"'))


@pytest.mark.long
@given(st.one_of(SPELLINGS, st.text(max_size=6).map(lambda text: f'"{text}"')))
def test_a_string_is_read_as_its_specification_says(text: str) -> None:
    assert unquoted_key(text) == unquoted(text)


@given(PIECES)
def test_every_spelling_has_the_same_key_at_its_end(text: str) -> None:
    assert key_spellings(quoted(text))[-1] == key_spellings(quoted(quoted(text)))[-1] == key_spellings(text)[-1]


@dataclass
class Memory:
    """What a service must remember: the spellings of before, and the keys of today."""

    before: dict[str, str] = field(default_factory=dict[str, str])
    today: dict[str, str] = field(default_factory=dict[str, str])

    def answer(self, text: str) -> str | None:
        """The intent that a key has; empty for one that has none yet, None for what is no key."""
        while (inner := unquoted(text)) is not None:
            if text in self.before:
                return self.before[text]
            text = inner
        if text in self.before:
            return self.before[text]
        return self.today.get(text, "") if text and " " not in text else None


@dataclass
class Shop:
    """One service for all examples; each example is an organisation of its own."""

    world: World
    numbers: "count[int]"

    async def play(self, steps: list[tuple[bool, str]]) -> None:
        who = await self.world.caller(Tier.ENTERPRISE)
        memory = Memory()
        async with self.world.client(who.secret) as http:
            for is_old, text in steps:
                if is_old:
                    await self._used_before(http, who, memory, text)
                else:
                    await self._used_today(http, memory, text)

    async def _used_before(self, http: httpx.AsyncClient, who: Credentials, memory: Memory, text: str) -> None:
        """The release before took every visible text for a key, and knew no other reading."""
        if text in memory.before or text in memory.today or not text or memory.today:
            return
        key = f"before-{next(self.numbers)}"
        memory.before[text] = (await http.post(INTENTS, json=TEST_PLAN, headers={"Idempotency-Key": key})).json()["id"]
        named = {"organisation": who.organisation, "operation": OPERATION["intent"], "key": key}
        await self.world.store.write(spell, keyring=self.world.pipeline.deps.keyring, spelling=text, **named)

    async def _used_today(self, http: httpx.AsyncClient, memory: Memory, text: str) -> None:
        known = memory.answer(text)
        made = await http.post(INTENTS, json=TEST_PLAN, headers={"Idempotency-Key": text})
        if known is None:
            assert made.status_code == 400
            return
        assert made.status_code == 201
        assert ("Idempotent-Replayed" in made.headers) == (known != "")
        if known:
            assert made.json()["id"] == known
            return
        while (inner := unquoted(text)) is not None:
            text = inner
        assert made.json()["id"] not in [*memory.before.values(), *memory.today.values()]
        memory.today[text] = made.json()["id"]


@pytest.fixture
async def shop(tmp_path: Path, database_url: str | None) -> AsyncGenerator[Shop]:
    async with open_world(tmp_path, CATALOGUE, url=database_url, limits=Limits(burst_enabled=False)) as world:
        yield Shop(world, count())


@pytest.mark.long
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.booleans(), SPELLINGS), min_size=2, max_size=10))
async def test_whatever_spellings_come_in_whatever_order_each_key_has_one_answer(shop: Shop, steps: list[tuple[bool, str]]) -> None:
    await shop.play(steps)
