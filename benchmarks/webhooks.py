"""Deliveries per second: this service's worker, with signatures and its outbox, beside httpx that only posts."""

import json
import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from benchmarks.contestant import ROOT, Seed, environment, free_port
from benchmarks.measure import Plan
from benchmarks.names import HTTPX_CLOSING, HTTPX_POSTS, OURS_POSTGRES, OURS_SQLITE, SENDER
from benchmarks.postgres import database
from storage.engine.migrate import upgrade_database

CONCURRENT = (50, 200)
PROCESSES = 2
ORGANISATIONS = {f"org_{number:02}": 4 + number % 5 for number in range(30)}  # 180 endpoints
KEY = "bench:" + b64encode(bytes(32)).decode()
DATA = '{"intent":"cni_01k0a8w7zv6q4k3m2n1p0r9s8t","iccid":"8999012345678901237","plan":"test_de_5gb_30d"}'
EVENT = '"id":"evt_01k0a8w7zv6q4k3m2n1p0r9s8t","object":"connectivity.event","type":"esim.issued","livemode":false,"created":1795166400'
BODY = f'{{{EVENT},"data":{DATA}}}'
BACKLOG_PER_SECOND = 4500
Take = Callable[[int, float], dict[str, Any]]


def webhooks(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """Everybody's turn at each concurrency, in rotated order."""
    with ExitStack() as stack:
        ports = [stack.enter_context(receiving()) for _ in range(PROCESSES)]
        places = endpoints(ports)
        urls = [url for own in places.values() for url in own]
        turns: dict[str, Take] = {
            HTTPX_POSTS: partial(httpx_posts, urls, True),
            HTTPX_CLOSING: partial(httpx_posts, urls, False),
            SENDER: partial(bare_sender, urls),
        }
        folder = seed.copy("webhooks")
        turns[OURS_SQLITE] = ours(f"sqlite:///{folder / 'webhooks.db'}", places, ports, plan)
        if (url := stack.enter_context(database())) is not None:
            turns[OURS_POSTGRES] = ours(url, places, ports, plan)
        return [row for concurrent in CONCURRENT for number in range(plan.rounds) for row in a_round(turns, concurrent, number, plan)]


def a_round(turns: dict[str, Take], concurrent: int, number: int, plan: Plan) -> list[dict[str, object]]:
    """One round: the order changes, so that nobody always follows the same neighbour."""
    plan.say(f"webhooks c={concurrent} round {number + 1}/{plan.rounds}")
    names = list(turns)
    shift = number % len(names)
    found: list[dict[str, object]] = []
    for name in [*names[shift:], *names[:shift]]:
        seen = turns[name](concurrent, plan.seconds)
        found.append(
            {
                "case": "webhooks",
                "contestant": name,
                "connections": concurrent,
                "round": number,
                "requests": seen["requests"],
                "errors": seen["errors"],
                "seconds": round(seen["seconds"], 4),
                "cpu_us": round(seen["cpu"] / max(1, seen["requests"]) * 1e6, 1),
            }
        )
    return found


def endpoints(ports: list[int]) -> dict[str, list[str]]:
    """Each endpoint is a host of its own: an address of loopback."""
    return {
        name: [f"http://127.{place + 1}.{number + 1}.1:{ports[(place + number) % len(ports)]}/hooks" for number in range(many)]
        for place, (name, many) in enumerate(ORGANISATIONS.items())
    }


@contextmanager
def receiving() -> Generator[int]:
    """A process of receivers."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.receivers", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise SystemExit("the receivers did not start")
            yield port
        finally:
            process.terminate()


def ours(url: str, places: dict[str, list[str]], ports: list[int], plan: Plan) -> Take:
    """The worker over a new database; what it sends is verified before anything is timed."""
    upgrade_database(url)
    secrets = told("benchmarks.deliverer", do="sow", url=url, key=KEY, organisations=places)["secrets"]

    def take(concurrent: int, seconds: float) -> dict[str, Any]:
        backlog = round((seconds + 1) * BACKLOG_PER_SECOND)
        asked = {"url": url, "key": KEY, "organisations": list(places), "data": DATA, "connections": concurrent, "seconds": seconds}
        before = [seen(port) for port in ports]
        found = told("benchmarks.deliverer", do="drain", backlog=backlog, **asked)
        after = [seen(port) for port in ports]
        signed = sum(one["signed"] for one in after) - sum(one["signed"] for one in before)
        if signed < found["requests"]:
            raise SystemExit(f"{found['requests']} deliveries were acknowledged, {signed} arrived with a signature")
        plan.say(f"  {signed} signed posts; most connections of one receiving process: {[one['most_open'] for one in after]}")
        return found

    take(CONCURRENT[0], 0.2)
    for port in ports:
        verify(seen(port)["last"], secrets)
    return take


def seen(port: int) -> dict[str, Any]:
    """What a process of receivers has seen."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/seen", timeout=10) as answer:
        return json.loads(answer.read())


def verify(raw: str, secrets: list[str]) -> None:
    """One of the endpoints' secrets signed this, says the independent library."""
    from standardwebhooks import Webhook, WebhookVerificationError

    head, _, body = raw.partition("\r\n\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
    if sorted(json.loads(body)) != sorted(json.loads(BODY)):
        raise SystemExit(f"the bodies differ: {body}")
    for secret in secrets:
        try:
            Webhook(secret).verify(body, headers)
        except WebhookVerificationError:
            continue
        return
    raise SystemExit(f"no secret verifies {headers}")


def httpx_posts(urls: list[str], keep: bool, concurrent: int, seconds: float) -> dict[str, Any]:
    """httpx: the same bytes to the same receivers."""
    return told("benchmarks.rivals.httpx_posts", urls=urls, body=BODY, connections=concurrent, seconds=seconds, keep=keep)


def bare_sender(urls: list[str], concurrent: int, seconds: float) -> dict[str, Any]:
    """Our sender alone."""
    return told("benchmarks.deliverer", do="bare", urls=urls, body=BODY, connections=concurrent, seconds=seconds)


def told(module: str, **asked: Any) -> dict[str, Any]:
    """What a process found out."""
    command = [sys.executable, "-m", module, json.dumps(asked)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(done.stdout)
