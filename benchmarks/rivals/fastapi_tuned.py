"""FastAPI tuned: async handlers, the hand-written rival's raw store, orjson bytes returned as they are."""

import asyncio
import gc
import hashlib
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import orjson
from fastapi import Depends, FastAPI, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.rivals.esim import SMDP, new_id
from benchmarks.rivals.handwritten import PLAN_TEXT, answer, refused
from benchmarks.rivals.ledger import ANY, READ, Caller, Ledger, Refused, draw
from benchmarks.rivals.plans import PLANS
from benchmarks.rivals.routes import CREATE, operations
from benchmarks.rivals.routes import READ as GET


class NewIntent(BaseModel):
    """The body of a POST."""

    model_config = ConfigDict(extra="forbid")

    plan: str = Field(min_length=1, max_length=80)
    metadata: dict[str, str] = Field(default_factory=dict)


def shown(id: str, plan: bytes, esim: tuple[str, str, str, str], metadata: bytes, created: int) -> bytes:
    """An intent's answer; plan and metadata are spliced in as stored."""
    iccid, code, address, matching = esim
    profile = {"iccid": iccid, "activation_code": code, "qr_code": code, "smdp_address": address, "matching_id": matching}
    return orjson.dumps(
        {
            "id": id,
            "object": "connectivity.intent",
            "status": "succeeded",
            "livemode": False,
            "plan": orjson.Fragment(plan),
            "esim": profile,
            "metadata": orjson.Fragment(metadata),
            "error": None,
            "created": created,
        }
    )


def make(data: Path) -> FastAPI:
    """The application."""
    ledger = Ledger(data)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        keeper = asyncio.create_task(ledger.keep())
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)
        yield
        keeper.cancel()
        await keeper

    app = FastAPI(lifespan=lifespan)

    async def reader(authorization: Annotated[str | None, Header()] = None) -> Caller:
        return ledger.caller(authorization, READ)

    async def writer(authorization: Annotated[str | None, Header()] = None) -> Caller:
        return ledger.caller(authorization, ANY)

    @app.exception_handler(Refused)
    async def refuse(request: Request, refusal: Refused) -> Response:
        return refused(refusal, new_id("req_"))

    @app.get("/health")
    async def health() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def read(id: str, caller: Annotated[Caller, Depends(reader)]) -> Response:
        started, request_id = time.monotonic(), new_id("req_")
        ledger.lease(caller)
        row = ledger.find(caller, id)
        code, address, matching = ledger.profile(row)
        assert row.plan is not None and row.iccid is not None
        body = shown(row.id, row.plan.encode(), (row.iccid, code, address, matching), row.details.encode(), row.created)
        ledger.record(caller, GET, request_id, started)
        ledger.log("GET", "/v1/connectivity/intents/{id}", GET, 200, request_id, started)
        return answer(ledger, 200, body, request_id)

    async def create(
        params: NewIntent,
        caller: Annotated[Caller, Depends(writer)],
        idempotency_key: Annotated[str, Header(min_length=1, max_length=255)],
    ) -> Response:
        started, request_id = time.monotonic(), new_id("req_")
        if params.plan not in PLANS:
            raise Refused(404, "There is no such plan")
        new = draw(params.plan, PLAN_TEXT[params.plan], orjson.dumps(params.metadata))
        esim = (new.esim.iccid, new.esim.activation_code, SMDP, new.esim.matching_id)
        text = shown(new.id, new.plan, esim, new.metadata, new.created)
        fingerprint = hashlib.sha256(orjson.dumps([params.plan, params.metadata], option=orjson.OPT_SORT_KEYS)).digest()
        text = ledger.issue(caller, new, idempotency_key, fingerprint, text, request_id, started) or text
        ledger.log("POST", "/v1/connectivity/intents", CREATE, 201, request_id, started)
        return answer(ledger, 201, text, request_id)

    async def other(caller: Annotated[Caller, Depends(reader)]) -> Response:
        raise Refused(501, "Not offered here")

    for op in operations():
        endpoint = {CREATE: create, GET: read}.get(op.id, other)
        app.add_api_route(op.path, endpoint, methods=[op.method], operation_id=op.id)
    return app
