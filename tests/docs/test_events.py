"""Every command of the page on events, against a service."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.event_types.catalogue import EVENT_TYPES
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running, running

PAGE, WEBHOOKS_PAGE = "events.md", "webhooks.md"
LIST, TAIL, STREAM, ENDPOINT, ALERTS = (
    "reseller call list_event_types",
    "reseller trigger",
    "curl -s ",
    "endpoint=$(reseller call",
    "reseller call set_alerts",
)


@pytest.fixture(scope="module")
def service(place: Path) -> Iterator[Running]:
    with running(place / "told", {}) as service:
        yield service


@pytest.fixture
def reader(service: Running) -> dict[str, str]:
    return as_reader(service)


def test_the_types_that_are_asked_for_are_listed(place: Path, reader: dict[str, str]) -> None:
    listed = [each["type"] for each in json.loads(done(place, find(LIST, PAGE), **reader))["data"]]
    assert listed == [name for name in EVENT_TYPES if name.startswith(("order.", "organisation.balance_"))]


@pytest.mark.long
def test_what_happens_is_followed_and_read_as_a_stream(place: Path, reader: dict[str, str]) -> None:
    made, tailed = map(json.loads, done(place, find(TAIL, PAGE), **reader).splitlines())
    assert made["type"] == "esim.issued" and tailed == made
    by_cursor, _, by_header = done(place, find(STREAM, PAGE), **reader).strip().partition("\n\n: events")
    for told in (by_cursor, by_header):
        assert f'"{made["id"]}"' in told and 'event: end\ndata: {"reason":"done"' in told


@pytest.mark.long
def test_an_endpoint_chooses_and_is_tried(place: Path, reader: dict[str, str]) -> None:
    said = done(place, find(ENDPOINT, WEBHOOKS_PAGE), **reader)
    assert '"order.*"' in said and '"order.paid"' in said and '"The desk that looks after orders"' in said
    assert said.count('"object": "connectivity.delivery"') == 2, "the test send stands in both lists"


@pytest.mark.long
def test_alerts_are_shown(place: Path, reader: dict[str, str]) -> None:
    assert done(place, find(ALERTS, PAGE), **reader).count('"days_to_close": 21') == 2


def test_every_command_of_the_page_is_run() -> None:
    starts = (LIST, TAIL, "reseller events tail", STREAM, ALERTS)  # to follow is tried by test_webhooks.py
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(starts)] == []


def test_the_page_is_linked() -> None:
    assert "(events.md)" in (ROOT / "docs" / "README.md").read_text()
