"""The commands of the page on many lines, and its list of actions."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from operations.changes.plans.changes import ACTION_FIELDS
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running
from tests.mcp.house import request, wire_headers

PAGE = "changes.md"


@pytest.mark.long
def test_lines_are_suspended_by_a_plan_and_active_again_after_its_undoing(place: Path, server: Running) -> None:
    said = done(place, find("reseller plan set-status SUSPENDED", PAGE), **as_reader(server))
    planned = re.search(r"(\d+) to change, 0 skipped", said)
    assert planned is not None
    assert int(planned[1]) > 0
    assert said.count("set_status  applied") == 4
    assert said.count(f"{planned[1]} planned  {planned[1]} done") == 2


@pytest.mark.long
def test_the_same_is_planned_applied_and_planned_back_with_curl(place: Path, server: Running) -> None:
    said = done(place, find('curl -s "$RESELLER_URL/v1/changes"', PAGE), **as_reader(server))
    applying, applied, back = whole_answers(said)
    assert applying["state"] in ("applying", "applied") and applied["state"] == "applied" and applied["counts"]["done"] > 0
    assert (back["state"], back["counts"]["planned"]) == ("planned", applied["counts"]["done"])
    done(place, f"reseller plan apply {back['id']}", **as_reader(server))


def whole_answers(text: str) -> list[dict[str, Any]]:
    """The answers that stand behind each other in what curl has printed."""
    decoder, place, found = json.JSONDecoder(), 0, list[dict[str, Any]]()
    while place < len(text.rstrip()):
        body, place = decoder.raw_decode(text, place)
        found.append(body)
    return found


@pytest.mark.long
def test_the_call_over_mcp_plans_a_set_in_the_toolset_that_the_page_names(server: Running) -> None:
    page = (ROOT / "docs" / PAGE).read_text()
    [block] = blocks("json", document=PAGE)
    asked = json.loads(block.text)
    sent = request(asked["method"], **asked["params"])
    where = re.search(r"connect to `(/mcp\?toolsets=changes)`", page)
    assert where is not None
    said = httpx.post(server.base_url + where[1], json=sent, headers={**wire_headers(sent), "authorization": f"Bearer {server.api_key}"})
    answer = said.json()["result"]["structuredContent"]
    assert (answer["action"], answer["state"]) == ("set_status", "planned") and answer["id"].startswith("chg_") and answer["digest"]


def test_the_list_of_actions_is_the_one_that_there_is() -> None:
    section = (ROOT / "docs" / PAGE).read_text().partition("## Actions")[2].partition("\n\nActions")[0]
    assert re.findall(r"`(\w+)`(?: \(with `push`\))?", section.replace("(with `push`)", "")) == list(ACTION_FIELDS)
