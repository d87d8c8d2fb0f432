"""This revision beside the one before the log: the CPU of an old event, calls that write events, and deliveries."""

import itertools
import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.event_servers import EventServer, Revision, answer_of, load_now, revisions, serving, upgrade
from benchmarks.load import Make, run_ask
from benchmarks.measure import Plan, Turn, take
from benchmarks.names import POSTGRES, SQLITE
from benchmarks.postgres import database
from benchmarks.processes import cpu_seconds
from benchmarks.requests import create, head
from benchmarks.webhooks import DATA, endpoints, receiving

COST = Path(__file__).with_name("event_cost.py")
EVENTS_A_TURN = {1: 600, 50: 3000}
"""How many events are written, by how many there are in a transaction."""
POSTS = ("intent", "order", "invoice")
CONNECTIONS = (1, 16)
EXPECTED = {"intent": 201, "order": 303, "invoice": 201}
FIRST_CALLS = 5
WEBHOOK_CONNECTIONS = 50
WEBHOOK_SECONDS = 2.0
BACKLOG = 12_000
KEYRING = "bench:" + b64encode(bytes(32)).decode()
RECEIVERS = 2


class Side(NamedTuple):
    """One of the two that are compared, on one database."""

    engine: str
    revision: Revision
    folder: Path
    url: str


@contextmanager
def sides(before: Path, engines: Sequence[str], folder: Path) -> Generator[list[Side]]:
    """Both revisions on a new database of each kind."""
    with ExitStack() as stack:
        found = list[Side]()
        for engine, revision in itertools.product(engines, revisions(before)):
            own = Path(tempfile.mkdtemp(prefix="side-", dir=folder))
            url = f"sqlite:///{own / 'service.db'}" if engine == SQLITE else stack.enter_context(database())
            if url is not None:
                upgrade(revision.root, url)
                found.append(Side(engine, revision, own, url))
        yield found


def in_turns(found: Sequence[Side], number: int) -> list[Side]:
    """The order of a round: now the one is first, now the other."""
    return list(found) if number % 2 else list(reversed(found))


def event_costs(before: Path, engines: Sequence[str], folder: Path, plan: Plan) -> list[dict[str, object]]:
    """CPU of an event of an old type without a subscriber, alone in its transaction and among others."""
    found = list[dict[str, object]]()
    with sides(before, engines, folder) as both:
        for number, batch in itertools.product(range(plan.rounds), EVENTS_A_TURN):
            plan.say(f"cost, {batch} a transaction, round {number + 1}/{plan.rounds}")
            for side in in_turns(both, number):
                seen = answer_of(side.revision.root, [str(COST)], {"url": side.url, "count": EVENTS_A_TURN[batch], "batch": batch})
                found.append({**row_of(side, "cost", number), "batch": batch, **{name: round(value, 2) for name, value in seen.items()}})
    return found


def row_of(side: Side, part: str, number: int) -> dict[str, object]:
    """What every row says."""
    return {"part": part, "engine": side.engine, "contestant": side.revision.name, "round": number, "load": load_now()}


def posts(before: Path, engines: Sequence[str], folder: Path, plan: Plan) -> list[dict[str, object]]:
    """POST of an intent, an order and an invoice; on PostgreSQL with a worker in a process of its own, as it is run."""
    found = list[dict[str, object]]()
    for engine in engines:
        with ExitStack() as stack:
            both = stack.enter_context(sides(before, [engine], folder))
            servers = {side: stack.enter_context(served(side)) for side in both}
            made = {side: makers(server) for side, server in servers.items()}
            for number, kind, connections in itertools.product(range(plan.rounds), POSTS, CONNECTIONS):
                plan.say(f"POST of an {kind}, {engine}, c={connections}, round {number + 1}/{plan.rounds}")
                for side in in_turns(both, number):
                    turn = Turn(servers[side].contestant, made[side][kind], EXPECTED[kind])
                    found.append(posted(side, servers[side], turn, kind, connections, number, plan.seconds))
    return found


def served(side: Side) -> AbstractContextManager[EventServer]:
    return serving(side.revision.name, side.revision.root, side.folder, side.url, worker=side.engine == POSTGRES)


def posted(side: Side, server: EventServer, turn: Turn, kind: str, connections: int, number: int, seconds: float) -> dict[str, object]:
    """One turn, with what the worker used meanwhile."""
    worker = cpu_seconds(server.worker) if server.worker else 0.0
    sample = take(kind, turn, connections, number, seconds, 0.0)
    worker = cpu_seconds(server.worker) - worker if server.worker else 0.0
    return {
        **row_of(side, "posts", number),
        "case": kind,
        "connections": connections,
        "requests": sample.requests,
        "errors": sample.errors,
        "seconds": sample.seconds,
        "cpu_us": sample.cpu_us,
        "worker_cpu_us": round(worker / max(1, sample.requests) * 1e6, 1),
        "p50_ms": sample.p50_ms,
        "p99_ms": sample.p99_ms,
    }


def makers(server: EventServer) -> Mapping[str, Make]:
    """What is sent, each time with a key of its own."""
    port, key = server.contestant.port, server.key
    record = {"id": "c1", "iccid": "8988303000000000001", "occurred_at": "2026-10-05T10:00:00Z", "bytes_up": 1, "bytes_down": 10**8}
    body = json.dumps({"events": [{**record, "network": "Fjordnett", "country": "NO"}]}).encode()
    answer = run_ask(port, post("/v1/cdr/ingest", key, body, "k"))
    periods = run_ask(port, head("GET", "/v1/invoices/periods", Authorization=f"Bearer {key}") + b"\r\n")
    if answer.status != 200 or periods.status != 200:
        raise SystemExit(f"records: {answer.status} {answer.body!r}; periods: {periods.status}")
    period = json.loads(periods.body)["data"][0]["id"]
    bill, prefix, number = json.dumps({"period_id": period, "price_per_gb_cents": 100}).encode(), os.urandom(6).hex(), itertools.count()
    form, plain = b"plan=nordics-1gb", {"Content_Type": "application/x-www-form-urlencoded"}
    order = head("POST", "/shop/demo/checkout", **plain, Content_Length=str(len(form))) + b"\r\n" + form
    made: dict[str, Make] = {
        "intent": create(key),
        "order": lambda: order,
        "invoice": lambda: post("/v1/invoices", key, bill, f"{prefix}-{next(number)}"),
    }
    for kind, make in made.items():  # a first call loads what its kind needs, and may be too late for its own deadline
        statuses = {run_ask(port, make()).status for _ in range(FIRST_CALLS)}
        if EXPECTED[kind] not in statuses:
            raise SystemExit(f"POST of an {kind}: {statuses}")
    return made


def post(path: str, key: str, body: bytes, idempotency: str) -> bytes:
    """A POST of JSON."""
    plain = {"Authorization": f"Bearer {key}", "Content_Type": "application/json", "Content_Length": str(len(body))}
    return head("POST", path, **plain, Idempotency_Key=idempotency) + b"\r\n" + body


def deliveries(before: Path, engines: Sequence[str], folder: Path, plan: Plan) -> list[dict[str, object]]:
    """Webhooks per second of both revisions' workers, to the same receivers, as the section on webhooks has it."""
    found = list[dict[str, object]]()
    with ExitStack() as stack:
        ports = [stack.enter_context(receiving()) for _ in range(RECEIVERS)]
        places = endpoints(ports)
        both = stack.enter_context(sides(before, engines, folder))
        for side in both:
            delivered(side, {"do": "sow", "url": side.url, "key": KEYRING, "organisations": places})
        for number in range(plan.rounds):
            plan.say(f"webhooks, round {number + 1}/{plan.rounds}")
            for side in in_turns(both, number):
                asked: dict[str, Any] = {"do": "drain", "url": side.url, "key": KEYRING, "organisations": list(places), "data": DATA}
                asked |= {"connections": WEBHOOK_CONNECTIONS, "seconds": WEBHOOK_SECONDS, "backlog": BACKLOG}
                seen = delivered(side, asked)
                cpu = round(seen["cpu"] / max(1, seen["requests"]) * 1e6, 1)
                row = {
                    "connections": WEBHOOK_CONNECTIONS,
                    "requests": seen["requests"],
                    "seconds": round(seen["seconds"], 4),
                    "cpu_us": cpu,
                }
                found.append({**row_of(side, "webhooks", number), **row})
    return found


def delivered(side: Side, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the worker of a revision has to say."""
    return answer_of(side.revision.root, ["-m", "benchmarks.deliverer"], asked)


COMPARED: Mapping[str, Callable[[Path, Sequence[str], Path, Plan], list[dict[str, object]]]] = {
    "cost": event_costs,
    "posts": posts,
    "webhooks": deliveries,
}
"""What is compared with the revision before."""
