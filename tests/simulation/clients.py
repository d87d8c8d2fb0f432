"""Simulated callers: each has a key, sends its call, and repeats it until it knows, gives up, or has seen enough replays."""

from dataclasses import dataclass
from random import Random
from typing import Any

import anyio

from tests.simulation.history import History, Key
from tests.simulation.machines import Machines
from tests.simulation.process import Gone
from tests.simulation.replica import Said
from tests.simulation.tenants import Tenant

ISSUE = "create_connectivity_intent"
NOT_OURS = {409, 429, 503, 401}
"""Statuses of answers that are not bound to the key."""


@dataclass(frozen=True, slots=True)
class Errand:
    """One eSIM that somebody wants, under one key. `days` is the key's own number: dispatches are told apart by it."""

    tenant: Tenant
    key: str
    days: int
    arguments: dict[str, Any]
    calls: int
    at_once: bool

    @property
    def name(self) -> Key:
        """What the history knows it by."""
        return Key(self.tenant.id, self.key)


def draw_errands(rng: Random, tenants: tuple[Tenant, ...], count: int) -> list[Errand]:
    """Who wants what. Two organisations may use the same key: they are two keys."""
    errands: list[Errand] = []
    for number in range(count):
        tenant = tenants[int(rng.random() * len(tenants))]
        shared = number > 0 and rng.random() < 0.2 and errands[-1].tenant is not tenant
        key = errands[-1].key if shared else f"key-{number}"
        arguments: dict[str, Any] = {"plan": "test_eu_1gb", "metadata": {"days": str(100 + number)}}
        errands.append(Errand(tenant, key, 100 + number, arguments, 1 + int(rng.random() * 4), rng.random() < 0.3))
    return errands


class Clients:
    """All callers of an episode."""

    def __init__(self, rng: Random, machines: Machines, history: History, now: Any) -> None:
        self._rng, self._machines, self._history, self._now = rng, machines, history, now

    async def run(self, errand: Errand) -> None:
        """All calls of one errand: one after the other, or all at once."""
        await anyio.sleep(self._rng.random() * 30)
        if errand.at_once:
            async with anyio.create_task_group() as group:
                for _ in range(errand.calls):
                    group.start_soon(self.call, errand)
            return
        for _ in range(errand.calls):
            await self.call(errand)
            await anyio.sleep(self._rng.random() ** 3 * 60)

    async def call(self, errand: Errand) -> None:
        """One call of the errand, noted before and after."""
        history = self._history
        history.calls += 1
        number = history.calls
        replica = await self._machines.any()
        history.add(self._now(), "invoke", number, ISSUE, errand.name)
        try:
            said = await replica.call(ISSUE, errand.tenant.secret, errand.arguments, key=errand.key)
        except Gone:
            history.add(self._now(), "info", number, ISSUE, errand.name, "gone")
            return
        kind, detail = understood(said)
        history.add(self._now(), kind, number, ISSUE, errand.name, detail)


def understood(said: Said) -> tuple[Any, str]:
    """What an answer means for the key."""
    body = said.body
    if said.status == 201:
        if body["status"] == "succeeded":
            return "ok", body["esim"]["iccid"]
        return ("fail", body["error"]["code"]) if body["status"] == "failed" else ("info", body["error"]["code"])
    code = str(body.get("code"))
    if code == "OUTCOME_UNKNOWN":
        return "info", code
    return ("refused" if said.status in NOT_OURS else "fail"), code
