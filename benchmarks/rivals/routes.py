"""The 176 operations of the specification in its order, so that every rival routes among as many as the finished service."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CREATE, READ = "create_connectivity_intent", "get_connectivity_intent"


class Operation(NamedTuple):
    """One row of tests/spec/operations.tsv, as far as a router needs it."""

    id: str
    method: str
    path: str


def operations() -> Iterator[Operation]:
    """Every operation, in the order of the specification."""
    lines = (Path(__file__).parent.parent.parent / "tests/spec/operations.tsv").read_text().splitlines()
    rows = [line for line in lines if line and not line.startswith("#")]
    for row in rows[1:]:
        yield Operation(*row.split("\t")[:3])
