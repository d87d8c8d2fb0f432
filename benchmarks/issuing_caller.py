"""`python -m benchmarks.issuing_caller JSON`: this service's client of the charging system alone draws eSIMs; prints a line of JSON."""

import asyncio
import json
import sys
import time

import uvloop

from clients.http import Outbound
from clients.ocs.client import Ocs, OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from registry.clock import SystemClock

WARM = 0.15


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(client(**json.loads(sys.argv[1])))))


async def client(url: str, token: str, account: int, template: int, connections: int, seconds: float) -> dict[str, float]:
    """As many tasks, each with one draw under way."""
    wire = OcsSettings(url=url, concurrency=64)
    pool = OcsPool(Outbound(ocs_limits(wire)), wire, SystemClock())
    ocs = pool.for_token(token)
    warm = await draws(ocs, account, template, connections, WARM)
    cpu, begun = time.process_time(), time.perf_counter()
    latencies = sorted(await draws(ocs, account, template, connections, seconds))
    taken, used = time.perf_counter() - begun, time.process_time() - cpu
    await pool.aclose()
    return {
        "requests": len(latencies),
        "warm": len(warm),
        "seconds": taken,
        "cpu": used,
        "p50": latencies[len(latencies) // 2],
        "p99": latencies[int(len(latencies) * 0.99)],
    }


async def draws(ocs: Ocs, account: int, template: int, connections: int, seconds: float) -> list[float]:
    """Draw until the time is up; how long each draw took."""
    latencies: list[float] = []
    ends = time.perf_counter() + seconds

    async def one() -> None:
        begun = time.perf_counter()
        while begun < ends:
            await ocs.packages.affect_from_account(template, account, validity_days=30)
            now = time.perf_counter()
            latencies.append(now - begun)
            begun = now

    await asyncio.gather(*(one() for _ in range(connections)))
    return latencies


if __name__ == "__main__":
    main()
