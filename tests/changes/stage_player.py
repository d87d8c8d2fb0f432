"""An episode of a random plan on a real database: two workers at once, real time that a test's clock stands for."""

from collections.abc import Mapping
from random import Random
from typing import Any

import anyio

from simulators.network.simulated_network import SimulatedNetwork
from tests.changes.plan_episode import EpisodeAnswer
from tests.changes.stage import ChangeStage

PATHS = {
    "plan_changes": ("POST", "/v1/changes"),
    "get_change_set": ("GET", "/v1/changes/{id}"),
    "apply_changes": ("POST", "/v1/changes/{id}/apply"),
    "cancel_change_set": ("POST", "/v1/changes/{id}/cancel"),
    "undo_changes": ("POST", "/v1/changes/{id}/undo"),
}
STAGE_ACCOUNTS = (8101,)


class StagePlayer:
    """Plays on `stage`, through the HTTP door."""

    def __init__(self, stage: ChangeStage, rng: Random) -> None:
        self._stage, self._rng = stage, rng

    @property
    def network(self) -> SimulatedNetwork:
        return self._stage.fleet.world.sandbox

    async def ask(
        self, operation: str, arguments: Mapping[str, Any], *, key: str | None = None, confirm: str | None = None
    ) -> EpisodeAnswer:
        (method, path), given = PATHS[operation], dict(arguments)
        headers = {"Idempotency-Key": self._stage.fleet.world.ids.new(key)} if key else {}
        headers |= {"X-Confirm-Token": confirm} if confirm else {}
        url = path.format(id=given.pop("id", ""))
        params, body = (given, None) if method == "GET" else (None, given)
        said = await self._stage.http.request(method, url, headers=headers, params=params, json=body)
        return EpisodeAnswer(said.status_code, said.json())

    async def begin_work(self) -> None:
        await self.work()

    def sending(self) -> None:
        """Nobody counts."""

    async def work(self) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(self._stage.work)

    async def pass_time(self, seconds: float) -> None:
        await self._stage.fleet.pass_time(seconds)

    async def heal(self) -> None:
        """Nobody dies here."""

    async def revoke_key(self) -> None:
        who = self._stage.fleet.who
        await self._stage.fleet.world.revoke(who)
        _, secret = await self._stage.fleet.world.key(who.person, who.organisation)
        self._stage.http.headers["Authorization"] = f"Bearer {secret}"
