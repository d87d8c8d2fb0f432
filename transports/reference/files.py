"""The reference as Markdown, one page per toolset, one of events, and an index."""

from collections.abc import Iterable
from pathlib import Path

from operations.event_types.declaration import AnyEventType
from registry.catalogue import Catalogue
from registry.ports import Site
from transports.openapi.event_schemas import EVENTS_SUMMARY
from transports.openapi.refusals import OperationFault
from transports.reference.entries import (
    EventEntry,
    FieldRow,
    Reference,
    ReferenceChapter,
    ReferenceEntry,
    ReferenceExample,
    build_reference,
)

_REFERENCE_INDEX = "README.md"
_REFERENCE_NOTICE = "<!-- Written by `reseller reference`; a test fails when it differs from the catalogue. -->"


def _index_page(reference: Reference) -> str:
    lines = [_REFERENCE_NOTICE, "# API reference", ""]
    lines += [f"Base address: `{reference.site.base_url}`. MCP: `{reference.site.mcp_url}`.", ""]
    for chapter in reference.chapters:
        name = chapter.toolset.name
        lines += [f"## [{name}]({name}.md)", "", chapter.toolset.summary, ""]
        cells = [[f"[`{e.operation.id}`]({name}.md#{e.operation.id})", _entry_route(e), e.operation.summary] for e in chapter.entries]
        lines += [*_markdown_table(("Operation", "HTTP", "What it does"), cells), ""]
    if reference.events:
        lines += [f"## [Types of events]({EVENTS_PAGE})", "", EVENTS_SUMMARY, ""]
        cells = [[f"[`{e.event_type.name}`]({EVENTS_PAGE}#{event_anchor(e.event_type)})", e.event_type.about] for e in reference.events]
        lines += [*_markdown_table(("Type", "What has happened"), cells), ""]
    lines += ["## Errors of every operation", "", *_fault_table(reference.faults)]
    return "\n".join(lines) + "\n"


EVENTS_PAGE = "event-types.md"


def event_anchor(event_type: AnyEventType) -> str:
    """The anchor of a type's section, as renderers of Markdown make it of the heading."""
    return event_type.name.replace(".", "")


def _events_page(reference: Reference) -> str:
    lines = [_REFERENCE_NOTICE, "# Types of events", "", EVENTS_SUMMARY, "", f"[All toolsets]({_REFERENCE_INDEX})", ""]
    lines += [f"- [{each.event_type.name}](#{event_anchor(each.event_type)}): {each.event_type.about}" for each in reference.events]
    lines += ["", "Beside `type` and `data` an event has these members:", "", *_member_table(reference.envelope)]
    for each in reference.events:
        lines += ["", *_event_section(each)]
    return "\n".join(lines) + "\n"


def _event_section(entry: EventEntry) -> list[str]:
    lines = [f"## {entry.event_type.name}", "", entry.event_type.about, "", *(f"- {name}: {text}" for name, text in entry.notes), ""]
    lines += ["### Members of `data`", ""]
    lines += [entry.details, ""] if entry.details else []
    return [*lines, *_member_table(entry.members), "", "### Example", "", *_code_block("json", entry.example)]


def _member_table(rows: Iterable[FieldRow]) -> list[str]:
    cells = ([f"`{row.name}`" + ("" if row.required else " (may be missing)"), row.kind, row.text] for row in rows)
    return _markdown_table(("Member", "Type", "Meaning"), cells)


def _chapter_page(chapter: ReferenceChapter) -> str:
    lines = [_REFERENCE_NOTICE, f"# {chapter.toolset.name}", "", chapter.toolset.summary, "", f"[All toolsets]({_REFERENCE_INDEX})", ""]
    lines += [f"- [{entry.operation.title}](#{entry.operation.id}): {entry.operation.summary}" for entry in chapter.entries]
    for entry in chapter.entries:
        lines += ["", *_entry_section(entry)]
    return "\n".join(lines) + "\n"


def _entry_section(entry: ReferenceEntry) -> list[str]:
    operation = entry.operation
    lines = [f"## {operation.id}", "", f"**{operation.title}**: {_entry_route(entry)}", "", operation.summary, ""]
    lines += [entry.details, ""] if entry.details else []
    lines += [f"- {name}: {text}" for name, text in entry.notes]
    if entry.inputs:
        lines += ["", "### Input", "", *_markdown_table(("Field", "In", "Type", "Meaning"), map(_input_cells, entry.inputs))]
    for example in entry.examples:
        lines += ["", *_example_lines(example)]
    lines += ["", f"### Answer {operation.status}", ""]
    if entry.answer:
        lines += _markdown_table(("Field", "Type", "Meaning"), ([f"`{row.name}`", row.kind, row.text] for row in entry.answer))
    else:
        lines.append(f"{entry.answer_kind[:1].upper()}{entry.answer_kind[1:]}.")
    return [*lines, "", "### Errors", "", *_fault_table(entry.faults)]


def _entry_route(entry: ReferenceEntry) -> str:
    return f"`{entry.operation.method} {entry.operation.path}`"


def _input_cells(row: FieldRow) -> list[str]:
    return [f"`{row.name}`" + (" (required)" if row.required else ""), row.place, row.kind, row.text]


def _example_lines(example: ReferenceExample) -> list[str]:
    lines = [f"### {example.title}", "", *_code_block("sh", example.curl)]
    if example.tool_call is not None:
        lines += ["", "The same over MCP:", "", *_code_block("json", example.tool_call)]
    if example.answer is not None:
        lines += ["", "Answer:", "", *_code_block("json", example.answer)]
    return lines


def _code_block(language: str, text: str) -> list[str]:
    return [f"```{language}", text, "```"]


def _fault_table(faults: Iterable[OperationFault]) -> list[str]:
    return _markdown_table(("Status", "Code", "When"), ([str(fault.status), f"`{fault.code}`", fault.when] for fault in faults))


def _markdown_table(heads: tuple[str, ...], cells: Iterable[list[str]]) -> list[str]:
    """A table; a bar or a line break inside a cell would end it."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in cells]


def markdown_reference(catalogue: Catalogue, site: Site) -> dict[str, str]:
    reference = build_reference(catalogue, site)
    made = {f"{chapter.toolset.name}.md": _chapter_page(chapter) for chapter in reference.chapters}
    events = {EVENTS_PAGE: _events_page(reference)} if reference.events else {}
    return {_REFERENCE_INDEX: _index_page(reference), **made, **events}


def write_reference(catalogue: Catalogue, directory: Path, site: Site) -> list[Path]:
    """Write the pages; a page of ours that the catalogue no longer gives is removed."""
    made = markdown_reference(catalogue, site)
    directory.mkdir(parents=True, exist_ok=True)
    for path in sorted(directory.glob("*.md")):
        if path.name not in made and path.read_text().startswith(_REFERENCE_NOTICE):
            path.unlink()
    for name, text in made.items():
        (directory / name).write_text(text)
    return [directory / name for name in made]
