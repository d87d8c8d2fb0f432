"""`reseller keys`: make, list and revoke API keys on the local database, and change the key that seals what is in it."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import orjson
import typer

from operations.catalogue import CATALOGUE
from storage.keys import KeyRow, list_keys, revoke_key
from transports.cli.failure import Failure
from transports.cli.local import call_locally, local_caller, open_local
from transports.cli.rekey import rekey
from transports.cli.render import explain, print_line
from transports.settings import load_settings

keys_app = typer.Typer(no_args_is_help=True, help="Make, list and revoke API keys; seal stored secrets with a new key.")
Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]
Org = Annotated[str | None, typer.Option("--org", help="The organisation to act for, when there are several.")]
keys_app.command("rekey")(rekey)


@keys_app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What the key is for, 1-64 characters.")],
    days: Annotated[int | None, typer.Option("--days", min=1, max=365, help="Days until it expires; absent: never.")] = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Make a key; it is printed once and only its digest is kept."""
    arguments: dict[str, object] = {"name": name}
    if days:
        arguments["seconds_until_expiration"] = days * 86_400
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    reply = asyncio.run(
        call_locally(
            settings, CATALOGUE.operations["create_api_key"], arguments, organisation=org, idempotency_key=None, confirm_token=None
        )
    )
    if reply.status >= 400:
        raise Failure(explain(reply, "reseller keys create"), exit_code=1)
    print_line(orjson.loads(reply.body)["secret"])


@keys_app.command("list")
def show(org: Org = None, data: Data = None) -> None:
    """List keys: id, first characters, name, last day of use, state."""
    for row in asyncio.run(read(data, org)):
        print_line("\t".join((row.id, row.prefix + "...", row.name, row.last_used_day or "never used", state(row))))


@keys_app.command("revoke")
def revoke(key: Annotated[str, typer.Argument(help="The key's id, key_...")], org: Org = None, data: Data = None) -> None:
    """Revoke a key; a running server refuses it from the next call on."""
    if not asyncio.run(end(data, org, key)):
        raise Failure(f"{key}: no such key, or revoked already", exit_code=1)
    print_line(f"revoked {key}")


def state(row: KeyRow) -> str:
    """In words."""
    if row.revoked_at is not None:
        return "revoked"
    return "never expires" if row.expires_at is None else f"expires {datetime.fromtimestamp(row.expires_at, UTC):%Y-%m-%d}"


async def read(data: Path | None, org: str | None) -> list[KeyRow]:
    """The organisation's keys."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        caller = await local_caller(service, org)
        return await service.store.read(list_keys, organisation=caller.organisation)
    finally:
        await service.stop()


async def end(data: Path | None, org: str | None, key: str) -> bool:
    """Revoke and say whether there was anything to revoke."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        caller = await local_caller(service, org)
        return await service.store.write(revoke_key, key=key, organisation=caller.organisation, now=service.clock.now())
    finally:
        await service.stop()
