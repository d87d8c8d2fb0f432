"""What the file of an aggregate is written in: statements, the tables that they are of, and the connection that runs them.

Statements are built once with SQLAlchemy Core, rendered once per dialect to text, and executed by the driver itself. A connection is the
driver's, inside one transaction, and the only thing that a storage function sees. A function whose body is one statement is written as it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import update_wrapper
from inspect import Parameter, signature
from operator import itemgetter
from types import NoneType
from typing import Annotated, ClassVar, Concatenate, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast, get_args

import orjson
import sqlalchemy as sa
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlmodel import Field, SQLModel

from registry.ids import LAST_ID_LETTERS
from storage.engine.drivers import DeferredCommand, DriverConnection, DriverCursor, Value

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

ARGUMENT = "__argument"
"""Ends the name of a bound value that would otherwise be a column's: SQLAlchemy keeps those for the columns that a write sets."""
LITERAL = "__literal"

BOUND_NAME = re.compile(r"(?<=%\()\w+|(?<=(?<!:):)\w+")


class Dialect:
    """One kind of SQL: how it is spelled, and its INSERT with an ON CONFLICT clause."""

    __slots__ = ("_grammar", "insert", "name")

    def __init__(self, name: str, grammar: sa.Dialect, insert: Callable[[sa.Table], sqlite.Insert]) -> None:
        """`insert` makes an INSERT that knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
        self.name, self._grammar, self.insert = name, grammar, insert

    def compile(self, statement: sa.Executable) -> SQLCompiler:
        """The statement in this dialect's words."""
        # for_executemany: SQLAlchemy adds no RETURNING of its own to fetch generated keys.
        return cast(SQLCompiler, cast(sa.ClauseElement, statement).compile(dialect=self._grammar, for_executemany=True))


class StatementText(NamedTuple):
    """A rendered statement, the values that are bound in every call, and the names of those that the caller gives."""

    sql: str
    literals: Mapping[str, Value]
    required: frozenset[str]


StatementBuild: TypeAlias = sa.Executable | Callable[[Dialect], sa.Executable]


class Statement:
    """A statement and its renderings, which are made on first use and never change. `row`: what a row of it is, if it has rows."""

    __slots__ = ("_build", "_rendered", "_row")

    def __init__(self, build: StatementBuild, row: type[object] | None = None) -> None:
        self._build, self._row = build, row
        self._rendered: dict[str, StatementText] = {}

    def text(self, dialect: Dialect) -> StatementText:
        """This statement in the dialect's words."""
        rendered = self._rendered.get(dialect.name)
        if rendered is None:
            rendered = self._rendered[dialect.name] = self._render(dialect)
        return rendered

    def _render(self, dialect: Dialect) -> StatementText:
        statement = self._build if isinstance(self._build, sa.Executable) else self._build(dialect)
        return render(statement if self._row is None else with_columns(statement, self._row), dialect)


class Query(Statement, Generic[R]):
    """A statement with rows: a select, or a write that returns them. A row is a named tuple, whose fields are exactly the columns in order,
    or the value of the one column. A write that has no RETURNING gets one of the columns that the fields name."""

    __slots__ = ("make",)

    def __init__(self, row: type[R], build: StatementBuild) -> None:
        super().__init__(build, row)
        self.make = row_maker(row)


def text_query(row: type[R], text: str, *columns: str) -> Query[R]:
    """A query that is written as SQL in `text`; its columns are the fields of the named tuple `row`, or the one of `columns`."""
    names = cast("tuple[str, ...]", getattr(row, "_fields", columns))
    return Query(row, lambda _: sa.text(text).columns(*(sa.column(name, sa.Text) for name in names)))


class Command(Statement):
    """A write without rows."""

    __slots__ = ()


def row_maker(row: type[R]) -> Callable[[tuple[Value, ...]], R]:
    """What makes a row of the driver's tuple: the named tuple `row`, or the one value."""
    return cast("Callable[[tuple[Value, ...]], R]", getattr(row, "_make", itemgetter(0)))


def with_columns(statement: sa.Executable, row: type[object]) -> sa.Executable:
    """`statement`, whose columns are the fields of `row` in their order, or one column where `row` is no named tuple; else TypeError."""
    if not isinstance(statement, sa.sql.expression.ReturnsRows):
        raise TypeError(f"a Query needs a statement with rows, not {type(statement).__name__}; a write without rows is a Command")
    columns = tuple(statement.exported_columns.keys())
    fields = cast("tuple[str, ...]", getattr(row, "_fields", columns[:1]))
    if isinstance(statement, sa.sql.expression.UpdateBase) and not columns:
        # SQLAlchemy's own types end where the number of columns is not known.
        return cast("sa.Executable", statement.returning(*(statement.table.c[name] for name in fields)))
    if columns != fields:
        raise TypeError(f"the statement gives the columns {columns}, the row has the fields {fields}: name and order must agree")
    return statement


def render(statement: sa.Executable, dialect: Dialect) -> StatementText:
    """The text of a statement, and the literals to bind beside the caller's values."""
    compiled = dialect.compile(statement)
    defaults = [column.name for column in (*compiled.insert_prefetch, *compiled.update_prefetch)]
    if defaults:
        raise TypeError(f"the columns {defaults} have Python defaults, which rendered text would skip: give their values in the statement")
    required = {name for name, bind in compiled.binds.items() if bind.required}
    lists = [name for name in required if compiled.binds[name].expanding]
    if lists:
        raise TypeError(f"the parameters {lists} are lists, which text cannot bind: run the statement once per value")
    # Lists known when the statement was built are spelled out here, and types act on literals here and nowhere else.
    state = compiled.construct_expanded_state(dict.fromkeys(required))
    literals = {name: value for name, value in state.parameters.items() if name not in required}
    for name, process in state.processors.items():
        if name in literals and callable(process):
            literals[name] = process(literals[name])
    # An argument loses the end of its name; a literal that has the name then gets another.
    names = {name: name.removesuffix(ARGUMENT) for name in required}
    names |= {name: name + LITERAL for name in literals if name + ARGUMENT in required}
    sql = BOUND_NAME.sub(lambda found: names.get(found[0], found[0]), state.statement)
    return StatementText(
        sql, {names.get(name, name): value for name, value in literals.items()}, frozenset(names[name] for name in required)
    )


def sqlite_dialect() -> Dialect:
    """SQLite with named parameters."""
    return Dialect("sqlite", sqlite.dialect(paramstyle="named"), sqlite.insert)


def postgresql_dialect() -> Dialect:
    """PostgreSQL as psycopg takes it. Imported only where it is used: it costs start-up time."""
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    # Typed as SQLite's INSERT: what both share is what a portable statement may use.
    insert = cast(Callable[[sa.Table], sqlite.Insert], postgresql.insert)
    return Dialect("postgresql", PGDialect_psycopg(), insert)


def insert_once(
    table: sa.Table, names: Iterable[str] = (), /, *, key: Sequence[str] = (), **values: object
) -> Callable[[Dialect], sqlite.Insert]:
    """The statement that inserts a row of what is bound as `names`, and of `values`, unless a row has these values of the columns `key`.

    Without a `key` it inserts nothing where any unique rule of the table forbids the row.
    """
    taken = tuple(names)
    return lambda dialect: dialect.insert(table).values(insert_values(taken, values)).on_conflict_do_nothing(index_elements=key or None)


def upsert(
    table: sa.Table, names: Iterable[str] = (), /, *, key: Sequence[str], where: sa.ColumnElement[bool] | None = None, **values: object
) -> Callable[[Dialect], sqlite.Insert]:
    """As `insert_once`; where a row has the values of `key`, the other ones are set in it, if `where` holds for it."""
    taken = tuple(names)

    def build(dialect: Dialect) -> sqlite.Insert:
        given = insert_values(taken, values)
        changed = {name: value for name, value in given.items() if name not in key}
        return dialect.insert(table).values(given).on_conflict_do_update(index_elements=key, set_=changed, where=where)

    return build


def insert_values(names: Iterable[str], values: Mapping[str, object]) -> dict[str, object]:
    return {**{name: sa.bindparam(name) for name in names}, **values}


class Unindexed(FunctionElement[T]):
    name = "unindexed"
    inherit_cache = True


@compiles(Unindexed)
def compile_plain(element: Unindexed[object], compiler: SQLCompiler, **how: object) -> str:
    """PostgreSQL knows how many rows have which value."""
    return compiler.process(element.clauses, **how)


@compiles(Unindexed, "sqlite")
def compile_hidden(element: Unindexed[object], compiler: SQLCompiler, **how: object) -> str:
    """No index is over this, but those that were made with these words."""
    column = compiler.process(element.clauses, **how)
    return f"({column} || '')" if isinstance(element.type, sa.String) else f"+{column}"


def unindexed(column: sa.ColumnElement[T]) -> sa.ColumnElement[T]:
    """A column to compare with, but not to search by.

    SQLite keeps no statistics here: it takes an equality for better than a range, and would read every finished row to find what is due.
    """
    hidden = Unindexed[T](column)
    hidden.type = column.type
    return hidden


RowCondition = Callable[[sa.FromClause], sa.ColumnElement[bool]]


def distinct_values(table: sa.Table, column: str, rows: RowCondition, name: str) -> sa.CTE:
    """The values, each once, of a text column that begins an index over just these rows. `value` is null in the last one."""
    first, following = table.alias("first"), table.alias("following")
    begin = sa.select(sa.func.min(first.c[column]).label("value")).where(rows(first))
    found = begin.cte(name, recursive=True)
    after = sa.select(sa.func.min(following.c[column])).where(rows(following), following.c[column] > found.c.value)
    return found.union_all(sa.select(after.correlate(found).scalar_subquery()).where(found.c.value.is_not(None)))


def delete_oldest(table: sa.Table, has_ended: sa.ColumnElement[bool], by: sa.ColumnElement[object], most: int) -> sa.Executable:
    """The statement that removes at most `most` of the rows that have ended, in the order of `by`.

    The condition stands twice: PostgreSQL asks a row that has changed meanwhile for the outer one only.
    """
    names = tuple(table.primary_key.columns)
    first = sa.select(*names).where(has_ended).order_by(by).limit(most)
    return sa.delete(table).where(sa.tuple_(*names).in_(first), has_ended)


ColumnKind: TypeAlias = type[sa.types.TypeEngine[str]] | type[sa.types.TypeEngine[int]]


def column_kinds(table: sa.Table, names: Iterable[str]) -> dict[str, ColumnKind]:
    """The types of the columns `names`, by name, for `json_rows`."""
    return {name: type(table.c[name].type) for name in names}


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


def bound_list(dialect: Dialect, bind: str, kind: ColumnKind = sa.Text) -> sa.Select[str]:
    """The values that are bound as `bind`, packed as rows of one, to look for a column in."""
    return cast("sa.Select[str]", sa.select(json_rows(dialect, bind, "given", value=kind).c.value))


# What SQLAlchemy leaves untyped.
make_table = cast(Callable[..., sa.Table], sa.Table)

make_column = cast(Callable[..., sa.Column[object]], sa.Column)

Key: TypeAlias = Annotated[str, Field(primary_key=True)]
"""A text of the primary key, in a row type that a table takes its columns from."""

BigInt: TypeAlias = Annotated[int, Field(sa_type=sa.BigInteger)]
"""An integer of 64 bits, in a row type or a table."""

COLUMN_TYPES: Mapping[object, object] = {str: sa.Text, float: sa.Double, bytes: sa.LargeBinary, int: sa.Integer}


RowTypes: TypeAlias = type[tuple[object, ...]] | tuple[type[tuple[object, ...]], ...]


class TableDescription:
    """Describes a `table` in SQLModel's words and names it after its class: WebhookEndpointTable is webhook_endpoint.

    `row`: a named tuple, or several, whose fields are columns, behind those of the class, all but the fields `without`. A column is text,
    a double, bytes or an integer of 32 bits where no Field says otherwise, and may be null where its type ends in `| None`.

    Choice: these are no SQLModel classes, since no row is ever an object of a session: mappers and validators for every table, which
    nobody used, were a sixth of every start.
    """

    table: ClassVar[sa.Table]
    __tablename__: ClassVar[str]
    __table_args__: ClassVar[tuple[sa.schema.SchemaItem | Mapping[str, object], ...] | Mapping[str, object]] = ()

    def __init_subclass__(cls, *, table: bool, row: RowTypes = (), without: Sequence[str] = ()) -> None:
        assert table, "every class is a table"
        cls.__tablename__ = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Table")).lower()
        rows = row if isinstance(row, tuple) else (row,)
        described = {name: kind for each in rows for name, kind in cast("dict[str, object]", each.__annotations__).items()}
        shared = {name: kind for name, kind in described.items() if name not in without}
        columns = [described_column(name, kind, vars(cls).get(name, ...)) for name, kind in (cls.__annotations__ | shared).items()]
        given = cls.__table_args__ if isinstance(cls.__table_args__, tuple) else (cls.__table_args__,)
        items = [each for each in given if not isinstance(each, Mapping)]
        options = {name: value for each in given if isinstance(each, Mapping) for name, value in each.items()}
        cls.table = make_table(cls.__tablename__, SQLModel.metadata, *columns, *items, **options)


def described_column(name: str, kind: object, given: object) -> sa.Column[object]:
    """The column of a field: `given` is the Field or the default behind its equals sign, unless its type `kind` holds a Field."""
    is_nullable = NoneType in get_args(kind)
    plain = next(each for each in get_args(kind) if each is not NoneType) if is_nullable else kind
    if hasattr(plain, "__metadata__"):  # an Annotated
        plain, given = get_args(plain)
    given_options: dict[str, object] = {} if given is ... else {"default": given}
    if isinstance(given, FieldInfo):
        given_options = {"default": cast("object", given.default), **cast("dict[str, object]", vars(given))}
    options = {option: value for option, value in given_options.items() if value is not PydanticUndefined}
    if isinstance(column := options.get("sa_column"), sa.Column):
        column.name = column.key = name
        return cast("sa.Column[object]", column)
    references = [sa.ForeignKey(str(options["foreign_key"]))] if "foreign_key" in options else []
    stated = {option: options[option] for option in ("default", "primary_key", "index", "unique") if option in options}
    stated["nullable"] = is_nullable and not stated.get("primary_key")
    stated |= cast("dict[str, object]", options.get("sa_column_kwargs", {}))
    column_type = options.get("sa_type") or COLUMN_TYPES[str if get_args(plain) else plain]  # a Literal is of texts
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


class Connection:
    """Runs statements. Transactions are the store's: nothing here begins, commits or rolls back."""

    __slots__ = ("deferred", "dialect", "driver")

    def __init__(self, driver: DriverConnection, dialect: Dialect, deferred: list[DeferredCommand] | None = None) -> None:
        """`deferred` takes what is to be sent with COMMIT, by whoever commits; None: nothing is deferred."""
        self.driver = driver
        self.dialect = dialect
        self.deferred = deferred

    @property
    def dialect_name(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.dialect.name

    def all(self, query: Query[R], **binds: Value) -> list[R]:
        """Every row."""
        text = query.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        return list(map(query.make, cursor.fetchall()))

    def slices(self, query: Query[R], size: int, **binds: Value) -> Iterator[list[R]]:
        """Every row of one statement, at most `size` at a time, so that no more of them are objects at once."""
        text = query.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        try:
            while rows := cursor.fetchmany(size):
                yield list(map(query.make, rows))
        finally:
            cursor.close()

    def first(self, query: Query[R], **binds: Value) -> R | None:
        """The first row, or nothing."""
        text = query.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        row = fetch_first(cursor)
        return None if row is None else query.make(row)

    def run(self, command: Command, **binds: Value) -> int:
        """Run a write; returns the number of rows it changed."""
        text = command.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        return cursor.rowcount

    def run_with_commit(self, command: Command, **binds: Value) -> None:
        """Run a write that nothing in this transaction reads. On PostgreSQL it is sent in one message with COMMIT: no round trip more."""
        text = command.text(self.dialect)
        values = {**text.literals, **binds} if text.literals else binds
        if self.deferred is None:
            self.driver.execute(text.sql, values)
        else:
            self.deferred.append(DeferredCommand(text.sql, values))

    def run_many(self, command: Command, rows: Sequence[Mapping[str, Value]]) -> int:
        """Run a write once per row; returns the number of rows changed."""
        if not rows:
            return 0
        text = command.text(self.dialect)
        cursor = self.driver.cursor()
        cursor.executemany(text.sql, [{**text.literals, **row} for row in rows] if text.literals else rows)
        return cursor.rowcount


class runs_in_thread(Generic[P, T]):
    """A storage function that is marked so; it is called like any other."""

    def __init__(self, fn: Callable[Concatenate[Connection, P], T]) -> None:
        self.__wrapped__ = fn

    def __call__(self, connection: Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.__wrapped__(connection, *args, **kwargs)


def is_run_in_thread(fn: object) -> bool:
    return isinstance(fn, runs_in_thread) or isinstance(getattr(fn, "__wrapped__", None), runs_in_thread)


StorageFunction: TypeAlias = Callable[Concatenate[Connection, P], T]


def runs_only(statement: Statement) -> Callable[[StorageFunction[P, T]], StorageFunction[P, T]]:
    """Marks a storage function that runs this statement, once, and no other."""
    return lambda fn: vars(fn).update(statement=statement) or fn


class DeclaredStatement(Statement):
    """A statement that is written as a function with keyword-only parameters, which builds it once per dialect.

    While it is built, each argument is the value to bind, and that of a parameter which is a named tuple is a named tuple of such values;
    of those, only the fields that the statement uses are bound.
    `Annotated[float, int]`: the value is bound as `int` makes it. `Annotated[float, "now_ms"]`: seconds, which are bound as `now_ms` in
    milliseconds, too.
    """

    __slots__ = ("_declare", "conversions", "in_milliseconds", "rows")

    def __init__(self, declare: Callable[..., StatementBuild], row: type[object] | None) -> None:
        super().__init__(self._declared, row)
        self._declare = declare
        self.conversions: Sequence[tuple[str, Callable[[object], object]]] = ()
        self.in_milliseconds: Sequence[tuple[str, str]] = ()
        self.rows: Sequence[tuple[str, Sequence[str]]] = ()

    def _render(self, dialect: Dialect) -> StatementText:
        sql, literals, required = super()._render(dialect)
        parameters = signature(self._declare).parameters.values()
        rows = [each for each in parameters if hasattr(each.annotation, "_fields")]
        marks = [(each.name, each.annotation.__metadata__[0]) for each in parameters if hasattr(each.annotation, "__metadata__")]
        self.in_milliseconds = [(name, mark) for name, mark in marks if isinstance(mark, str)]
        names = [*(each.name for each in parameters if each not in rows), *(mark for _, mark in self.in_milliseconds)]
        given = [*names, *(field for row in rows for field in row.annotation._fields)]
        if len(set(given)) < len(given) or not set(names) <= required <= set(given):
            raise TypeError(f"{self._declare.__name__} is given {given}, and its statement needs {sorted(required)}")
        self.rows = [(row.name, [field for field in row.annotation._fields if field in required]) for row in rows]
        self.conversions = [(name, mark) for name, mark in marks if not isinstance(mark, str)]
        defaults: dict[str, object] = {each.name: each.default for each in parameters if each.default is not Parameter.empty}
        return StatementText(sql, {**literals, **self.bound(defaults)}, required)

    def bound(self, given: dict[str, object]) -> dict[str, Value]:
        """The values to bind for the arguments `given`, which become them."""
        for name, convert in self.conversions:
            if name in given:
                given[name] = convert(given[name])
        for name, also in self.in_milliseconds:
            if name in given:
                given[also] = to_milliseconds(cast("float", given[name]))
        for name, fields in self.rows:
            if name in given:
                row = given.pop(name)
                given.update((field, getattr(row, field)) for field in fields)
        return cast("dict[str, Value]", given)

    def _declared(self, dialect: Dialect) -> sa.Executable:
        build = self._declare(**{each.name: stand_in(each) for each in signature(self._declare).parameters.values()})
        return build if isinstance(build, sa.Executable) else build(dialect)


def statement_function(
    declare: Callable[P, StatementBuild], row: type[object] | None, read: Callable[[DriverCursor], T]
) -> StorageFunction[P, T]:
    """The storage function that is one statement: it binds its arguments, runs the statement, and returns what `read` makes of it."""
    statement = DeclaredStatement(declare, row)

    def run(connection: Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        sql, literals, _ = statement.text(connection.dialect)
        values: dict[str, object] = kwargs
        if statement.conversions or statement.in_milliseconds or statement.rows:
            statement.bound(values)
        return read(connection.driver.execute(sql, {**literals, **values} if literals else values))

    update_wrapper(run, declare)
    vars(run)["statement"] = statement  # for `is_one_select`, and for tests, which look at every statement
    return run


def stand_in(parameter: Parameter) -> object:
    """What stands for the value of a parameter while its statement is built."""
    assert parameter.kind is Parameter.KEYWORD_ONLY, f"{parameter.name} is not keyword-only"
    fields = cast("tuple[str, ...] | None", getattr(parameter.annotation, "_fields", None))
    if fields is None:
        return cast("object", sa.bindparam(parameter.name + ARGUMENT))
    return parameter.annotation(*(sa.bindparam(field + ARGUMENT) for field in fields))


def all_rows(row: type[R]) -> Callable[[Callable[P, StatementBuild]], StorageFunction[P, list[R]]]:
    """A function that returns every row: named tuples, or the values of the one column."""
    make = row_maker(row)
    return lambda declare: statement_function(declare, row, lambda cursor: list(map(make, cursor.fetchall())))


def first_row(row: type[R]) -> Callable[[Callable[P, StatementBuild]], StorageFunction[P, R | None]]:
    """A function that returns the first row, a named tuple or the value of the one column; None where there is none."""
    make = row_maker(row)

    def read(cursor: DriverCursor) -> R | None:
        found = fetch_first(cursor)
        return None if found is None else make(found)

    return lambda declare: statement_function(declare, row, read)


def value_or(default: R) -> Callable[[Callable[P, StatementBuild]], StorageFunction[P, R]]:
    """A function that returns the value of the one column of the first row; `default` where there is no row, or the value is null."""

    def read(cursor: DriverCursor) -> R:
        found = fetch_first(cursor)
        return default if found is None or found[0] is None else cast("R", found[0])

    return lambda declare: statement_function(declare, type(default), read)


def one_row(row: type[R]) -> Callable[[Callable[P, StatementBuild]], StorageFunction[P, R]]:
    """A function that returns the one row, a named tuple or the value of the one column, of a statement that always gives one."""
    make = row_maker(row)

    def read(cursor: DriverCursor) -> R:
        found = fetch_first(cursor)
        assert found is not None, "the statement gave no row"
        return make(found)

    return lambda declare: statement_function(declare, row, read)


def row_exists(declare: Callable[P, StatementBuild]) -> StorageFunction[P, bool]:
    """A function that returns whether there is a row."""
    return statement_function(declare, None, lambda cursor: fetch_first(cursor) is not None)


def changes_one(declare: Callable[P, StatementBuild]) -> StorageFunction[P, bool]:
    """A function that returns whether it changed one row."""
    return statement_function(declare, None, lambda cursor: cursor.rowcount == 1)


def changes_rows(declare: Callable[P, StatementBuild]) -> StorageFunction[P, int]:
    """A function that returns how many rows it changed."""
    return statement_function(declare, None, lambda cursor: cursor.rowcount)


def writes(declare: Callable[P, StatementBuild]) -> StorageFunction[P, None]:
    """A function that writes and returns nothing."""
    return statement_function(declare, None, lambda cursor: None)


def fetch_first(cursor: DriverCursor) -> tuple[Value, ...] | None:
    """The first row. An unfinished statement would hold its snapshot open, so it is ended."""
    row = cursor.fetchone()
    cursor.close()
    return row


def to_milliseconds(seconds: float) -> int:
    """Whole milliseconds, which is what is stored."""
    return int(seconds * 1000)


def or_last(prefix: str) -> Callable[[str | None], str]:
    """The id to bind for a page that goes backwards from an id; from behind every id with this prefix where none is given."""
    last = prefix + LAST_ID_LETTERS
    return lambda given: given or last
