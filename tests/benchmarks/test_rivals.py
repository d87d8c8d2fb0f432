"""The tables of the rivals that work with objects of a session."""

from typing import Any

import pytest
import sqlalchemy as sa
from sqlmodel import SQLModel

from benchmarks.rivals import models

MAPPED = [made for name, made in vars(models).items() if name.endswith("Table")]


@pytest.mark.parametrize("mapped", MAPPED, ids=lambda made: made.__name__)
def test_a_rivals_table_has_the_columns_and_the_key_of_the_services_table(mapped: Any) -> None:
    own = SQLModel.metadata.tables[mapped.__tablename__]
    table: sa.Table = mapped.__table__
    assert table is not own
    assert {column.name: str(column.type) for column in table.columns} == {column.name: str(column.type) for column in own.columns}
    assert {column.name for column in table.primary_key} == {column.name for column in own.primary_key}
    assert {column.name for column in table.columns if column.nullable} == {column.name for column in own.columns if column.nullable}
