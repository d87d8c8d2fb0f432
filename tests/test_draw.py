"""What `run test` leaves out, drawn by the real pytest command in a folder of a few tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from tests import command, draw
from tests.draw import ALWAYS, LARGE, ONE_IN, TALLY, Draw, changed_files, drawn, usual_key
from tests.harness.processes import ROOT

KEYS = [f"commit-{number}" for number in range(80)]
"""After so many commits a test that was never drawn is one in 40,000."""
NAMES = [f"tests/kill/test_kills.py::test_{number}" for number in range(200)]
TESTS = """
import pytest
from tests.draw import drawn

ROWS = [f"row-{number}" for number in range(30)]

@pytest.mark.parametrize("row", drawn(ROWS, __file__))
def test_row(row): ...

@pytest.mark.long
@pytest.mark.parametrize("number", range(30))
def test_long(number): ...

@pytest.mark.cases
@pytest.mark.parametrize("case", ["sqlite", "postgresql"])
@pytest.mark.parametrize("number", range(30))
def test_case(number, case): ...

@pytest.mark.cases
@pytest.mark.parametrize("number", range(2))
class TestFew:
    def test_one(self, number): ...
    def test_other(self, number): ...

def test_quick(): ...
"""
TOGETHER = """
import pytest
pytestmark = pytest.mark.long

@pytest.mark.parametrize("number", range(10))
def test_one(number): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_few.py").write_text(TESTS)
    for name in "abcdefghij":
        (tmp_path / f"test_{name}.py").write_text(TOGETHER)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def collected(folder: Path, *words: str) -> tuple[set[str], str]:
    """The tests that pytest collects, and all it says."""
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    plugins = ("xdist.plugin", "_hypothesis_pytestplugin", "inline_snapshot.pytest_plugin", "no:cacheprovider", "tests.draw_plugin")
    command = [sys.executable, "-P", "-m", "pytest", *(word for plugin in plugins for word in ("-p", plugin)), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, timeout=120, env=alone)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.split()[0] for line in done.stdout.splitlines() if "::test_" in line}, done.stdout


def test_a_key_draws_the_same_tests_again_and_another_key_draws_others(folder: Path) -> None:
    words = "--collect-only", "-q", "--draw"
    (first, _), (again, _), (other, _) = (collected(folder, *words, key) for key in ("3fa2c1", "3fa2c1", "77aa00"))
    everything, _ = collected(folder, "--collect-only", "-q")
    assert first == again != other
    assert len(everything) == 30 + 30 + 60 + 4 + 1 + 100
    assert "test_few.py::test_quick" in first & other
    for kind in ("test_row", "test_long"):
        assert 1 <= len([each for each in first if kind in each]) <= 15
    assert 1 <= len([each for each in first if "test_case" in each]) <= 20
    for each in "::test_case[", "TestFew::test_one[", "TestFew::test_other[":  # of cases one is always drawn
        assert any(each in name for name in first) and any(each in name for name in other)
    for name in "abcdefghij":  # what bears the mark as a file is drawn as a file
        assert len([each for each in first if each.startswith(f"test_{name}.py")]) in (0, 10)


def test_a_run_on_workers_says_what_was_drawn_and_how_to_repeat_it(folder: Path) -> None:
    _, said = collected(folder, "-n", "2", "--draw", "3fa2c1")
    drawn, _ = collected(folder, "--collect-only", "-q", "--draw", "3fa2c1")
    long = len([each for each in drawn if "test_row" not in each and "test_quick" not in each])
    rows = len([each for each in drawn if "test_row" in each])
    assert f"drawn by 3fa2c1: one in {ONE_IN} of the long tests, of the cases of a rule and of the operations" in said
    counted = f"{long} of 194 long tests and cases, {rows} of 30 operations"
    assert f"drawn by 3fa2c1: {counted} (TEST_DRAW=3fa2c1 repeats it, run test --whole" in said
    assert f"{len(drawn)} passed, {194 - long} deselected" in said


def test_of_few_rows_one_is_always_drawn_and_what_has_changed_is_tried_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TALLY, "rows", {})
    operation = CATALOGUE.operations["list_invoices"]
    declared = operation.module.replace(".", "/") + ".py"
    for key in KEYS:
        monkeypatch.setattr(TALLY, "draw", Draw(key))
        assert drawn([operation], __file__) == [operation]
    untaken = next(key for key in KEYS if not Draw(key).takes(operation.id))
    monkeypatch.setattr(TALLY, "draw", Draw(untaken, frozenset({declared})))
    rows = [*NAMES, operation]
    assert operation in drawn(rows, __file__) and len(drawn(rows, __file__)) < len(rows)
    monkeypatch.setattr(TALLY, "draw", Draw(untaken, frozenset({"tests/test_draw.py"})))
    assert drawn(rows, __file__) == rows


def test_every_test_is_drawn_sooner_or_later_and_a_commit_draws_about_its_share() -> None:
    taken = {key: {name for name in NAMES if Draw(key).takes(name)} for key in KEYS}
    assert set[str]().union(*taken.values()) == set(NAMES)
    assert len({frozenset(each) for each in taken.values()}) == len(KEYS)
    shares = [len(each) * ONE_IN / len(NAMES) for each in taken.values()]
    assert 0.9 < sum(shares) / len(shares) < 1.1
    assert all(Draw(key).takes(name) for key in KEYS for name in ALWAYS)
    assert all(Draw().takes(name) for name in NAMES)


def test_what_is_worked_on_is_what_the_last_commit_changed_unless_it_is_a_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    last = ["tests/kill/test_kills.py", "run"]

    def said(*words: str) -> str | None:
        return "\0".join({"HEAD": ["run"], "HEAD~1": last}.get(words[-1], ["tests/new.py"])) + "\0"

    monkeypatch.setattr(draw, "git", said)
    assert changed_files() == {"tests/kill/test_kills.py", "run", "tests/new.py"}
    last += [f"tests/{number}.py" for number in range(LARGE)]
    assert changed_files() == {"run", "tests/new.py"}
    monkeypatch.setattr(draw, "git", lambda *_: None)
    assert changed_files() == frozenset()
    monkeypatch.delenv("TEST_DRAW", raising=False)  # a run of somebody who set it
    assert len(usual_key()) == 6


def test_a_commit_names_its_own_draw() -> None:
    assert [name for name in changed_files() if name.startswith("/")] == []
    assert usual_key() == usual_key() != ""


def test_named_files_and_the_whole_are_never_drawn_and_the_rest_is_by_the_key_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def main(words: list[str], plugins: object = None) -> int:
        asked.append(words)
        return 0

    monkeypatch.setattr(pytest, "main", main)
    monkeypatch.setattr(command, "QUICK", {})
    monkeypatch.setattr(command, "BIN", ROOT / "tests" / "no-such-folder")
    monkeypatch.setattr(command, "Types", Checked)
    monkeypatch.setenv("TEST_DRAW", "3fa2c1")
    for words in ([], ["--whole"], ["tests/kill/test_points.py"]):
        assert command.main(words) == 0
    assert asked == [[*command.SPREAD, "--draw", "3fa2c1"], [*command.SPREAD], ["tests/kill/test_points.py"]]


class Checked:
    """The check of the types, already done."""

    def __init__(self, output: object) -> None: ...

    def said(self) -> None: ...

    def end(self) -> None: ...


def test_the_command_leaves_plugins_of_pytest_to_pytest() -> None:
    """A plugin that is there before pytest begins ends the run with a warning that counts as an error."""
    said = "import sys, tests.command; print([name for name in sys.modules if name in ('xdist', 'tests.draw_plugin')])"
    done = subprocess.run(
        [sys.executable, "-P", "-c", said], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_help_says_what_a_drawn_run_does_not_prove(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "--whole" in said and "TEST_DRAW=KEY" in said
    assert "does not prove that a long test which it left out still passes" in " ".join(said.split())
