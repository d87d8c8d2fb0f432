"""`reseller org`: organisations on the local database; how a deployment without demo data gets its first one."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from operations.services.people.addresses import is_address
from registry.ids import Ids
from registry.limits import Role, Tier
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.people.accounts import Organisation, add_member, create_organisation, create_person, list_organisations
from storage.people.accounts import set_tier as change_tier
from storage.people.directory import find_subject
from storage.people.people import find_by_address
from transports.cli.connect import assign, connect, connection_of, disconnect, unassign
from transports.cli.failure import Failure
from transports.cli.fee import set_fee
from transports.cli.local import open_local
from transports.cli.operator import done_here
from transports.cli.private_access import allow_private
from transports.cli.render import print_line
from transports.settings import load_settings

org_app = typer.Typer(
    no_args_is_help=True, help="Create and list organisations, change their tier and fee, connect them, say which account is theirs."
)
Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]
org_app.command("connect")(connect)
org_app.command("disconnect")(disconnect)
org_app.command("assign")(assign)
org_app.command("unassign")(unassign)
org_app.command("set-fee")(set_fee)
org_app.command("allow-private")(allow_private)


@org_app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What the organisation is called.")],
    tier: Annotated[Tier, typer.Option("--tier", help="What it may do.")] = Tier.FREE,
    email: Annotated[str | None, typer.Option("--email", help="Address of its admin.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="The admin's `sub` at the identity provider.")] = None,
    data: Data = None,
) -> None:
    """Create an organisation with one admin, and print its id; `reseller keys create` then makes it a key."""
    print_line(asyncio.run(write(data, name=name.strip(), tier=tier, email=email, subject=subject)))


@org_app.command("list")
def show(data: Data = None) -> None:
    """List organisations: id, tier, name, connection and assigned account."""
    for row in asyncio.run(read(data)):
        print_line("\t".join((row.id, row.tier, row.name, connection_of(row))))


@org_app.command("set-tier")
def set_tier(
    organisation: Annotated[str, typer.Argument(help="The organisation's id, org_...")],
    tier: Annotated[Tier, typer.Argument(help="Its new tier.")],
    data: Data = None,
) -> None:
    """Change what an organisation may do; a running server follows with the next call."""
    if not asyncio.run(change(data, organisation, tier)):
        raise Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)
    print_line(f"{organisation} is {tier}")


async def write(data: Path | None, *, name: str, tier: Tier, email: str | None, subject: str | None) -> str:
    """The organisation's id."""
    if not 1 <= len(name) <= 200:
        raise Failure("NAME: 1-200 characters")
    if email is not None and not is_address(email):
        raise Failure("--email: not an address that mails can be sent to; the admin signs in with it")
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data), create=True)
    try:
        now = service.clock.now()
        return await service.store.write(found, ids=service.ids, name=name, tier=tier, email=email, subject=subject, now=now)
    finally:
        await service.stop()


def found(connection: Connection, *, ids: Ids, name: str, tier: Tier, email: str | None, subject: str | None, now: float) -> str:
    """An organisation and its admin, in one transaction; an admin who is known by the provider's name or the address stays who they are."""
    known = find_subject(connection, subject=subject, organisation=None)[0] if subject else None
    if known is None and email is not None and subject is None:
        known = find_by_address(connection, address=email.lower())
    organisation, person = ids.new("org_"), known or ids.new("usr_")
    create_organisation(connection, id=organisation, name=name, tier=tier, now=now)
    create_person(connection, id=person, email=email, subject=subject, now=now)
    add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    return organisation


async def read(data: Path | None) -> list[Organisation]:
    """Every organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        return await service.store.read(list_organisations)
    finally:
        await service.stop()


async def change(data: Path | None, organisation: str, tier: Tier) -> bool:
    """Whether there was such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        row = done_here(service.ids, organisation=organisation, operation="org_set_tier", outcome=f"tier_{tier}", now=service.clock.now())
        return await service.store.write(change_and_record, organisation=organisation, tier=tier, row=row)
    finally:
        await service.stop()


def change_and_record(connection: Connection, *, organisation: str, tier: Tier, row: Line) -> bool:
    """The new tier, and the row that tells the organisation's admins of it."""
    changed = change_tier(connection, organisation=organisation, tier=tier)
    if changed:
        append_line(connection, row)
    return changed
