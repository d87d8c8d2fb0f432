"""What an event costs inside this revision: statements and round trips of one, its place, and the match with what endpoints have chosen."""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from benchmarks.event_cost import DATA, new_event
from benchmarks.event_servers import load_now
from benchmarks.growth import BASE, CLOCK, IDS, complain, settings_for
from benchmarks.measure import Plan
from benchmarks.names import SQLITE
from benchmarks.postgres import database
from operations.event_types.catalogue import EVENT_TYPES, MOST_PATTERNS, types_of_pattern
from operations.ledger.event_placing import EventPlacing, chosen_types, wants_event
from storage.endpoint_selections import EndpointSelection
from storage.engine.migrate import upgrade_database
from storage.engine.sql import Command, Connection
from storage.engine.store import Store, open_store
from storage.event_log import EVENT_LOG_END, LogEntry, PlacedEvent, log_event
from storage.events import emit_event
from storage.webhook_endpoints import MOST_ENDPOINTS
from transports.service import build_service

ORGANISATION = "org_cost"
MATCHED = 5000
PLACED = 4000
ALONE = 100
CHANGE = Command(EVENT_LOG_END.update().where(EVENT_LOG_END.c.organisation == "nobody").values(swept=0))
"""Stands for what the operation itself writes."""


class Messages(NamedTuple):
    """Of one transaction: statements, and how often this side waited for the other."""

    statements: int
    round_trips: int


def entry(type: str = "order.created") -> LogEntry:
    """An event of a new type."""
    return LogEntry(IDS.new("evt_"), ORGANISATION, type, 0, DATA, None, int(CLOCK.now()))


def change(connection: Connection) -> None:
    """A write without an event."""
    connection.run(CHANGE)


def change_and_tell(connection: Connection) -> None:
    """The same write with an event of a new type."""
    connection.run(CHANGE)
    log_event(connection, event=entry())


def old_event(connection: Connection) -> None:
    """An event of an old type."""
    emit_event(connection, event=new_event(), ids=IDS)


WRITES: dict[str, Callable[[Connection], None]] = {"without an event": change, "with one": change_and_tell, "an old event": old_event}


def trace(connection: Connection, file: IO[str], write: Callable[[Connection], None]) -> None:
    """Runs `write` and keeps what the driver says meanwhile; the commit comes after it."""
    driver = cast(Any, connection.driver)
    if connection.dialect_name == "sqlite":

        def note(sql: str) -> None:
            file.write(f"F {sql.split(' ', 1)[0]}\n")

        driver.set_trace_callback(note)
    else:
        driver.pgconn.trace(file.fileno())
    write(connection)


def untrace(connection: Connection) -> None:
    """Ends it."""
    driver = cast(Any, connection.driver)
    if connection.dialect_name == "sqlite":
        driver.set_trace_callback(None)
    else:
        driver.pgconn.untrace()


async def traced(store: Store, write: Callable[[Connection], None], folder: Path) -> Messages:
    """The messages of one transaction. It is made a few times before, so that its statements are known to the server."""
    for _ in range(10):
        await store.write(write)
    with tempfile.NamedTemporaryFile("w+", dir=folder) as file:
        await store.write(trace, file=file, write=write)
        await store.write(untrace)
        file.flush()
        lines = Path(file.name).read_text().splitlines()
    return of_sqlite(lines) if lines and lines[0].startswith("F ") else of_postgres(lines)


def of_sqlite(lines: Sequence[str]) -> Messages:
    """SQLite is in the process: nobody is waited for."""
    return Messages(sum(line.split()[1].lower() in ("insert", "update", "select", "delete") for line in lines), 0)


def of_postgres(lines: Sequence[str]) -> Messages:
    """The lines of libpq's trace from a transaction's BEGIN on: time, direction, length, kind. The second BEGIN is another one's."""
    turns, statements, last, begun = 0, 0, "B", 0
    for line in lines:
        _, side, _, kind, *_ = line.split("\t")
        begun += side == "F" and "BEGIN" in line
        if begun > 1:
            break
        turns += side == "F" and last == "B"
        statements += kind in ("Execute", "Query")
        last = side
    return Messages(statements, turns)


async def counted_messages(engines: Sequence[str], folder: Path, plan: Plan) -> list[dict[str, object]]:
    """Statements and round trips, on both databases."""
    found = list[dict[str, object]]()
    with ExitStack() as stack:
        for engine, url in urls_of(stack, engines, folder).items():
            plan.say(f"messages, {engine}")
            store = open_store(url, pool=1)
            for name, write in WRITES.items():
                seen = await traced(store, write, folder)
                found.append({"part": "messages", "engine": engine, "case": name, **seen._asdict()})
            await store.aclose()
    return found


def urls_of(stack: ExitStack, engines: Sequence[str], folder: Path) -> dict[str, str]:
    """A new database of each kind."""
    found = dict[str, str]()
    for engine in engines:
        own = Path(tempfile.mkdtemp(prefix="work-", dir=folder))
        url = f"sqlite:///{own / 'service.db'}" if engine == SQLITE else stack.enter_context(database())
        if url is not None:
            upgrade_database(url)
            found[engine] = url
    return found


async def placing(engines: Sequence[str], folder: Path, plan: Plan) -> list[dict[str, object]]:
    """CPU of this process for the place of an event: many at once, and one alone in each step."""
    found = list[dict[str, object]]()
    with ExitStack() as stack:
        for engine, url in urls_of(stack, engines, folder).items():
            service = build_service(settings_for(url, Path(tempfile.mkdtemp(dir=folder))), BASE, clock=CLOCK, ids=IDS, report=complain)
            await service.start(seed=False)
            work = EventPlacing(service.pipeline.deps)
            for number in range(plan.rounds):
                plan.say(f"places, {engine}, round {number + 1}/{plan.rounds}")
                many = await placed(service.store, work, PLACED, PLACED)
                alone = await placed(service.store, work, ALONE, 1)
                row: dict[str, object] = {"part": "places", "engine": engine, "round": number, "load": load_now()}
                found += [{**row, "case": "many", "cpu_us": round(many, 2)}, {**row, "case": "alone", "cpu_us": round(alone, 2)}]
            await service.stop()
    return found


async def placed(store: Store, work: EventPlacing, count: int, at_once: int) -> float:
    """CPU for each of so many events, which are written before it is counted."""
    used = 0.0
    for _ in range(count // at_once):
        for _ in range(0, at_once, 50):
            await store.write(write_some, count=min(50, at_once))
        began = time.process_time()
        await work.step()
        used += time.process_time() - began
    return used / count * 1e6


def write_some(connection: Connection, *, count: int) -> None:
    for _ in range(count):
        log_event(connection, event=entry())


def matching(plan: Plan) -> list[dict[str, object]]:
    """The match of an event with 16 endpoints of 40 globs each: once their globs are known, and each for the first time."""
    types, found = list(EVENT_TYPES), list[dict[str, object]]()
    chosen = [globs(number, types) for number in range(MOST_ENDPOINTS)]
    events = [PlacedEvent(f"evt_{n}", ORGANISATION, types[n % len(types)], 0, DATA, None, 0, n + 1, None) for n in range(MATCHED)]
    for number in range(plan.rounds):
        plan.say(f"matching, round {number + 1}/{plan.rounds}")
        chosen_types.cache_clear()
        types_of_pattern.cache_clear()
        cold = match_seconds(chosen, events[:1])
        warm = match_seconds(chosen, events)
        row = {"part": "matching", "round": number, "load": load_now(), "endpoints": len(chosen), "globs": MOST_PATTERNS}
        found.append({**row, "us": round(warm / MATCHED * 1e6, 2), "first_us": round(cold * 1e6, 1)})
    return found


def globs(number: int, types: Sequence[str]) -> str:
    """Forty globs of an endpoint, no two endpoints with the same."""
    half = MOST_PATTERNS // 2
    names = [types[(number * 3 + place) % len(types)] for place in range(half)]
    return json.dumps([*names, *(f"{name[:-2]}*" for name in names)])


def match_seconds(chosen: Sequence[str], events: Sequence[PlacedEvent]) -> float:
    """Every event asks every endpoint anew, whose choice comes as new text, as out of the database."""
    rows = [[selection(text) for text in chosen] for _ in events]
    began, wanted = time.process_time(), 0
    for event, selections in zip(events, rows, strict=True):
        wanted += sum(wants_event(each, event, {}) for each in selections)
    seconds = time.process_time() - began
    if not wanted:
        raise SystemExit("no endpoint wants any event")
    return seconds


def selection(types: str) -> EndpointSelection:
    """An endpoint's choice, whose text is nobody else's object."""
    return EndpointSelection("we_1", ORGANISATION, types.encode().decode(), None, "", "key", "usr_1", "key_1", 0)
