"""The commands of the page on the fleet as a whole, and its table of causes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from operations.intelligence.verdicts.advice import STEPS
from operations.intelligence.verdicts.rules import RULES
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running

PAGE = "fleet.md"


@pytest.mark.long
def test_the_first_look_answers_problems_lines_a_number_and_a_status(place: Path, server: Running) -> None:
    said, decoder, found = done(place, find("reseller call fleet_problems", PAGE), **as_reader(server)), json.JSONDecoder(), list[Any]()
    while "{" in said:
        answer, end = decoder.raw_decode(said[said.index("{") :])
        said = said[said.index("{") + end :]
        found.append(answer)
    problems, lines, count, status = found
    assert problems["data"]["lines_with_problems"] >= len(problems["data"]["lines"]) == 3
    assert {row["country"] for row in lines["data"]} == {"NO"}
    assert count["count"] > 0
    assert status["status"] in ("up_to_date", "catching_up")
    assert status["lines"] == 140


def test_the_table_of_causes_is_the_one_of_the_rules_in_its_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| `(\w+)`", (ROOT / "docs" / PAGE).read_text().partition("## Problems")[2], re.MULTILINE)
    assert rows == [(cause, STEPS[cause].operation) for cause in RULES]
