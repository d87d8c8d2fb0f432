"""`python3 run`: what it adds to the help of the commands. The packages are there; a shell stands in for their Python."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from tests.harness.processes import ROOT


def loaded(place: Path) -> ModuleType:
    loader = SourceFileLoader("run_of_a_clone", str(place))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone that is set up; its Python says with which words it was started, and ends with 3."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("run", "pyproject.toml", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    python.chmod(0o755)
    run = loaded(tmp_path / "run")
    for group in ("serve", "test"):
        (tmp_path / ".venv" / f"ready-{group}").write_text(run.digest(group))
    return tmp_path / "run"


def ended(clone: Path, *words: str) -> list[str]:
    done = subprocess.run([sys.executable, clone, *words], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_help_names_the_words_that_are_no_commands_of_reseller(clone: Path, words: tuple[str, ...]) -> None:
    modules: Mapping[str, str] = loaded(clone).MODULES
    first, *rest = ended(clone, *words)
    assert first == " ".join(["-P", "-m", "transports.cli", *words])
    assert {line.split()[0] for line in rest if line.startswith("   ")} == modules.keys() - {"serve"}


def test_what_is_asked_of_a_command_has_nothing_added(clone: Path) -> None:
    assert ended(clone, "serve", "--help") == ["-P -m transports.cli serve --help"]
    assert ended(clone, "fuzz", "--help") == ["-P -m tests.fuzz.main --help"]
