"""Starlette with msgspec, written by hand and tuned: what an expert without a framework would ship."""

import asyncio
import gc
import hashlib
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.rivals.esim import SMDP, new_id
from benchmarks.rivals.ledger import ANY, READ, Ledger, Refused, draw
from benchmarks.rivals.plans import PLANS
from benchmarks.rivals.routes import CREATE, operations
from benchmarks.rivals.routes import READ as GET

KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
PLAN_TEXT = {name: orjson.dumps(plan) for name, plan in PLANS.items()}


class NewIntent(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a POST."""

    plan: str
    metadata: dict[str, str] = {}


class Esim(msgspec.Struct):
    """A profile as its owner sees it."""

    iccid: str
    activation_code: str
    qr_code: str
    smdp_address: str
    matching_id: str


class Intent(msgspec.Struct):
    """An intent; plan and metadata are spliced in as the JSON text they are stored as."""

    id: str
    object: str
    status: str
    livemode: bool
    plan: msgspec.Raw
    esim: Esim
    metadata: msgspec.Raw
    error: None
    created: int


DECODE = msgspec.json.Decoder(NewIntent).decode
ENCODE = msgspec.json.Encoder().encode


def answer(ledger: Ledger, status: int, body: bytes, request_id: str) -> Response:
    headers = {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "request-id": request_id,
        "ratelimit-policy": '"tier";q=1000000;w=86400',
        "ratelimit": ledger.rate_limit(),
    }
    return Response(body, status, headers, "application/json")


def refused(refusal: Refused, request_id: str) -> Response:
    body = ENCODE({"error": str(refusal), "request_id": request_id})
    return Response(body, refusal.status, {"request-id": request_id, "cache-control": "no-store"}, "application/json")


class Doors:
    """The two measured handlers, and one for all other routes."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def read(self, request: Request) -> Response:
        """GET one intent."""
        started, request_id, ledger = time.monotonic(), new_id("req_"), self.ledger
        try:
            caller = ledger.caller(request.headers.get("authorization"), READ)
            ledger.lease(caller)
            row = ledger.find(caller, request.path_params["id"])
            code, address, matching = ledger.profile(row)
        except Refused as refusal:
            ledger.log("GET", "/v1/connectivity/intents/{id}", GET, refusal.status, request_id, started)
            return refused(refusal, request_id)
        assert row.plan is not None and row.iccid is not None
        esim = Esim(row.iccid, code, code, address, matching)
        plan, metadata = msgspec.Raw(row.plan.encode()), msgspec.Raw(row.details.encode())
        body = ENCODE(Intent(row.id, "connectivity.intent", row.status, bool(row.livemode), plan, esim, metadata, None, row.created))
        ledger.record(caller, GET, request_id, started)
        ledger.log("GET", "/v1/connectivity/intents/{id}", GET, 200, request_id, started)
        return answer(ledger, 200, body, request_id)

    async def create(self, request: Request) -> Response:
        """POST an intent with a test plan."""
        started, request_id, ledger = time.monotonic(), new_id("req_"), self.ledger
        try:
            caller = ledger.caller(request.headers.get("authorization"), ANY)
            key = request.headers.get("idempotency-key")
            if key is None or not KEY.fullmatch(key):
                raise Refused(400, "Idempotency-Key: 1-255 visible ASCII characters")
            body = await request.body()
            try:
                params = DECODE(body)
            except msgspec.ValidationError as error:
                raise Refused(400, str(error)) from None
            if params.plan not in PLANS:
                raise Refused(404, "There is no such plan")
            new = draw(params.plan, PLAN_TEXT[params.plan], ENCODE(params.metadata))
            shown = Esim(new.esim.iccid, new.esim.activation_code, new.esim.activation_code, SMDP, new.esim.matching_id)
            plan, metadata = msgspec.Raw(new.plan), msgspec.Raw(new.metadata)
            text = ENCODE(Intent(new.id, "connectivity.intent", "succeeded", False, plan, shown, metadata, None, new.created))
            fingerprint = hashlib.sha256(orjson.dumps([params.plan, params.metadata], option=orjson.OPT_SORT_KEYS)).digest()
            text = ledger.issue(caller, new, key, fingerprint, text, request_id, started) or text
        except Refused as refusal:
            ledger.log("POST", "/v1/connectivity/intents", CREATE, refusal.status, request_id, started)
            return refused(refusal, request_id)
        ledger.log("POST", "/v1/connectivity/intents", CREATE, 201, request_id, started)
        return answer(ledger, 201, text, request_id)

    async def other(self, request: Request) -> Response:
        """Every other route: checks the key, and is not offered."""
        started, request_id, ledger = time.monotonic(), new_id("req_"), self.ledger
        refusal = Refused(501, "Not offered here")
        try:
            ledger.caller(request.headers.get("authorization"), READ)
        except Refused as earlier:
            refusal = earlier
        ledger.log(request.method, "other", "other", refusal.status, request_id, started)
        return refused(refusal, request_id)


def make(data: Path) -> Starlette:
    """The application."""
    ledger = Ledger(data)
    doors = Doors(ledger)
    measured = {CREATE: doors.create, GET: doors.read}

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        keeper = asyncio.create_task(ledger.keep())
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)
        yield
        keeper.cancel()
        await keeper

    async def health(request: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    listed = [Route(op.path, measured.get(op.id, doors.other), methods=[op.method]) for op in operations()]
    return Starlette(routes=[Route("/health", health), *listed], lifespan=lifespan)
