"""Every statement of the service in both dialects: each is rendered on its first use, so a wrong one is found here, and not by a caller."""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import FunctionType
from typing import cast

import psycopg
import pytest

import storage
from storage.engine.sql import Statement, postgresql_dialect, runs_in_thread, sqlite_dialect
from tests.databases import migrated_postgres, required_database

DIALECTS = [sqlite_dialect(), postgresql_dialect()]
STORAGE_MODULES = sorted(found.name for found in walk_packages(storage.__path__, "storage.") if ".migrations" not in found.name)

OF_HISTORY = re.compile(r"\b(from|into|update|join) (audit|audit_read|event|delivery|delivery_attempt)\b", re.IGNORECASE)


def statement_of(function: Callable[..., object]) -> Statement:
    """The statement that a storage function is."""
    return cast("Statement", vars(function)["statement"])


def statements(held: object) -> Iterator[Statement]:
    """Those of a value, which may be a collection of them."""
    if isinstance(held, runs_in_thread):
        yield from statements(held.__wrapped__)
    elif isinstance(held, Statement):
        yield held
    elif isinstance(held, FunctionType) and "statement" in vars(held):
        yield statement_of(held)
    elif isinstance(held, dict):
        yield from (each for value in held.values() for each in statements(value))
    elif isinstance(held, tuple | list):
        yield from (each for value in held for each in statements(value))


def named(module: str) -> list[Statement]:
    return [each for held in vars(import_module(module)).values() for each in statements(held)]


@pytest.mark.parametrize("module", STORAGE_MODULES)
def test_each_statement_can_be_said_in_both_dialects(module: str) -> None:
    assert all(statement.text(dialect).sql for statement in named(module) for dialect in DIALECTS)


@pytest.fixture(scope="module", params=["whole", "divided"])
def connection(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """A PostgreSQL database whose history is in whole tables, or in partitions."""
    with required_database(migrated_postgres(divided=request.param == "divided")) as url, psycopg.connect(url, autocommit=True) as opened:
        yield opened


def planned(connection: psycopg.Connection, sql: str) -> None:
    """Have a statement planned without values."""
    places = {name: place for place, name in enumerate(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)), 1)}
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${places[found[1]]}", sql).replace("%%", "%")
    connection.execute(b"prepare planned as " + text.encode())
    connection.execute(f"explain execute planned({', '.join('null' for _ in places)})".replace("()", "").encode())
    connection.execute(b"deallocate planned")


@pytest.mark.postgres
def test_each_statement_on_history_is_accepted_by_whole_and_by_partitioned_tables(connection: psycopg.Connection) -> None:
    refused, looked = list[str](), 0
    connection.execute(b"set plan_cache_mode = force_generic_plan")
    for text in (statement.text(DIALECTS[1]) for module in STORAGE_MODULES for statement in named(module)):
        if not OF_HISTORY.search(text.sql):
            continue
        looked += 1
        try:
            planned(connection, text.sql)
        except psycopg.Error as error:
            refused.append(f"{error}: {text.sql}")
    assert refused == [] and looked > 50


def test_there_are_statements_to_look_at() -> None:
    assert sum(len(named(module)) for module in STORAGE_MODULES) > 400
