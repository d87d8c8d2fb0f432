"""A way to the simulated network on which lists are bent, and some answers never come."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx
import orjson

from tests.evidence.issuing import Issuing
from tests.issuance.road import Road

Bend = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class CrookedRoad(Road):
    """Requests pass as they are, answers do not."""

    bend: Bend | None = None
    """What becomes of the lines of an account's list; the count stays."""
    stuck: frozenset[int] = frozenset()
    """Lines whose packages are never told."""
    silent: frozenset[int] = frozenset()
    """Accounts whose lines are never told."""
    asked: int = 0
    """How many lists of packages were asked for."""
    at_once: int = 0
    most_at_once: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        method, params = next(iter(orjson.loads(await request.aread()).items()))
        if method == "listSubscriberPrepaidPackages":
            return await self._packages(request, params["subscriberId"])
        if method != "listSubscriber" or "accountId" not in params:
            return await super().handle_async_request(request)
        if params["accountId"] in self.silent:
            await anyio.sleep_forever()
        return await self._lines(request)

    async def _packages(self, request: httpx.Request, line: int) -> httpx.Response:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await (anyio.sleep_forever() if line in self.stuck else anyio.sleep(0))
            return await super().handle_async_request(request)
        finally:
            self.at_once -= 1

    async def _lines(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if self.bend is None:
            return response
        answer = orjson.loads(await response.aread())
        answer["listSubscriber"]["subscriberList"] = self.bend(answer["listSubscriber"]["subscriberList"])
        return httpx.Response(200, stream=httpx.ByteStream(orjson.dumps(answer)), request=request)


@asynccontextmanager
async def crooked(issuing: Issuing) -> AsyncGenerator[CrookedRoad]:
    road, pipeline = CrookedRoad(issuing.world.sandbox), issuing.world.pipeline
    former = pipeline.deps
    pipeline.deps = replace(former, ocs=road.pool(issuing.world.clock))
    yield road
    await pipeline.deps.ocs.aclose()
    pipeline.deps = former
