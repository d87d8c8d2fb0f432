"""The commands of the page on many lines, and its list of actions."""

import re
from pathlib import Path

from operations.changes.plans.changes import ACTION_FIELDS
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running

PAGE = "changes.md"


def test_lines_are_suspended_by_a_plan_and_active_again_after_its_undoing(place: Path, server: Running) -> None:
    said = done(place, find("reseller plan set-status SUSPENDED", PAGE), **as_reader(server))
    planned = re.search(r"(\d+) to change, 0 skipped", said)
    assert planned is not None
    assert int(planned[1]) > 0
    assert said.count("set_status  applied") == 4
    assert said.count(f"{planned[1]} planned  {planned[1]} done") == 2


def test_the_list_of_actions_is_the_one_that_there_is() -> None:
    section = (ROOT / "docs" / PAGE).read_text().partition("## Actions")[2].partition("\n\nActions")[0]
    assert re.findall(r"`(\w+)`(?: \(with `push`\))?", section.replace("(with `push`)", "")) == list(ACTION_FIELDS)
