"""A way to the service that stays open for many calls: the local database, or a server elsewhere."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import typer

from clients.http import Outbound
from operations.catalogue import CATALOGUE
from registry.call import Reply
from registry.errors import StoreUnavailable
from transports.cli.failure import Failure, Unreachable
from transports.cli.local import ask_locally, is_simulated, open_local, refuse_simulated
from transports.cli.remote import exchange
from transports.cli.render import explain
from transports.cli.secret_option import warn_of_argument
from transports.service import Service
from transports.settings import load_settings

Url = Annotated[str | None, typer.Option("--url", envvar="RESELLER_URL", help="Ask this server; without it, the local database.")]
Key = Annotated[
    str | None,
    typer.Option("--key", envvar="RESELLER_API_KEY", callback=warn_of_argument, help="API key for --url; else your login there."),
]
Org = Annotated[str | None, typer.Option("--org", help="Locally: the organisation to act for.")]
Data = Annotated[Path | None, typer.Option("--data", help="Locally: the directory with the database.")]


@dataclass(frozen=True, slots=True)
class Where:
    """Whom to ask, and as whom."""

    url: str | None = None
    key: str | None = None
    org: str | None = None
    data: Path | None = None


class Door(Protocol):
    """Makes calls."""

    @property
    def name(self) -> str:
        """Where it leads, for the person at the terminal."""
        ...

    async def ask(
        self, operation: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None, credential: str | None = None
    ) -> Reply:
        """One call; `credential` stands in for the key where another one is asked for."""
        ...


@dataclass(frozen=True, slots=True)
class There:
    """A server elsewhere; connections are kept."""

    url: str
    key: str | None
    outbound: Outbound

    @property
    def name(self) -> str:
        return self.url

    async def ask(
        self, operation: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None, credential: str | None = None
    ) -> Reply:
        found, key = CATALOGUE.operations[operation], credential or self.key
        return await exchange(self.outbound, self.url, key, found, arguments, idempotency_key=idempotency_key, confirm_token=None)


@dataclass(frozen=True, slots=True)
class Here:
    """The local database; whoever may write it is trusted, also as the bridge."""

    service: Service
    organisation: str | None

    @property
    def name(self) -> str:
        return "the local database"

    async def ask(
        self, operation: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None, credential: str | None = None
    ) -> Reply:
        del credential
        found = CATALOGUE.operations[operation]
        if is_simulated(found, self.service.settings):
            refuse_simulated(found)
        await self.service.flush()  # a command that follows for hours keeps its lease and its audit rows current
        try:
            return await ask_locally(
                self.service, found, arguments, organisation=self.organisation, idempotency_key=idempotency_key, confirm_token=None
            )
        except StoreUnavailable as error:  # before there was a call: the caller is read from the same database
            raise Unreachable(f"the database does not answer: {error.message}", exit_code=3) from None


@asynccontextmanager
async def open_door(where: Where) -> AsyncGenerator[Door]:
    """The way there, closed when the block ends."""
    require_one_place(where.url, where.org, where.data)
    if where.url:
        outbound = Outbound()
        try:
            yield There(where.url, where.key, outbound)
        finally:
            await outbound.aclose()
        return
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=where.data))
    try:
        yield Here(service, where.org)
    finally:
        await service.stop()


def require_one_place(url: str | None, org: str | None, data: Path | None) -> None:
    """Refuse a server together with what is for the local database: one of them would be passed over in silence."""
    local = [name for name, value in (("--org", org), ("--data", data)) if value is not None]
    if url and local:
        raise Failure(
            f"{' and '.join(local)}: for the local database, and {url} is to be asked (--url or RESELLER_URL), where the key says for "
            f"whom; leave {' and '.join(local)} out, or unset RESELLER_URL",
            exit_code=2,
        )


def accepted(reply: Reply, command: str) -> Reply:
    """The answer, or the refusal as a failure of the command."""
    if reply.status == 202 or reply.status >= 400:
        raise Failure(explain(reply, command), exit_code=3 if reply.status >= 500 else 1)
    return reply
