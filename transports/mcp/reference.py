"""The operations in words, for agents that read before they call."""

import orjson

from registry.catalogue import AnyOperation, Catalogue
from registry.limits import Scope
from transports.mcp.tools import is_tool


def index(catalogue: Catalogue) -> str:
    """Every tool by toolset, one line each."""
    lines = ["# Operations", "", "Read reference://operations/{id} for one of them.", ""]
    for toolset in catalogue.toolsets:
        tools = [operation for operation in toolset.operations() if is_tool(operation)]
        if tools:
            lines += [f"## {toolset.name}", "", toolset.summary, ""]
            lines += [f"- `{operation.id}`: {operation.summary}" for operation in tools]
            lines.append("")
    return "\n".join(lines)


def page(operation: AnyOperation) -> str:
    """One operation: what it does, what it asks of its caller, its input and its examples."""
    lines = [
        f"# {operation.title}",
        "",
        f"`{operation.id}`, over HTTP `{operation.method} {operation.path}`",
        "",
        operation.description,
        "",
    ]
    lines += [f"- {rule}" for rule in rules(operation)]
    lines += ["", "| Input | Meaning |", "|---|---|"]
    for name, field in operation.params.model_fields.items():
        needed = "" if not field.is_required() else " (required)"
        lines.append(f"| `{field.alias or name}`{needed} | {field.description or ''} |")
    for example in operation.examples:
        lines += ["", f"## {example.title}", "", "```json", orjson.dumps(dict(example.input)).decode(), "```"]
    return "\n".join(lines) + "\n"


def rules(operation: AnyOperation) -> list[str]:
    """What cannot be read from the schema."""
    found = ["Changes nothing." if operation.read_only else "Changes something."]
    if operation.scope & Scope.ADMIN:
        found.append("Needs the tier enterprise and the role admin.")
    elif operation.scope & Scope.WRITE:
        found.append("Needs the tier pro or enterprise.")
    if operation.confirm:
        found.append("Asks for a confirmation first; it is valid for two minutes and for the same arguments.")
    if operation.replaces is not None:
        found.append(f"A call that would replace {operation.replaces} needs the role admin, and asks for a confirmation first.")
    if operation.once is not None:
        found.append("Needs an idempotency_key." if operation.once.required else "Takes an idempotency_key.")
    if operation.upstream:
        found.append("Reaches the upstream charging system; the organisation must be connected.")
    if operation.processor:
        found.append("Reaches the payment processor, in the organisation's own account there.")
    return found
