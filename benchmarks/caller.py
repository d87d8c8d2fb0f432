"""`python -m benchmarks.caller JSON`: a caller in a process of its own, whose time and memory are its own; prints a line of JSON."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

from benchmarks.processes import peak_mb, resident_mb, restart_peak
from clients.http import Outbound
from clients.ocs.client import Ocs, OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from registry.clock import SystemClock

WARM = 0.15


def main() -> None:
    asked = json.loads(sys.argv[1])
    found = read(**asked["read"]) if "read" in asked else bare_client(**asked["client"])
    print(json.dumps(found))


def read(**asked: Any) -> dict[str, float]:
    """Ask twice over aiohttp, and measure the second time: until the whole answer is there, decoded where that is asked for."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(read_twice(**asked))


async def read_twice(method: str, url: str, headers: dict[str, str], content: str | None, decode: bool) -> dict[str, float]:
    """On one session, like a caller who calls more than once."""
    async with aiohttp.ClientSession(headers=headers) as session:

        async def fetch() -> int:
            async with session.request(method, url, data=content) as response:
                body = await response.read()
                if response.status != 200 or (decode and not orjson.loads(body)):
                    raise SystemExit(f"the answer was {response.status} {body[:200]!r}")
                return len(body)

        await fetch()
        before, cpu, begun = settled_mb(), time.process_time(), time.perf_counter()
        size = await fetch()
        taken, own = time.perf_counter() - begun, time.process_time() - cpu
    return {"seconds": taken, "bytes": size, "own_cpu": own, "memory_mb": peak_mb(pid()) - before}


def pid() -> int:
    """This process."""
    return int(Path("/proc/self").readlink().name)


def settled_mb() -> float:
    """Resident memory before the measured call; the peak is counted from here."""
    restart_peak(pid())
    return resident_mb(pid())


def bare_client(url: str, iccids: list[str], connections: int, seconds: float) -> dict[str, Any]:
    """The service's own client of the charging system, alone: as many tasks, each with one call under way."""
    wire = OcsSettings(url=url, concurrency=64)

    async def run() -> dict[str, Any]:
        pool = OcsPool(Outbound(ocs_limits(wire)), wire, SystemClock())
        ocs = pool.for_token("measured")
        await calls(ocs, iccids, connections, WARM)
        cpu, begun = time.process_time(), time.perf_counter()
        latencies = await calls(ocs, iccids, connections, seconds)
        found = {"latencies": latencies, "seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu}
        await pool.aclose()
        return found

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


async def calls(ocs: Ocs, iccids: list[str], connections: int, seconds: float) -> list[float]:
    """Call until the time is up; how long each call took."""
    latencies: list[float] = []
    ends = time.perf_counter() + seconds

    async def one(place: int) -> None:
        begun = time.perf_counter()
        while begun < ends:
            await ocs.subscriber.get_single_subscriber(iccids[place % len(iccids)], by="iccid")
            now = time.perf_counter()
            latencies.append(now - begun)
            begun, place = now, place + connections

    await asyncio.gather(*(one(place) for place in range(connections)))
    return latencies


if __name__ == "__main__":
    main()
