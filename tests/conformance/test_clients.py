"""Clients that others wrote, against the service's own server over a real socket."""

import json
import subprocess
from typing import Any

import pytest

from tests.conformance.fixture_server import serving_fixtures
from tests.conformance.test_conformance import MODULES, NODE
from tests.harness.processes import ROOT

INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
CLIENT = MODULES / "@modelcontextprotocol" / "client"

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(not (NODE.exists() and INSPECTOR.exists() and CLIENT.exists()), reason="tools/node is not installed: npm ci"),
]
LEGACY, MODERN = "2025-11-25", "2026-07-28"


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(NODE), *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.long
@pytest.mark.parametrize("server", ["catalogue", "whole_sdk"])
def test_the_typescript_client_is_served_in_every_mode_it_has(server: str) -> None:
    with serving_fixtures(server) as url:
        done = node(str(ROOT / "tests" / "conformance" / "clients.mjs"), url)
    seen: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    same = {"tools": 15, "writes": 1, "refused": True, "steps": 2, "contents": 1, "messages": 1}
    assert seen == [
        {"mode": "legacy", "version": LEGACY, "asked": 0, "removed": False, **same},
        {"mode": "legacy, asks", "version": LEGACY, "asked": 0, "removed": False, **same},
        {"mode": "auto", "version": MODERN, "asked": 0, "removed": False, **same},
        {"mode": "auto, asks", "version": MODERN, "asked": 1, "removed": True, **same},
        {"mode": "pinned", "version": MODERN, "asked": 0, "removed": False, **same},
    ]
