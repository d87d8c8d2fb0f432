"""How often the assistant may be asked: reserved before the model runs, kept whatever becomes of it, never oversold."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from registry.policy import quota_period
from simulators.model.server import ModelRequest, ModelTurn
from storage.quota import read_quota_used
from tests.assistant.stage import AssistantStage, Event, events_of, open_assistant_stage, user
from transports.worker.retention import retention_chore


async def charged(stage: AssistantStage) -> int:
    organisation, period = stage.me.organisation, quota_period(stage.world.clock.now())
    leased = stage.world.blocks.unspent(organisation, period)
    return await stage.world.store.read(read_quota_used, organisation=organisation, period=period.name) - leased


@pytest.mark.long
@pytest.mark.rule("7.20")
async def test_of_64_chats_at_once_with_10_left_exactly_10_are_answered(tmp_path: Path, database_url: str | None) -> None:
    async with open_assistant_stage(tmp_path, url=database_url, tier=Tier.FREE) as stage:
        answers = await asyncio.gather(*(stage.http.post("/v1/ai/chat", json=user("Well?")) for _ in range(64)))
        assert Counter(answer.status_code for answer in answers) == {200: 10, 429: 54}
        streams = [events_of(answer.content) for answer in answers if answer.status_code == 200]
        assert sorted(events[0].data["used"] for events in streams) == list(range(1, 11))
        assert sorted(events[0].data["remaining"] for events in streams) == list(range(10))
        assert len(stage.model.calls) == 10
        refused = [answer.json() for answer in answers if answer.status_code == 429]
        assert {(body["code"], body["limit"], body["used"]) for body in refused} == {("quota_exceeded", 10, 10)}
        allowance = await stage.allowance()
        assert (allowance["used"], allowance["limit"]) == (10, 10)


@pytest.mark.long
async def test_the_refusal_says_when_the_next_day_begins(tmp_path: Path) -> None:
    async with open_assistant_stage(tmp_path, tier=Tier.FREE) as stage:
        for _ in range(10):
            await stage.chat("Well?")
        before = await charged(stage)
        refused = await stage.http.post("/v1/ai/chat", json=user("Well?"))
        assert refused.json() == snapshot(
            {
                "error": "The daily allowance of 10 AI calls is used up; it starts again at 2027-01-16T00:00:00Z",
                "code": "quota_exceeded",
                "request_id": "req_01mcckg2g0000000000000000j",
                "hint": "Every other operation works on; ai_quota tells what is left",
                "limit": 10,
                "used": 10,
                "reset_at": "2027-01-16T00:00:00Z",
                "upgrade_url": "https://reseller.test/upgrade",
            }
        )
        assert refused.headers["retry-after"] == "43201"
        assert await charged(stage) == before  # what was refused is not charged
        stage.world.clock.advance(43_200)
        assert (await stage.chat("Well?"))[0].data["used"] == 1


@pytest.mark.parametrize(("tier", "limit"), [(Tier.FREE, 10), (Tier.PRO, 200), (Tier.ENTERPRISE, 2000)])
@pytest.mark.rule("4.8.4")
async def test_each_tier_has_its_allowance_and_reading_it_uses_nothing(tmp_path: Path, tier: Tier, limit: int) -> None:
    async with open_assistant_stage(tmp_path, tier=tier) as stage:
        for _ in range(3):
            assert (await stage.allowance())["limit"] == limit
        assert (await stage.allowance())["used"] == await charged(stage) == 0


@pytest.mark.rule("4.8.4")
async def test_whether_there_is_a_model_and_what_is_left_are_told_apart(tmp_path: Path) -> None:
    async with open_assistant_stage(tmp_path, settings=None, tier=Tier.FREE) as stage:
        assert await stage.allowance() == snapshot(
            {"available": False, "limit": 10, "used": 0, "remaining": 10, "resets_at": "2027-01-16T00:00:00Z"}
        )


async def test_without_a_model_the_chat_ends_with_an_error_and_the_allowance_is_spent(tmp_path: Path) -> None:
    async with open_assistant_stage(tmp_path, settings=None) as stage:
        assert await stage.chat("Well?") == snapshot(
            [
                Event(name="quota", data={"limit": 2000, "used": 1, "remaining": 1999, "resets_at": "2027-01-16T00:00:00Z"}),
                Event(
                    name="error",
                    data={
                        "error": "The language model cannot be reached",
                        "code": "model_unavailable",
                        "request_id": "req_01mcckg2g00000000000000008",
                        "hint": "This deployment has none: SERVICE_MODEL_URL names one",
                    },
                ),
            ]
        )
        assert (await stage.allowance())["used"] == 1


@pytest.mark.parametrize("fault", ["broken", "breaks_off", "garbage"])
@pytest.mark.rule("4.8.2")
async def test_a_model_that_fails_has_spent_the_allowance(stage: AssistantStage, fault: str) -> None:
    stage.follow(lambda heard: ModelTurn("One two three four.", fault=fault))  # pyright: ignore[reportArgumentType]  # one of the faults
    assert (await stage.chat("Well?"))[-1].name == "error"
    assert (await stage.allowance())["used"] == 1


@pytest.mark.rule("4.8.2")
@pytest.mark.rule("7.20")
async def test_the_allowance_is_committed_before_the_model_hears_of_anything(stage: AssistantStage, tmp_path: Path) -> None:
    seen: list[object] = []

    def script(heard: ModelRequest) -> ModelTurn:
        del heard
        with closing(sqlite3.connect(tmp_path / "service.db")) as others:
            seen.extend(others.execute("select used from quota where organisation like 'ai:%'").fetchall())
        return ModelTurn("Well.")

    stage.follow(script)
    await stage.chat("Well?")
    assert seen == [(1,)]


async def test_organisations_have_allowances_of_their_own(stage: AssistantStage) -> None:
    other = await stage.world.caller(Tier.FREE)
    async with stage.world.client(other.secret) as http:
        assert (await stage.chat("Well?", http))[0].data["limit"] == 10
    assert (await stage.allowance())["used"] == 0


async def test_counts_of_past_days_are_forgotten(stage: AssistantStage) -> None:
    await stage.chat("Well?")
    day = quota_period(stage.world.clock.now()).name
    for days, used in [(1, 1), (1, 0)]:
        stage.world.clock.advance(days * 86_400)
        await retention_chore(stage.world.store, stage.world.clock, print).run()
        assert await stage.world.store.read(read_quota_used, organisation=f"ai:{stage.me.organisation}", period=day) == used
