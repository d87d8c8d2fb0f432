"""Production needs no simulator: with real systems configured, a service starts where nothing of `simulators` can be imported."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.harness.processes import ROOT, running

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "simulators":
            raise ModuleNotFoundError(f"no {name} here")

sys.path.insert(0, sys.argv.pop(1))
sys.meta_path.insert(0, Absent())
from transports.cli.main import main
main()
"""
PROGRAM = (sys.executable, "-P", "-c", WITHOUT, str(ROOT))
NOBODY = "http://127.0.0.1:1"
"""Loopback, where nothing listens: the real systems are configured and cannot be reached."""
REAL = {
    "SERVICE_OCS_URL": f"{NOBODY}/v1",
    "SERVICE_OCS_TOKEN": "a-token-of-the-real-network",
    "SERVICE_PAYMENTS_KEY": "sk_test_a1b2c3d4e5",
    "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_a1b2c3d4e5",
    "SERVICE_PAYMENTS_URL": NOBODY,
    "SERVICE_PAYMENTS_CONNECT_URL": NOBODY,
    "SERVICE_PAYMENTS_CLIENT_ID": "ca_a1b2c3d4e5",
}


@pytest.mark.long
def test_a_service_with_real_systems_starts_without_the_simulators(tmp_path: Path) -> None:
    with running(tmp_path / "data", REAL, program=PROGRAM) as server, httpx.Client(base_url=server.base_url, timeout=60) as http:
        health, ready = http.get("/health"), http.get("/health/ready")
    assert (health.status_code, health.json()["ok"]) == (200, True)
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})
    assert "simulators" not in (tmp_path / "data.log").read_text()


@pytest.mark.long
def test_a_service_that_simulates_does_not(tmp_path: Path) -> None:
    """What shows that the program above has none: a processor that is not configured is simulated."""
    words = [*PROGRAM, "serve", "--port", "0", "--data", str(tmp_path / "data"), "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "ModuleNotFoundError: no simulators" in done.stderr
