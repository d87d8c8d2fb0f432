"""Callers that go on while servers come and go: each call is made until some server has answered it, as behind a load balancer."""

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

PATIENCE_SECONDS = 60.0
TRANSIENT = frozenset({409, 503})
"""A key whose call another server is at, and a server that cannot at the moment: the same call again."""


@dataclass(slots=True)
class Traffic:
    """`servers`: the addresses that are asked, in turn; a test changes them.

    `issued`: the intent of each key; `failed`: what stayed wrong.
    """

    key: str
    servers: list[str]
    issued: dict[str, str] = field(default_factory=dict[str, str])
    failed: list[str] = field(default_factory=list[str])
    ending: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def wait_for(self, count: int) -> None:
        """Until so many intents were issued, or a call failed."""
        until = time.monotonic() + PATIENCE_SECONDS
        while len(self.issued) < count and not self.failed and time.monotonic() < until:
            time.sleep(0.02)
        assert len(self.issued) >= count or self.failed

    def end(self) -> None:
        """Finish what is under way, and call no more."""
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def call(self, number: int) -> None:
        """One caller: an intent, the same again, and a look at it."""
        with httpx.Client(headers={"Authorization": f"Bearer {self.key}"}, timeout=30.0) as client:
            turn = 0
            while not self.ending.is_set():
                name = f"caller-{number}-{turn}"
                turn += 1
                made = self.until_answered(client, "POST", "/v1/connectivity/intents", name)
                again = self.until_answered(client, "POST", "/v1/connectivity/intents", name)
                if made is None or again is None:
                    continue
                self.issued[name] = made["id"]
                seen = self.until_answered(client, "GET", f"/v1/connectivity/intents/{made['id']}", name)
                if seen is not None and (made != again or seen["id"] != made["id"]):
                    self.failed.append(f"{name}: {made['id']}, {again['id']} and {seen['id']}")

    def until_answered(self, client: httpx.Client, method: str, path: str, name: str) -> dict[str, str] | None:
        """The answer of the first server that gives one; None, and noted, when none does."""
        until, last = time.monotonic() + PATIENCE_SECONDS, "no server"
        while time.monotonic() < until:
            for address in tuple(self.servers):
                try:
                    plan = {"plan": "test_eu_1gb"} if method == "POST" else None
                    answer = client.request(method, address + path, json=plan, headers={"Idempotency-Key": name})
                except httpx.TransportError as error:
                    last = f"{type(error).__name__}"
                    continue
                if answer.status_code < 300:
                    return answer.json()
                last = answer.text
                if answer.status_code not in TRANSIENT:
                    self.failed.append(f"{name} {method}: {last}")
                    return None
            time.sleep(0.02)
        self.failed.append(f"{name} {method}: {last}")
        return None


@contextmanager
def traffic(key: str, servers: Sequence[str], *, callers: int = 3) -> Generator[Traffic]:
    made = Traffic(key, list(servers))
    made.threads += [threading.Thread(target=made.call, args=(number,)) for number in range(callers)]
    for thread in made.threads:
        thread.start()
    try:
        yield made
    finally:
        made.end()
