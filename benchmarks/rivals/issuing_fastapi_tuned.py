"""The idempotency table as an expert would tune it: raw sqlite3 on the loop, constant statements, orjson, a frozen collector.

Two commits at synchronous=FULL, a checkpointer thread, a key cache. What it leaves out is what `issuing_fastapi` leaves out.
"""

import gc
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import orjson
from fastapi import Depends, FastAPI, Header, Response

from benchmarks.rivals.issuing_fastapi import CALLER, METHOD, Order
from benchmarks.rivals.ledger import open_file

TABLE = (
    "create table if not exists rival_claim (organisation text, key text, fingerprint blob not null, state text not null, body blob,"
    " primary key (organisation, key)) without rowid"
)
CLAIM = "insert into rival_claim values (?, ?, ?, 'dispatching', null) on conflict do nothing"
READ = "select fingerprint, body from rival_claim where organisation = ? and key = ?"
FINISH = "update rival_claim set state = ?, body = ? where organisation = ? and key = ?"
COUNTER = "select value from change where name = 'callers'"
HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}


class Refused(Exception):
    """A refusal with its status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Table:
    """One connection, used on the event loop."""

    def __init__(self, path: Path) -> None:
        self._path, self._raw = path, open_file(path)
        self._raw.execute(TABLE)
        self._callers: dict[bytes, tuple[int, tuple[str, int]]] = {}

    def caller(self, secret: str) -> tuple[str, int]:
        """Whose key it is; a cached answer counts while the counter of changes stands still."""
        digest = hashlib.sha256(secret.encode()).digest()
        (counter,) = self._raw.execute(COUNTER).fetchone()
        kept = self._callers.get(digest)
        if kept is None or kept[0] != counter:
            row = self._raw.execute(CALLER.text, {"digest": digest, "now": time.time()}).fetchone()
            if row is None:
                raise Refused(401)
            kept = self._callers[digest] = counter, row
        return kept[1]

    def claim(self, organisation: str, key: str, fingerprint: bytes) -> bytes | None:
        """Take the key, in a commit of its own; the stored answer when it was used before."""
        if self._raw.execute(CLAIM, (organisation, key, fingerprint)).rowcount == 1:
            return None
        first, body = self._raw.execute(READ, (organisation, key)).fetchone()
        if first != fingerprint or body is None:
            raise Refused(409)
        return body

    def finish(self, organisation: str, key: str, state: str, body: bytes | None) -> None:
        """Keep what came of it, in a commit of its own."""
        self._raw.execute(FINISH, (state, body, organisation, key))

    def checkpoint(self, stop: threading.Event) -> None:
        """Beside the loop, so that no commit waits for it."""
        raw: sqlite3.Connection = open_file(self._path)
        while not stop.wait(0.5):
            raw.execute("pragma wal_checkpoint(passive)").fetchall()


def make(data: Path) -> FastAPI:
    """The application."""
    table, stop = Table(data / "service.db"), threading.Event()
    client = httpx.AsyncClient(headers=HEADERS, timeout=60, trust_env=False)
    url = httpx.URL(f"{os.environ['SERVICE_OCS_URL']}?token={os.environ['SERVICE_OCS_TOKEN']}")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        threading.Thread(target=table.checkpoint, args=(stop,), daemon=True).start()
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)
        yield
        stop.set()
        await client.aclose()

    app = FastAPI(lifespan=lifespan)

    async def authenticated(authorization: Annotated[str, Header()] = "") -> tuple[str, int]:
        return table.caller(authorization.removeprefix("Bearer "))

    @app.exception_handler(Refused)
    async def refuse(request: Any, refusal: Refused) -> Response:  # pyright: ignore[reportUnusedFunction]  # a handler
        return Response(b"{}", refusal.status)

    @app.get("/health")
    async def health() -> Response:  # pyright: ignore[reportUnusedFunction]  # a route
        return Response(b"{}")

    @app.post("/v1/subscribers/issue-from-inventory")
    async def issue(  # pyright: ignore[reportUnusedFunction]  # a route
        order: Order,
        caller: Annotated[tuple[str, int], Depends(authenticated)],
        x_idempotency_key: Annotated[str, Header(min_length=1, max_length=255)],
    ) -> Response:
        organisation, account = caller
        if order.accountId != account:
            raise Refused(404)
        fingerprint = hashlib.sha256(b"%d %d %d" % (account, order.packageTemplateId, order.validityPeriod)).digest()
        stored = table.claim(organisation, x_idempotency_key, fingerprint)
        if stored is not None:
            return Response(stored, 201, media_type="application/json")
        params = {"packageTemplateId": order.packageTemplateId, "accountForSubs": account, "validityPeriod": order.validityPeriod}
        try:
            answer = orjson.loads((await client.post(url, content=orjson.dumps({METHOD: params}))).raise_for_status().content)
            esim = answer[METHOD]
        except (httpx.HTTPError, KeyError, ValueError):
            table.finish(organisation, x_idempotency_key, "unknown", None)
            raise Refused(502) from None
        body = orjson.dumps({"data": {**esim, "idempotencyKey": x_idempotency_key, "status": "issued"}})
        table.finish(organisation, x_idempotency_key, "done", body)
        return Response(body, 201, media_type="application/json")

    return app
