"""GET /docs and below."""

import base64
import hashlib
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser

import httpx
import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.catalogue import Catalogue
from tests.openapi.lamps import LAMPS
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.event_schemas import described_event_types
from transports.reference.pages import ReferencePages

PATHS = ["/docs", "/docs/lamps", "/docs/lamps/create_lamp", "/docs/nothing"]
LOADING = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}


def open_docs(catalogue: Catalogue) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(ReferencePages(catalogue, COMMITTED_SITE)), base_url="http://127.0.0.1")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with open_docs(LAMPS) as client:
        yield client


class Page(HTMLParser):
    """Tags with their attributes, and the texts between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def links(self) -> list[str]:
        return [attributes.get("href") or "" for tag, attributes in self.tags if tag == "a"]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_loads_nothing_and_runs_nothing(client: httpx.AsyncClient, path: str) -> None:
    page = Page((await client.get(path)).text)
    assert [tag for tag, _ in page.tags if tag in LOADING] == []
    assert [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name in ("style", "src")] == []
    assert [link for link in page.links() if not link.startswith(("/", "#"))] == []


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_comes_with_the_headers_of_public_html(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers={"Accept-Encoding": "identity"})
    style = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    assert len(style) == 1
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    headers = dict(answer.headers)
    policy = headers.pop("content-security-policy")
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert headers == {
        "content-type": "text/html; charset=utf-8",
        "content-length": str(len(answer.content)),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "x-robots-tag": "noindex",
        "vary": "Accept-Encoding",
    }


@pytest.mark.long
@pytest.mark.parametrize("catalogue", [CATALOGUE, LAMPS], ids=["service", "lamps"])
async def test_every_link_leads_somewhere_and_every_operation_is_reached(catalogue: Catalogue) -> None:
    async with open_docs(catalogue) as client:
        waiting, seen = ["/docs"], dict[str, Page]()
        while waiting:
            path = waiting.pop()
            if path not in seen and path not in ("/openapi.json", "/asyncapi.json", "/console"):
                answer = await client.get(path)
                assert answer.status_code == 200, path
                page = seen[path] = Page(answer.text)
                waiting += [link.partition("#")[0] for link in page.links() if link.startswith("/")]
    names = {path.rpartition("/")[2] for path in seen}
    assert set(catalogue.operations) <= names
    assert ("/docs/event-types" in seen) == bool(described_event_types(catalogue))
    for path, page in seen.items():
        anchors = {attributes.get("id") for _, attributes in page.tags}
        assert {link[1:] for link in page.links() if link.startswith("#")} <= anchors, path


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_is_made_for_readers_of_every_kind(client: httpx.AsyncClient, path: str) -> None:
    page = Page((await client.get(path)).text)
    assert ("html", {"lang": "en"}) in page.tags
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    assert page.links()[0] == "#content"
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")
    assert all(attributes.get("aria-label") for tag, attributes in page.tags if tag in ("nav", "pre"))
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.tags


async def test_an_operation_is_told_whole(client: httpx.AsyncClient) -> None:
    page = Page((await client.get("/docs/lamps/create_lamp")).text)
    lines = [line.strip() for words in page.words for line in words.splitlines() if line.strip()]
    assert " ".join(lines[lines.index("Create lamp", 5) : lines.index("Over MCP")]) == snapshot(
        "Create lamp Remove lamp Blink lamp Get lamp card Dim lamp Get lamp picture Reference / lamps Create lamp Order a "
        "lamp. POST /v1/lamps It comes unlit . See <b> list_lamps </b>. Operation id create_lamp , also the name of the MCP "
        "tool Credential An API key, or the session token of a signed-in person. Access Write: the tiers pro and enterprise. "
        "Repeating X-Idempotency-Key is required; the answer of a key is kept for good and given again. Approval Answers 202 "
        "where the credential is held to wait for a person, who approves it at /auth/approvals. Quota One call of the daily "
        "quota. Input Field In Type Meaning X-Idempotency-Key required header string, 1-255 characters Names this call, so "
        "that repeating it has one effect: 1-255 visible ASCII characters, a UUID for example. In quotes (RFC 9651) it is "
        "the same key. Idempotency-Key is taken too. X-Approval-Reason header string, 1-500 characters Why the call is made, "
        "for the person who approves it where the credential is held to that: at most 500 characters. watts required body "
        "number, more than 0, at most 100 Power in watts, more than 0, at most 100. note body string, at most 40 characters "
        "or null For you, at most 40 characters. It's a lamp One click on a block selects all of it. curl -X POST "
        "http://127.0.0.1:8000/v1/lamps \\ -H 'Authorization: Bearer <API_KEY>' \\ -H 'X-Idempotency-Key: <UNIQUE_KEY>' \\ "
        "-H 'Content-Type: application/json' \\ -d '{\"watts\":7.5}'"
    )
    assert (
        " ".join(lines[lines.index("Answer 201") : lines.index("Errors")])
        == "Answer 201 Field Type Meaning id string watts number colour one of red, green or null"
    )


async def test_what_a_docstring_holds_is_text_and_never_markup(client: httpx.AsyncClient) -> None:
    text = (await client.get("/docs/lamps/create_lamp")).text
    assert "<strong>unlit</strong>" in text
    assert '&lt;b&gt;<a href="/docs/lamps/list_lamps">list_lamps</a>&lt;/b&gt;' in text


async def test_where_you_are_is_marked(client: httpx.AsyncClient) -> None:
    page = Page((await client.get("/docs/lamps/create_lamp")).text)
    assert [attributes["href"] for _, attributes in page.tags if "aria-current" in attributes] == ["/docs/lamps/create_lamp"]


@pytest.mark.parametrize("path", ["/docs/nothing", "/docs/lamps/nothing", "/docs/lamps/create_lamp/more", "/docs/../etc"])
async def test_an_address_without_a_page_is_404_with_a_way_back(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 404
    assert "/docs" in Page(answer.text).links()


async def test_head_answers_with_the_headers_alone(client: httpx.AsyncClient) -> None:
    whole, head = await client.get("/docs"), await client.head("/docs")
    assert (head.status_code, head.content, head.headers) == (200, b"", whole.headers)


async def test_the_pages_are_only_read(client: httpx.AsyncClient) -> None:
    answer = await client.post("/docs")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
