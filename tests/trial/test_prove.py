"""What `run prove` keeps of a part: its closing lines with the revision, once, in the order of the parts; and nothing of one cut off."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from benchmarks.__main__ import uncommitted_files
from tests.trial.main import PROOFS_PAGE
from tests.trial.prove import LONG_PROOFS, Part, ProofCutOff, keep_row, prove, row_of, run_part

ABOUT = {"revision": "1a2b3c4", "date": "2026-11-28"}
SAYS = "import sys; print('one'); print(); print('==== 2 passed in 3 s ===='); sys.exit({code})"


def saying(code: int) -> list[str]:
    return [sys.executable, "-c", SAYS.format(code=code)]


def test_a_part_that_comes_to_its_end_is_told_by_its_last_lines_and_by_whether_it_held() -> None:
    held, failed = run_part(Part((), 2), saying(0)), run_part(Part(("a|b",)), saying(1))
    assert (held.figures, held.held) == ("one; ==== 2 passed in 3 s ====", True)
    assert row_of("kills", Part(("kill", "--runs", "5")), failed, ABOUT) == snapshot(
        "| kills | `python3 ./run kill --runs 5` | 1a2b3c4 | 2026-11-28 | 2 passed in 3 s | 0 min | **no** |"
    )


def test_a_part_that_is_cut_off_leaves_the_page_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "proofs.md"
    page.write_text(PROOFS_PAGE.read_text())
    killed = [sys.executable, "-c", "import os, signal; print('half', flush=True); os.kill(os.getpid(), signal.SIGKILL)"]
    with pytest.raises(ProofCutOff):
        run_part(Part(()), killed)
    assert prove(["fuzz, MCP"], killed, page) == 2
    assert page.read_text() == PROOFS_PAGE.read_text()
    assert "fuzz, MCP: cut off, which counts as not run" in capsys.readouterr().out


def test_a_part_that_is_interrupted_ends_what_it_has_started(tmp_path: Path) -> None:
    """`began` and `tidy` are files: the part makes the one when it waits, and the other when it was told to end."""
    began, tidy, main = tmp_path / "began", tmp_path / "tidy", threading.get_ident()

    def interrupt() -> None:
        for _ in range(2000):
            if began.exists():
                break
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    waiting = f"""
import pathlib, time
try:
    pathlib.Path({str(began)!r}).touch()
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path({str(tidy)!r}).touch()
"""
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(ProofCutOff):
        run_part(Part(()), [sys.executable, "-c", waiting])
    thread.join()
    assert tidy.exists()


def test_a_part_has_one_row_in_the_order_of_the_parts_and_what_stands_around_the_table_stays() -> None:
    page, names = PROOFS_PAGE.read_text(), list(LONG_PROOFS)
    for name in (names[2], names[0], names[2]):
        page = keep_row(page, name, f"| {name} | `x` | r | d | said | 1 min | yes |")
    rows = [line.split(" | ")[0].strip("| ") for line in page.partition("## At full length")[2].partition("\n## ")[0].splitlines()]
    found = [row for row in rows if row in LONG_PROOFS]
    assert found == sorted(found, key=names.index) and found.count(names[2]) == 1 == found.count(names[0])
    outside = [part.partition("## At full length")[0] for part in (page, PROOFS_PAGE.read_text())]
    assert outside[0] == outside[1] and page.endswith(PROOFS_PAGE.read_text()[-500:])


def test_documents_that_are_not_committed_leave_the_revision_what_it_is(tmp_path: Path) -> None:
    """The row of the part before is one."""
    for name in ("docs/proofs.md", "CHANGELOG.md", "benchmarks/samples/get.json", "tests/new.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("new")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert uncommitted_files(tmp_path) == ["tests/"]


def test_a_page_without_the_section_is_told_of() -> None:
    with pytest.raises(SystemExit, match="no section 'At full length'"):
        keep_row("# Proofs\n", "fuzz, MCP", "| fuzz, MCP |")
