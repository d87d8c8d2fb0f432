"""How tables are described and named, and whether a database has one."""

import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Annotated, ClassVar, Literal, TypeAlias, cast, get_args, get_origin

import sqlalchemy as sa
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from sqlmodel import Field, SQLModel

from storage.engine.connection import Dialect

# What SQLAlchemy leaves untyped.
make_table = cast(Callable[..., sa.Table], sa.Table)

make_column = cast(Callable[..., sa.Column[object]], sa.Column)

Key: TypeAlias = Annotated[str, Field(primary_key=True)]
"""A text of the primary key, in a row type that a table takes its columns from."""

BigInt: TypeAlias = Annotated[int, Field(sa_type=sa.BigInteger)]
"""An integer of 64 bits, in a row type or a table."""

COLUMN_TYPES: Mapping[object, object] = {str: sa.Text, float: sa.Double, bytes: sa.LargeBinary, int: sa.Integer}


class TableDescription:
    """Describes a table in SQLModel's words and names it after its class: WebhookEndpointTable is webhook_endpoint.

    `row`: a named tuple whose fields are columns, behind those of the class, all but the fields `without`. A column is text, a double,
    bytes or an integer of 32 bits where no Field says otherwise, and may be null where its type ends in `| None`.

    Choice: these are no SQLModel classes, since no row is ever an object of a session: mappers and validators for every table, which
    nobody used, were a sixth of every start.
    """

    __tablename__: ClassVar[str]
    __table_args__: ClassVar[tuple[sa.schema.SchemaItem | Mapping[str, object], ...] | Mapping[str, object]] = ()

    def __init_subclass__(cls, *, table: bool, row: type[tuple[object, ...]] | None = None, without: Sequence[str] = ()) -> None:
        assert table, "every class is a table"
        cls.__tablename__ = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Table")).lower()
        described = cast("dict[str, object]", {} if row is None else row.__annotations__)
        shared = {name: kind for name, kind in described.items() if name not in without}
        columns = [described_column(name, kind, vars(cls).get(name, ...)) for name, kind in (cls.__annotations__ | shared).items()]
        given = cls.__table_args__ if isinstance(cls.__table_args__, tuple) else (cls.__table_args__,)
        items = [each for each in given if not isinstance(each, Mapping)]
        options = {name: value for each in given if isinstance(each, Mapping) for name, value in each.items()}
        make_table(cls.__tablename__, SQLModel.metadata, *columns, *items, **options)


def described_column(name: str, kind: object, given: object) -> sa.Column[object]:
    """The column of a field: `given` is the Field or the default behind its equals sign, unless its type `kind` holds a Field."""
    is_nullable = NoneType in get_args(kind)
    plain = next(each for each in get_args(kind) if each is not NoneType) if is_nullable else kind
    if get_origin(plain) is Annotated:
        plain, given = get_args(plain)
    field = given if isinstance(given, FieldInfo) else Field(default=given)
    given_options = {"default": cast("object", field.default), **cast("dict[str, object]", vars(field))}
    options = {option: value for option, value in given_options.items() if value is not PydanticUndefined}
    if isinstance(column := options.get("sa_column"), sa.Column):
        column.name = column.key = name
        return cast("sa.Column[object]", column)
    references = [sa.ForeignKey(str(options["foreign_key"]))] if "foreign_key" in options else []
    stated = {option: options[option] for option in ("default", "primary_key", "index", "unique") if option in options}
    stated["nullable"] = is_nullable and not stated.get("primary_key")
    stated |= cast("dict[str, object]", options.get("sa_column_kwargs", {}))
    column_type = options.get("sa_type") or COLUMN_TYPES[str if get_origin(plain) is Literal else plain]
    return make_column(name, column_type, *references, **stated)


# Choice: SQLite keeps these rows in the order of their keys (WITHOUT ROWID). The file is a third smaller and a month is read in one piece;
# events that come in the order of their ids are stored a tenth faster, those that come in none a tenth slower.
CLUSTERED = {"sqlite_with_rowid": False}


def table_lookup(name: str) -> Callable[[Dialect], sa.Select[str]]:
    """A table, looked up: a query of one that is not there would fail."""

    def look_up(dialect: Dialect) -> sa.Select[str]:
        if dialect.name == "sqlite":
            known = sa.table("sqlite_master", sa.column("name", sa.String))
            return sa.select(known.c.name).where(known.c.name == name)
        found = sa.cast(sa.func.to_regclass(name), sa.String).label("name")
        return sa.select(found).where(sa.func.to_regclass(name).is_not(None))

    return look_up


def table_of(description: type[TableDescription]) -> sa.Table:
    """The table that a class describes."""
    return SQLModel.metadata.tables[description.__tablename__]
