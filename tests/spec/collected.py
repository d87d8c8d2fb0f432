"""What pytest really collects: each test function, with the operations that its cases are about."""

from collections import defaultdict
from collections.abc import Iterable

import pytest

from operations.catalogue import CATALOGUE
from registry.operation import Operation
from tests.spec.ledgers import TESTS

Collected = dict[str, set[str]]
"""`file::function`, from the folder of tests, and the ids of operations."""


def of_items(items: Iterable[pytest.Item]) -> Collected:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for item in items:
        if isinstance(item, pytest.Function):
            about = found[f"{item.path.relative_to(TESTS).as_posix()}::{item.originalname}"]
            values = item.callspec.params.values() if hasattr(item, "callspec") else ()
            about.update(id for value in values if (id := named(value)))
    return dict(found)


def named(value: object) -> str | None:
    """The operation that a case is given, itself or by its id."""
    id: object = value.id if isinstance(value, Operation) else value
    return id if isinstance(id, str) and id in CATALOGUE.operations else None
