"""Every command of the page on the assistant, with the simulated model as a server of its own; and its figures are those of the code."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from pydantic.fields import FieldInfo

from clients.model.port import ModelFailure, ModelSettings
from operations.assistant.chat import (
    CHAT_BODY_LIMIT,
    CHAT_CALLS,
    CHAT_CHARACTERS,
    CHAT_ROUNDS,
    CHAT_SECONDS,
    KEEP_ALIVE_SECONDS,
    LONGEST_TOOL_ANSWER,
    MOST_TOOL_CHARACTERS,
    MOST_TOOLS,
    TOOLSET_ORDER,
    Chat,
    Said,
)
from operations.assistant.insights import INSIGHTS_MODEL_SECONDS, MOST_CARDS
from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import TIERS
from registry.redaction import READABLE_CHARACTERS_LIMIT as LONGEST_TEXT
from simulators.model.fleet_script import FLEET_SKILLS
from simulators.model.server import ModelRequest, ModelTurn
from tests.assistant.stage import open_assistant_stage
from tests.databases import migrated_sqlite
from tests.docs.blocks import blocks
from tests.docs.reader import done, find, other_blocks, shell
from tests.docs.test_simulated_network import port_of_a_run
from tests.harness.processes import ROOT

PAGE = "assistant.md"
CONNECT, TRY, ASK = STARTS = ("export SERVICE_MODEL_URL", "reseller sandbox model", 'curl -N -s "$RESELLER_URL/v1/ai/chat"')
QUESTION = '{"messages": [{"role": "user", "content": "How many lines do I have?"}]}'


class Pair(NamedTuple):
    """A model, and what a reader of the service that has it knows."""

    model: str
    folder: Path
    reader: dict[str, str]


@pytest.fixture(scope="module")
def pair(place: Path) -> Iterator[Pair]:
    """Both started by the page's own commands, on ports that are free."""
    folder, port = place / "assistant", str(port_of_a_run())
    folder.mkdir()
    migrated_sqlite(folder)
    text = find(TRY, PAGE).replace("8092", port).replace("reseller serve", "reseller serve --json")
    with shell(place, text, SERVICE_DATA=str(folder)) as both:
        try:
            assert both.stdout is not None
            lines = list[str]()
            while not any(line.startswith("{") for line in lines) or not any(line.startswith("simulated model at ") for line in lines):
                lines.append(next(both.stdout))
            [served] = [json.loads(line) for line in lines if line.startswith("{")]
            reader = {"RESELLER_URL": served["base_url"], "RESELLER_API_KEY": served["api_key"]}
            yield Pair(f"http://127.0.0.1:{port}/v1", folder, reader)
        finally:
            os.killpg(both.pid, signal.SIGTERM)
            both.communicate(timeout=60)


def text() -> str:
    return (ROOT / "docs" / PAGE).read_text()


@pytest.mark.long
def test_the_question_of_the_page_is_answered_as_it_shows(place: Path, pair: Pair) -> None:
    """But for how often was asked, and when."""
    quota = re.compile(r'"used":\d+,"remaining":\d+,"resets_at":"[^"]+"')
    [shown] = blocks("text", document=PAGE)
    assert QUESTION in find(ASK, PAGE)
    assert quota.sub("", done(place, find(ASK, PAGE), **pair.reader)).strip() == quota.sub("", shown.text).strip()


@pytest.mark.long
def test_the_command_line_shows_an_event_a_line_in_a_pipe(place: Path, pair: Pair) -> None:
    [command] = re.findall(r"`(reseller call ai_chat --json-input )'", text())
    said = done(place, f"{command}'{QUESTION}'", **pair.reader)
    assert [json.loads(line)["name"] for line in said.splitlines()] == ["quota", "delta", "delta", "done"]


@pytest.mark.long
def test_doctor_asks_the_model_that_the_page_names(place: Path, pair: Pair) -> None:
    said = done(place, find(CONNECT, PAGE).replace("https://models.example/v1", pair.model), SERVICE_DATA=str(pair.folder))
    assert f"ok   model      {pair.model} " in said
    assert "small-1" in said


def test_every_command_of_the_page_is_run() -> None:
    assert other_blocks(PAGE, *STARTS) == []


def test_the_page_names_every_operation_and_every_failure() -> None:
    calls = [f"{o.method} {o.path}" for o in CATALOGUE.operations.values() if CATALOGUE.toolset_of[o.id] == "assistant"]
    assert [name for name in (*calls, *ModelFailure) if f"`{name}`" not in text()] == []


async def test_a_model_is_given_as_many_tools_as_the_page_says(tmp_path: Path) -> None:
    heard = list[ModelRequest]()

    def listen(said: ModelRequest) -> ModelTurn:
        heard.append(said)
        return ModelTurn("Well.")

    async with open_assistant_stage(tmp_path) as stage:
        stage.follow(listen)
        await stage.chat("What can you do?")
    tools = [each["function"] for each in cast("list[dict[str, dict[str, Any]]]", heard[0].body["tools"])]
    size = sum(len(tool["name"]) + len(tool["description"]) + len(json.dumps(tool["parameters"], separators=(",", ":"))) for tool in tools)
    [(count, characters)] = re.findall(r"some (\d+) operations, ([\d,]+) characters of definitions", text())
    assert abs(len(tools) - int(count)) <= 3, len(tools)
    assert abs(size - int(characters.replace(",", ""))) <= 1500, size


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    limits, model = [TIERS[tier].ai_calls_per_day for tier in (Tier.FREE, Tier.PRO, Tier.ENTERPRISE)], ModelSettings("", ())
    messages, content = (most(field) for field in (Chat.model_fields["messages"], Said.model_fields["content"]))
    told = (
        (limits, "free 10, pro 200, enterprise 2,000", [10, 200, 2000]),
        ((CHAT_BODY_LIMIT, messages, content), "64 KiB, 64 messages, 16,000 characters each", (64 * 1024, 64, 16_000)),
        ((MOST_TOOLS, MOST_TOOL_CHARACTERS, TOOLSET_ORDER[-1]), "at most 128 and 50,000, the toolset `setup` last", (128, 50_000, "setup")),
        (
            (CHAT_ROUNDS, CHAT_CALLS, LONGEST_TOOL_ANSWER, CHAT_CHARACTERS),
            "8 rounds, 24 calls, 20,000 characters of one answer, 120,000 of all",
            (8, 24, 20_000, 120_000),
        ),
        (
            (model.first_seconds, model.idle_seconds, model.turn_seconds, model.text_characters),
            "60 s to its first piece, 30 s between two, 180 s in all; 64,000 characters",
            (60, 30, 180, 64_000),
        ),
        (model.repeats, "is asked for once more", 1),
        ((CHAT_SECONDS, KEEP_ALIVE_SECONDS), "300 s; a comment every 15 s", (300, 15)),
        ((INSIGHTS_MODEL_SECONDS, MOST_CARDS), "60 s, 6 cards", (60, 6)),
        (LONGEST_TEXT, "at most 2,000 characters each", 2000),
        (len(FLEET_SKILLS), "answers ten questions", 10),
    )
    page = " ".join(text().split())
    assert [words for number, words, meant in told if number != meant or words not in page] == []


def test_every_toolset_but_the_chat_s_own_has_its_place_among_those_that_a_model_is_given() -> None:
    assert {*TOOLSET_ORDER, "assistant"} == {toolset.name for toolset in CATALOGUE.toolsets}


def most(field: FieldInfo) -> int:
    return next(rule.max_length for rule in field.metadata if hasattr(rule, "max_length"))
