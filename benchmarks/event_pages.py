"""Pages of lists and filters over a million events that are kept, with a million deliveries, over HTTP."""

import asyncio
import http.client
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from benchmarks.backlog import series
from benchmarks.contestant import ROOT
from benchmarks.event_servers import EventServer, load_now, serving
from benchmarks.fill import divide
from benchmarks.growth import CLOCK
from benchmarks.load import ask
from benchmarks.measure import Plan
from benchmarks.names import SQLITE, WITH_LOG
from benchmarks.postgres import database
from benchmarks.requests import MODERN, message
from operations.event_types.catalogue import EVENT_TYPES
from registry.ids import first_id
from storage.engine.migrate import upgrade_database
from transports.settings import MCP_EVENTS_DRAFT

DAYS, DAY_SECONDS = 90, 86_400
ENDPOINTS = 16
PENDING_EVERY, FAILED_EVERY, RARE_EVERY = 10_000, 500, 100_000
QUIET_NUMBER = 3
LOUD, QUIET = "we_4", f"we_{QUIET_NUMBER}"
"""An endpoint to which some have failed, and one in whose list nothing has failed and nothing waits."""
RARE = "organisation.key_revoked"
COMMON = "order.paid"
CALLS, WARM_CALLS = 400, 10
DATA = '{"iccid":"8999012345678901237","order":"onr_01k0a8w7zv6q4k3m2n1p0r9s8t","amount":790,"currency":"EUR","status":"paid"}'
DELIVERIES, STREAM, EVENTS = "/v1/connectivity/deliveries", "/v1/connectivity/events/stream", "/v1/connectivity/events"
BEGIN = CLOCK.now() - DAYS * DAY_SECONDS
TIMES = "".join(first_id("", BEGIN + day * DAY_SECONDS)[:10] for day in range(DAYS + 1))
"""What the ids of each day begin with, behind their prefixes."""
DRAWS = random.Random(26)


class Question(NamedTuple):
    """What is asked for: each time from another place of the log."""

    name: str
    request: Callable[[float], "Request"]


class Request(NamedTuple):
    """One call. `until`: what its first page ends with; empty: the whole answer."""

    method: str
    path: str
    body: bytes | None = None
    until: bytes = b""


def pages(engines: Sequence[str], folder: Path, plan: Plan) -> list[dict[str, object]]:
    """Every question of both databases."""
    found = list[dict[str, object]]()
    for engine in engines:
        with ExitStack() as stack:
            own = Path(tempfile.mkdtemp(prefix="pages-", dir=folder))
            url = f"sqlite:///{own / 'service.db'}" if engine == SQLITE else stack.enter_context(database())
            if url is None:
                continue
            upgrade_database(url)
            if engine != SQLITE:
                asyncio.run(divide(url))
            settings = {"SERVICE_MCP_EVENTS": MCP_EVENTS_DRAFT, "SERVICE_WORKER": "false"}
            with serving(WITH_LOG, ROOT, own, url, worker=False, settings=settings) as begun:
                key, organisation = begun.key, begun.organisation
            rows = plan.rows[0]
            plan.say(f"{engine}: {rows} events")
            fill(url, organisation, rows)
            server = stack.enter_context(serving(WITH_LOG, ROOT, own, url, worker=False, key=key, settings=settings))
            for question in questions(key, rows):
                plan.say(f"{engine}: {question.name}")
                found.append({"part": "pages", "engine": engine, "case": question.name, "events": rows, **asked(server, question)})
    return found


def fill(url: str, organisation: str, rows: int) -> None:
    """Events of ninety days of all types by turns, one of them rare, each sent to one of sixteen endpoints."""
    given = f"(select n + 1 as n from {series(url, rows)}) as numbers"
    statements = [
        f"insert into event_log(arrival, id, organisation, type, livemode, data, line, created, position, line_number)"
        f" select n, {event_id(url, rows)}, '{organisation}', {type_of()}, 1, '{DATA}', null, {created(rows)}, n, null"
        f" from {given}",
        f"insert into event_log_end(organisation, position, swept) values ('{organisation}', {rows}, 0)"
        " on conflict (organisation) do update set position = excluded.position",
        "insert into delivery(id, event_id, endpoint_id, organisation, state, created_ms, attempt, attempts, due_ms, type)"
        f" select {delivery_id(url, rows)}, {event_id(url, rows)}, 'we_' || (n % {ENDPOINTS}), '{organisation}', {STATE},"
        f" {created(rows)} * cast(1000 as bigint), 1, 1, {created(rows)} * cast(1000 as bigint), {type_of()} from {given}",
    ]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
            raw.execute("delete from event_log")
            for statement in statements:
                raw.execute(statement)
                raw.commit()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("delete from event_log")
        for statement in statements:
            raw.execute(statement.encode())
        raw.execute("vacuum analyze")


STATE = (
    f"case when n % {ENDPOINTS} = {QUIET_NUMBER} then 1 when n % {PENDING_EVERY} = 0 then 0 when n % {FAILED_EVERY} = 0 then 2 else 1 end"
)


def created(rows: int) -> str:
    return f"({int(BEGIN)} + cast(n * {DAYS * DAY_SECONDS / rows} as bigint))"


def dated(url: str, rows: int) -> str:
    number = "printf('%016d', n)" if url.startswith("sqlite") else "lpad((n)::text, 16, '0')"
    return f"substr('{TIMES}', cast(1 + 10 * (n * {DAYS} / {rows + 1}) as int), 10) || {number}"


def event_id(url: str, rows: int) -> str:
    return f"'evt_' || {dated(url, rows)}"


def delivery_id(url: str, rows: int) -> str:
    return f"'dlv_' || {dated(url, rows)}"


def type_of() -> str:
    """All types by turns but the rare one."""
    usual = [name for name in EVENT_TYPES if name != RARE]
    cases = " ".join(f"when {place} then '{name}'" for place, name in enumerate(usual))
    return f"case when n % {RARE_EVERY} = 7 then '{RARE}' else case n % {len(usual)} {cases} end end"


def place_id(prefix: str, share: float, rows: int) -> str:
    """The id at a share of the log."""
    number = 1 + int(share * (rows - 1))
    day = number * DAYS // (rows + 1)
    return f"{prefix}{TIMES[10 * day : 10 * day + 10]}{number:016d}"


def questions(key: str, rows: int) -> list[Question]:
    """Everything that may be listed, filtered or followed."""

    def stream(share: float, **more: str) -> Request:
        return Request("GET", f"{STREAM}?{urlencode({'follow': 'false', 'cursor': str(int(share * rows)), **more})}", until=b"id: ")

    def events(share: float, *types: str) -> Request:
        return listed(EVENTS, [*(("types", each) for each in types), ("starting_after", place_id("evt_", share, rows))])

    def sent(share: float, **more: str) -> Request:
        return listed(DELIVERIES, [*more.items(), ("starting_after", place_id("dlv_", share, rows))])

    def window(share: float) -> Request:
        since = int(BEGIN + DAYS * DAY_SECONDS * share * 0.9)
        return listed(DELIVERIES, [("since", str(since)), ("until", str(since + DAY_SECONDS))])

    def poll(share: float, name: str) -> Request:
        return Request("MCP", key, message_body(key, name, str(int(share * rows))))

    asks: dict[str, Callable[[float], Request]] = {
        "stream_events from a cursor": stream,
        "stream_events of one type": lambda share: stream(share, types=COMMON),
        "stream_events of a rare type": lambda share: stream(share, types=RARE),
        "list_connectivity_events of a type": lambda share: events(share, COMMON),
        "list_connectivity_events of a family": lambda share: events(share, "order.*"),
        "list_connectivity_events of all types": lambda share: events(share, "*"),
        "list_connectivity_events of a rare type": lambda share: events(share, RARE),
        "list_deliveries": sent,
        "list_deliveries of an endpoint": lambda share: sent(share, endpoint=LOUD),
        "list_deliveries that have failed": lambda share: sent(share, state="failed"),
        "list_deliveries that are pending": lambda share: sent(share, state="pending"),
        "list_deliveries of a type": lambda share: sent(share, types=COMMON),
        "list_deliveries of a rare type": lambda share: sent(share, types=RARE),
        "list_deliveries of a day": window,
        "list_deliveries of an endpoint that have failed": lambda share: sent(share, endpoint=LOUD, state="failed"),
        "list_deliveries of an endpoint to which none has failed": lambda share: sent(share, endpoint=QUIET, state="failed"),
        "list_deliveries of a type that have failed": lambda share: sent(share, types=COMMON, state="failed"),
        "events/poll of a type": lambda share: poll(share, COMMON),
        "events/poll of a rare type": lambda share: poll(share, RARE),
        "list_deliveries of an endpoint and a type": lambda share: sent(share, endpoint=LOUD, types=COMMON),
        "list_deliveries of an endpoint and a rare type": lambda share: sent(share, endpoint=LOUD, types=RARE),
    }
    return [Question(name, request) for name, request in asks.items()]


def listed(path: str, words: Sequence[tuple[str, str]]) -> Request:
    return Request("GET", f"{path}?{urlencode(words)}")


def message_body(key: str, name: str, cursor: str) -> bytes:
    """A call of events/poll, without the head of its request."""
    return message(key, MODERN, "events/poll", {"arguments": {}, "cursor": cursor, "name": name})


def asked(server: EventServer, question: Question) -> dict[str, object]:
    """How long a page takes, at places all over the log, in milliseconds."""
    port, times = server.contestant.port, list[float]()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as http_connection:
        for number in range(WARM_CALLS + CALLS):
            request = question.request(DRAWS.random())
            seconds = one(port, http_connection, request, server.key)
            if number >= WARM_CALLS:
                times.append(seconds * 1000)
    ordered = sorted(times)
    return {
        "calls": len(ordered),
        "p50_ms": round(ordered[len(ordered) // 2], 2),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)], 2),
        "most_ms": round(ordered[-1], 2),
        "load": load_now(),
    }


def one(port: int, http_connection: http.client.HTTPConnection, request: Request, key: str) -> float:
    """Seconds until the page was there."""
    if request.body is not None:
        return polled(port, request.body)
    began = time.perf_counter()
    http_connection.request(request.method, request.path, headers={"Authorization": f"Bearer {key}"})
    answer = http_connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"{request.path}: {answer.status} {answer.read()!r}")
    if not request.until:
        answer.read()
        return time.perf_counter() - began
    text = b""
    while request.until not in text and (piece := answer.read1()):
        text += piece
    http_connection.close()  # the rest of a stream is not waited for
    return time.perf_counter() - began


def polled(port: int, content: bytes) -> float:
    """Seconds of a call over MCP, its connection included."""

    async def call() -> float:
        began = time.perf_counter()
        answer = await ask(port, content)
        seconds = time.perf_counter() - began
        text = answer.body.decode()
        said: Mapping[str, object] = json.loads(text.split("data: ", 1)[1] if "data: " in text else text)
        if answer.status != 200 or "result" not in said:
            raise SystemExit(f"events/poll: {answer.status} {answer.body!r}")
        return seconds

    return asyncio.run(call())
