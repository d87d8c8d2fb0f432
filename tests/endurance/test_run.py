"""The command itself, for some seconds: all that it drives answers, and all ledgers agree. Whether memory is flat needs longer runs."""

import json
import subprocess
import sys
from pathlib import Path

from tests.endurance.memory import Memory, Sample, judged
from tests.harness.processes import ROOT, environment

SHORT = ("--minutes", "0.1", "--engine", "sqlite", "--capacity-seconds", "1", "--share", "0.3", "--seed", "7", "--outages")


def test_a_few_seconds_of_everything_leave_ledgers_that_agree(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "tests.endurance.main", *SHORT, "--out", str(tmp_path), "--work", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=240, check=False)
    assert "memory is not judged" in done.stdout
    kept = tmp_path / "endurance-sqlite.json"
    assert kept.exists(), done.stdout + done.stderr
    result = json.loads(kept.read_text())
    facts, rows = result["facts"], result["rows"]
    assert set(facts["outages"]) == {"charging system", "payment processor", "receivers of webhooks"}
    assert (facts["broken"], facts["unspecified"], facts["complaints"]) == ([], {}, []), done.stdout
    answered = {row["kind"] for row in rows if row["row"] == "status" and row["status"] in (200, 201)}
    assert answered >= {"GET intent", "POST intent", "MCP tools/call", "POST records"}
    assert [row["process"] for row in rows if row["row"] == "memory"] == ["server"]


def test_memory_is_flat_when_its_last_third_is_not_above_its_first_one() -> None:
    def grown(per_second: float, warm: float = 0.0) -> Memory:
        return judged("server", [Sample(float(at), 300.0, 100.0 + per_second * at + warm * min(at, 200)) for at in range(0, 1000, 2)])

    assert grown(0.0).flat and grown(0.0, warm=1.0).flat
    leaking = grown(0.02)
    assert (leaking.flat, leaking.mb_per_hour, leaking.samples) == (False, 72.0, 400)
    assert (leaking.resident_first_mb, leaking.resident_last_mb) == (300.0, 300.0)
