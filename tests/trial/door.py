"""The service as its callers see it: nginx over TLS, with a mixed load whose answers are counted."""

import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import chain
from random import Random

import httpx

from tests.endurance.draws import Draws
from tests.endurance.people import ACCOUNT
from tests.endurance.tally import Tally
from tests.endurance.wires import Wires
from tests.fuzz.loop import p99
from tests.fuzz.loop_shapes import http
from tests.fuzz.outage import Beside, Requests, beside_of
from tests.kill.campaign import finish
from tests.trial.installation import Installation

REPLAYED = 5
STOCK = f"/v1/accounts/{ACCOUNT}/esim-status"
BAD_GATEWAY, GATEWAY_TIMEOUT = 502, 504
RATE = 8.0
"""How often a second each kind of call of the mixed load is made."""


class Door:
    """Keep-alive connections to nginx. `changed`: how many answers of one key differ from its first one."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._wires, self.changed = Wires(port, tls), 0
        self._answers: dict[bytes, bytes] = {}

    async def ask(self, request: bytes) -> tuple[int, float]:
        """Status (0: no answer) and milliseconds."""
        began, status = time.perf_counter(), 0
        try:
            answer = await self._wires.ask(request)
        except OSError:
            return 0, (time.perf_counter() - began) * 1000
        status = answer.status
        if 200 <= status < 300 and b"idempotency-key" in request:
            self.changed += self._answers.setdefault(request, answer.body) != answer.body
        return status, (time.perf_counter() - began) * 1000

    def aclose(self) -> None:
        """Hang up."""
        self._wires.aclose()


def door_of(installation: Installation) -> Door:
    """Of one nginx."""
    return Door(installation.front.port, installation.front.context())


def alone(installation: Installation) -> Requests:
    """What needs no charging system."""
    path, plan, bearer = "/v1/connectivity/intents", '{"plan": "test_eu_1gb"}', f"Bearer {installation.key}"
    again = [http("POST", path, plan, authorization=bearer, idempotency_key=f"again-{number}") for number in range(REPLAYED)]
    beside = beside_of(installation.key, installation.seller.slug)
    return {**beside, "POST an intent, a key of before": lambda number: again[number % REPLAYED]}


def mixed(installation: Installation) -> Requests:
    """The same, and what reads from the charging system."""
    stock = http("GET", STOCK, authorization=f"Bearer {installation.key}")
    intents = http("GET", "/v1/connectivity/intents?limit=5", authorization=f"Bearer {installation.key}")
    return {**alone(installation), "GET the stock of an account": lambda number: stock, "GET intents": lambda number: intents}


def waits_of(load: Beside) -> list[float]:
    """Milliseconds of all calls."""
    return sorted(chain.from_iterable(load.waits.values()))


def figures(load: Beside) -> str:
    """Calls, failures and percentiles."""
    waits = waits_of(load)
    return f"{len(waits)} calls, {load.errors()} failed, p50 {waits[len(waits) // 2]:.0f} ms, p99 {p99(waits):.0f} ms" + failures(load)


def failures(load: Beside) -> str:
    """Which kinds of calls failed, and how."""
    bad = [
        f"{count} x {status or 'no answer'} of {name}"
        for name, statuses in load.statuses.items()
        for status, count in sorted(statuses.items())
        if not 200 <= status < 400
    ]
    return f" ({', '.join(bad)})" if bad else ""


async def refuse_pages_of_nginx(response: httpx.Response) -> None:
    """Where the server went away nginx answers with a page of its own: for the caller there is no answer."""
    if response.status_code in (BAD_GATEWAY, GATEWAY_TIMEOUT) and "html" in response.headers.get("content-type", ""):
        raise httpx.RemoteProtocolError("nginx has lost the server", request=response.request)


@asynccontextmanager
async def drawing(installation: Installation, seed: int) -> AsyncGenerator[Draws]:
    """Live eSIMs of the three tenants through nginx, for the length of a block."""
    client = httpx.AsyncClient(
        base_url=f"https://localhost:{installation.front.port}",
        verify=installation.front.context(),
        timeout=60,
        event_hooks={"response": [refuse_pages_of_nginx]},
    )
    async with client:
        yield Draws(installation.house.stage, [client], Tally(), Random(seed), 10)


async def judged(installation: Installation, draws: Draws) -> list[str]:
    """The service has ended: time passes until all is settled, every key is asked once more, and the network's own log is read."""
    installation.house.stage.servers.port = installation.house.ports[0]
    return await finish(installation.house.stage, draws.callers, draws.errands, look=draws.look)


def told(broken: list[str]) -> str:
    """What a judge found, of a flood the first ones."""
    return "".join(f"; {line[:200]}" for line in broken[:5])
