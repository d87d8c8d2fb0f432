"""A list as one value of a statement: JSON text that both databases unfold into rows."""

from collections.abc import Sequence
from typing import TypeAlias

import orjson
import sqlalchemy as sa

from storage.engine.statement import Dialect, Value

ColumnKind: TypeAlias = type[sa.types.TypeEngine[str]] | type[sa.types.TypeEngine[int]]


def pack_rows(rows: Sequence[Sequence[Value]]) -> str:
    """The rows as a value to bind."""
    return orjson.dumps(rows).decode()


def json_rows(dialect: Dialect, bind: str, name: str, **columns: ColumnKind) -> sa.Subquery:
    """The rows bound as `bind`, as a table with these columns."""
    given = sa.bindparam(bind, type_=sa.Text)
    if dialect.name == "sqlite":
        rows = sa.func.json_each(given).table_valued("value", name="rows")
        cells = [sa.func.json_extract(rows.c.value, sa.literal_column(f"'$[{place}]'")) for place in range(len(columns))]
    else:
        rows = sa.func.json_array_elements(sa.cast(given, sa.JSON)).table_valued("value", name="rows")
        cells = [rows.c.value.op("->>")(sa.literal_column(str(place))) for place in range(len(columns))]
    typed = [sa.cast(cell, kind).label(column) for cell, (column, kind) in zip(cells, columns.items(), strict=True)]
    return sa.select(*typed).select_from(rows).subquery(name)


def in_id_range(dialect: Dialect, column: sa.ColumnElement[str]) -> list[sa.ColumnElement[bool]]:
    """That an id of a list is between the ends of it (`ends`), which tells PostgreSQL the partitions. SQLite would take another index."""
    return (
        []
        if dialect.name == "sqlite"
        else [column >= sa.bindparam("lowest", type_=sa.Text), column <= sa.bindparam("highest", type_=sa.Text)]
    )


def id_range(ids: Sequence[str]) -> dict[str, str]:
    """The first and the last of some ids."""
    return {"lowest": min(ids), "highest": max(ids)}
