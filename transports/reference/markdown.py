"""The reference as Markdown: one page per toolset, and an index."""

from collections.abc import Iterable

from transports.openapi.refusals import Fault
from transports.reference.entry import Chapter, Entry, Reference, ShownExample
from transports.reference.fields import Row

INDEX = "README.md"
NOTICE = "<!-- Written by `reseller reference`; a test fails when it differs from the catalogue. -->"


def pages(reference: Reference) -> dict[str, str]:
    """Every page by file name."""
    made = {f"{chapter.toolset.name}.md": chapter_page(chapter) for chapter in reference.chapters}
    return {INDEX: index_page(reference), **made}


def index_page(reference: Reference) -> str:
    """The toolsets, and what is the same for every operation."""
    lines = [NOTICE, "# API reference", ""]
    lines += [f"Base address: `{reference.site.base_url}`. MCP: `{reference.site.mcp_url}`.", ""]
    for chapter in reference.chapters:
        name = chapter.toolset.name
        lines += [f"## [{name}]({name}.md)", "", chapter.toolset.summary, ""]
        cells = [[f"[`{e.operation.id}`]({name}.md#{e.operation.id})", route(e), e.operation.summary] for e in chapter.entries]
        lines += [*table(("Operation", "HTTP", "What it does"), cells), ""]
    lines += ["## Errors of every operation", "", *fault_table(reference.faults)]
    return "\n".join(lines) + "\n"


def chapter_page(chapter: Chapter) -> str:
    """One toolset with all its operations."""
    lines = [NOTICE, f"# {chapter.toolset.name}", "", chapter.toolset.summary, "", f"[All toolsets]({INDEX})", ""]
    lines += [f"- [{entry.operation.title}](#{entry.operation.id}): {entry.operation.summary}" for entry in chapter.entries]
    for entry in chapter.entries:
        lines += ["", *section(entry)]
    return "\n".join(lines) + "\n"


def section(entry: Entry) -> list[str]:
    """One operation."""
    operation = entry.operation
    lines = [f"## {operation.id}", "", f"**{operation.title}**: {route(entry)}", "", operation.summary, ""]
    lines += [entry.details, ""] if entry.details else []
    lines += [f"- {name}: {text}" for name, text in entry.notes]
    if entry.inputs:
        lines += ["", "### Input", "", *table(("Field", "In", "Type", "Meaning"), map(input_cells, entry.inputs))]
    for example in entry.examples:
        lines += ["", *example_lines(example)]
    lines += ["", f"### Answer {operation.status}", ""]
    if entry.answer:
        lines += table(("Field", "Type", "Meaning"), ([f"`{row.name}`", row.kind, row.text] for row in entry.answer))
    else:
        lines.append(f"{entry.answer_kind[:1].upper()}{entry.answer_kind[1:]}.")
    return [*lines, "", "### Errors", "", *fault_table(entry.faults)]


def route(entry: Entry) -> str:
    """Method and path."""
    return f"`{entry.operation.method} {entry.operation.path}`"


def input_cells(row: Row) -> list[str]:
    """One input field."""
    return [f"`{row.name}`" + (" (required)" if row.required else ""), row.place, row.kind, row.text]


def example_lines(example: ShownExample) -> list[str]:
    """One example in every form."""
    lines = [f"### {example.title}", "", *block("sh", example.curl)]
    if example.tool_call is not None:
        lines += ["", "The same over MCP:", "", *block("json", example.tool_call)]
    if example.answer is not None:
        lines += ["", "Answer:", "", *block("json", example.answer)]
    return lines


def block(language: str, text: str) -> list[str]:
    """A code block."""
    return [f"```{language}", text, "```"]


def fault_table(faults: Iterable[Fault]) -> list[str]:
    """Status, code and when."""
    return table(("Status", "Code", "When"), ([str(told.status), f"`{told.code}`", told.when] for told in faults))


def table(heads: tuple[str, ...], cells: Iterable[list[str]]) -> list[str]:
    """A table; a bar or a line break inside a cell would end it."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in cells]
