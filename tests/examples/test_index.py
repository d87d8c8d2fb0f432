"""Every example is in the index, says how it is run, and is run by a test."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.harness.processes import ROOT

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
INDEX = (ROOT / "examples" / "README.md").read_text()
RUN_BY = {"recompute_invoice": "money_month"}


def test_the_index_has_every_program_and_no_other() -> None:
    assert sorted(re.findall(r"^\| \[(\w+\.py)\]\(\1\)", INDEX, re.MULTILINE)) == [path.name for path in PROGRAMS]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_says_how_it_is_run_and_a_test_does_so(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert f"python examples/{path.name}" in said
    assert f"{path.name}" in (ROOT / "tests" / "examples" / f"test_{RUN_BY.get(path.stem, path.stem)}.py").read_text()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_index_says_what_a_program_needs(path: Path) -> None:
    imported = set(re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.MULTILINE)) - set(sys.stdlib_module_names)
    [needs] = re.findall(rf"^\| \[{path.name}\].*\| (.*) \|$", INDEX, re.MULTILINE)
    brought = {"mcp", "httpx2", "mcp_types", "pydantic"}  # mcp itself needs the others
    assert needs == ("the standard library" if not imported else "`mcp`" if "mcp" in imported else "`httpx`")
    assert imported <= (brought if "mcp" in imported else {"httpx"})
