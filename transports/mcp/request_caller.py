"""The caller of one MCP request, and the tools that they asked to see."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from registry.authentication import CREDENTIAL_QUERY_NAMES
from registry.binding import read_pairs
from registry.call import Call, Reply
from registry.caller import Caller
from registry.catalogue import Catalogue, ToolSelection
from registry.errors import BadRequest
from transports.http.body import MCP_QUERY_FIELDS

SELECTION_FIELDS = frozenset({"toolsets", "read_only"})


@dataclass(frozen=True, slots=True)
class RequestedTools:
    """What was asked for in each of the two places; where both name toolsets, only what stands in both is shown."""

    query: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    read_only: bool = False


NO_SELECTION = RequestedTools()


def read_selection(query: bytes, headers: Iterable[tuple[bytes, bytes]]) -> RequestedTools:
    """The selection of one HTTP request; it travels with every request, so no server state is needed."""
    sent = [(name.decode(), value.decode("latin-1")) for name, value in headers if name in (b"x-mcp-toolsets", b"x-mcp-readonly")]
    if not query and not sent:
        return NO_SELECTION
    fields, named = read_selection_query(query) if query else {}, single_fields(sent)
    return RequestedTools(
        query=toolset_names(fields.get("toolsets", "")),
        header=toolset_names(named.get("x-mcp-toolsets", "")),
        read_only=read_switch("read_only", fields.get("read_only")) or read_switch("X-MCP-Readonly", named.get("x-mcp-readonly")),
    )


def read_selection_query(query: bytes) -> dict[str, str]:
    """The query's fields; a credential among them is refused, since addresses end up in logs and histories."""
    try:
        pairs = read_pairs(query.decode("ascii"), MCP_QUERY_FIELDS)
    except ValueError:
        raise BadRequest("The query string cannot be read", hint="Percent-encode it as UTF-8") from None
    secret = next((name.lower() for name, _ in pairs if name.lower() in CREDENTIAL_QUERY_NAMES), None)
    if secret is not None:
        raise BadRequest(
            f"{secret}: a credential in the address is not accepted, because addresses are kept in logs and histories",
            param=secret,
            hint="Send it as Authorization: Bearer <API key or session token>",
        )
    fields = single_fields(pairs)
    # Choice: an unknown field is refused, so that a misspelt read_only never means "everything".
    unknown = sorted(set(fields) - SELECTION_FIELDS)
    if unknown:
        raise BadRequest(
            f"{unknown[0][:80]}: unknown query field",
            code="unknown_field",
            param=unknown[0][:80],
            hint="Known are toolsets=<names, separated by commas> and read_only=true",
        )
    return fields


def single_fields(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Fields by name; one that comes twice could be read in two ways, and read-only must not be lost on the way."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise BadRequest("toolsets, read_only and their headers: one of them was sent twice", hint="Send each of them once")
    return fields


def toolset_names(text: str) -> tuple[str, ...]:
    """Names separated by commas, in one order, so that equal selections share one cached list."""
    return tuple(sorted({part.strip() for part in text.split(",") if part.strip()}))


def read_switch(name: str, text: str | None) -> bool:
    if text is None or text.strip().lower() in ("false", "0"):
        return False
    if text.strip().lower() in ("true", "1", ""):
        return True
    raise BadRequest(f"{name}: got {text[:40]!r}; must be true or false", param="read_only", hint="Send true to see only tools that read")


def selected_ids(catalogue: Catalogue, chosen: RequestedTools) -> frozenset[str]:
    """The ids of the tools in a selection; `read_only` leaves out writes of every toolset. Raises BadRequest for unknown names."""
    ids = catalogue.chosen(ToolSelection(chosen.query or chosen.header, chosen.read_only))
    if chosen.query and chosen.header:
        ids &= catalogue.chosen(ToolSelection(chosen.header, chosen.read_only))
    return ids


def select_tools(toolsets: str, read_only: bool) -> RequestedTools:
    return RequestedTools(query=toolset_names(toolsets), read_only=read_only)


CallListener: TypeAlias = Callable[[Call, Reply], None]
ReplyAdmission: TypeAlias = Callable[[Call, Reply], Awaitable[Reply]]


def tell_nobody(call: Call, reply: Reply) -> None:
    """Nobody wants to know."""


async def admit_every_reply(call: Call, reply: Reply) -> Reply:
    """Every reply, where nobody counts large ones."""
    del call
    return reply


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """One authenticated caller. `request_id` is that of the HTTP request, when there is one."""

    caller: Caller
    chosen: RequestedTools = NO_SELECTION
    client: str = ""
    request_id: str | None = None
    tell: CallListener = tell_nobody
    """Called with each call and its reply."""
    admit: ReplyAdmission = admit_every_reply
    """Counts a reply that is large, until the request has been answered; or says why it cannot be given now."""
    message_size: int = 0
    """Bytes of the request's body, which the pipeline charges where the call is refused or replayed; 0 where they are charged."""
