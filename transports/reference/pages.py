"""GET /docs, /docs/{toolset} and /docs/{toolset}/{operation}."""

from functools import cached_property
from typing import NamedTuple, cast

from registry.catalogue import Catalogue
from registry.ports import Site
from transports.http.asgi import App, Headers, HttpScope, Receive, Scope, Send
from transports.http.compression import gzipped, replace_length, takes_gzip, varied
from transports.http.response import send_reply
from transports.openapi.page import READS, refuse_method
from transports.reference.entry import build_reference
from transports.reference.html import HtmlReference

ROOT = "/docs"


class Page(NamedTuple):
    """The bytes of a page, as they are and in gzip."""

    body: bytes
    compressed: bytes


class ReferencePages:
    """Serves the reference; it is built when it is first asked for, and each page when it is."""

    def __init__(self, catalogue: Catalogue, site: Site) -> None:
        self._catalogue, self._site = catalogue, site
        self._made: dict[str, Page] = {}

    @cached_property
    def _reference(self) -> HtmlReference:
        return HtmlReference(build_reference(self._catalogue, self._site))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One page, whoever asks."""
        del receive
        request = cast(HttpScope, scope)
        if request["method"] not in READS:
            await refuse_method(request, send)
            return
        page = self._page(request["path"].removeprefix(ROOT).strip("/"))
        status, body = (404, self._reference.missing().encode()) if page is None else (200, page.body)
        headers = self._headers(len(body))
        varied(headers)
        if page is not None and takes_gzip(request["headers"]):
            body = page.compressed
            replace_length(headers, len(body))
        await send_reply(send, status, headers, b"" if request["method"] == "HEAD" else body)

    def _page(self, name: str) -> Page | None:
        """The bytes of a page. Only pages that exist are kept, so their number is bounded."""
        kept = self._made.get(name)
        if kept is None:
            text = self._render(name)
            if text is None:
                return None
            body = text.encode()
            kept = self._made[name] = Page(body, gzipped(body))
        return kept

    def _render(self, name: str) -> str | None:
        if not name:
            return self._reference.index()
        toolset, _, operation = name.partition("/")
        chapter = self._reference.reference.chapter(toolset)
        if chapter is None:
            return None
        if not operation:
            return self._reference.toolset(chapter)
        entry = next((one for one in chapter.entries if one.operation.id == operation), None)
        return None if entry is None else self._reference.operation(chapter, entry)

    def _headers(self, length: int) -> Headers:
        return [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", b"%d" % length),
            (b"content-security-policy", self._reference.policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
            (b"x-robots-tag", b"noindex"),
        ]


def reference_app(catalogue: Catalogue, site: Site) -> App:
    """The pages as an ASGI application."""
    return ReferencePages(catalogue, site)
