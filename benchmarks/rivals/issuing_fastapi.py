"""Issuing as one writes it with FastAPI, httpx and SQLAlchemy: a claim row is committed before the call, its answer after it.

No quota, audit row, event, sealing, look at the stock or reconciliation; a claim whose process died stays for ever.
"""

import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

METHOD = "affectPackageToSubscriber"
CALLER = text(
    "select k.organisation_id, o.account_id from api_key k join organisation o on o.id = k.organisation_id"
    " where k.digest = :digest and k.revoked_at is null and (k.expires_at is null or k.expires_at > :now)"
)


class Base(DeclarativeBase):
    """The rival's own tables."""


class Claim(Base):
    """One key of an organisation, and what was answered."""

    __tablename__ = "rival_claim"

    organisation: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    state: Mapped[str]
    body: Mapped[str | None]


class Order(BaseModel):
    """The body of a POST."""

    model_config = ConfigDict(extra="forbid")

    accountId: int = Field(ge=1)
    packageTemplateId: int = Field(ge=1)
    validityPeriod: int = Field(ge=1, le=3650)


class Esim(BaseModel):
    """What was drawn."""

    iccid: str
    smdpServer: str | None = None
    activationCode: str | None = None
    urlQrCode: str | None = None
    subscriberId: int | None = None
    esimId: int | None = None
    subsPackageId: int
    userSimName: str | None = None
    idempotencyKey: str
    status: str = "issued"


class Issued(BaseModel):
    """The answer."""

    data: Esim


def sessions(path: Path) -> "sessionmaker[Session]":
    """Sessions of the file, with the durability of the service."""
    engine = create_engine(f"sqlite:///{path}", pool_size=64, connect_args={"timeout": 60})

    @event.listens_for(engine, "connect")
    def durable(raw: Any, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]  # SQLAlchemy calls it
        raw.execute("pragma journal_mode=wal")
        raw.execute("pragma synchronous=full")

    Base.metadata.create_all(engine)
    return sessionmaker(engine)


class Claims:
    """The idempotency table."""

    def __init__(self, make: "sessionmaker[Session]") -> None:
        self._make = make

    def caller(self, secret: str) -> tuple[str, int]:
        """Whose key it is."""
        with self._make() as session:
            row = session.execute(CALLER, {"digest": hashlib.sha256(secret.encode()).digest(), "now": time.time()}).first()
        if row is None:
            raise HTTPException(401, "unknown key")
        return row[0], row[1]

    def claim(self, organisation: str, key: str, fingerprint: str) -> str | None:
        """Take the key, and commit; the stored answer when it was used before."""
        with self._make() as session:
            session.add(Claim(organisation=organisation, key=key, fingerprint=fingerprint, state="dispatching", body=None))
            try:
                session.commit()
            except IntegrityError:
                session.rollback()
            else:
                return None
            found = session.get_one(Claim, (organisation, key))
            if found.fingerprint != fingerprint or found.body is None:
                raise HTTPException(409, "the key was used with other input, or its outcome is not known")
            return found.body

    def finish(self, organisation: str, key: str, state: str, body: str | None) -> None:
        """Keep what came of it, and commit."""
        with self._make() as session:
            found = session.get_one(Claim, (organisation, key))
            found.state, found.body = state, body
            session.commit()


def application(data: Path, *, keyed: bool) -> FastAPI:
    """The server; `keyed` False leaves the idempotency out."""
    claims = Claims(sessions(data / "service.db"))
    address = f"{os.environ['SERVICE_OCS_URL']}?token={os.environ['SERVICE_OCS_TOKEN']}"

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with httpx.AsyncClient() as client:
            app.state.client = client
            yield

    app = FastAPI(lifespan=lifespan)

    def authenticated(authorization: Annotated[str, Header()] = "") -> tuple[str, int]:
        return claims.caller(authorization.removeprefix("Bearer "))

    @app.get("/health")
    async def health() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]  # a route
        return {"status": "ok"}

    @app.post("/v1/subscribers/issue-from-inventory", status_code=201, response_model=Issued)
    async def issue(  # pyright: ignore[reportUnusedFunction]  # a route
        order: Order,
        request: Request,
        caller: Annotated[tuple[str, int], Depends(authenticated)],
        x_idempotency_key: Annotated[str, Header(min_length=1, max_length=255)],
    ) -> Any:
        organisation, account = caller
        if order.accountId != account:
            raise HTTPException(404, "not your account")
        if keyed:
            fingerprint = hashlib.sha256(json.dumps(order.model_dump(), sort_keys=True).encode()).hexdigest()
            stored = await run_in_threadpool(claims.claim, organisation, x_idempotency_key, fingerprint)
            if stored is not None:
                return JSONResponse(json.loads(stored), 201)
        try:
            drawn = await draw(request.app.state.client, address, order)
        except (httpx.HTTPError, KeyError, ValueError):
            if keyed:
                await run_in_threadpool(claims.finish, organisation, x_idempotency_key, "unknown", None)
            raise HTTPException(502, "the outcome is not known") from None
        answer = Issued(data=Esim(**drawn, idempotencyKey=x_idempotency_key))
        if keyed:
            await run_in_threadpool(claims.finish, organisation, x_idempotency_key, "done", answer.model_dump_json())
        return answer

    return app


async def draw(client: httpx.AsyncClient, address: str, order: Order) -> dict[str, Any]:
    """The call."""
    params = {
        "packageTemplateId": order.packageTemplateId,
        "accountForSubs": order.accountId,
        "validityPeriod": order.validityPeriod,
    }
    answer = (await client.post(address, json={METHOD: params})).raise_for_status().json()
    if answer["status"]["code"]:
        raise ValueError("refused")
    return answer[METHOD]


def make(data: Path) -> FastAPI:
    """With idempotency."""
    return application(data, keyed=True)
