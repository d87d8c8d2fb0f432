"""How soon a reader of the stream hears of what was committed, with a server and a worker in processes of their own."""

import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.contestant import ROOT
from benchmarks.event_servers import EventServer, load_now, serving
from benchmarks.load import ask
from benchmarks.measure import Plan
from benchmarks.names import SQLITE, WITH_LOG
from benchmarks.postgres import database
from benchmarks.requests import create, head
from storage.engine.migrate import upgrade_database

READERS = 8
POSTS_A_SECOND = 20
SECONDS = 30.0
LAST_SECONDS = 10.0


def latency(engines: Sequence[str], folder: Path, plan: Plan) -> list[dict[str, object]]:
    """The time from the sending of a POST, which is before its commit, to the frame of its event at each reader."""
    found = list[dict[str, object]]()
    for engine in engines:
        with ExitStack() as stack:
            own = Path(tempfile.mkdtemp(prefix="stream-", dir=folder))
            url = f"sqlite:///{own / 'service.db'}" if engine == SQLITE else stack.enter_context(database())
            if url is None:
                continue
            upgrade_database(url)
            server = stack.enter_context(serving(WITH_LOG, ROOT, own, url, worker=True))
            for number in range(max(1, plan.rounds // 3)):
                plan.say(f"stream, {engine}, round {number + 1}")
                times = asyncio.run(heard(server, SECONDS * min(1.0, plan.seconds)))
                found.append({"part": "stream", "engine": engine, "round": number, "load": load_now(), **figures(times)})
    return found


def figures(times: Sequence[float]) -> dict[str, object]:
    """The middle, the longest but one in a hundred, and the longest, in milliseconds."""
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return {
        "count": len(ordered),
        "p50_ms": round(ordered[len(ordered) // 2] * 1000, 2),
        "p99_ms": round(p99 * 1000, 2),
        "most_ms": round(ordered[-1] * 1000, 2),
    }


async def heard(server: EventServer, seconds: float) -> list[float]:
    """How long each frame took, of all readers."""
    port, posted, came = server.contestant.port, dict[str, float](), [dict[str, float]() for _ in range(READERS)]
    readers = [asyncio.create_task(follow(port, server.key, seen)) for seen in came]
    await asyncio.sleep(1)
    make, clock, tasks = create(server.key), time.perf_counter, list[asyncio.Task[None]]()

    async def one() -> None:
        began = clock()
        answer = await ask(port, make())
        if answer.status != 201:
            raise SystemExit(f"POST of an intent: {answer.status} {answer.body!r}")
        posted[json.loads(answer.body)["id"]] = began

    for _ in range(int(seconds * POSTS_A_SECOND)):
        tasks.append(asyncio.create_task(one()))
        await asyncio.sleep(1 / POSTS_A_SECOND)
    await asyncio.gather(*tasks)
    until = clock() + LAST_SECONDS
    while clock() < until and any(set(posted) - set(seen) for seen in came):
        await asyncio.sleep(0.05)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    missing = sum(len(set(posted) - set(seen)) for seen in came)
    if missing:
        raise SystemExit(f"{missing} frames never came")
    return [seen[intent] - began for seen in came for intent, began in posted.items()]


async def follow(port: int, key: str, seen: dict[str, float]) -> None:
    """One reader: when the frame of each intent came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head("GET", "/v1/connectivity/events/stream", Authorization=f"Bearer {key}") + b"\r\n")
    try:
        while line := await reader.readline():
            if line.startswith(b"data: {"):
                event: dict[str, Any] = json.loads(line[6:])
                seen.setdefault(str(event["data"].get("intent")), time.perf_counter())
    finally:
        writer.close()
