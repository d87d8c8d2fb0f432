"""Clients that people use, against one server as a user starts it: each reads the tools, is refused, confirms, and repeats a call."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import Selection
from tests.interop.test_official_clients import INSPECTOR, MODULES, NODE
from tests.running import ROOT, Running, running

HERE = Path(__file__).parent
ADAPTERS = MODULES / "@langchain" / "mcp-adapters"
FASTMCP = ROOT / ".venv-clients" / "bin" / "python"
REPLAYED = "This is the stored answer of an earlier call with the same idempotency_key; nothing was done again."

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


def command(client: str) -> list[str | Path]:
    """What walks with a client."""
    if client in ("fastmcp", "official"):
        return [FASTMCP if client == "fastmcp" else sys.executable, "-P", HERE / "walk.py", client]
    return [NODE, HERE / "walk.mjs", MODULES, client]


def walked(server: Running, client: str) -> dict[str, Any]:
    """What came of a walk."""
    done = subprocess.run([*command(client), server.mcp_url, str(server.api_key)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "client",
    [
        *(pytest.param(name, marks=needs_node) for name in ("typescript-1", "typescript-2", "typescript-2-modern", "langchain")),
        pytest.param("fastmcp", marks=needs_fastmcp),
        "official",
    ],
)
def test_a_client_reads_refusals_confirms_with_the_token_and_sees_a_replay(server: Running, client: str) -> None:
    said = walked(server, client)
    shown = CATALOGUE.chosen(Selection())
    assert said["names"] == [id for id in CATALOGUE.operations if id in shown]

    refused = said["refused"]
    assert refused["refused"] and refused.get("value") is None
    assert json.loads(refused["texts"][0])["code"] == "not_found"
    challenge = json.loads(said["challenge"]["texts"][0])
    assert said["challenge"]["refused"] and challenge["message"].startswith("This will send one SMS")
    assert (said["sent"]["refused"], said["sent"]["value"]) == (False, {"data": {"sent": True, "unicode": False, "length": 5}})

    first, again = said["first"], said["again"]
    assert not first["refused"], first["texts"]
    assert (first["value"]["status"], first["value"]["plan"]["id"]) == ("succeeded", "test_eu_1gb")
    assert [json.loads(first["texts"][0])] == [first["value"]]
    assert (again["value"], again["texts"]) == (first["value"], [*first["texts"], REPLAYED])


def inspect(server: Running, name: str, *arguments: str) -> dict[str, Any]:
    """One call by the inspector, which ends with an error after a refusal, but prints it."""
    words = ["--cli", server.mcp_url, "--header", f"Authorization: Bearer {server.api_key}", "--transport", "http"]
    given = [word for argument in arguments for word in ("--tool-arg", argument)]
    done = subprocess.run(
        [NODE, INSPECTOR, *words, "--method", "tools/call", "--tool-name", name, *given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return json.loads(done.stdout)


@pytest.mark.node
@pytest.mark.skipif(not INSPECTOR.exists(), reason="the Node tools are not installed: npm ci in tools/node")
def test_the_inspector_shows_a_challenge_and_takes_its_token(server: Running) -> None:
    line = walked(server, "official")["challenge"]["texts"][0].partition("iccid ")[2][:19]
    challenge = inspect(server, "send_sms", f"iccid={line}", "message=Hello")
    assert challenge["isError"] and "structuredContent" not in challenge
    token = json.loads(challenge["content"][0]["text"])["confirm_token"]
    sent = inspect(server, "send_sms", f"iccid={line}", "message=Hello", f"confirm_token={token}")
    assert sent["structuredContent"] == {"data": {"sent": True, "unicode": False, "length": 5}}
