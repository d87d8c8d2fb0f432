"""FastAPI as its tutorial writes it: def handlers, Depends, a SQLModel session per request, response models.

In its favour: WAL as everywhere, a pool of 64 connections (with the default of 15 it hangs at 64 callers: threads wait for
connections that are held by requests waiting for threads), and the quota block and audit buffer of the other rivals for reads.
"""

import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel, Field
from sqlalchemy import event, update
from sqlmodel import Session, create_engine, select

from benchmarks.rivals.esim import SMDP, new_esim, new_id
from benchmarks.rivals.ledger import ANY, BLOCK, LIMIT, READ, SCOPES, Caller, today
from benchmarks.rivals.models import (
    ApiKeyTable,
    AuditTable,
    ClaimTable,
    DeliveryTable,
    EventTable,
    IntentTable,
    MembershipTable,
    OrganisationTable,
    QuotaTable,
    WebhookEndpointTable,
)
from benchmarks.rivals.plans import PLANS
from benchmarks.rivals.routes import CREATE, operations
from benchmarks.rivals.routes import READ as GET
from benchmarks.rivals.sealing import Seal


class NewIntent(BaseModel):
    """The body of a POST."""

    model_config = {"extra": "forbid"}

    plan: str = Field(min_length=1, max_length=80)
    metadata: dict[str, str] = Field(default_factory=dict)


class Plan(BaseModel):
    """A plan."""

    id: str
    object: str
    name: str
    data_mb: int
    unlimited: bool
    validity_days: int
    countries: list[str]
    livemode: bool
    price: dict[str, Any] | None


class Esim(BaseModel):
    """A profile."""

    iccid: str
    activation_code: str
    qr_code: str
    smdp_address: str
    matching_id: str


class Intent(BaseModel):
    """The answer."""

    id: str
    object: str = "connectivity.intent"
    status: str
    livemode: bool
    plan: Plan
    esim: Esim
    metadata: dict[str, str]
    error: dict[str, str] | None
    created: int


class Books:
    """Leased quota and buffered audit rows of reads, shared by the pool's threads."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.lock, self.left, self.lines = engine, threading.Lock(), 0, list[AuditTable]()

    def lease(self, session: Session, caller: Caller) -> None:
        with self.lock:
            if self.left == 0:
                charge(session, caller, BLOCK)
                session.commit()
                self.left = BLOCK
            self.left -= 1

    def record(self, line: AuditTable) -> None:
        with self.lock:
            self.lines.append(line)

    def keep(self, stop: threading.Event) -> None:
        while not stop.wait(0.5):
            with self.lock:
                lines, self.lines = self.lines, []
            if lines:
                with Session(self.engine) as session:
                    session.add_all(lines)
                    session.commit()


def charge(session: Session, caller: Caller, cost: int) -> None:
    """Count calls; the limit stands in the statement."""
    day = (QuotaTable.organisation == caller.organisation) & (QuotaTable.period == today())
    found = session.exec(update(QuotaTable).where(day, QuotaTable.used <= LIMIT - cost).values(used=QuotaTable.used + cost))
    if found.rowcount == 0:
        if session.exec(select(QuotaTable).where(day)).first() is not None:
            raise HTTPException(429, "The daily quota is used up")
        session.add(QuotaTable(organisation=caller.organisation, period=today(), used=cost))


def member(session: Session, **by: Any) -> Caller | None:
    """The holder of a live key."""
    statement = select(ApiKeyTable, MembershipTable, OrganisationTable)
    statement = statement.where(
        *(getattr(ApiKeyTable, name) == value for name, value in by.items()),
        ApiKeyTable.revoked_at == None,  # noqa: E711
        MembershipTable.person_id == ApiKeyTable.person_id,
        MembershipTable.organisation_id == ApiKeyTable.organisation_id,
        OrganisationTable.id == MembershipTable.organisation_id,
    )
    row = session.exec(statement).first()
    if row is None or (row[0].expires_at is not None and row[0].expires_at <= time.time()):
        return None
    return Caller(row[0].id, row[1].person_id, row[1].organisation_id, SCOPES.get((row[2].tier, row[1].role), 15))


def line(caller: Caller, operation: str, status: int, started: float) -> AuditTable:
    """An audit row."""
    return AuditTable(
        at=time.time(),
        organisation=caller.organisation,
        surface="http",
        operation=operation,
        principal=caller.person,
        key_id=caller.key,
        outcome="ok",
        status=status,
        milliseconds=round((time.monotonic() - started) * 1000, 3),
        request_id=new_id("req_"),
    )


def make(data: Path) -> FastAPI:
    """The application."""
    seal = Seal(data / "keyring")
    engine = create_engine(f"sqlite:///{data / 'service.db'}", connect_args={"check_same_thread": False}, pool_size=64)

    @event.listens_for(engine, "connect")
    def durable(raw: Any, record: object) -> None:
        raw.execute("pragma journal_mode=wal")
        raw.execute("pragma synchronous=full")

    books, stop = Books(engine), threading.Event()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        threading.Thread(target=books.keep, args=[stop], daemon=True).start()
        yield
        stop.set()

    app = FastAPI(lifespan=lifespan)

    def get_session() -> Iterator[Session]:
        with Session(engine) as session:
            yield session

    SessionDep = Annotated[Session, Depends(get_session)]

    def get_caller(session: SessionDep, authorization: Annotated[str | None, Header()] = None) -> Caller:
        secret = (authorization or "").removeprefix("Bearer ")
        caller = member(session, digest=sha256(secret.encode()).digest()) if secret else None
        if caller is None:
            raise HTTPException(401, "The API key is missing, unknown, expired or revoked")
        return caller

    CallerDep = Annotated[Caller, Depends(get_caller)]

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    def read_intent(id: str, session: SessionDep, caller: CallerDep) -> Any:
        started = time.monotonic()
        if not caller.scopes & READ:
            raise HTTPException(402, "The tier does not carry this operation")
        books.lease(session, caller)
        row = session.exec(select(IntentTable).where(IntentTable.id == id, IntentTable.organisation == caller.organisation)).first()
        if row is None:
            raise HTTPException(404, "Your organisation has no intent with this id")
        assert row.esim is not None and row.iccid is not None and row.plan is not None
        code, address, matching = orjson.loads(seal.open(row.esim, row.organisation, f"esim|{row.id}"))
        books.record(line(caller, GET, 200, started))
        return Intent(
            id=row.id,
            status=row.status,
            livemode=bool(row.livemode),
            plan=Plan(**orjson.loads(row.plan)),
            esim=Esim(iccid=row.iccid, activation_code=code, qr_code=code, smdp_address=address, matching_id=matching),
            metadata=orjson.loads(row.details),
            error=None,
            created=row.created,
        )

    def create_intent(
        new: NewIntent, session: SessionDep, caller: CallerDep, idempotency_key: Annotated[str, Header(max_length=255)]
    ) -> Any:
        started, organisation = time.monotonic(), caller.organisation
        if not caller.scopes & ANY:
            raise HTTPException(402, "The tier does not carry this operation")
        if new.plan not in PLANS:
            raise HTTPException(404, "There is no such plan")
        fingerprint = sha256(orjson.dumps(new.model_dump(), option=orjson.OPT_SORT_KEYS)).digest()
        field = f"claim|{CREATE}|{idempotency_key}"
        claim = session.get(ClaimTable, (organisation, CREATE, idempotency_key))
        if claim is not None:
            if claim.fingerprint != fingerprint:
                raise HTTPException(409, "This idempotency key was used with other input")
            assert claim.body is not None
            return Intent.model_validate_json(seal.open(claim.body, organisation, field))
        esim, id, created = new_esim(), new_id("cni_"), int(time.time())
        profile = Esim(
            iccid=esim.iccid,
            activation_code=esim.activation_code,
            qr_code=esim.activation_code,
            smdp_address=SMDP,
            matching_id=esim.matching_id,
        )
        plan = Plan.model_validate(PLANS[new.plan])
        answer = Intent(
            id=id, status="succeeded", livemode=False, plan=plan, esim=profile, metadata=new.metadata, error=None, created=created
        )
        secret = orjson.dumps([esim.activation_code, SMDP, esim.matching_id])
        event_row = EventTable(
            id=new_id("evt_"),
            organisation=organisation,
            intent=id,
            type="esim.issued",
            livemode=0,
            data=orjson.dumps({"intent": id, "iccid": esim.iccid, "plan": new.plan}).decode(),
            dedup=f"issued|{id}",
            retry_minute=0,
            retry_count=0,
            created=created,
        )
        session.add(
            ClaimTable(
                organisation=organisation,
                operation=CREATE,
                key=idempotency_key,
                fingerprint=fingerprint,
                state="done",
                owner="rival",
                claimed=created,
                status=201,
                body=seal.close(answer.model_dump_json().encode(), organisation, field),
            )
        )
        session.flush()
        if member(session, id=caller.key) is None:
            raise HTTPException(401, "The credential has changed since the call began")
        charge(session, caller, 1)
        session.add(
            IntentTable(
                id=id,
                organisation=organisation,
                status="succeeded",
                livemode=0,
                plan_id=new.plan,
                plan=orjson.dumps(PLANS[new.plan]).decode(),
                details=orjson.dumps(new.metadata).decode(),
                iccid=esim.iccid,
                esim=seal.close(secret, organisation, f"esim|{id}"),
                used_bytes=0,
                notified_percent=0,
                created=created,
            )
        )
        session.add(event_row)
        enabled = (WebhookEndpointTable.organisation == organisation, WebhookEndpointTable.status == "enabled")
        for endpoint in session.exec(select(WebhookEndpointTable).where(*enabled)).all():
            due = created * 1000
            row = {"id": new_id("dlv_"), "event_id": event_row.id, "endpoint_id": endpoint.id, "organisation": organisation}
            session.add(DeliveryTable(**row, state=0, attempt=0, attempts=0, due_ms=due, created_ms=due))
        session.add(line(caller, CREATE, 201, started))
        session.commit()
        return answer

    def other(caller: CallerDep) -> Any:
        raise HTTPException(501, "Not offered here")

    for op in operations():
        if op.id == GET:
            app.get(op.path, response_model=Intent)(read_intent)
        elif op.id == CREATE:
            app.post(op.path, response_model=Intent, status_code=201)(create_intent)
        else:
            app.add_api_route(op.path, other, methods=[op.method], operation_id=op.id)
    return app
