"""What the documents repeat is what the code says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import DOCUMENTS
from tests.docs.tables import TABLES, renewed
from tests.harness.processes import ROOT
from transports.settings import SETTING_PREFIX, Settings

LINK = re.compile(r"\[[^\]]*\]\(([^)#]*)(?:#([^)]*))?\)")
NO_PYTEST = "pytest is missing: `python3 ./run test tests/docs/test_tables.py` once installs the development packages; then try again"
LINKED = [*DOCUMENTS, ROOT / "examples" / "README.md", ROOT / "llms.txt"]


@pytest.mark.parametrize("document", TABLES)
def test_a_table_that_repeats_code_is_up_to_date(document: str) -> None:
    """`python -m tests.docs.tables` writes it anew."""
    assert (ROOT / document).read_text() == renewed(document)


def test_without_the_development_packages_nothing_is_written_and_the_fix_is_named() -> None:
    bare = "import runpy, sys; sys.modules['pytest'] = None; runpy.run_module('tests.docs.tables', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", bare], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{NO_PYTEST}\n")


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in addresses, as code hosts make it of them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", LINKED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_to_one_and_to_a_heading_of_it(document: Path) -> None:
    found = [
        (document.parent / name if name else document, anchor) for name, anchor in LINK.findall(document.read_text()) if "://" not in name
    ]
    assert [str(path) for path, _ in found if not path.exists()] == []
    known = {path: anchors(path) for path, anchor in found if anchor and path.suffix == ".md"}
    assert [(path.name, anchor) for path, anchor in found if anchor and anchor not in known[path]] == []


def test_the_changelog_keeps_to_its_format() -> None:
    headings = re.findall(r"^#+ .*$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["# Changelog", "## [Unreleased]"]
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {heading.removeprefix("### ") for heading in headings if heading.startswith("### ")} <= kinds


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(document: Path) -> None:
    known = {SETTING_PREFIX + name.upper() for name in Settings.model_fields} | {"SERVICE_SECRETS_DIR"}
    assert set(re.findall(r"SERVICE_[A-Z_]*[A-Z]", document.read_text())) - known == set()
