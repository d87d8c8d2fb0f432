"""Call records as FastAPI's tutorial has one write it: a def endpoint, a session per request, an upsert per row; sums by GROUP BY.

In its favour: WAL, a long busy timeout, rows in the order of their keys, so that two batches never wait for each other in a circle.
"""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field
from sqlalchemy import Engine, case, event, func
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, create_engine, select

from benchmarks.rivals.models import ApiKeyTable, CdrEventTable, CdrMonthTable, CdrSumTable, InvoicePeriodTable

AHEAD = 300
MOST = 1000
FIRST = datetime(2010, 1, 1, tzinfo=UTC)


def since_2010(moment: datetime) -> datetime:
    """The rule of the service."""
    if moment < FIRST:
        raise ValueError("before 2010")
    return moment


Bytes = Annotated[int, Field(ge=0, le=10**15)]


class NewEvent(BaseModel):
    """One record."""

    model_config = {"extra": "forbid"}

    id: str = Field(pattern=r"^[!-~]{1,128}$")
    iccid: str = Field(pattern=r"^89[0-9]{16,20}$")
    occurred_at: Annotated[AwareDatetime, AfterValidator(since_2010)]
    bytes_up: Bytes
    bytes_down: Bytes
    network: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    country: Annotated[str | None, Field(pattern=r"^[A-Za-z]{2}$"), AfterValidator(lambda code: code and code.upper())] = None


class Batch(BaseModel):
    """The body of a POST."""

    model_config = {"extra": "forbid"}

    events: list[NewEvent] = Field(min_length=1, max_length=MOST)


class Ingested(BaseModel):
    """The answer."""

    received: int
    stored: int
    skipped: int


class Line(BaseModel):
    """A SIM's sums."""

    iccid: str
    bytes_up: int
    bytes_down: int
    bytes_total: int
    events: int


class Month(BaseModel):
    """A month's sums."""

    year: int
    month: int
    total_bytes: int
    data: list[Line]
    truncated: bool


def opened(data: Path, **options: Any) -> Engine:
    """The database of the service, with its durability."""
    url = os.environ.get("SERVICE_DATABASE_URL") or f"sqlite:///{data / 'service.db'}"
    if not url.startswith("sqlite"):
        return create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), **options)
    engine = create_engine(url, connect_args={"timeout": 60, "check_same_thread": False}, **options)

    @event.listens_for(engine, "connect")
    def durable(raw: Any, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]  # SQLAlchemy calls it
        raw.execute("pragma journal_mode=wal")
        raw.execute("pragma synchronous=full")

    return engine


def month_of(moment: datetime) -> int:
    """YYYYMM."""
    moment = moment.astimezone(UTC)
    return moment.year * 100 + moment.month


def keep(session: Session, organisation: str, batch: Batch) -> int:
    """All rows, one after the other, and their sums; one transaction."""
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    keep_one = insert(CdrEventTable).on_conflict_do_nothing().returning(CdrEventTable.event)
    new: list[NewEvent] = []
    for record in sorted(batch.events, key=lambda record: record.id):
        values = record.model_dump(exclude={"id", "occurred_at"}) | {"occurred_at": int(record.occurred_at.timestamp())}
        if session.execute(keep_one, {"organisation": organisation, "event": record.id, **values}).first() is not None:
            new.append(record)
    sums: dict[tuple[int, str], list[NewEvent]] = {}
    for record in new:
        sums.setdefault((month_of(record.occurred_at), record.iccid), []).append(record)
    months: dict[int, int] = {}
    add_one = adding(insert(CdrSumTable), CdrSumTable, ("bytes_up", "bytes_down", "bytes_total", "events"))
    for (month, iccid), records in sorted(sums.items()):
        row = summed(organisation, month, iccid, records)
        months[month] = months.get(month, 0) + row["bytes_total"]
        session.execute(add_one, row)
    add_to_month = adding(insert(CdrMonthTable), CdrMonthTable, ("bytes_total",))
    for month, total in sorted(months.items()):
        session.execute(add_to_month, {"organisation": organisation, "month": month, "bytes_total": total})
    for month in sorted(months):
        row = {"id": f"per_{uuid4().hex}", "organisation": organisation, "month": month, "invoiced": 0, "created": int(time.time())}
        session.execute(insert(InvoicePeriodTable).on_conflict_do_nothing(), row)
    session.commit()
    return len(new)


def summed(organisation: str, month: int, iccid: str, records: list[NewEvent]) -> dict[str, Any]:
    """What a batch adds to a SIM."""
    up, down = sum(record.bytes_up for record in records), sum(record.bytes_down for record in records)
    words = {name: {getattr(record, name) for record in records} for name in ("network", "country")}
    agreed = {name: found.pop() if len(found) == 1 else None for name, found in words.items()}
    figures = {"bytes_up": up, "bytes_down": down, "bytes_total": up + down, "events": len(records)}
    return {"organisation": organisation, "month": month, "iccid": iccid, **figures, **agreed}


def adding(insert: Any, table: Any, figures: tuple[str, ...]) -> Any:
    """An upsert that adds."""
    more = insert.excluded
    changes: dict[str, Any] = {name: getattr(table, name) + more[name] for name in figures}
    if table is CdrSumTable:
        changes |= {name: case((getattr(table, name) == more[name], getattr(table, name))) for name in ("network", "country")}
    return insert.on_conflict_do_update(index_elements=list(table.__table__.primary_key), set_=changes)


def make(data: Path) -> FastAPI:
    """The application."""
    engine = opened(data)
    app = FastAPI()

    def session() -> Iterator[Session]:
        with Session(engine) as opened_session:
            yield opened_session

    Opened = Annotated[Session, Depends(session)]

    def authenticated(session: Opened, authorization: Annotated[str, Header()] = "") -> str:
        digest = sha256(authorization.removeprefix("Bearer ").encode()).digest()
        key = session.exec(select(ApiKeyTable).where(ApiKeyTable.digest == digest)).first()
        if key is None or key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= time.time()):
            raise HTTPException(401, "unknown key")
        return key.organisation_id

    Organisation = Annotated[str, Depends(authenticated)]

    @app.get("/health")
    def health() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]  # a route
        return {"status": "ok"}

    @app.post("/v1/cdr/ingest")
    def ingest(batch: Batch, session: Opened, organisation: Organisation) -> Ingested:  # pyright: ignore[reportUnusedFunction]  # a route
        if max(record.occurred_at for record in batch.events).timestamp() > time.time() + AHEAD:
            raise HTTPException(422, "in the future")
        stored = keep(session, organisation, batch)
        return Ingested(received=len(batch.events), stored=stored, skipped=len(batch.events) - stored)

    @app.get("/v1/cdr/aggregate")
    def aggregate(  # pyright: ignore[reportUnusedFunction]  # a route
        session: Opened,
        organisation: Organisation,
        year: Annotated[int, Query(ge=2010, le=9999)],
        month: Annotated[int, Query(ge=1, le=12)],
    ) -> Month:
        begins, ends = datetime(year, month, 1, tzinfo=UTC), datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        up, down = func.sum(CdrEventTable.bytes_up), func.sum(CdrEventTable.bytes_down)
        total = func.sum(CdrEventTable.bytes_up + CdrEventTable.bytes_down)
        statement = (
            select(CdrEventTable.iccid, up, down, total, func.count(), func.sum(total).over())
            .where(
                CdrEventTable.organisation == organisation,
                CdrEventTable.occurred_at >= int(begins.timestamp()),
                CdrEventTable.occurred_at < int(ends.timestamp()),
            )
            .group_by(CdrEventTable.iccid)
            .order_by(total.desc(), CdrEventTable.iccid)
            .limit(MOST + 1)
        )
        rows = session.exec(statement).all()
        data = [Line(iccid=r[0], bytes_up=int(r[1]), bytes_down=int(r[2]), bytes_total=int(r[3]), events=r[4]) for r in rows[:MOST]]
        return Month(year=year, month=month, total_bytes=int(rows[0][5]) if rows else 0, data=data, truncated=len(rows) > MOST)

    return app
