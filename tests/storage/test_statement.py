"""Statements: what is rendered, and what is refused when it is first used."""

from textwrap import wrap
from typing import Annotated, NamedTuple

import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from storage.engine.sql import Command, Query, changes_one, postgresql_dialect, sqlite_dialect, value_or
from storage.engine.store import Store
from storage.organisations import count_change
from tests.storage.counters import CHANGE_TABLE, ChangeCount
from tests.storage.test_all_statements import statement_of

DIALECTS = [sqlite_dialect(), postgresql_dialect()]


class Name(NamedTuple):
    name: str


def both(statement: Query[Name] | Query[ChangeCount] | Command) -> list[tuple[list[str], dict[str, object]]]:
    texts = [statement.text(dialect) for dialect in DIALECTS]
    return [(wrap(" ".join(text.sql.split()), 100), dict(text.literals)) for text in texts]


def test_lists_limits_and_literals_are_bound_beside_the_callers_values() -> None:
    page = (
        sa.select(CHANGE_TABLE.c.name)
        .where(CHANGE_TABLE.c.name.in_(["a", "b"]), CHANGE_TABLE.c.name.like("9%"))
        .limit(sa.bindparam("count"))
        .offset(2)
    )
    assert both(Query(Name, page)) == snapshot(
        [
            (
                [
                    "SELECT change.name FROM change WHERE change.name IN (:name_1_1, :name_1_2) AND change.name LIKE",
                    ":name_2 LIMIT :count OFFSET :param_1",
                ],
                {"name_2": "9%", "param_1": 2, "name_1_1": "a", "name_1_2": "b"},
            ),
            (
                [
                    "SELECT change.name FROM change WHERE change.name IN (%(name_1_1)s::VARCHAR, %(name_1_2)s::VARCHAR)",
                    "AND change.name LIKE %(name_2)s::VARCHAR LIMIT %(count)s OFFSET %(param_1)s::INTEGER",
                ],
                {"name_2": "9%", "param_1": 2, "name_1_1": "a", "name_1_2": "b"},
            ),
        ]
    )


def test_an_upsert_reads_alike_on_both() -> None:
    upsert = Command(
        lambda dialect: (insert := dialect.insert(CHANGE_TABLE)).on_conflict_do_update(
            index_elements=["name"], set_={"value": insert.excluded.value}
        )
    )
    assert both(upsert) == snapshot(
        [
            (["INSERT INTO change (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value =", "excluded.value"], {}),
            (
                [
                    "INSERT INTO change (name, value) VALUES (%(name)s::VARCHAR, %(value)s::BIGINT) ON CONFLICT (name) DO",
                    "UPDATE SET value = excluded.value",
                ],
                {},
            ),
        ]
    )


def test_columns_that_are_not_the_rows_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="name and order must agree"):
        Query(ChangeCount, sa.select(CHANGE_TABLE.c.value, CHANGE_TABLE.c.name)).text(DIALECTS[0])


def test_a_query_without_rows_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a statement with rows"):
        Query(Name, sa.text("delete from change")).text(DIALECTS[0])


def test_a_write_without_returning_gives_the_columns_that_its_row_names() -> None:
    assert Query(Name, sa.delete(CHANGE_TABLE)).text(DIALECTS[0]).sql == "DELETE FROM change RETURNING name"


def test_a_list_that_is_known_only_at_the_call_is_refused() -> None:
    statement = Command(sa.delete(CHANGE_TABLE).where(CHANGE_TABLE.c.name.in_(sa.bindparam("names", expanding=True))))
    with pytest.raises(TypeError, match="lists"):
        statement.text(DIALECTS[0])


def test_a_python_default_is_refused_rather_than_skipped() -> None:
    thing = sa.Table("thing", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("at", sa.Integer, default=3))
    with pytest.raises(TypeError, match="defaults"):
        Command(sa.insert(thing).values(id=1)).text(DIALECTS[0])


@changes_one
def reset_count(*, row: ChangeCount) -> sa.Executable:
    return sa.update(CHANGE_TABLE).where(CHANGE_TABLE.c.name == row.name).values(value=0)


@changes_one
def set_count(*, name: str, value: Annotated[float, "value_ms"]) -> sa.Executable:
    changed = sa.bindparam("value_ms", type_=sa.BigInteger) + sa.cast(value, sa.Integer)
    return sa.update(CHANGE_TABLE).where(CHANGE_TABLE.c.name == name).values(value=changed)


@value_or(-1)
def count_named(*, name: str) -> sa.Executable:
    return sa.select(CHANGE_TABLE.c.value).where(CHANGE_TABLE.c.name == name)


async def test_of_a_row_only_what_its_statement_uses_is_bound(store: Store) -> None:
    await store.write(count_change, name="mine")
    assert await store.write(reset_count, row=ChangeCount("mine", 7))
    assert await store.read(count_named, name="mine") == 0


async def test_seconds_are_bound_as_milliseconds_too(store: Store) -> None:
    await store.write(count_change, name="mine")
    assert await store.write(set_count, name="mine", value=2.5)
    assert await store.read(count_named, name="mine") == 2502


def test_a_bind_in_milliseconds_that_no_statement_uses_is_refused() -> None:
    @changes_one
    def forget(*, name: Annotated[float, "name_ms"]) -> sa.Executable:
        return sa.delete(CHANGE_TABLE).where(CHANGE_TABLE.c.value == name)

    with pytest.raises(TypeError, match="name_ms"):
        statement_of(forget).text(DIALECTS[0])
