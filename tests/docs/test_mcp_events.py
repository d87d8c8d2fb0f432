"""The messages of the page on events for MCP clients, in the order in which a client would send them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running, running
from tests.mcp.house import request, wire_headers
from transports.settings import MCP_EVENTS_DRAFT

PAGE = "mcp-events.md"
TEXT = (ROOT / "docs" / PAGE).read_text()


@pytest.fixture(scope="module")
def service(place: Path) -> Iterator[Running]:
    with running(place / "events", {"SERVICE_MCP_EVENTS": MCP_EVENTS_DRAFT}) as service:
        yield service


def sent(service: Running, number: int) -> dict[str, Any]:
    """The answer to one of the page's messages."""
    asked = json.loads(blocks("json", document=PAGE)[number].text)
    body = request(asked["method"], **asked["params"])
    headers = {**wire_headers(body), "authorization": f"Bearer {service.api_key}"}
    return httpx.post(f"{service.base_url}/mcp", json=body, headers=headers, timeout=60).json()


def test_a_poll_is_one_call_over_http(place: Path, service: Running) -> None:
    assert '"result":{"events":[],"cursor":"' in done(place, find("curl ", PAGE), **as_reader(service))
    assert len(blocks("sh", document=PAGE)) == 1


@pytest.mark.long
def test_the_messages_of_the_page_are_answered_as_it_says(service: Running) -> None:
    assert f"SERVICE_MCP_EVENTS={MCP_EVENTS_DRAFT}" in TEXT
    polled = sent(service, 0)["result"]
    assert polled["events"] == []
    assert {"cursor", "hasMore", "nextPollMs", "truncated"} <= polled.keys()
    refused = sent(service, 1)["error"]  # nobody is at an address of an example
    assert refused["code"] == -32015
    assert f"`{refused['data']['reason']}`" in TEXT
    ended = sent(service, 2)["error"]
    assert (ended["code"], ended["data"]["kind"]) == (-32011, "subscription")
    assert len(blocks("json", document=PAGE)) == 3
