"""Every command of the guide for API developers, as it is written, and what the page says of the answers."""

import json
import re
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks
from tests.docs.reader import ADDRESS, as_reader, done, find
from tests.harness.processes import ROOT, Running

PAGE = "guide-programs.md"
TWICE, LISTS, WRONG = STARTS = ("for try in 1 2", "first=$(curl", 'curl -s "$RESELLER_URL/v1/subscribers?limit=0"')


@pytest.mark.cases
@pytest.mark.parametrize(
    "block", [block for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)], ids=lambda b: b.text[:40]
)
def test_a_command_runs_as_it_is_written(block: Block, place: Path, server: Running) -> None:
    assert done(place, block.text.replace(ADDRESS, server.base_url), **as_reader(server))


def test_the_second_answer_under_a_key_is_the_first_one_and_says_so(place: Path, server: Running) -> None:
    said = done(place, find(TWICE, PAGE), **as_reader(server)).replace("\r", "").splitlines()
    assert [line for line in said if not line.startswith("{")] == [
        "HTTP/1.1 201 Created",
        "HTTP/1.1 201 Created",
        "idempotent-replayed: true",
    ]
    first, second = (json.loads(line) for line in said if line.startswith("{"))
    assert first == second


def test_a_refusal_has_the_members_of_the_table(place: Path, server: Running) -> None:
    refusal = json.loads(done(place, find(WRONG, PAGE), **as_reader(server)))
    table = (ROOT / "docs" / PAGE).read_text().partition("| Member | Holds |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(refusal)


def test_both_kinds_of_lists_have_a_next_page(place: Path, server: Running) -> None:
    done(place, find(TWICE, PAGE).replace("order-7001", "order-7002"), **as_reader(server))
    page, _, link = done(place, find(LISTS, PAGE), **as_reader(server)).lower().partition("link: ")
    assert json.loads(page)["object"] == "list"
    assert 'rel="next"' in link
