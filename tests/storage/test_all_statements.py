"""Every statement of the service in both dialects: each is rendered on its first use, so a wrong one is found here, and not by a caller."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest

import storage
from storage.statement import Statement, postgresql_dialect, sqlite_dialect

DIALECTS = [sqlite_dialect(), postgresql_dialect()]
MODULES = sorted(found.name for found in walk_packages(storage.__path__, "storage.") if ".migrations" not in found.name)


def statements(held: object) -> Iterator[Statement]:
    """Those of a value, which may be a collection of them."""
    if isinstance(held, Statement):
        yield held
    elif isinstance(held, dict):
        yield from (each for value in held.values() for each in statements(value))
    elif isinstance(held, tuple | list):
        yield from (each for value in held for each in statements(value))


def named(module: str) -> list[Statement]:
    return [each for held in vars(import_module(module)).values() for each in statements(held)]


@pytest.mark.parametrize("module", MODULES)
def test_each_statement_can_be_said_in_both_dialects(module: str) -> None:
    assert all(statement.text(dialect).sql for statement in named(module) for dialect in DIALECTS)


def test_there_are_statements_to_look_at() -> None:
    assert sum(len(named(module)) for module in MODULES) > 400
