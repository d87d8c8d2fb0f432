"""The first page: its commands run as a reader runs them, its blocks are those that `serve` prints, its pictures have words."""

import json
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

from registry.ports import Site
from tests.docs.blocks import Block, blocks, every_block
from tests.docs.reader import ADDRESS, NOT_RUN, as_reader, done, find, unrun
from tests.harness.processes import ROOT, Running
from transports.cli.serve import first_esim_curl, mcp_client_block

README = (ROOT / "README.md").read_text()
FIRST, GENERATE = f"curl -s {ADDRESS}", "reseller reference"
MOST_BYTES, MOST_LINES = 60_000, 120
LEAST_OF_PAGE, LEAST_OF_CARD = 800, 600
"""Pixels of a picture's shorter side."""
SITE = Site(base_url=ADDRESS, upgrade_url="", connect_url="", docs_url="", mcp_url=f"{ADDRESS}/mcp", sign_in_url="")


@pytest.mark.parametrize(
    "block",
    [
        block
        for name in ("README.md", "CONTRIBUTING.md")
        for block in blocks("sh", document=name)
        if not (unrun(block) or block.text.startswith((FIRST, GENERATE)))  # these have tests of their own
    ],
    ids=lambda block: f"{block.document}:{block.text.split(chr(10))[0][:50]}",
)
def test_a_shell_block_runs_as_it_is_written(block: Block, place: Path, server: Running) -> None:
    done(place, block.text.replace(ADDRESS, server.base_url), **as_reader(server))


@pytest.mark.long
def test_what_is_generated_is_what_is_committed(place: Path) -> None:
    """But for the tables, which take half a minute to write: they are compared by test_tables.py and tests/spec."""
    *commands, tables = find(GENERATE, "CONTRIBUTING.md").splitlines(keepends=True)
    assert tables == "python -m tests.docs.tables\n"
    said = done(place, "".join(commands))
    for path in ("docs/openapi.json", "docs/asyncapi.json", "llms.txt", *(f"docs/reference/{name}" for name in ("README.md", "events.md"))):
        assert (place / path).read_bytes() == (ROOT / path).read_bytes(), path
    assert "docs/reference/README.md\n" in said


def test_the_first_curl_issues_a_test_esim_and_is_the_one_that_serve_prints(place: Path, server: Running) -> None:
    text = find(FIRST)
    assert shlex.split(text.replace("\\\n", "")) == shlex.split(first_esim_curl(SITE, "$RESELLER_API_KEY"))
    intent = json.loads(done(place, text.replace(ADDRESS, server.base_url), **as_reader(server)))
    assert (intent["status"], intent["livemode"]) == ("succeeded", False)
    assert intent["esim"]["activation_code"].startswith("LPA:1$")


def test_the_command_line_repeats_the_curl_and_gets_the_same_esim(place: Path, server: Running) -> None:
    [short] = re.findall(r"`(reseller call create_connectivity_intent [^`]*)`", README)
    command = find("reseller call create_connectivity_intent", "tour.md")
    assert command.strip() == short
    texts = (find(FIRST), short)
    first, second = (json.loads(done(place, text.replace(ADDRESS, server.base_url), **as_reader(server))) for text in texts)
    assert first == second


def test_the_mcp_block_is_the_one_that_serve_prints() -> None:
    [block] = blocks("json", document="README.md")
    assert block.text.strip() == mcp_client_block(SITE, "ak_...")


def test_the_page_fits_a_few_screens() -> None:
    assert README.count("\n") <= MOST_LINES


def test_the_pictures_are_small_and_somebody_who_does_not_see_them_is_told_what_they_show() -> None:
    """`python -m tests.docs.pictures` takes them anew."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    picture_in_text = re.compile(r"!\[([^\]]*)\]\(([^)]*pictures/[^)]*)\)")
    shown = [(page, words, path) for page in pages for words, path in picture_in_text.findall(page.read_text())]
    pictures = [(words, (page.parent / path).relative_to(ROOT)) for page, words, path in shown]
    assert sorted(path.name for _, path in pictures) == sorted(file.name for file in (ROOT / "docs/pictures").iterdir())
    for words, path in pictures:
        assert len(words) > 60
        assert (ROOT / path).stat().st_size < MOST_BYTES
        with Image.open(ROOT / path) as picture:
            assert picture.format == "PNG" and min(picture.size) >= (LEAST_OF_CARD if path.name.startswith("card-") else LEAST_OF_PAGE)


def test_what_is_not_run_is_there_and_still_in_a_document() -> None:
    assert [start for start in NOT_RUN if not any(start in unrun(block) for block in blocks("sh"))] == []
    files = [file for needed, _ in NOT_RUN.values() for file in needed]
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_every_block_is_in_a_language_that_a_test_knows() -> None:
    """sh, python and json are run or compared; text is for people."""
    assert {block.language for block in every_block()} <= {"sh", "python", "json", "text"}
    assert {(block.document, block.language) for block in blocks("python", "json")} == {
        ("README.md", "json"),
        ("changes.md", "json"),
        ("CONTRIBUTING.md", "python"),
        ("guide-agents.md", "python"),
        ("intelligence.md", "json"),
        ("mcp-events.md", "json"),
    }


def test_every_document_with_commands_has_a_test_that_runs_them() -> None:
    tested = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    names = {Path(block.document).stem.lower().removeprefix("guide-").replace("-", "_") for block in blocks("sh")}
    # Run with the page on invoices; a generated page, whose command is one of the tests; one that its own command writes (tests/trial).
    elsewhere = {"payments", "conformance", "proofs"}
    assert names - tested - elsewhere == set()
