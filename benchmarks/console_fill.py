"""An organisation of any size in a database of its own: the demo, whose life has happened, and as many copies of its rows as it takes.

A network of another process is read first, and its lines are copied. Every other row is a copy of one that a call, a buyer or a worker has
made in the demo's life, with a number and a time of its own, so that no page meets a row that the service could not have made.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.backlog import series
from benchmarks.contestant import printed_key
from benchmarks.fleet_copies import COPY_DISTANCE
from benchmarks.fleet_copies import TABLES as FLEET_TABLES
from benchmarks.fleet_reads import await_sync, grown, keep_connected, server
from benchmarks.fleet_sync import KEYS
from operations.ledger.esims import EsimProfile, seal_esim_profile
from registry.ids import first_id
from storage.engine.migrate import upgrade_database
from storage.fleets import FLEET
from storage.sealing import Keyring

LIFE_SETTING = "SERVICE_DEMO_LIFE"
LIFE_IS_WHOLE = "more to look at now"
"""What the server's log says once the demo's story is told."""
LIFE_SECONDS = 240.0
CHUNK = 250_000
HOURS = 20 * 24
"""The copies are spread over so many hours before the demo's life; nothing of them is old enough to be removed."""
COPIED_ESIM = "890199"
"""What the ICCIDs of copied intents begin with."""
BUSY_SHARE = 100
"""One event of so many is of one line, the busiest."""


class Sizes(NamedTuple):
    """How many of each the organisation has."""

    lines: int = 100_000
    orders: int = 10_000
    events: int = 1_000_000


class Database(Protocol):
    """What the statements of a fill need of a driver."""

    def run(self, text: str) -> None: ...

    def one(self, text: str) -> object: ...

    def texts(self, text: str) -> list[str]: ...

    def change(self, text: str, rows: Sequence[tuple[str, str]]) -> None: ...


class SqliteDatabase:
    """A file."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def run(self, text: str) -> None:
        self._raw.execute(text)

    def one(self, text: str) -> object:
        return self._raw.execute(text).fetchone()[0]

    def texts(self, text: str) -> list[str]:
        return [str(row[0]) for row in self._raw.execute(text)]

    def change(self, text: str, rows: Sequence[tuple[str, str]]) -> None:
        self._raw.execute("begin")
        self._raw.executemany(text.format("?", "?"), rows)
        self._raw.execute("commit")


class PostgresDatabase:
    """A connection that commits each statement."""

    def __init__(self, url: str) -> None:
        import psycopg  # only where there is such a server

        self.raw = psycopg.connect(url, autocommit=True)

    def run(self, text: str) -> None:
        self.raw.execute(text.encode())

    def one(self, text: str) -> object:
        row = self.raw.execute(text.encode()).fetchone()
        assert row is not None
        return row[0]

    def texts(self, text: str) -> list[str]:
        return [str(row[0]) for row in self.raw.execute(text.encode())]

    def change(self, text: str, rows: Sequence[tuple[str, str]]) -> None:
        self.raw.cursor().executemany(text.format("%s", "%s").encode(), rows)


@contextmanager
def opened_database(url: str) -> Generator[Database]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as raw:
            raw.execute("pragma synchronous=off")
            raw.execute("pragma foreign_keys=off")
            yield SqliteDatabase(raw)
            raw.execute("pragma wal_checkpoint(truncate)")
        return
    made = PostgresDatabase(url)
    with closing(made.raw):
        yield made


def make_organisation(folder: Path, url: str, upstream: int, sizes: Sizes) -> str:
    """The demo, its life, its fleet and the copies of everything; its key.

    Only the embedded database has a demo with a life of its own: PostgreSQL is given the rows of one, which is small before it is copied.
    """
    first = url if url.startswith("sqlite") else f"sqlite:///{folder / 'service.db'}"
    settings = {} if first == url else {"SERVICE_SECRET_KEYS": KEYS}
    key = make_demo(folder, first, upstream, settings)
    if first != url:
        upgrade_database(url)
        move_rows(folder / "service.db", url)
    asyncio.run(grown(url, sizes.lines))
    with opened_database(url) as database:
        copy_rows(database, url, sizes)
        label_intents(database, url)
        seal_codes(database, Keyring((folder / "keyring").read_text() if first == url else KEYS, os.urandom))
        if first != url:
            database.run("vacuum analyze")
    return key


def make_demo(folder: Path, url: str, upstream: int, settings: Mapping[str, str]) -> str:
    """The demo with its life, and the fleet of the network at the port `upstream`; its key."""
    with server(folder, url, None, {LIFE_SETTING: "true", **settings}):
        key = printed_key(folder / "out")
        await_life(folder / "log")
    asyncio.run(keep_connected(url))
    with opened_database(url) as database:  # else the network of that process would be half of the fleet
        for name in (*(each.name for each in FLEET_TABLES), FLEET.name):
            database.run(f"delete from {name}")
    with server(folder, url, upstream, settings) as one:
        await_sync(one.port, key)
    return key


def move_rows(source: Path, url: str) -> None:
    """Every row of an embedded database, into the same tables of an empty one on PostgreSQL, whose numbers go on behind them."""
    with closing(sqlite3.connect(source)) as raw, closing(PostgresDatabase(url).raw) as target:
        there = {name for (name,) in target.execute("select tablename from pg_tables where schemaname = current_schema()")}
        of_source = raw.execute("select name from sqlite_master where type = 'table'")
        named = [f'"{name}"' for (name,) in of_source if name in there - SCHEMA_TABLES]
        target.execute("set session_replication_role = replica")  # whatever the order of the tables is
        target.execute(f"truncate {', '.join(named)} cascade".encode())
        for name in named:
            rows = raw.execute(f"select * from {name}")
            columns = ", ".join(f'"{column}"' for column, *_ in rows.description)
            with target.cursor().copy(f"copy {name}({columns}) from stdin".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
        for table, column in target.execute(NUMBERED_COLUMNS).fetchall():
            last = f'(select max("{column}") from "{table}")'
            target.execute(f"select setval(pg_get_serial_sequence('{table}', '{column}'), {last}) where {last} > 0".encode())


SCHEMA_TABLES = {"alembic_version", "schema_step"}
NUMBERED_COLUMNS = """select table_name, column_name from information_schema.columns
where table_schema = current_schema() and pg_get_serial_sequence(quote_ident(table_name), column_name) is not null"""


def label_intents(database: Database, url: str) -> None:
    """Every copied intent is found by the values of its metadata, as the one that it is a copy of."""
    entries = "json_each(intent.details) as entry"
    if not url.startswith("sqlite"):
        entries = "json_each_text(intent.details::json) as entry(key, value)"
    database.run(
        "insert into intent_label(organisation, value, intent, key) select intent.organisation, entry.value, intent.id, entry.key "
        f"from intent, {entries} where intent.iccid like '{COPIED_ESIM}%'"
    )


def seal_codes(database: Database, keyring: Keyring) -> None:
    """Every copied intent has a code of its own: what is sealed for one opens at no other."""
    organisation = str(database.one("select organisation from storefront_order limit 1"))
    profile, changes = EsimProfile("", "LPA:1$smdp.bench.invalid$BENCH", "smdp.bench.invalid", "BENCH"), list[tuple[str, str]]()
    for intent in database.texts(f"select id from intent where iccid like '{COPIED_ESIM}%'"):
        changes.append((seal_esim_profile(profile, keyring=keyring, organisation=organisation, intent=intent), intent))
    database.change("update intent set esim = {} where id = {}", changes)


def await_life(log: Path) -> None:
    deadline = time.perf_counter() + LIFE_SECONDS
    while LIFE_IS_WHOLE not in log.read_text():
        if time.perf_counter() > deadline:
            raise SystemExit(f"the demo's life was not told in time; the log ends with\n{log.read_text()[-2000:]}")
        time.sleep(0.5)


class Copies(NamedTuple):
    """So many copies of the rows of a table that fulfil `where`, by turns; `changed` are the columns that differ, as SQL.

    In them `n` is the copy's number, `moment` its time in Unix seconds, and `a_line` the line that it is given, which is another for each
    where `spread`. Columns that are `generated` are the database's.
    """

    table: str
    rows: int
    changed: Mapping[str, str]
    where: str = "true"
    spread: bool = False
    generated: tuple[str, ...] = ()


class Span(NamedTuple):
    """The time over which copies are spread, and how ids of it are written. `begin`: Unix seconds."""

    begin: int
    letters: str
    padded: str

    def id_of(self, prefix: str, number: str, of: int) -> str:
        """The id of the copy `number`, which is SQL, where there are `of` copies."""
        hour = f"1 + 10 * (({number} - 1) * {HOURS} / {of})"
        return f"('{prefix}' || substr('{self.letters}', cast({hour} as int), 10) || {self.padded.format(number)})"

    def moments(self, url: str, copies: Copies, start: int, count: int, lines: int) -> str:
        """The numbers of `count` copies behind `start`, with the moment and the place of the line of each."""
        place = f"case when n % {BUSY_SHARE} = 0 then 0 else 1 + n % {lines - 1} end" if not copies.spread else f"n % {lines}"
        moment = f"{self.begin} + (n - 1) * {HOURS * 3600} / {copies.rows}"
        numbers = f"(select cast(n as bigint) + {start + 1} as n from {series(url, count)}) as numbers"
        return f"select n, {moment} as moment, {place} as at from {numbers}"


def span_of(database: Database, url: str) -> Span:
    """The days before the first order of the demo's life."""
    begin = int(float(str(database.one("select min(created) from storefront_order")))) - (HOURS + 1) * 3600
    letters = "".join(first_id("", begin + hour * 3600)[:10] for hour in range(HOURS))
    return Span(begin, letters, "printf('%016d', {})" if url.startswith("sqlite") else "lpad(({})::text, 16, '0')")


def copy_rows(database: Database, url: str, sizes: Sizes) -> None:
    """Every table in proportion to the events and orders."""
    organisation = database.one("select organisation from storefront_order limit 1")
    place = "row_number() over (order by subscriber_id) - 1 as place"
    chosen = f"from fleet_line where subscriber_id >= {COPY_DISTANCE}"
    database.run(f"create temp table a_line as select iccid, subscriber_id, {place} {chosen}")
    database.run(f"create unique index {'temp.' if url.startswith('sqlite') else ''}a_line_place on a_line(place)")
    lines, span = int(str(database.one("select count(*) from a_line"))), span_of(database, url)
    of_ours = f"where organisation = '{organisation}'"
    # The demo's life is what happened last.
    database.run(f"update event_log set position = position + {sizes.events} {of_ours} and position > 0")
    database.run(f"update event_log_end set position = position + {sizes.events} {of_ours}")
    for number, copies in enumerate(all_copies(sizes, lines, span)):
        source = f"source_{number}"
        database.run(
            f'create temp table {source} as select *, row_number() over () - 1 as place from "{copies.table}" where {copies.where}'
        )
        kinds = int(str(database.one(f"select count(*) from {source}")))
        if not kinds:
            raise SystemExit(f"the demo's life made no row of {copies.table} where {copies.where}")
        columns = [name for name in columns_of(database, url, copies.table) if name not in copies.generated]
        values = ", ".join(copies.changed.get(name, f'src."{name}"') for name in columns)
        names = ", ".join(f'"{name}"' for name in columns)
        for start in range(0, copies.rows, CHUNK):
            given = span.moments(url, copies, start, min(CHUNK, copies.rows - start), lines)
            joined = f"from ({given}) as given join {source} as src on src.place = given.n % {kinds} join a_line on a_line.place = given.at"
            database.run(f'insert into "{copies.table}"({names}) select {values} {joined}')


def columns_of(database: Database, url: str, table: str) -> list[str]:
    text = (
        f"select group_concat(name, ' ') from pragma_table_info('{table}')"
        if url.startswith("sqlite")
        else "select string_agg(column_name, ' ' order by ordinal_position) from information_schema.columns "
        f"where table_schema = current_schema() and table_name = '{table}'"
    )
    return str(database.one(text)).split()


def all_copies(sizes: Sizes, lines: int, span: Span) -> list[Copies]:
    """What is copied. Nothing that is copied waits for anything to be done."""
    return [
        *order_copies(sizes.orders, span),
        *issued_copies(sizes.orders * 2, span),
        *event_copies(sizes.events, sizes.orders * 2, span),
        *line_copies(lines),
        *change_copies(sizes.orders // 5, span),
        *invoice_copies(sizes.orders // 5, span),
    ]


def if_any(column: str, value: str) -> str:
    """`value` where the copied row has something in `column`."""
    return f"case when src.{column} is null then null else {value} end"


def order_copies(count: int, span: Span) -> list[Copies]:
    """Orders with what is written about them, and the payments of their buyers."""
    order = {
        "id": span.id_of("onr_", "n", count),
        "email": "'buyer' || n || '@buyers.demo.invalid'",
        "session": "'cs_bench' || n",
        "payment_intent": "'pi_bench' || n",
        "paid_at": if_any("paid_at", "moment + 8"),
        "ready_at": if_any("ready_at", "moment + 11"),
        "iccid": if_any("iccid", "a_line.iccid"),
        "esim": "null",
        "created": "moment",
        "updated": "moment + 12",
    }
    payment = "src.id || 'x' || n"
    record = {"id": payment, "charge": if_any("charge", "src.charge || 'x' || n"), "created": "moment", "as_of": "moment"}
    return [
        Copies("storefront_order", count, order, "due_ms is null and top_up_of is null"),
        Copies("order_step", count, {"storefront_order": order["id"], "at": "moment + 12", "mail": "'mail_bench' || n"}),
        Copies("order_access", count, {"storefront_order": order["id"], "digest": "'bench' || n", "created": "moment"}),
        Copies("payment_record", count * 3, {**record, "body": f"replace(src.body, src.id, {payment})"}),
        Copies("platform_fee", count, {"ref": "'fee_bench' || n", "created": "moment"}),
    ]


def issued_copies(count: int, span: Span) -> list[Copies]:
    """Intents and the issuance of each."""
    intent = span.id_of("cni_", "n", count)
    made = {"iccid": f"'{COPIED_ESIM}' || {{}}", "held": f"'{COPIED_ESIM}' || {{}}"}
    issuance = {name: text.format(span.padded.format("n")) for name, text in made.items()} | {
        "key": intent,
        "intent": intent,
        "claim_key": "'bench-' || n",
        "package_id": f"{COPY_DISTANCE} + n",
        "dispatched": "moment",
        "updated": "moment + 1",
    }
    return [
        Copies("intent", count, {"id": intent, "iccid": issuance["iccid"], "created": "moment"}, "status = 'succeeded' and livemode = 1"),
        Copies("issuance", count, issuance, "state = 'issued' and intent is not null"),
    ]


def event_copies(count: int, intents: int, span: Span) -> list[Copies]:
    """The log, the events of intents, deliveries to the endpoints with their attempts, and the audit log."""
    event, delivery = span.id_of("evt_", "n", count), span.id_of("dlv_", "n", count)
    logged = {
        "id": event,
        "data": "case when src.line is null then src.data else replace(src.data, src.line, a_line.iccid) end",
        "line": if_any("line", "a_line.iccid"),
        "created": "moment",
        "position": "n",
        "line_number": if_any("line_number", "n"),
    }
    of_intent = {"id": span.id_of("evt_", "n", count // 10), "intent": span.id_of("cni_", f"(1 + n % {intents})", intents)}
    sent = {"state": "case when n % 200 = 0 then 2 else 1 end", "due_ms": "moment * 1000", "created_ms": "moment * 1000"}
    reads = count - count // 5
    return [
        Copies("event_log", count, logged, "position > 0", generated=("arrival",)),
        Copies("event", count // 10, {**of_intent, "dedup": "'bench|' || n", "created": "moment"}, "intent != ''"),
        Copies("delivery", count, {"id": delivery, "event_id": event, **sent}, "state = 1"),
        Copies("delivery_attempt", count, {"delivery_id": delivery, "at_ms": "moment * 1000", "number": "1", "next_ms": "null"}),
        Copies("audit", count // 5, {"at": "moment"}, "organisation != ''", generated=("id",)),
        Copies(
            "audit_read",
            reads,
            {"id": f"(moment * 1000) * {1 << 19} + n % {1 << 19}"},
            "organisation in (select id from audit_name where text like 'org_%')",
        ),
    ]


def line_copies(lines: int) -> list[Copies]:
    """What people and events leave at lines."""
    return [
        Copies("line_event_number", lines, {"line": "a_line.iccid"}, spread=True),
        Copies("line_change", lines // 4, {"iccid": "a_line.iccid", "at": "moment"}, spread=True),
        Copies("line_tag", lines // 5, {"iccid": "a_line.iccid", "subscriber_id": "a_line.subscriber_id", "tagged": "moment"}, spread=True),
    ]


def change_copies(count: int, span: Span) -> list[Copies]:
    """Change sets that were applied, of three lines each."""
    id, done = span.id_of("chg_", "n", count), ("created", "planned_at", "applied_at", "served", "finished_at", "expires_at")
    rows = [Copies("change_row", count, {"change_set": id, "iccid": "a_line.iccid", "number": str(number)}) for number in (1, 2, 3)]
    return [Copies("change_set", count, {"id": id, **dict.fromkeys(done, "moment")}, "state = 'applied'"), *rows]


def invoice_copies(count: int, span: Span) -> list[Copies]:
    """Invoices that were paid, of five lines each."""
    id = span.id_of("inv_", "n", count)
    invoice = {
        "id": id,
        "number": "'BENCH-' || n",
        "processor_invoice": if_any("processor_invoice", "'in_bench' || n"),
        "status": "'paid'",
        "sending": "0",
        **dict.fromkeys(("issued_at", "paid_at", "created", "updated"), "moment"),
    }
    lines = [
        Copies("invoice_line", count, {"invoice": id, "id": f"'ili_bench{place}_' || n", "iccid": "a_line.iccid", "position": str(place)})
        for place in range(1, 6)
    ]
    return [Copies("invoice", count, invoice), *lines]
