"""An upper bound: Starlette around this service's own client of the charging system. No key, no quota, no audit row, no log line."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.rivals.fleet import ACCOUNT
from benchmarks.rivals.gateway import TOKEN, URL, owned, shown
from benchmarks.rivals.ledger import Refused
from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from registry.clock import SystemClock
from registry.errors import OcsNotFound


def make(data: Path) -> Starlette:
    """The application."""
    wire = OcsSettings(url=os.environ[URL], concurrency=64)
    pool = OcsPool(Outbound(ocs_limits(wire)), wire, SystemClock())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        yield
        await pool.aclose()

    async def health(request: Request) -> Response:
        return Response(b"{}")

    async def read(request: Request) -> Response:
        ocs = pool.for_token(os.environ[TOKEN])
        try:
            row = await ocs.subscriber.get_single_subscriber(request.path_params["iccid"], by="iccid")
            body = orjson.dumps({"data": shown(owned(dict(row), ACCOUNT))})
        except (OcsNotFound, Refused):
            return Response(b"{}", 404)
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/health", health), Route("/v1/subscribers/{iccid}", read)], lifespan=lifespan)
