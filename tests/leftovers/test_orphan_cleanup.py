"""A run leaves nothing, however it ends."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import ramdisk
from tests.harness import orphan_cleanup
from tests.harness.processes import Child

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import signal, subprocess, sys
from pathlib import Path
from tests import ramdisk
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
folder = ramdisk.use()
"""
FULL = """
from tests.databases import server_url
from tests.harness.fork_server import reseller
server_url()
words = [reseller(), "serve", "--port", "0", "--data", folder / "data", "--json"]
server = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
server.stdout.readline()
"""
WAIT = """
print(folder, flush=True)
sys.stdin.read()
"""
LONGEST = 60_000
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="who works in a folder is told by /proc")


def end_of(program: str, place: Path, how: signal.Signals | None) -> Path:
    """Play a run until it waits, end it by a signal or as it ends by itself, and wait for its clean-up. Which folder it had."""
    words, pipe = [sys.executable, "-c", RUN + program + WAIT], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(place)}
    with Child(words, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdin is not None and run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        waiting = heirs(folder)
        assert folder.name == f"{ramdisk.PREFIX}{run.pid}" and len(waiting) == 1
        if how is None:
            run.stdin.close()
        else:
            run.send_signal(how)
        for descriptor in waiting:
            assert select.select([descriptor], [], [], LONGEST / 1000)[0], "its clean-up still waits"
            os.close(descriptor)
    return folder


def heirs(folder: Path) -> list[int]:
    """Those of a run, as descriptors that can be read once they have ended."""
    wanted = [os.fsencode(orphan_cleanup.__file__), os.fsencode(folder)]
    return [
        os.pidfd_open(pid)
        for pid in orphan_cleanup.workers(folder)
        if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[2:4] == wanted
    ]


@pytest.mark.long
@pytest.mark.postgres
def test_a_killed_run_leaves_no_server_no_database_and_no_folder(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as place:  # the socket of a database needs a short path
        Path(place).chmod(0o755)
        folder = end_of(FULL, Path(place), signal.SIGKILL)
        assert (list(orphan_cleanup.workers(folder)), list(Path(place).iterdir())) == ([], [])


@pytest.mark.cases
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None])
def test_no_other_end_leaves_anything_either(tmp_path: Path, how: signal.Signals | None) -> None:
    end_of('subprocess.Popen(["sleep", "1000"], start_new_session=True)', tmp_path, how)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_next_run_removes_what_was_left_and_what_still_works_there_but_not_what_is_in_use(tmp_path: Path) -> None:
    left, used = tmp_path / f"{ramdisk.PREFIX}{os.getpid()}", tmp_path / f"{ramdisk.PREFIX}1"
    for folder in (left, used):
        (folder / "data").mkdir(parents=True)
    lock = ramdisk.taken(used)
    assert lock is not None
    with Child(["sleep", "1000"], env={"TMPDIR": str(left / "data"), "PATH": os.environ["PATH"]}) as orphan:
        end_of("", tmp_path, None)
        assert orphan.wait(60) == -signal.SIGKILL
    os.close(lock)
    assert list(tmp_path.iterdir()) == [used]
