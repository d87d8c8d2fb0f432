"""An operator with a fleet, a service with a model that follows a script, and a strict reader of its events."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx

from clients.model.client import ModelClient
from clients.model.port import ModelSettings
from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.clock import SystemClock
from registry.limits import Limits
from simulators.model.server import ModelRequest, ModelScript, ModelServer, ModelTurn, model_server
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.fleet.stage import thirty_lines
from tests.world import NOON, Credentials, World, no_sleep, open_world

QUICK = ModelSettings("", ("small-1", "large-1"), "sk-secret-of-ours", repeats=0)


class Event(NamedTuple):
    name: str
    data: dict[str, Any]


def events_of(body: bytes) -> list[Event]:
    """As the HTML standard's section 9.2.6 reads them, and stricter: nothing but event, data and comments, and JSON in the data."""
    text = body.decode()
    assert text.endswith("\n\n") and "\r" not in text and "\ufeff" not in text
    found: list[Event] = []
    name, data = "", list[str]()
    for line in text.split("\n")[:-1]:
        if line == "":
            if data:
                found.append(Event(name or "message", json.loads("\n".join(data))))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        assert field in ("", "event", "data"), line
        name = value if field == "event" else name
        data += [value] if field == "data" else []
    assert not data and not name
    return found


def spoken(events: list[Event]) -> str:
    """The whole text of an answer."""
    return "".join(event.data["text"] for event in events if event.name == "delta")


def user(text: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}]}


@dataclass(slots=True)
class AssistantStage:
    world: World
    network: Network
    me: Credentials
    http: httpx.AsyncClient
    model: ModelServer

    def follow(self, script: ModelScript) -> None:
        self.model.script = script

    async def chat(self, text: str, http: httpx.AsyncClient | None = None) -> list[Event]:
        answer = await (http or self.http).post("/v1/ai/chat", json=user(text))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream"), answer.text
        return events_of(answer.content)

    async def insights(self, **body: object) -> dict[str, Any]:
        """Cards about the fleet, which there always are."""
        answer = await self.http.post("/v1/ai/insights", json=body)
        assert answer.status_code == 200, answer.text
        return cast("dict[str, Any]", answer.json())

    async def allowance(self) -> dict[str, Any]:
        return cast("dict[str, Any]", (await self.http.get("/v1/ai/quota")).json())

    async def audited(self, surface: str = "assistant") -> list[tuple[str, str]]:
        """Operation and outcome of what was recorded of a surface, oldest first."""
        await self.world.journal.flush()
        rows = (await self.http.get("/v1/audit-log?limit=100")).json()["data"]
        return [(row["operation"], row["outcome"]) for row in reversed(rows) if row["surface"] == surface]


def nothing(heard: ModelRequest) -> ModelTurn:
    del heard
    return ModelTurn("Well.")


@asynccontextmanager
async def open_assistant_stage(
    folder: Path,
    *,
    url: str | None = None,
    tier: Tier = Tier.ENTERPRISE,
    settings: ModelSettings | None = QUICK,
    mode: str | None = "managed",
    sandbox: SimulatedNetwork | None = None,
) -> AsyncGenerator[AssistantStage]:
    """Without settings the service has no model. The fleet is read whole by whoever asks first, so it has thirteen lines."""
    given = settings or QUICK
    sandbox = sandbox or SimulatedNetwork(thirty_lines().copy(), wall=lambda: NOON, following=True, sleep=no_sleep)
    async with (
        model_server(nothing, key=given.key) as (address, server),
        open_world(folder, CATALOGUE, url=url, limits=Limits(burst_enabled=False), sandbox=sandbox) as world,
    ):
        model = ModelClient(replace(given, url=address), SystemClock())
        deps = world.pipeline.deps
        world.pipeline.deps = replace(deps, model=None if settings is None else model)
        me = await world.caller(tier, mode=mode, account=8101 if mode else None)
        try:
            async with world.client(me.secret) as http:
                yield AssistantStage(world, await world.network(), me, http, server)
        finally:
            await model.aclose()
        assert world.faults == []
