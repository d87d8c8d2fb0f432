"""FastAPI + httpx as their documentation says: dependencies, one shared client, dictionaries in and out."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi import Path as InPath
from fastapi.responses import JSONResponse

from benchmarks.rivals.esim import new_id
from benchmarks.rivals.gateway import account_of, address, listed, opened, owned, shown
from benchmarks.rivals.ledger import READ, Caller, Ledger, Refused


def make(data: Path) -> FastAPI:
    """The application."""
    ledger = Ledger(data)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        keeper = asyncio.create_task(ledger.keep())
        async with httpx.AsyncClient() as client:
            app.state.client = client
            yield
        keeper.cancel()
        await keeper

    app = FastAPI(lifespan=lifespan)

    async def reader(authorization: Annotated[str | None, Header()] = None) -> Caller:
        return ledger.caller(authorization, READ)

    async def account(caller: Annotated[Caller, Depends(reader)]) -> int:
        return account_of(ledger, caller.organisation)

    async def upstream(request: Request) -> httpx.AsyncClient:
        return request.app.state.client

    @app.exception_handler(Refused)
    async def refuse(request: Request, refusal: Refused) -> Response:
        return JSONResponse({"error": str(refusal)}, refusal.status)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/subscribers/{iccid}")
    async def get_subscriber(
        iccid: Annotated[str, InPath(pattern=r"^89[0-9]{16,20}$")],
        caller: Annotated[Caller, Depends(reader)],
        own: Annotated[int, Depends(account)],
        client: Annotated[httpx.AsyncClient, Depends(upstream)],
    ) -> dict[str, Any]:
        started, request_id = time.monotonic(), new_id("req_")
        ledger.lease(caller)
        answer = await client.post(address(), json={"getSingleSubscriber": {"iccid": iccid}})
        row = owned(opened(answer.raise_for_status().json(), "getSingleSubscriber"), own)
        ledger.record(caller, "get_subscriber", request_id, started)
        ledger.log("GET", "/v1/subscribers/{iccid}", "get_subscriber", 200, request_id, started)
        return {"data": shown(row)}

    @app.get("/v1/subscribers")
    async def list_subscribers(
        caller: Annotated[Caller, Depends(reader)],
        own: Annotated[int, Depends(account)],
        client: Annotated[httpx.AsyncClient, Depends(upstream)],
        limit: int | None = None,
    ) -> dict[str, Any]:
        started, request_id = time.monotonic(), new_id("req_")
        ledger.lease(caller)
        answer = await client.post(address(), json={"listSubscriber": {"accountId": own}})
        rows = listed(opened(answer.raise_for_status().json(), "listSubscriber")["subscriberList"], own)
        ledger.record(caller, "list_subscribers", request_id, started)
        ledger.log("GET", "/v1/subscribers", "list_subscribers", 200, request_id, started)
        return {"data": rows[:limit]}

    @app.get("/v1/tariffs/{reseller}")
    async def get_tariff(
        reseller: int,
        caller: Annotated[Caller, Depends(reader)],
        own: Annotated[int, Depends(account)],
        client: Annotated[httpx.AsyncClient, Depends(upstream)],
    ) -> dict[str, Any]:
        started, request_id = time.monotonic(), new_id("req_")
        ledger.lease(caller)
        answer = await client.post(address(), json={"getCustomerTariff": reseller}, timeout=60)
        rules = opened(answer.raise_for_status().json(), "listTariffRule")["rule"]
        ledger.record(caller, "get_tariff", request_id, started)
        ledger.log("GET", "/v1/tariffs/{reseller}", "get_tariff", 200, request_id, started)
        return {"data": rules}

    return app
