"""`reseller worker` as a process of its own."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import migrated_sqlite
from tests.harness.processes import Child, environment

WATCHED = """
import atexit, gc
gc.disable()  # as the command line begins
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000, gc.get_threshold()[0], flush=True))
from transports.cli.main import main
main()
"""


@pytest.mark.long
def test_what_a_worker_has_made_at_its_start_is_left_alone_by_the_collector_as_in_a_server(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    migrated_sqlite(tmp_path / "data")
    given = [sys.executable, "-P", "-c", WATCHED, "worker", "--data", str(tmp_path / "data")]
    pipe = subprocess.PIPE
    with Child(given, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["text"] == "worker runs"
        process.send_signal(signal.SIGTERM)
        said, faults = process.communicate(timeout=60)
    assert (said, json.loads(faults)["kind"], process.returncode) == ("True True 20000\n", "stopped", 0)
