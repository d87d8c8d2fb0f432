"""Simulated callers: each has an errand, sends its calls, repeats them, takes back what was issued, and notes all it was told."""

import hashlib
from collections.abc import Mapping
from random import Random
from typing import Any

import anyio

from tests.harness.history import History, Key, Kind
from tests.simulation.errands import INVENTORY, Errand
from tests.simulation.machines import SimulatedMachines
from tests.simulation.process import Gone
from tests.simulation.replica import ClientAnswer
from tests.simulation.tenants import SimulatedTenant

CONFIRM, RELEASE, READ = "confirm_connectivity_intent", "rollback_esim_issuance", "get_connectivity_intent"
UNSURE: tuple[str, str] = ("OUTCOME_UNKNOWN", "MANUAL_RECONCILIATION_REQUIRED")
RELEASE_UNSURE: Mapping[str, Kind] = {UNSURE[0]: "info", UNSURE[1]: "stuck"}
FOR_GOOD = "Use a new key to"
"""How the hint of a failure begins that its key will always answer with."""


class Clients:
    def __init__(self, rng: Random, machines: SimulatedMachines, history: History, now: Any) -> None:
        self._rng, self._machines, self._history, self._now = rng, machines, history, now
        self.intents: dict[str, Key] = {}
        """Which key made an intent."""
        self._intent_of: dict[Key, str] = {}

    async def run(self, errand: Errand) -> None:
        """All calls of one errand: one after the other, or all at once; then whoever wants it back."""
        await anyio.sleep(self._rng.random() * 30)
        if errand.at_once:
            await self._together([self.call] * errand.calls, errand)
        else:
            for _ in range(errand.calls):
                await self.call(errand)
                await anyio.sleep(self._rng.random() ** 3 * 60)
        if errand.stranger is not None:
            await self.release(errand, errand.stranger)
        if errand.releases:
            await anyio.sleep(self._rng.random() ** 2 * 60)
            await self._together([self.release] * errand.releases, errand)
            await self.call(errand)

    async def call(self, errand: Errand) -> None:
        """Ask for the eSIM, with this body or another."""
        await self._ask(errand, errand.other if errand.other is not None and self._rng.random() < 0.3 else errand.arguments)

    async def _ask(self, errand: Errand, arguments: dict[str, Any]) -> None:
        """Where the plan is chosen later, choose it."""
        await self._send(errand.operation, errand.name, errand.tenant, arguments, key=errand.key)
        if errand.want == "confirm" and errand.name in self._intent_of:
            plan = errand.plans[int(self._rng.random() * len(errand.plans))]
            await self._send(CONFIRM, errand.name, errand.tenant, {"id": self._intent_of[errand.name], "plan": plan})

    async def release(self, errand: Errand, by: SimulatedTenant | None = None) -> str | None:
        """Take it back: ask for a token, then do it; the code of a refusal. A stranger has no such key."""
        target = self._intent_of.get(errand.name) if errand.operation != INVENTORY else errand.key
        if target is None:
            return None
        tenant = by or errand.tenant
        name, arguments = Key(tenant.id, errand.key), {"idempotencyKey": target}
        said = await self._send(RELEASE, name, tenant, arguments)
        if said is not None and said.status == 202:
            said = await self._send(RELEASE, name, tenant, arguments, confirm=said.body["confirm_token"])
        return None if said is None else said.body.get("code")

    async def final(self, errand: Errand) -> None:
        """When nothing fails any more: ask again, with every body."""
        for arguments in (errand.other, errand.arguments):
            if arguments is not None:
                await self._ask(errand, arguments)
        if errand.releases:
            while await self.release(errand) == "confirm_token_invalid":
                """The clock of the replica that asked is minutes away from that of the replica that was answered."""

    async def look(self, errand: Errand) -> None:
        """Ask once more, and read what there is."""
        await self.call(errand)
        if errand.name in self._intent_of:
            await self._send(READ, errand.name, errand.tenant, {"id": self._intent_of[errand.name]})

    async def _together(self, works: list[Any], errand: Errand) -> None:
        async with anyio.create_task_group() as group:
            for work in works:
                group.start_soon(work, errand)

    async def _send(
        self,
        operation: str,
        name: Key,
        tenant: SimulatedTenant,
        arguments: dict[str, Any],
        *,
        key: str | None = None,
        confirm: str | None = None,
    ) -> ClientAnswer | None:
        """One call, noted before and after; None when nobody knows what was answered."""
        history, replica = self._history, await self._machines.any()
        number = history.begin(self._now(), operation, name)
        try:
            said = await replica.call(number, operation, tenant.secret, arguments, key=key, confirm=confirm)
        except Gone:
            history.add(self._now(), "info", number, operation, name, "gone")
            return None
        kind, detail = understood(operation, said)
        digest = hashlib.sha256(said.raw).hexdigest()[:16] if key is not None and kind != "info" else ""
        history.add(self._now(), kind, number, operation, name, detail, digest)
        if said.status < 300 and "metadata" in said.body:
            self.intents[said.body["id"]] = name
            self._intent_of[name] = said.body["id"]
        return said


def understood(operation: str, said: ClientAnswer) -> tuple[Kind, str]:
    """What an answer means for the key."""
    body = said.body
    code = str(body.get("code"))
    if operation == RELEASE:
        if said.status in (200, 202):
            return ("released", body["data"]["status"]) if said.status == 200 else ("refused", "asked")
        return RELEASE_UNSURE.get(code, "refused"), code
    if said.status < 300:
        return issued(body["data"]) if operation == INVENTORY else intent(body)
    if code in UNSURE:
        return "info", code
    lasting = said.replayed or code == "no_inventory" or str(body.get("hint")).startswith(FOR_GOOD)
    return ("fail" if lasting else "refused"), code


def issued(body: dict[str, Any]) -> tuple[Kind, str]:
    return "ok", body["iccid"]


def intent(body: dict[str, Any]) -> tuple[Kind, str]:
    match body["status"]:
        case "succeeded":
            return "ok", body["esim"]["iccid"]
        case "failed":
            code = body["error"]["code"]
            return ("returned" if code in ("rolled_back", "released") else "fail"), code
        case "requires_plan":
            return "waiting", body["id"]
        case _:
            return "info", (body["error"] or {"code": "processing"})["code"]
