"""Clients that people use, against one server as a user starts it: each reads the tools, is refused, confirms, and repeats a call."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import ToolSelection
from tests.conformance.test_conformance import MODULES, NODE
from tests.harness.processes import ROOT, Running, running
from tests.interop.walk import walk
from transports.mcp.calls import REPLAY_REMARK

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
ADAPTERS = MODULES / "@langchain" / "mcp-adapters"
FASTMCP = ROOT / ".venv-clients" / "bin" / "python"
FROM_NPM = ("typescript-1", "typescript-2-legacy", "typescript-2-auto", "typescript-2-2026-07-28", "langchain")

needs_node = [
    pytest.mark.node,
    pytest.mark.skipif(not (NODE.exists() and ADAPTERS.exists()), reason="the Node tools are not installed: npm ci in tools/node"),
]
needs_fastmcp = [
    pytest.mark.clients,
    pytest.mark.skipif(not FASTMCP.exists(), reason="FastMCP is not installed: .ci/run makes .venv-clients from requirements-clients.txt"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("clients") / "data") as server:
        yield server


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*words], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def from_npm(server: Running) -> Callable[[str], dict[str, Any]]:
    """The walks of the clients from npm, all in one process once one of them is asked for."""

    @cache
    def walks() -> dict[str, Any]:
        return answered(NODE, HERE / "walk.mjs", MODULES, server.mcp_url, str(server.api_key), *FROM_NPM)

    return lambda client: walks()[client]


def answered(*command: str | Path) -> dict[str, Any]:
    done = run(*command)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def said(client: str, server: Running, from_npm: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """The walk of one client."""
    if client in FROM_NPM:
        return from_npm(client)
    given = (client, server.mcp_url, str(server.api_key))
    return asyncio.run(walk(*given)) if client == "official" else answered(FASTMCP, "-P", HERE / "walk.py", *given)


@pytest.mark.parametrize(
    "client",
    [*(pytest.param(name, marks=needs_node) for name in FROM_NPM), pytest.param("fastmcp", marks=needs_fastmcp), "official"],
)
def test_a_client_reads_refusals_confirms_with_the_token_and_sees_a_replay(said: dict[str, Any]) -> None:
    assert "failed" not in said, said["failed"]
    shown = CATALOGUE.chosen(ToolSelection())
    assert said["names"] == [id for id in CATALOGUE.operations if id in shown]

    refused = said["refused"]
    assert refused["refused"] and refused.get("value") is None
    assert json.loads(refused["texts"][0])["code"] == "not_found"
    sentence, body = said["challenge"]["texts"][0].split("\n")
    challenge = json.loads(body)
    assert sentence == f"Not done yet: {challenge['message']}"
    assert said["challenge"]["refused"] and challenge["message"].startswith("This will send one SMS")
    assert (said["sent"]["refused"], said["sent"]["value"]) == (False, {"data": {"sent": True, "unicode": False, "length": 5}})

    first, again = said["first"], said["again"]
    assert not first["refused"], first["texts"]
    assert (first["value"]["status"], first["value"]["plan"]["id"]) == ("succeeded", "test_eu_1gb")
    assert first["value"]["esim"]["activation_code"].startswith("LPA:1$")
    assert [json.loads(first["texts"][0])] == [first["value"]]
    assert (again["value"], again["texts"]) == (first["value"], [*first["texts"], REPLAY_REMARK])


def inspected(server: Running, era: str, *words: str) -> subprocess.CompletedProcess[str]:
    """One run of the inspector. It ends with an error after a refusal, but prints it."""
    header = f"Authorization: Bearer {server.api_key}"
    return run(NODE, INSPECTOR, "--cli", server.mcp_url, "--header", header, "--transport", "http", "--protocol-era", era, *words)


def called(server: Running, era: str, name: str, **arguments: str) -> dict[str, Any]:
    """What a tool answers the inspector, which reads arguments as JSON where it can."""
    given = [word for each, value in arguments.items() for word in ("--tool-arg", f"{each}={json.dumps(value)}")]
    done = inspected(server, era, "--method", "tools/call", "--tool-name", name, *given)
    return json.loads(done.stdout)


@pytest.mark.parametrize("era", [pytest.param("legacy", marks=needs_node)])
def test_the_inspector_finds_nothing_wrong_with_the_tools(server: Running, era: str) -> None:
    done = inspected(server, era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {tool["name"] for tool in json.loads(done.stdout)["tools"]} >= {"create_connectivity_intent", "get_connectivity_intent"}


@pytest.mark.parametrize("era", [pytest.param("modern", marks=needs_node)])
def test_the_inspector_shows_a_challenge_and_takes_its_token(server: Running, era: str) -> None:
    message = {"iccid": "8988303700000100286", "message": "Hello"}
    challenge = called(server, era, "send_sms", **message)
    assert challenge["isError"] and "structuredContent" not in challenge
    sentence, body = challenge["content"][0]["text"].split("\n")
    assert sentence.startswith("Not done yet: This will send one SMS")
    token = json.loads(body)["confirm_token"]
    sent = called(server, era, "send_sms", **message, confirm_token=token)
    assert sent["structuredContent"] == {"data": {"sent": True, "unicode": False, "length": 5}}
