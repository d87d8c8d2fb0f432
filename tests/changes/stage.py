"""The stage of these tests: an organisation with a small network behind it, its change sets, and the worker's chore done by hand."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from operations.changes.sending.change_work import ChangeWork
from registry.limits import Limits
from registry.rate_limits import RateLimiter
from simulators.network.entities import Line
from tests.changes.line_states import last_call, writes_that_arrived
from tests.fleet.stage import ReadModelStage, open_read_model_stage
from tests.world import SITE

CHANGES = "/v1/changes"


@dataclass(slots=True)
class ChangeStage:
    """An organisation of account 8101 that plans changes."""

    fleet: ReadModelStage
    reports: list[str] = field(default_factory=list[str])

    @property
    def http(self) -> httpx.AsyncClient:
        return self.fleet.http

    def lines(self, *statuses: str) -> list[Line]:
        """The account's lines that have customers, of these statuses or of any but ended ones."""
        found = [line for line in self.fleet.network.lines_of(8101) if line.sim.status != "FREE" and line.status != "END_OF_LIFE"]
        return [line for line in found if not statuses or line.status in statuses]

    async def plan(
        self, lines: list[Line] | dict[str, Any], *, answers: int = 201, http: httpx.AsyncClient | None = None, **change: Any
    ) -> dict[str, Any]:
        """A plan of `change` over these lines."""
        said = await self.ask_for_plan(lines, http=http, **change)
        assert said.status_code == answers, said.text
        return said.json()

    async def ask_for_plan(
        self, lines: list[Line] | dict[str, Any], *, http: httpx.AsyncClient | None = None, **change: Any
    ) -> httpx.Response:
        """The answer to a call that plans `change` over these lines."""
        selection = lines if isinstance(lines, dict) else {"iccids": [line.iccid for line in lines]}
        headers = {"Idempotency-Key": self.fleet.world.ids.new("key")}
        return await (http or self.http).post(CHANGES, json={"change": change, "lines": selection}, headers=headers)

    async def undo(self, id: str, *, answers: int = 201, **more: Any) -> dict[str, Any]:
        said = await self.http.post(f"{CHANGES}/{id}/undo", json=more)
        assert said.status_code == answers, said.text
        return said.json()

    async def apply(self, plan: dict[str, Any], *, http: httpx.AsyncClient | None = None, answers: int = 200) -> dict[str, Any]:
        """Applies a plan, confirmed where that is asked for; what the worker sends comes after `work`."""
        path, body = f"{CHANGES}/{plan['id']}/apply", {"digest": plan["digest"]}
        said = await (http or self.http).post(path, json=body)
        if said.status_code == 202:
            said = await (http or self.http).post(path, json=body, headers={"X-Confirm-Token": said.json()["confirm_token"]})
        assert said.status_code == answers, said.text
        return said.json()

    async def work(self) -> None:
        """The chore, until nothing is due."""
        await ChangeWork(self.fleet.world.pipeline.deps, self.reports.append).step()

    def during_a_write(self, act: Callable[[], Awaitable[None]], method: str = "modifySubscriberStatus", times: int = 1) -> None:
        """Does something while the next such call is under way, whose answer waits. `times`: so many are slow."""
        self.fleet.trouble(method, delay=1.0, times=times)
        self.fleet.sleep.act = act

    @property
    def call_number(self) -> int:
        """The number of the network's last call."""
        return last_call(self.fleet.world.sandbox)

    def writes(self, since: int) -> list[str]:
        """What was written to the network behind the call `since`, the method and its line."""
        return [f"{call.method} {call.payload}" for call in writes_that_arrived(self.fleet.world.sandbox, since)]

    async def read(self, id: str, *, answers: int = 200, **query: Any) -> dict[str, Any]:
        said = await self.http.get(f"{CHANGES}/{id}", params=query)
        assert said.status_code == answers, said.text
        return said.json()

    async def done(self, plan: dict[str, Any], **query: Any) -> dict[str, Any]:
        """The set after it was applied and sent."""
        await self.apply(plan)
        await self.work()
        return await self.read(plan["id"], **query)


@asynccontextmanager
async def open_change_stage(folder: Path, *, url: str | None = None) -> AsyncGenerator[ChangeStage]:
    async with open_read_model_stage(folder, url=url) as fleet:
        pipeline = fleet.world.pipeline
        unpaced = RateLimiter(Limits(burst_enabled=False), SITE, fleet.clock)  # the stage's clock stands still, and sleeping is real
        pipeline.deps = replace(pipeline.deps, rate_limiter=unpaced)
        yield ChangeStage(fleet)
