"""The client of a model's endpoint: what it sends, what it takes, how it fails and how it ends."""

import asyncio
import logging
import subprocess
import sys
import traceback
from contextlib import aclosing
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from clients.model.port import ChatMessage, ModelError, TextDelta, ToolCall
from simulators.model.server import FAILURE_TEXT, ModelFault, ModelRequest, ModelTurn, ToolUse
from tests.model.server import QUESTION, QUICK_MODEL, TOOL, client_of, saying, whole_answer


async def test_a_text_comes_in_the_pieces_it_is_made_in() -> None:
    async with client_of(saying("All is well.")) as (client, _):
        assert await whole_answer(client) == [TextDelta("All "), TextDelta("is "), TextDelta("well.")]


async def test_a_request_says_what_the_wire_asks_for_and_nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: 1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with client_of(saying("Well.")) as (client, server):
        await whole_answer(client)
    [heard] = server.calls
    assert heard.body == snapshot(
        {
            "model": "small-1",
            "stream": True,
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How are you?"}],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "look",
                        "description": "Look somewhere.",
                        "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
                    },
                }
            ],
        }
    )
    assert sorted(set(heard.headers) - {"host", "content-length"}) == snapshot(
        ["accept", "accept-encoding", "authorization", "content-type", "user-agent"]
    )
    assert heard.headers["authorization"] == "Bearer sk-secret-of-ours"


async def test_an_endpoint_without_a_key_is_sent_none_and_the_environment_s_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    async with client_of(saying("Well."), replace(QUICK_MODEL, key="")) as (client, server):
        await whole_answer(client)
    assert "authorization" not in server.calls[0].headers


async def test_another_of_its_models_is_asked_by_name() -> None:
    async with client_of(saying("Well.")) as (client, server), aclosing(client.answer(QUESTION, [], model="large-1")) as pieces:
        assert [piece async for piece in pieces] == [TextDelta("Well.")]
    assert (server.calls[0].body["model"], "tools" in server.calls[0].body) == ("large-1", False)


async def test_tool_calls_are_put_together_and_answered_by_their_ids() -> None:
    def script(heard: ModelRequest) -> ModelTurn:
        if heard.results:
            return ModelTurn(f"I saw {heard.results[0]['seen']}.")
        return ModelTurn("Let me look. ", uses=(ToolUse("look", {"where": "über allem"}), ToolUse("look", "{broken")))

    async with client_of(script) as (client, server):
        said = await whole_answer(client)
        calls = tuple(each for each in said if isinstance(each, ToolCall))
        assert calls == (ToolCall("call_0", "look", '{"where": "\\u00fcber allem"}'), ToolCall("call_1", "look", "{broken"))
        turns = [ChatMessage("assistant", "Let me look. ", calls), ChatMessage("tool", '{"seen": 3}', call_id="call_0")]
        async with aclosing(client.answer([*QUESTION, *turns], [TOOL])) as pieces:
            assert "".join([piece.text async for piece in pieces if isinstance(piece, TextDelta)]) == "I saw 3."
    assert server.calls[1].messages[2:] == snapshot(
        [
            {
                "role": "assistant",
                "content": "Let me look. ",
                "tool_calls": [
                    {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": '{"where": "\\u00fcber allem"}'}},
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{broken"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_0", "content": '{"seen": 3}'},
        ]
    )


@pytest.mark.cases
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("unauthorized", "model_refused"),
        ("busy", "model_busy"),
        ("broken", "model_unavailable"),
        ("redirect", "model_refused"),
        ("endless_error", "model_too_long"),
        ("not_events", "model_broken"),
        ("breaks_off", "model_broken"),
        ("unfinished", "model_broken"),
        ("cut_short", "model_too_long"),
        ("filtered", "model_refused"),
        ("garbage", "model_broken"),
        ("deep", "model_broken"),
        ("wrong_types", "model_broken"),
        ("error_event", "model_broken"),
        ("endless", "model_too_long"),
        ("endless_line", "model_too_long"),
    ],
)
async def test_every_failure_has_a_code_and_tells_nothing_that_the_endpoint_said(
    fault: ModelFault, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with client_of(saying("One two three four.", fault), replace(QUICK_MODEL, wire_bytes=1 << 20)) as (client, server):
        with pytest.raises(ModelError) as raised:
            await whole_answer(client)
        await server.until(lambda: server.open == 0)
    assert raised.value.error_code == code
    told = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert not any(secret in told for secret in (FAILURE_TEXT, "sk-live", "10.0.0.7", "sk-secret-of-ours"))


async def test_what_was_said_before_it_broke_off_was_given_and_is_not_asked_for_again() -> None:
    said: list[TextDelta | ToolCall] = []
    async with client_of(saying("One two three four.", "breaks_off"), replace(QUICK_MODEL, repeats=2)) as (client, server):
        with pytest.raises(ModelError, match="broke off"):
            await whole_answer(client, said)
    assert (said, len(server.calls)) == ([TextDelta("One "), TextDelta("two ")], 1)


async def test_a_turn_that_failed_before_it_began_is_asked_for_once_more() -> None:
    async with client_of(lambda heard: ModelTurn("Now.", fault="" if len(tried) > 1 else "broken"), replace(QUICK_MODEL, repeats=1)) as (
        client,
        server,
    ):
        tried = server.calls
        assert await whole_answer(client) == [TextDelta("Now.")]
    assert len(server.calls) == 2


async def test_nobody_there_is_unavailable() -> None:
    async with client_of(saying("")) as (client, _):
        gone = client
    with pytest.raises(ModelError) as raised:
        await whole_answer(gone)
    await gone.aclose()
    assert raised.value.error_code == "model_unavailable"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("fault", "limits"), [("silent", {"first_seconds": 0.5}), ("stalls", {"idle_seconds": 0.2}), ("endless", {"turn_seconds": 0.2})]
)
async def test_each_time_limit_ends_the_call_at_the_endpoint(fault: ModelFault, limits: dict[str, float]) -> None:
    settings = replace(QUICK_MODEL, text_characters=1 << 40, wire_bytes=1 << 40, **limits)
    async with client_of(saying("One two three four.", fault), settings) as (client, server):
        with pytest.raises(ModelError) as raised:
            await whole_answer(client)
        await server.until(lambda: server.open == 0)
        assert (raised.value.error_code, server.hung_up) == ("model_timeout", 1)


async def test_closing_a_turn_ends_it_at_the_endpoint_and_leaves_no_task() -> None:
    async with client_of(saying("One two three four.", "stalls")) as (client, server):
        before = asyncio.all_tasks()
        async with aclosing(client.answer(QUESTION, [])) as pieces:
            assert await anext(pieces) == TextDelta("One ")
        await server.until(lambda: server.open == 0)
        assert server.hung_up == 1
        assert asyncio.all_tasks() <= before


async def test_a_task_that_is_cancelled_in_the_middle_ends_the_call_at_the_endpoint() -> None:
    async with client_of(saying("", "silent")) as (client, server):
        task = asyncio.create_task(whole_answer(client))
        await server.until(lambda: len(server.calls) == 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await server.until(lambda: server.open == 0)
    assert (task.cancelled(), server.hung_up) == (True, 1)


async def test_text_that_turns_around_hides_or_commands_a_terminal_is_taken_out() -> None:
    async with client_of(saying("a\x1b[31mb\u202ec\u200bd\ud800e\tf\ng")) as (client, _):
        said = await whole_answer(client)
    assert "".join(each.text for each in said if isinstance(each, TextDelta)) == "a[31mbcde\tf\ng"


@pytest.mark.long
async def test_too_many_tool_calls_and_too_long_arguments_are_refused() -> None:
    for uses in ((ToolUse("look"),) * 17, (ToolUse("look", "x" * 16_001),)):
        async with client_of(lambda heard, uses=uses: ModelTurn(uses=uses)) as (client, _):
            with pytest.raises(ModelError) as raised:
                await whole_answer(client)
            assert raised.value.error_code == "model_too_long"


def test_the_key_is_in_no_representation() -> None:
    assert "sk-secret" not in repr(QUICK_MODEL)


@pytest.mark.long
def test_nothing_slow_is_imported_before_the_first_call() -> None:
    program = "import sys, clients.model.client; print(len({'openai', 'httpx2', 'httpx', 'aiohttp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
