"""`python -P benchmarks/event_cost.py JSON`: what an event of an old type costs that nobody has subscribed to; prints a line of JSON.

It asks only for what a revision before the log has, too, and measures whichever one PYTHONPATH names. CPU is that of the process and, on
PostgreSQL, of the server's processes that did the work.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable

from benchmarks.processes import cpu_seconds
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.engine.migrate import upgrade_database
from storage.engine.sql import Connection
from storage.engine.store import Store, open_store
from storage.events import NewEvent, emit_event

CLOCK = SystemClock()
IDS = SystemIds(CLOCK)
ORGANISATION = "org_cost"
DATA = '{"intent":"cni_01k0a8w7zv6q4k3m2n1p0r9s8t","iccid":"8999012345678901237","plan":"test_de_5gb_30d"}'
WARM = 200


def new_event() -> NewEvent:
    """An eSIM that was issued."""
    return NewEvent(IDS.new("evt_"), ORGANISATION, "cni_1", "esim.issued", 0, DATA, IDS.new("dedup_"), int(CLOCK.now()))


def writer_of(batch: int) -> Callable[[Connection], None]:
    """A transaction of so many events."""

    def write(connection: Connection) -> None:
        for _ in range(batch):
            emit_event(connection, event=new_event(), ids=IDS)

    return write


def backend_of(connection: Connection) -> int:
    """The process of PostgreSQL that serves this connection."""
    row = connection.driver.execute("select pg_backend_pid()", {}).fetchone()
    assert row is not None
    return int(row[0] or 0)


async def emit(store: Store, count: int, batch: int) -> None:
    write = writer_of(batch)
    for _ in range(count // batch):
        await store.write(write)


async def measured(url: str, count: int, batch: int) -> dict[str, float]:
    """CPU and time of an event, in microseconds."""
    store = open_store(url, pool=1)
    await emit(store, WARM, batch)
    backend = 0 if url.startswith("sqlite") else await store.write(backend_of)
    served = cpu_seconds(backend) if backend else 0.0
    cpu, began = time.process_time(), time.perf_counter()
    await emit(store, count, batch)
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    served = cpu_seconds(backend) - served if backend else 0.0
    await store.aclose()
    return {"cpu_us": used / count * 1e6, "server_cpu_us": served / count * 1e6, "us": seconds / count * 1e6}


def main() -> None:
    asked = json.loads(sys.argv[1])
    upgrade_database(asked["url"])
    print(json.dumps(asyncio.run(measured(asked["url"], asked["count"], asked["batch"]))))


if __name__ == "__main__":
    main()
