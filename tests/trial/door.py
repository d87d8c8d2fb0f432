"""The service as its callers see it: nginx over TLS, with a mixed load whose answers are counted."""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import chain
from random import Random

import httpx

from tests.endurance.draws import Draws
from tests.endurance.people import RUDE_ACCOUNT
from tests.endurance.tally import Tally
from tests.endurance.wires import Wires
from tests.fuzz.loop import p99
from tests.fuzz.loop_shapes import http
from tests.fuzz.outage import Beside, Requests, beside_of
from tests.kill.campaign import finish_campaign
from tests.trial.installation import Installation

REPLAYED = 5
STOCK = f"/v1/accounts/{RUDE_ACCOUNT}/esim-status"
BAD_GATEWAY, GATEWAY_TIMEOUT = 502, 504
PAUSE_SECONDS, WARM_UP_SECONDS = 0.2, 3.0
CALLS_A_SECOND = 8.0
"""How often a second each kind of call of the mixed load is made."""


class Door:
    """Keep-alive connections to nginx. `changed`: how many answers of one key differ from its first one.

    `patience`: seconds for which a call without an answer is made again, with the same key, as a caller does whose server was killed;
    `again`: how many of these there were.
    """

    def __init__(self, port: int, tls: ssl.SSLContext, patience: float = 0.0) -> None:
        self._wires, self.changed, self.again = Wires(port, tls), 0, 0
        self._answers: dict[bytes, bytes] = {}
        self._patience = patience

    async def ask(self, request: bytes) -> tuple[int, float]:
        began = time.perf_counter()
        while not (status := await self._once(request)) and time.perf_counter() < began + self._patience:
            self.again += 1
            await asyncio.sleep(PAUSE_SECONDS)
        return status, (time.perf_counter() - began) * 1000

    async def _once(self, request: bytes) -> int:
        try:
            answer = await self._wires.ask(request)
        except OSError:
            return 0
        if answer.status in (BAD_GATEWAY, GATEWAY_TIMEOUT) and b"text/html" in answer.headers.lower():
            return 0  # nginx tells that the server went away
        if 200 <= answer.status < 300 and b"idempotency-key" in request:
            self.changed += self._answers.setdefault(request, answer.body) != answer.body
        return answer.status

    def aclose(self) -> None:
        self._wires.aclose()


def door_of(installation: Installation, patience: float = 0.0) -> Door:
    return Door(installation.front.port, installation.front.context(), patience)


async def warm_up(installation: Installation, door: Door) -> None:
    """What a server imports and connects at its first calls is there afterwards, as in one that has worked for a while."""
    await Beside(door.ask, mixed(installation), CALLS_A_SECOND).run(WARM_UP_SECONDS)


def alone(installation: Installation) -> Requests:
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
    return sorted(chain.from_iterable(load.waits.values()))


def figures(load: Beside, seconds: float = 0.0) -> str:
    """Calls, how many a second where the seconds are given, failures and percentiles."""
    waits = waits_of(load)
    rate = f" ({len(waits) / seconds:.0f} a second)" if seconds else ""
    return f"{len(waits)} calls{rate}, {load.errors()} failed, p50 {waits[len(waits) // 2]:.0f} ms, p99 {p99(waits):.0f} ms" + failures(
        load
    )


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


async def judge_keys(installation: Installation, draws: Draws) -> list[str]:
    """The service has ended: time passes until all is settled, every key is asked once more, and the network's own log is read."""
    installation.house.stage.servers.port = installation.house.ports[0]
    return await finish_campaign(installation.house.stage, draws.callers, draws.errands, look=draws.look)


def shortened(broken: list[str]) -> str:
    """What a judge found, of a flood the first ones."""
    return "".join(f"; {line[:200]}" for line in broken[:5])
