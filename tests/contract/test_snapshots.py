"""What each toolset promises, as one committed file: a changed promise is seen in review, never by a client first.

UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_snapshots.py writes the files again.
"""

import difflib
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation, Toolset
from registry.schema import input_schema, output_schema
from tests.contract.stage import is_document

FOLDER = Path(__file__).resolve().parent / "snapshots"
COMMAND = "UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_snapshots.py"


def promised(operation: AnyOperation) -> dict[str, Any]:
    """Everything a client may rely on."""
    once = operation.once
    return {
        "route": f"{operation.method} {operation.path}",
        "status": operation.status,
        "auth": operation.auth.value,
        "scope": operation.scope.name,
        "idempotency_key": None if once is None else {"required": once.required, "forever": once.forever, "header": once.header},
        "confirm": operation.confirm,
        "tool": operation.tool,
        "refusals": sorted(refusal.__name__ for refusal in operation.raises),
        "input": input_schema(operation),
        "answer": "a document" if is_document(operation) else output_schema(operation.result).schema,
    }


def text_of(toolset: Toolset) -> str:
    """The toolset's promises as they are committed."""
    content = {operation.id: promised(operation) for operation in toolset.operations()}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE).decode()


@pytest.mark.parametrize("toolset", [pytest.param(toolset, id=toolset.name) for toolset in CATALOGUE.toolsets])
def test_a_toolset_keeps_its_promises(toolset: Toolset) -> None:
    path, found = FOLDER / f"{toolset.name}.json", text_of(toolset)
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.write_text(found)
    kept = path.read_text() if path.exists() else ""
    changes = list(difflib.unified_diff(kept.splitlines(), found.splitlines(), "committed", "declared", lineterm="", n=2))
    if changes:
        shown = "\n".join(changes[:60])
        pytest.fail(
            f"The toolset {toolset.name} promises something else than {path.name} says.\n{shown}\n"
            f"Removing a field, a status or a value breaks clients. If the change is meant: {COMMAND}",
            pytrace=False,
        )


def test_no_snapshot_outlives_its_toolset() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {toolset.name for toolset in CATALOGUE.toolsets}
