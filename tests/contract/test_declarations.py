"""What an operation promises beyond docs/openapi.json, one committed line each: a change is seen in review, never by a client first.

The last three columns are digests of what a model reads of the tool: an agent that has agreed to a tool is never shown another one unseen.
UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_declarations.py writes the file again.
"""

import hashlib
from pathlib import Path

import orjson

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation
from tests.contract.committed import hold
from tests.mcp.tool_sizes import tool_json
from transports.mcp.tools import is_tool, tool_definition

DECLARATIONS = Path(__file__).resolve().parent / "declarations.tsv"
COMMAND = "UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_declarations.py"
COLUMNS = ("operation", "credential", "scope", "key", "two steps", "tool", "refusals", "text", "input", "output")
SCHEMAS = ("inputSchema", "outputSchema")


def digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def digests(whole: dict[str, object]) -> list[str]:
    """Of a tool's text (name, title, description, hints) and of both schemas."""
    return [digest({name: value for name, value in whole.items() if name not in SCHEMAS}), *(digest(whole[name]) for name in SCHEMAS)]


def key_rule(operation: AnyOperation) -> str:
    """Whether an idempotency key is taken, and whether it counts for ever."""
    once = operation.once
    return "-" if once is None else ("required" if once.required else "optional") + (" forever" if once.forever else "")


def declaration(operation: AnyOperation) -> str:
    refusals = " ".join(sorted(refusal.__name__ for refusal in operation.raises))
    steps, tool = ("yes" if each else "-" for each in (operation.confirm, operation.tool))
    words = [operation.id, str(operation.auth.value), str(operation.scope.name), key_rule(operation), steps, tool, refusals or "-"]
    return "\t".join([*words, *(digests(tool_json(tool_definition(operation))) if is_tool(operation) else ["-"] * 3)])


def test_the_committed_lines_are_what_the_operations_and_their_tools_declare() -> None:
    lines = ["\t".join(COLUMNS), *(declaration(operation) for operation in CATALOGUE.operations.values())]
    hold(DECLARATIONS, "\n".join(lines) + "\n", COMMAND)


def test_a_change_of_any_member_of_a_tool_changes_a_digest() -> None:
    whole = tool_json(tool_definition(CATALOGUE.operations["list_connectivity_events"]))
    assert {"name", "title", "description", "annotations", *SCHEMAS} == whole.keys()
    for name in whole:
        assert sum(one != other for one, other in zip(digests(whole), digests({**whole, name: ""}), strict=True)) == 1
