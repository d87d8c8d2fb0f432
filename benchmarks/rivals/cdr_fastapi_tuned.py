"""Call records as an expert would tune them: Core statements for the whole batch, one parse of the bytes, orjson, sums read by key.

Validation, statements and commit run in a thread; a checkpointer thread moves SQLite's log, and a lock stands before its one writer.
"""

import gc
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import orjson
import sqlalchemy as sa
from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from sqlalchemy.dialects import postgresql, sqlite

from benchmarks.rivals.cdr_fastapi import AHEAD, MOST, Batch, NewEvent, month_of, opened, summed
from storage.api_keys import ApiKeyTable
from storage.cdr_events import CdrEventTable
from storage.cdr_sums import CdrMonthTable, CdrSumTable
from storage.invoices import InvoicePeriodTable

EVENT, SUM, MONTH, PERIOD, KEY = (one.table for one in (CdrEventTable, CdrSumTable, CdrMonthTable, InvoicePeriodTable, ApiKeyTable))
FIGURES = ("bytes_up", "bytes_down", "bytes_total", "events")
WORDS = ("network", "country")
CALLER = sa.select(KEY.c.organisation_id).where(
    KEY.c.digest == sa.bindparam("digest"),
    KEY.c.revoked_at.is_(None),
    KEY.c.expires_at.is_(None) | (KEY.c.expires_at > sa.bindparam("now")),
)
MINE = (SUM.c.organisation == sa.bindparam("organisation"), SUM.c.month == sa.bindparam("month"))
LINES = (
    sa.select(*(SUM.c[name] for name in ("iccid", *FIGURES))).where(*MINE).order_by(SUM.c.bytes_total.desc(), SUM.c.iccid).limit(MOST + 1)
)
TOTAL = sa.select(MONTH.c.bytes_total).where(MONTH.c.organisation == sa.bindparam("organisation"), MONTH.c.month == sa.bindparam("month"))


class Refused(Exception):
    """A refusal with its status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Records:
    """The tables."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self.lite = engine.dialect.name == "sqlite"
        insert = sqlite.insert if self.lite else postgresql.insert
        self._turn = threading.Lock() if self.lite else nullcontext()
        self._keep = insert(EVENT).on_conflict_do_nothing().returning(EVENT.c.event)
        self._add = adding(insert(SUM), SUM, FIGURES)
        self._add_to_months = adding(insert(MONTH), MONTH, ("bytes_total",))
        self._open = insert(PERIOD).on_conflict_do_nothing()

    def ingest(self, secret: str, raw: bytes) -> bytes:
        """From bytes to bytes."""
        with self._engine.connect() as connection:
            organisation = caller(connection, secret)
        try:
            batch = Batch.model_validate_json(raw)
        except ValidationError:
            raise Refused(422) from None
        if max(record.occurred_at for record in batch.events).timestamp() > time.time() + AHEAD:
            raise Refused(422)
        first: dict[str, NewEvent] = {}
        for record in batch.events:
            first.setdefault(record.id, record)
        rows = [row_of(organisation, first[id]) for id in sorted(first)]
        with self._turn, self._engine.begin() as connection:
            kept = [first[id] for id in connection.execute(self._keep, rows).scalars()]
            if kept:
                self._sum(connection, organisation, kept)
        return orjson.dumps({"received": len(batch.events), "stored": len(kept), "skipped": len(batch.events) - len(kept)})

    def _sum(self, connection: sa.Connection, organisation: str, kept: list[NewEvent]) -> None:
        sums: dict[tuple[int, str], list[NewEvent]] = {}
        for record in kept:
            sums.setdefault((month_of(record.occurred_at), record.iccid), []).append(record)
        rows = [summed(organisation, *key, sums[key]) for key in sorted(sums)]
        months: dict[int, int] = {}
        for row in rows:
            months[row["month"]] = months.get(row["month"], 0) + row["bytes_total"]
        now = int(time.time())
        connection.execute(self._add, rows)
        connection.execute(self._add_to_months, [{"organisation": organisation, "month": m, "bytes_total": b} for m, b in months.items()])
        opening = [{"id": f"per_{uuid4().hex}", "organisation": organisation, "month": m, "invoiced": 0, "created": now} for m in months]
        connection.execute(self._open, opening)

    def aggregate(self, secret: str, year: int, month: int) -> bytes:
        """The month's sums."""
        with self._engine.connect() as connection:
            asked = {"organisation": caller(connection, secret), "month": year * 100 + month}
            rows = connection.execute(LINES, asked).all()
            total = connection.execute(TOTAL, asked).scalar() or 0
        data = [dict(zip(("iccid", *FIGURES), row, strict=True)) for row in rows[:MOST]]
        return orjson.dumps({"year": year, "month": month, "total_bytes": total, "data": data, "truncated": len(rows) > MOST})

    def checkpoint(self, stop: threading.Event) -> None:
        """Beside the writer, so that no commit pays for it; as the service's own thread does, and as often."""
        with self._engine.connect() as connection:
            while not stop.wait(0.5):
                _, pages, _ = connection.exec_driver_sql("pragma wal_checkpoint(passive)").one()
                if pages > 4000:
                    connection.exec_driver_sql("pragma wal_checkpoint(restart)").all()


def adding(insert: Any, into: sa.Table, figures: tuple[str, ...]) -> Any:
    """An upsert that adds."""
    more = insert.excluded
    changes: dict[str, Any] = {name: into.c[name] + more[name] for name in figures}
    if into is SUM:
        changes |= {name: sa.case((SUM.c[name] == more[name], SUM.c[name])) for name in WORDS}
    return insert.on_conflict_do_update(index_elements=list(into.primary_key), set_=changes)


def row_of(organisation: str, record: NewEvent) -> dict[str, Any]:
    """A row."""
    return {
        "organisation": organisation,
        "event": record.id,
        "iccid": record.iccid,
        "occurred_at": int(record.occurred_at.timestamp()),
        "bytes_up": record.bytes_up,
        "bytes_down": record.bytes_down,
        "network": record.network,
        "country": record.country,
    }


def caller(connection: sa.Connection, secret: str) -> str:
    """Whose key it is."""
    digest = sha256(secret.encode()).digest()
    found: str | None = connection.execute(CALLER, {"digest": digest, "now": time.time()}).scalar()
    if found is None:
        raise Refused(401)
    return found


def tuned(engine: sa.Engine) -> sa.Engine:
    """SQLite with the cache of the service, and without checkpoints in the writer."""
    if engine.dialect.name == "sqlite":

        @sa.event.listens_for(engine, "connect")
        def roomy(raw: Any, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]  # SQLAlchemy calls it
            for pragma in ("cache_size=-65536", "mmap_size=268435456", "temp_store=memory", "wal_autocheckpoint=0"):
                raw.execute(f"pragma {pragma}")

    return engine


def make(data: Path) -> FastAPI:
    """The application."""
    records, stop = Records(tuned(opened(data, pool_size=8))), threading.Event()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        if records.lite:
            threading.Thread(target=records.checkpoint, args=(stop,), daemon=True).start()
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)
        yield
        stop.set()

    app = FastAPI(lifespan=lifespan)

    @app.exception_handler(Refused)
    async def refuse(request: Request, refusal: Refused) -> Response:  # pyright: ignore[reportUnusedFunction]  # a handler
        return Response(b"{}", refusal.status)

    @app.get("/health")
    async def health() -> Response:  # pyright: ignore[reportUnusedFunction]  # a route
        return Response(b"{}")

    @app.post("/v1/cdr/ingest")
    async def ingest(request: Request, authorization: Annotated[str, Header()] = "") -> Response:  # pyright: ignore[reportUnusedFunction]  # a route
        raw = await request.body()
        answer = await run_in_threadpool(records.ingest, authorization.removeprefix("Bearer "), raw)
        return Response(answer, media_type="application/json")

    @app.get("/v1/cdr/aggregate")
    def aggregate(  # pyright: ignore[reportUnusedFunction]  # a route
        year: Annotated[int, Query(ge=2010, le=9999)],
        month: Annotated[int, Query(ge=1, le=12)],
        authorization: Annotated[str, Header()] = "",
    ) -> Response:
        return Response(records.aggregate(authorization.removeprefix("Bearer "), year, month), media_type="application/json")

    return app
