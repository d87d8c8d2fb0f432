"""`python -m benchmarks.caller JSON`: one caller in a process of its own, so that its time and memory are its own. Prints a line of JSON."""

import asyncio
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import uvloop

from benchmarks.processes import peak_mb, resident_mb, restart_peak
from clients.http import Outbound
from clients.ocs.client import Ocs
from clients.ocs.pool import OcsPool, ocs_limits
from clients.ocs.settings import OcsSettings
from registry.clock import SystemClock

BUFFER = 1 << 20
WARM = 0.15


def main() -> None:
    asked = json.loads(sys.argv[1])
    found = read(**asked["read"]) if "read" in asked else bare_client(**asked["client"])
    print(json.dumps(found))


def read(port: int, request: str, decode: bool) -> dict[str, float]:
    """Ask twice, and measure the second time: seconds to the first and to the last byte, decoded where that is asked for."""
    fetch(port, request.encode(), decode)
    before, cpu, begun = settled_mb(), time.process_time(), time.perf_counter()
    first, size = fetch(port, request.encode(), decode)
    taken, own = time.perf_counter() - begun, time.process_time() - cpu
    return {"seconds": taken, "first": first - begun, "bytes": size, "own_cpu": own, "memory_mb": peak_mb(pid()) - before}


def fetch(port: int, request: bytes, decode: bool) -> tuple[float, int]:
    """One request on a connection that the other side closes; when the first byte came, and how many came."""
    kept, size, first = bytearray(), 0, 0.0
    buffer = bytearray(BUFFER)
    with socket.create_connection(("127.0.0.1", port), 120) as connection:
        connection.sendall(request)
        while count := connection.recv_into(buffer):
            first = first or time.perf_counter()
            size += count
            if decode:
                kept += memoryview(buffer)[:count]
    if decode:
        head, _, body = bytes(kept).partition(b"\r\n\r\n")
        if b" 200 " not in head[:20] or not orjson.loads(body):
            raise SystemExit(f"the answer was {head[:200]!r}")
    return first, size


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
