"""The two walks of CONTRIBUTING: how many files somebody writes by hand to add an operation, tried in a copy of the tree."""

import os
import shutil
import subprocess
import sys
from filecmp import cmp
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.harness.processes import ROOT

SKIPPED = shutil.ignore_patterns(".git", ".venv", "data", "__pycache__", ".*_cache", "node_modules")
GENERATED = ("docs/openapi.json", "docs/reference/", "llms.txt")
"""What CONTRIBUTING names under "What is generated", without the tables, which take half a minute."""
CHECKS = ("test_rows.py", "test_examples.py", "test_bad_input.py", "test_tiers.py", "test_doors.py", "test_texts.py")
ITS_TEST_AND_CHANGELOG = 2
UPSTREAM_READ = '''
"""How many sponsors the SIMs roam with."""

from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.upstream.connection import connect_upstream
from operations.upstream.paging import Data
from operations.upstream.resellers import ResellerQuery, read_of_reseller, resolve_reseller
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation


class SponsorCount(TypedDict):
    """How many sponsors there are."""

    sponsors: int


@operation(
    "GET", "/v1/sponsor-count", upstream=True, raises=[NotFound, OcsError], examples=[Example("How many?", {}, {"data": {"sponsors": 2}})]
)
async def count_sponsors(ctx: Ctx, params: ResellerQuery) -> Data[SponsorCount]:
    """Count the sponsors whose IMSI ranges your SIMs roam with."""
    upstream = await connect_upstream(ctx)
    reseller = await resolve_reseller(upstream, params.reseller_id)
    rows = await read_of_reseller(params.reseller_id, upstream.ocs.reseller.list_sponsor(reseller))
    return {"data": {"sponsors": len(rows)}}
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources."""
    return Path(shutil.copytree(ROOT, tmp_path / "tree", ignore=SKIPPED))


def run_in(tree: Path, *arguments: str) -> str:
    """The output of Python in the copy, where it succeeds."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def generate_and_check(tree: Path, operation: str) -> None:
    """Writes the generated files anew, and runs the contract tests of the one operation."""
    reseller = ("-c", "from transports.cli.main import main; main()")
    (tree / "docs/openapi.json").write_text(run_in(tree, *reseller, "openapi"))
    (tree / "llms.txt").write_text(run_in(tree, *reseller, "llms"))
    run_in(tree, *reseller, "reference")
    assert all(operation in (tree / path).read_text() for path in ("docs/openapi.json", "llms.txt", "docs/reference/README.md"))
    checks = (f"tests/contract/{name}" for name in CHECKS)
    run_in(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", operation, *checks)


def written_by_hand(tree: Path) -> set[str]:
    """The files of the copy that differ from the tree's, without those that are generated."""
    files = [file.relative_to(tree).as_posix() for file in tree.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    changed = {file for file in files if not (ROOT / file).is_file() or not cmp(tree / file, ROOT / file, shallow=False)}
    return {file for file in changed if not file.startswith(GENERATED)}


def test_an_operation_of_our_own_store_is_added_by_hand_in_four_files_at_most(tree: Path) -> None:
    [block] = blocks("python", document="CONTRIBUTING.md")
    (tree / "operations/connectivity/estimates.py").write_text(block.text)
    generate_and_check(tree, "estimate_data")
    assert len(written_by_hand(tree)) + ITS_TEST_AND_CHANGELOG <= 4


def test_a_read_of_the_charging_system_is_added_by_hand_in_six_files_at_most(tree: Path) -> None:
    (tree / "operations/accounts/sponsor_counts.py").write_text(UPSTREAM_READ)
    calls = tree / "tests/faults/rows.py"
    row = '    CallRow("list_sponsors", ("getResellerInfo", "listSponsor")),\n'
    assert row in calls.read_text()
    calls.write_text(calls.read_text().replace(row, f'{row}    CallRow("count_sponsors", ("getResellerInfo", "listSponsor")),\n'))
    generate_and_check(tree, "count_sponsors")
    assert len(written_by_hand(tree)) + ITS_TEST_AND_CHANGELOG <= 6
