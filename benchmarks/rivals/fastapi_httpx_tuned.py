"""FastAPI + httpx tuned: one dependency, raw bodies through orjson, bytes returned as they are, a frozen collector."""

import asyncio
import gc
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import orjson
from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi import Path as InPath

from benchmarks.rivals.esim import new_id
from benchmarks.rivals.gateway import account_of, address, listed, opened, owned, shown
from benchmarks.rivals.ledger import READ, Caller, Ledger, Refused

HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}


def make(data: Path) -> FastAPI:
    """The application."""
    ledger = Ledger(data)
    # httpx's default limits (100 connections, 20 kept) are its better setting: it searches its pool at every request.
    client = httpx.AsyncClient(headers=HEADERS, timeout=60, trust_env=False)
    url = httpx.URL(address())

    async def ask(method: str, params: Any, key: str) -> Any:
        answer = await client.post(url, content=orjson.dumps({method: params}))
        return opened(orjson.loads(answer.raise_for_status().content), key)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        keeper = asyncio.create_task(ledger.keep())
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)
        yield
        keeper.cancel()
        await keeper
        await client.aclose()

    app = FastAPI(lifespan=lifespan)

    async def reader(authorization: Annotated[str | None, Header()] = None) -> Caller:
        return ledger.caller(authorization, READ)

    @app.exception_handler(Refused)
    async def refuse(request: Request, refusal: Refused) -> Response:
        return Response(orjson.dumps({"error": str(refusal)}), refusal.status, media_type="application/json")

    @app.get("/health")
    async def health() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    def said(answer: object, operation: str, path: str, caller: Caller, request_id: str, started: float) -> Response:
        ledger.record(caller, operation, request_id, started)
        ledger.log("GET", path, operation, 200, request_id, started)
        return Response(orjson.dumps({"data": answer}), media_type="application/json", headers={"request-id": request_id})

    @app.get("/v1/subscribers/{iccid}")
    async def get_subscriber(
        iccid: Annotated[str, InPath(pattern=r"^89[0-9]{16,20}$")], caller: Annotated[Caller, Depends(reader)]
    ) -> Response:
        started, request_id = time.monotonic(), new_id("req_")
        own = account_of(ledger, caller.organisation)
        ledger.lease(caller)
        row = owned(await ask("getSingleSubscriber", {"iccid": iccid}, "getSingleSubscriber"), own)
        return said(shown(row), "get_subscriber", "/v1/subscribers/{iccid}", caller, request_id, started)

    @app.get("/v1/subscribers")
    async def list_subscribers(caller: Annotated[Caller, Depends(reader)], limit: int | None = None) -> Response:
        started, request_id = time.monotonic(), new_id("req_")
        own = account_of(ledger, caller.organisation)
        ledger.lease(caller)
        found = await ask("listSubscriber", {"accountId": own}, "listSubscriber")
        rows = listed(found["subscriberList"], own)[:limit]
        return said(rows, "list_subscribers", "/v1/subscribers", caller, request_id, started)

    @app.get("/v1/tariffs/{reseller}")
    async def get_tariff(reseller: int, caller: Annotated[Caller, Depends(reader)]) -> Response:
        started, request_id = time.monotonic(), new_id("req_")
        account_of(ledger, caller.organisation)
        ledger.lease(caller)
        rules = (await ask("getCustomerTariff", reseller, "listTariffRule"))["rule"]
        return said(rules, "get_tariff", "/v1/tariffs/{reseller}", caller, request_id, started)

    return app
