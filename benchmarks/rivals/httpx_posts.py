"""`python -m benchmarks.rivals.httpx_posts JSON`: httpx posts the same body to the same receivers, without signature or database."""

import asyncio
import itertools
import json
import sys
import time

import httpx
import uvloop

WARM = 0.3
TIMEOUT = httpx.Timeout(15.0, connect=5.0, pool=60.0)


def client(connections: int, keep: bool) -> httpx.AsyncClient:
    """As its documentation says (its default limits), or closing each connection as a sender to strangers must."""
    if keep:
        return httpx.AsyncClient(timeout=TIMEOUT)
    return httpx.AsyncClient(timeout=TIMEOUT, limits=httpx.Limits(max_connections=connections, max_keepalive_connections=0))


async def post(urls: list[str], body: str, connections: int, seconds: float, keep: bool) -> dict[str, float]:
    content, headers = body.encode(), {"content-type": "application/json", "user-agent": "connectivity-webhooks/1"}
    counted = errors = 0
    async with client(connections, keep) as http:

        async def one(place: int, ends: float) -> None:
            nonlocal counted, errors
            for url in itertools.islice(itertools.cycle(urls), place * 7 % len(urls), None):
                try:
                    answer = await http.post(url, content=content, headers=headers if keep else headers | {"connection": "close"})
                except httpx.HTTPError:
                    errors += 1
                else:
                    counted += answer.status_code == 200
                if time.perf_counter() > ends:
                    return

        async def all_for(how_long: float) -> None:
            ends = time.perf_counter() + how_long
            await asyncio.gather(*(one(place, ends) for place in range(connections)))

        await all_for(WARM)
        counted = errors = 0
        cpu, begun = time.process_time(), time.perf_counter()
        await all_for(seconds)
        return {"requests": counted, "errors": errors, "seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(post(**json.loads(sys.argv[1])))))
