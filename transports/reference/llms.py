"""llms.txt: the service in a page of links, for programs that read before they call (the convention of llmstxt.org)."""

from collections.abc import Callable
from functools import cached_property

from operations.event_types.declaration import AnyEventType
from registry.catalogue import AnyOperation, Catalogue
from registry.ports import Site
from transports.openapi.asyncapi import ASYNCAPI_PATH
from transports.openapi.event_schemas import EVENTS_SUMMARY, described_event_types
from transports.openapi.page import OpenapiPage, Representation
from transports.reference.files import EVENTS_PAGE, event_anchor

LLMS_PATH = "/llms.txt"
_LLMS_TITLE = "Connectivity reseller"
_LLMS_ABOUT = (
    "A self-hosted service for resellers of mobile connectivity: it issues eSIMs, looks after lines, sells in shops, and invoices usage. "
    "The same operations are an HTTP/JSON API, tools of an MCP server and a command line."
)
_LLMS_RULES = (
    "Send `Authorization: Bearer <key>`. Where a write takes an `Idempotency-Key`, repeat it with the same key, never with a new one, "
    "until there is an answer.",
    "202 with a `confirm_token` means that nothing was done: ask your user, then call again with the token.",
    "A refusal is JSON with `error`, `code`, often `param` and `hint`: do what the hint says.",
)
LLMS_GUIDES = (
    ("All pages", "docs/README.md", "every page by person and by part"),
    (
        "Guide for API developers",
        "docs/guide-programs.md",
        "HTTP: errors, repeating, pages of lists, test mode, generated clients",
    ),
    ("Guide for agent builders", "docs/guide-agents.md", "MCP, toolsets, keys that may do less, confirmations, repeating, pages, errors"),
    ("A tour", "docs/tour.md", "each part of the service once, by commands that can be pasted"),
    ("Issuing eSIMs", "docs/issuance.md", "what an idempotency key promises, and what to do when an outcome is unknown"),
    ("The fleet", "docs/fleet.md", "every line in one list with filters, tags, problems and their money"),
    ("Changes to many lines", "docs/changes.md", "plan, apply, watch, undo"),
    ("Approvals", "docs/approvals.md", "what a key may not do alone, and how a person allows it"),
    ("Keys that may do less", "docs/keys.md", "operations, lines, money and rows that one key may use, and its worst case"),
    ("Events", "docs/events.md", "types, the log and its cursor, streams, mails, alerts"),
    ("Webhooks", "docs/webhooks.md", "signatures, tries, replay"),
    ("People and keys", "docs/identity.md", "sign-up, logins, roles"),
    ("Intelligence", "docs/intelligence.md", "what each composite answers, how its figures are made and how good they are"),
    ("Guide for operators", "docs/guide-operators.md", "running it: settings, databases, backups, keys, what to watch"),
)
OperationLink = Callable[[str, AnyOperation], str]
EventLink = Callable[[AnyEventType], str]


def llms_text(catalogue: Catalogue, site: Site | None = None) -> str:
    """With a site, its addresses; without one, the files of the source tree."""
    return _served_llms(catalogue, site) if site else _committed_llms(catalogue)


def _served_llms(catalogue: Catalogue, site: Site) -> str:
    lines = [
        "## Doors",
        "",
        f"- [MCP]({site.mcp_url}): Streamable HTTP; `?toolsets=core` shows little, `?toolsets=all` everything, `?read_only=true` no writes",
        f"- [OpenAPI 3.1]({site.base_url.rstrip('/')}/openapi.json): the HTTP/JSON API",
        f"- [AsyncAPI 3.0]({site.base_url.rstrip('/')}{ASYNCAPI_PATH}): the events that webhooks get",
        f"- [Reference]({site.docs_url}): every operation with examples",
        "",
        "## Guides",
        "",
        "Not served: they are files of the source tree this service was installed from, so its operator has them.",
        "",
        *(f"- {path}: {title}; {about}" for title, path, about in LLMS_GUIDES),
        "",
    ]
    return _llms_lines(
        lines,
        catalogue,
        lambda toolset, operation: f"{site.docs_url}/{toolset}/{operation.id}",
        lambda event_type: f"{site.docs_url}/event-types#{event_type.name}",
    )


def _committed_llms(catalogue: Catalogue) -> str:
    lines = ["## Guides", "", *(f"- [{title}]({path}): {about}" for title, path, about in LLMS_GUIDES), ""]
    return _llms_lines(
        lines,
        catalogue,
        lambda toolset, operation: f"docs/reference/{toolset}.md#{operation.id}",
        lambda event_type: f"docs/reference/{EVENTS_PAGE}#{event_anchor(event_type)}",
    )


def _llms_lines(first: list[str], catalogue: Catalogue, link: OperationLink, event_link: EventLink) -> str:
    lines = [f"# {_LLMS_TITLE}", "", f"> {_LLMS_ABOUT}", "", *(f"- {rule}" for rule in _LLMS_RULES), "", *first]
    for toolset in catalogue.toolsets:
        shown = [f"- [{each.id}]({link(toolset.name, each)}): {each.summary}" for each in toolset.operations()]
        lines += [f"## {toolset.name}", "", toolset.summary, "", *shown, ""]
    events = [f"- [{each.name}]({event_link(each)}): {each.about}" for each in described_event_types(catalogue)]
    lines += ["## Types of events", "", EVENTS_SUMMARY, "", *events] if events else []
    return "\n".join(lines).rstrip() + "\n"


class LlmsPage(OpenapiPage):
    """GET /llms.txt, served as the OpenAPI document is."""

    @cached_property
    def representation(self) -> Representation:
        return Representation(llms_text(self._catalogue, self._site).encode(), "text/plain; charset=utf-8", "public, max-age=300")
