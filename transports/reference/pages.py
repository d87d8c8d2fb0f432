"""GET /docs, /docs/{toolset}, /docs/{toolset}/{operation}, /docs/event-types: the reference as HTML, without scripts (docs/security.md)."""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from markupsafe import Markup

from operations.web_pages import page_policy, page_templates
from registry.catalogue import Catalogue
from registry.ports import Site
from transports.http.asgi import Headers, HttpScope, Receive, Scope, Send
from transports.http.compression import gzip_body, set_coded_length, takes_gzip, vary_by_coding
from transports.http.response import send_reply
from transports.openapi.document import INTERFACE_VERSION
from transports.openapi.event_schemas import EVENTS_SUMMARY
from transports.openapi.page import READ_METHODS, refuse_method
from transports.reference.entries import Reference, ReferenceChapter, ReferenceEntry, build_reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment
    from markdown_it.token import Token


_PROSE_WORD = re.compile(r"\w+", re.ASCII)


def _prose_filters(addresses: Mapping[str, str]) -> tuple[Callable[[str], Markup], Callable[[str], Markup]]:
    """The two filters of the templates: whole paragraphs, and text that stands inside a line."""
    from markdown_it import MarkdownIt  # imported on first use: serving the API needs neither

    markdown = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"])

    def linked(found: re.Match[str]) -> str:
        address = addresses.get(found.group())
        return found.group() if address is None else f'<a href="{address}">{found.group()}</a>'

    def text(self: object, tokens: "Sequence[Token]", index: int, options: object, environment: object) -> str:
        del self, options, environment
        return _PROSE_WORD.sub(linked, escape(tokens[index].content))

    def code(self: object, tokens: "Sequence[Token]", index: int, options: object, environment: object) -> str:
        del self, options, environment
        return f"<code>{_PROSE_WORD.sub(linked, escape(tokens[index].content))}</code>"

    markdown.add_render_rule("text", text)
    markdown.add_render_rule("code_inline", code)

    def prose(words: str) -> Markup:
        return Markup(markdown.render(words))

    def inline(words: str) -> Markup:
        return Markup(markdown.renderInline(words))

    return prose, inline


_REFERENCE_TEMPLATES = Path(__file__).parent / "templates"


class HtmlReference:
    """Renders pages; the templates are compiled when the first one is asked for."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self._root = reference.site.path
        self._style = (_REFERENCE_TEMPLATES / "style.css").read_text()

    @property
    def policy(self) -> str:
        """The Content-Security-Policy: our own style sheet, by its hash, and nothing else."""
        return page_policy(self._style)

    @cached_property
    def _environment(self) -> "Environment":
        environment = page_templates(_REFERENCE_TEMPLATES)
        addresses = {
            one.operation.id: f"{self._root}/docs/{chapter.toolset.name}/{one.operation.id}"
            for chapter in self.reference.chapters
            for one in chapter.entries
        }
        environment.filters["prose"], environment.filters["inline"] = _prose_filters(addresses)
        return environment

    def index(self) -> str:
        return self._render("index.html")

    def toolset(self, chapter: ReferenceChapter) -> str:
        return self._render("toolset.html", chapter)

    def operation(self, chapter: ReferenceChapter, entry: ReferenceEntry) -> str:
        return self._render("operation.html", chapter, entry)

    def events(self) -> str | None:
        """The page of the types of events; None where there are none."""
        return self._render("events.html") if self.reference.events else None

    def missing(self) -> str:
        return self._render("missing.html")

    def _render(self, template: str, chapter: ReferenceChapter | None = None, entry: ReferenceEntry | None = None) -> str:
        page = self._environment.get_template(template)
        given = {"style": self._style, "root": self._root, "version": INTERFACE_VERSION, "reference": self.reference}
        given |= {"events_summary": EVENTS_SUMMARY, "here": template.removesuffix(".html")}
        return page.render(**given, chapter=chapter, entry=entry)


_DOCS_ROOT = "/docs"
EVENTS_NAME = "event-types"


class ReferencePage(NamedTuple):
    body: bytes
    compressed: bytes


class ReferencePages:
    """Serves the reference; it is built when it is first asked for, and each page when it is."""

    def __init__(self, catalogue: Catalogue, site: Site) -> None:
        self._catalogue, self._site = catalogue, site
        self._made: dict[str, ReferencePage] = {}

    @cached_property
    def _reference(self) -> HtmlReference:
        return HtmlReference(build_reference(self._catalogue, self._site))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        request = cast(HttpScope, scope)
        if request["method"] not in READ_METHODS:
            await refuse_method(request, send)
            return
        page = self._page(request["path"].removeprefix(_DOCS_ROOT).strip("/"))
        status, body = (404, self._reference.missing().encode()) if page is None else (200, page.body)
        headers = self._headers(len(body))
        vary_by_coding(headers)
        if page is not None and takes_gzip(request["headers"]):
            body = page.compressed
            set_coded_length(headers, len(body))
        await send_reply(send, status, headers, b"" if request["method"] == "HEAD" else body)

    def _page(self, name: str) -> ReferencePage | None:
        """The bytes of a page. Only pages that exist are kept, so their number is bounded."""
        kept = self._made.get(name)
        if kept is None:
            text = self._render(name)
            if text is None:
                return None
            body = text.encode()
            kept = self._made[name] = ReferencePage(body, gzip_body(body))
        return kept

    def _render(self, name: str) -> str | None:
        if not name:
            return self._reference.index()
        if name == EVENTS_NAME:
            return self._reference.events()
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
