"""A committed file that a test keeps up to date: the diff of a change is its review. UPDATE_SNAPSHOTS=1 writes the files again."""

import difflib
import os
from pathlib import Path

import pytest


def hold(path: Path, found: str, command: str) -> None:
    """Fails with the first 60 lines of the difference where `path` is not `found`; `command` is what writes it again."""
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.write_text(found)
    committed = path.read_text() if path.exists() else ""
    changes = list(difflib.unified_diff(committed.splitlines(), found.splitlines(), "committed", "found", lineterm="", n=0))
    if committed != found:
        pytest.fail("\n".join([*changes[:60], f"Taking something away breaks clients. If the change is meant: {command}"]), pytrace=False)
