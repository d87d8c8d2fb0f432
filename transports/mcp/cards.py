"""Cards: pages that a host shows beside a tool's result (MCP Apps, `io.modelcontextprotocol/ui`, protocol 2026-01-26).

A card is one HTML document without an address of anything: style and script stand in it, and its policy lets nothing else run. It holds no
data: the host hands it the arguments and the result of the call, and calls tools for it. A client that does not know the extension is told
of no card; clients before 2026-07-28 cannot say so, and leave `_meta` unread where they know none.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from mcp.server.context import ServerRequestContext as McpContext
from mcp_types import ReadResourceResult, Resource, TextResourceContents
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from registry.catalogue import AnyOperation
from registry.operation import Card
from transports.mcp.settings import MCP_SERVER_NAME

APPS_EXTENSION = "io.modelcontextprotocol/ui"
CARD_MIME_TYPE = "text/html;profile=mcp-app"
CARD_PARTS_FOLDER = Path(__file__).parent / "card_parts"
CARD_SCRIPTS: Mapping[Card, tuple[str, ...]] = {
    "confirmation": ("host.js", "challenge.js", "confirmation.js"),
    "line": ("host.js", "challenge.js", "line.js"),
    "install": ("host.js", "challenge.js", "qr.js", "install.js"),
}
"""Each can show a challenge: whether a call needs an approval is the credential's to say, not the tool's."""
CARD_TITLES: Mapping[Card, str] = {
    "confirmation": "Confirmation",
    "line": "Line",
    "install": "Install an eSIM",
}
CARD_DESCRIPTIONS: Mapping[Card, str] = {
    "confirmation": "What a call would destroy or spend, and the question whether to go on; an approval is led to its page.",
    "line": "A line with its status, its packages with the data that is used, and when it was last seen.",
    "install": "The activation code of an eSIM as a QR code.",
}
CARD_META: dict[str, object] = {
    "ui": {"csp": {"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []}, "prefersBorder": True}
}
"""Nothing is loaded from anywhere, so a host lets nothing through."""


def card_of(operation: AnyOperation) -> Card | None:
    """The card of a tool's results: its own, or where it may destroy or spend something, the one that asks first."""
    if operation.card is not None:
        return operation.card
    return "confirmation" if operation.confirmable or operation.challenge is not None else None


def card_uri(card: Card) -> str:
    return f"ui://{MCP_SERVER_NAME}/{card}"


def card_tool_meta(operation: AnyOperation) -> dict[str, object] | None:
    """What a tool's definition says of its card; None where it has none."""
    card = card_of(operation)
    return None if card is None else {"ui": {"resourceUri": card_uri(card)}}


def card_resource(card: Card) -> Resource:
    """The card as a list of resources names it."""
    return Resource(
        uri=card_uri(card),
        name=f"{card}-card",
        title=CARD_TITLES[card],
        description=CARD_DESCRIPTIONS[card],
        mime_type=CARD_MIME_TYPE,
        _meta=CARD_META,
    )


def card_contents(card: Card) -> ReadResourceResult:
    contents = TextResourceContents(uri=card_uri(card), mime_type=CARD_MIME_TYPE, text=card_document(card), _meta=CARD_META)
    return ReadResourceResult(contents=[contents])


@cache
def card_document(card: Card) -> str:
    """The whole document. Its policy allows its own style and script by their digests, and no request at all."""
    style = read_card_part("card.css")
    script = "\n".join(read_card_part(name) for name in CARD_SCRIPTS[card])
    policy = (
        f"default-src 'none'; script-src '{source_digest(script)}'; style-src '{source_digest(style)}'; base-uri 'none'; form-action 'none'"
    )
    places = {"policy": policy, "title": CARD_TITLES[card], "style": style, "script": script}
    document = read_card_part("card.html")
    for name, text in places.items():
        document = document.replace("{{" + name + "}}", text)
    return document


def read_card_part(name: str) -> str:
    return (CARD_PARTS_FOLDER / name).read_text("utf-8")


def source_digest(text: str) -> str:
    """The digest by which a policy allows an inline style or script (CSP level 3, 6.7.3.3)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def used_cards(operations: Iterable[AnyOperation]) -> list[Card]:
    """The cards of these operations, each once, in the order of CARD_SCRIPTS."""
    found = {card_of(operation) for operation in operations}
    return [card for card in CARD_SCRIPTS if card in found]


def shows_cards(ctx: McpContext) -> bool:
    """Whether the client is told of cards. One of 2026-07-28 says with each request that it shows them; earlier ones cannot say it here."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return True
    capabilities = ctx.session.client_capabilities
    settings = (capabilities.extensions or {}).get(APPS_EXTENSION) if capabilities is not None else None
    types: object = None if settings is None else settings.get("mimeTypes")
    return isinstance(types, list) and CARD_MIME_TYPE in types
