"""The page of events: one section for each type, as Markdown and as HTML."""

from dataclasses import replace

import httpx
import pytest

from operations.catalogue import CATALOGUE
from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import AnyEventType
from operations.event_types.esim import ESIM_ISSUED
from tests.openapi.lamps import LAMPS
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.event_schemas import event_readers
from transports.reference.entries import build_reference
from transports.reference.files import EVENTS_PAGE, event_anchor, markdown_reference
from transports.reference.pages import HtmlReference, ReferencePages


@pytest.fixture(scope="module")
def markdown() -> dict[str, str]:
    return markdown_reference(CATALOGUE, COMMITTED_SITE)


@pytest.fixture(scope="module")
def html() -> str:
    text = HtmlReference(build_reference(CATALOGUE, COMMITTED_SITE)).events()
    assert text is not None
    return text


@pytest.mark.parametrize("event_type", EVENT_TYPES.values(), ids=lambda each: each.name)
def test_a_type_of_events_has_a_section_with_everything_that_is_declared(
    event_type: AnyEventType, markdown: dict[str, str], html: str
) -> None:
    section = markdown[EVENTS_PAGE].partition(f"\n## {event_type.name}\n")[2].partition("\n## ")[0]
    told = [f"- Since: {event_type.since}, version {event_type.version}.", event_type.about, f"- Who sees it: {event_readers(event_type)}"]
    assert [line for line in told if line not in section.splitlines()] == []
    members = event_type.data.__annotations__
    assert [name for name in members if f"| `{name}`" not in section] == []
    assert f'  "type": "{event_type.name}",' in section
    assert f"({EVENTS_PAGE}#{event_anchor(event_type)})" in markdown["README.md"]
    assert f'<h2 id="{event_type.name}">' in html
    assert f'href="#{event_type.name}"' in html


def test_who_sees_an_event_is_said_of_admins_and_of_others() -> None:
    issued = ESIM_ISSUED
    assert event_readers(issued) == "Whoever may read its line with `get_connectivity_intent` sees it."
    assert event_readers(replace(issued, line="")) == "Whoever may read what it is about with `get_connectivity_intent` sees it."
    assert event_readers(replace(issued, admin=True)) == "Admins of the organisation see it."


def test_no_toolset_has_the_address_of_the_page() -> None:
    assert "event-types" not in {toolset.name for toolset in CATALOGUE.toolsets}


async def test_a_catalogue_without_events_has_no_such_page() -> None:
    assert EVENTS_PAGE not in markdown_reference(LAMPS, COMMITTED_SITE)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(ReferencePages(LAMPS, COMMITTED_SITE)), base_url="http://127.0.0.1") as http:
        assert (await http.get("/docs/event-types")).status_code == 404
