"""Operations as tools: definitions made once, lists cached, and the look-up of a call."""

from functools import cache, lru_cache, partial
from typing import cast

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ListToolsResult, PaginatedRequestParams, Tool, ToolAnnotations

from registry.catalogue import AnyOperation, Catalogue
from registry.errors import BadRequest
from registry.operation import Document
from registry.restrictions import CallerView, caller_view, is_shown_to
from registry.schema import input_schema, output_schema
from transports.mcp.cards import card_tool_meta
from transports.mcp.request_caller import RequestCaller, RequestedTools, selected_ids

CACHED_TOOL_LISTS = 256


class Tools:
    """The catalogue's tools. Lists are kept as they go over the wire, by what of a caller decides and by selection."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._lists: dict[tuple[CallerView, RequestedTools, bool], ListToolsResult] = {}
        self._selected_ids = lru_cache(maxsize=CACHED_TOOL_LISTS)(partial(selected_ids, catalogue))

    def tool_list(self, requester: RequestCaller, *, cards: bool = False) -> ListToolsResult:
        """What this caller may call and asked to see, in wire form. Choice: one page, because many clients read no second one.

        `cards`: with the card of each tool that has one.
        """
        key = (caller_view(requester.caller), requester.chosen, cards)
        found = self._lists.get(key)
        if found is None:
            found = self._list(requester, cards=cards)
            if len(self._lists) >= CACHED_TOOL_LISTS:
                self._lists.clear()
            self._lists[key] = found
        return found

    def find(self, requester: RequestCaller, name: str) -> AnyOperation:
        """The operation that a call names. MCPError: there is none in the selection. What the caller may do, the pipeline checks."""
        operation = self._catalogue.operations.get(name)
        if operation is None or not is_tool(operation):
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name[:80]!r}; tools/list shows the tools of your selection")
        if operation.id not in self._selected(requester.chosen):
            toolset = self._catalogue.toolset_of[name]
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name!r} in your selection; the toolset {toolset} holds it", {"toolset": toolset})
        return operation

    def _selected(self, chosen: RequestedTools) -> frozenset[str]:
        """The ids of a selection; a name nobody knows is told with those that are known."""
        try:
            return self._selected_ids(chosen)
        except BadRequest as refusal:
            raise MCPError(INVALID_PARAMS, refusal.message, {"known": self._catalogue.names()}) from None

    def _list(self, requester: RequestCaller, *, cards: bool) -> ListToolsResult:
        ids = self._selected(requester.chosen)
        inside = self._catalogue.operations_in(requester.caller.restrictions.toolsets or ())
        found = self._catalogue.tools(ids, requester.caller.scopes)
        visible = [operation for operation in found if is_tool(operation) and is_shown_to(operation, requester.caller, inside)]
        result = ListToolsResult(tools=[card_tool_definition(o) if cards else tool_definition(o) for o in visible])
        # The server takes a mapping as it is, and dumping sixty tools again for every list costs 3 ms.
        return cast(ListToolsResult, result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"ttl_ms", "cache_scope"}))


@cache
def tool_definition(operation: AnyOperation) -> Tool:
    """An operation as a tool: it says nothing of a caller or a catalogue, so there is one in a process."""
    return Tool(
        name=operation.id,
        title=operation.title,
        description=tool_description(operation),
        input_schema=input_schema(operation, operation.tool_defaults),
        output_schema=output_schema(operation.result).schema,
        # All four hints: clients take different things for granted where one is left out.
        annotations=ToolAnnotations(
            read_only_hint=operation.read_only,
            destructive_hint=operation.destructive,
            idempotent_hint=operation.repeatable,
            open_world_hint=operation.open_world,
        ),
    )


@cache
def card_tool_definition(operation: AnyOperation) -> Tool:
    """The same with the tool's card, where it has one, for clients that show cards."""
    meta = card_tool_meta(operation)
    return tool_definition(operation) if meta is None else tool_definition(operation).model_copy(update={"meta": meta})


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """No list of this server has a second page, so no cursor is one of ours. An empty cursor is none."""
    if params is not None and params.cursor:
        raise MCPError(INVALID_PARAMS, "cursor: this list has one page; ask for it without a cursor")


def is_tool(operation: AnyOperation) -> bool:
    """Pictures and pages are no tools: a model cannot read them."""
    return operation.tool and operation.result is not Document


def tool_description(operation: AnyOperation) -> str:
    """The summary and the paragraph for agents; further paragraphs are for the reference only."""
    paragraphs = [" ".join(part.split()) for part in operation.description.split("\n\n")]
    return "\n".join(paragraphs[:2])
