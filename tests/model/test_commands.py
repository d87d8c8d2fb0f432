"""The command line and a model: doctor asks it, `call ai_chat` shows what it says, `sandbox model` is one."""

import asyncio
import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from operations.assistant.chat import CHAT_SECONDS, KEEP_ALIVE_SECONDS
from operations.catalogue import CATALOGUE
from operations.connectivity.destinations.event_stream import HEARTBEAT_SECONDS, STREAM_SECONDS_LIMIT
from simulators.model.fleet_script import fleet_script
from simulators.model.server import ModelRequest, ModelScript, ModelTurn, model_server
from tests.cli.reseller import printed, run_reseller
from tests.cli.terminal import at_terminal
from tests.harness.processes import COMMAND, Child, environment, running
from transports.cli.target import ANSWER_PATIENCE_SECONDS, answer_patience


def asked(question: str) -> tuple[str, ...]:
    return ("call", "ai_chat", "--json-input", json.dumps({"messages": [{"role": "user", "content": question}]}))


@contextmanager
def served(script: ModelScript) -> Generator[dict[str, str]]:
    """A model in a thread of its own; the settings that name it."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    serving = model_server(script, key="sk-of-the-test")
    url, _ = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
    try:
        yield {"SERVICE_MODEL_URL": url, "SERVICE_MODEL_NAME": "small-1", "SERVICE_MODEL_KEY": "sk-of-the-test"}
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_doctor_asks_the_model_for_its_list(tmp_path: Path) -> None:
    assert "ok   model      none: " in printed("doctor", cwd=tmp_path, SERVICE_PORT="0")
    with served(fleet_script) as settings:
        shown = printed("doctor", cwd=tmp_path, SERVICE_PORT="0", **settings)
    assert f"ok   model      {settings['SERVICE_MODEL_URL']} accepts our key, small-1\n" in shown
    assert "sk-of-the-test" not in shown
    done = run_reseller("doctor", cwd=tmp_path, SERVICE_PORT="0", **settings)
    assert "BAD  model      " in done.stdout and "does not answer (refused)" in done.stdout


def stopping(heard: ModelRequest) -> ModelTurn:
    """Like the other, but for one question."""
    return ModelTurn("One two\x1b[2J three four.", fault="breaks_off") if "Stop" in heard.question else fleet_script(heard)


@pytest.mark.long
def test_an_answer_is_read_at_a_terminal_and_parsed_in_a_pipe(tmp_path: Path) -> None:
    with served(stopping) as settings, running(tmp_path / "data", settings) as server:
        there = {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}
        events = [json.loads(line) for line in printed(*asked("How many lines do I have?"), cwd=tmp_path, **there).splitlines()]
        assert [events[0]["name"], events[-1]["name"]] == ["quota", "done"]
        assert "".join(event["data"].get("text", "") for event in events) == "140 lines."
        code, shown = at_terminal(*asked("How many lines do I have?"), cwd=tmp_path, settings=there)
        lines = shown.replace("\r", "").splitlines()
        assert (code, lines[0], lines[2].split(" ", 1)[0], lines[2].endswith("AI calls used today")) == (0, "140 lines.", "2", True)
        code, shown = at_terminal(*asked("Stop!"), cwd=tmp_path, settings=there)
        assert code == 1 and shown.startswith("One two[2J") and "broke off" in shown and "[model_broken]" in shown
        done = run_reseller(*asked("Stop!"), cwd=tmp_path, **there)
        assert (done.returncode, json.loads(done.stdout.splitlines()[-1])["name"]) == (1, "error")


def test_an_answer_by_url_is_waited_for_longer_than_a_chat_may_last() -> None:
    longest = {operation.id: answer_patience(operation) for operation in CATALOGUE.operations.values()}
    assert longest.pop("ai_chat") > CHAT_SECONDS + KEEP_ALIVE_SECONDS
    assert longest.pop("stream_events") > STREAM_SECONDS_LIMIT + HEARTBEAT_SECONDS
    assert set(longest.values()) == {ANSWER_PATIENCE_SECONDS}


@pytest.mark.long
def test_a_simulated_model_is_served_and_says_how_to_use_it(tmp_path: Path) -> None:
    command = [*COMMAND, "sandbox", "model", "--port", "0", "--key", "sk-of-the-test"]
    with Child(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline().strip() for _ in range(5)]
            settings = dict(line.split("=", 1) for line in lines if line.startswith("SERVICE_"))
            assert settings.keys() == {"SERVICE_MODEL_URL", "SERVICE_MODEL_NAME", "SERVICE_MODEL_KEY"}
            assert "accepts our key, simulated-1" in printed("doctor", cwd=tmp_path, SERVICE_PORT="0", **settings)
        finally:
            process.terminate()
