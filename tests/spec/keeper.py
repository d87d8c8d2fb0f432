"""What another process collects. It is a plugin of pytest there, and imports nothing of ours before pytest has."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).resolve().parents[2]
INTO = "COLLECTED_INTO"
"""The setting that names the file."""


def asked(files: Iterable[str]) -> dict[str, set[str]]:
    """The functions of these files of tests, each with the operations that its cases are about."""
    with tempfile.NamedTemporaryFile() as kept:
        chosen = (f"tests/{file}" for file in sorted(files))
        command = [sys.executable, "-m", "pytest", "-p", __name__, "--collect-only", "-qq", "-p", "no:cacheprovider", *chosen]
        subprocess.run(command, cwd=ROOT, env={**os.environ, INTO: kept.name}, check=True, stdout=subprocess.DEVNULL)
        return {name: set(operations) for name, operations in orjson.loads(Path(kept.name).read_bytes()).items()}


def pytest_collection_finish(session: pytest.Session) -> None:
    from tests.spec.collected import of_items

    found = {name: sorted(operations) for name, operations in of_items(session.items).items()}
    Path(os.environ[INTO]).write_bytes(orjson.dumps(found))
