"""`reseller org`: organisations on the local database, their tier, fee and private receivers."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from operations.ledger.payment_accounts import PLATFORM_FEE_BPS_LIMIT
from operations.vocabulary import is_email
from registry.ids import Ids
from registry.limits import Role, Tier
from registry.ports import AuditRecord
from storage.audit import append_audit_record
from storage.directory import find_subject
from storage.engine.connection import Connection
from storage.memberships import add_member
from storage.organisations import Organisation, create_organisation, list_organisations, set_fee_bps, set_private_access
from storage.organisations import set_tier as change_tier
from storage.people import create_person, find_by_address
from transports.cli.org_connection import (
    assign_to_organisation,
    connect_organisation,
    connection_text,
    disconnect_organisation,
    unassign_from_organisation,
)
from transports.cli.render import print_line
from transports.cli.target import DatabaseOption, open_local, operator_audit_record
from transports.cli.terminal import Failure
from transports.settings_files import load_settings

DEFAULT_RATE = "default"


def set_org_fee(
    organisation: Annotated[str, typer.Argument(help="The organisation's id, org_...")],
    bps: Annotated[
        str, typer.Argument(metavar="BPS", help=f"Basis points, 0-{PLATFORM_FEE_BPS_LIMIT}: 150 is 1.5 %; `default`: that of all.")
    ],
    data: DatabaseOption = None,
) -> None:
    """Set the platform fee of one organisation; `default` gives it the one of all again, SERVICE_PLATFORM_FEE_BPS.

    A running server follows with the next invoice. Invoices that were made before keep the fee they were made with.
    """
    rate = parse_rate(bps)
    if not asyncio.run(change_fee(data, organisation, rate)):
        raise Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)
    print_line(f"{organisation} pays " + ("the platform fee of all" if rate is None else f"a platform fee of {rate} basis points"))


def parse_rate(text: str) -> int | None:
    """Basis points, or nothing for the rate of all."""
    if text == DEFAULT_RATE:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and int(text) <= PLATFORM_FEE_BPS_LIMIT):
        raise Failure(
            f"BPS: {text[:20]!r}; a whole number of basis points from 0 to {PLATFORM_FEE_BPS_LIMIT} (150 is 1.5 %), or `{DEFAULT_RATE}`"
        )
    return int(text)


async def change_fee(data: Path | None, organisation: str, rate: int | None) -> bool:
    """Whether there was such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        outcome = f"fee_{DEFAULT_RATE if rate is None else rate}"
        row = operator_audit_record(
            service.ids, organisation=organisation, operation="org_set_fee", outcome=outcome, now=service.clock.now()
        )
        return await service.store.write(change_fee_and_record, organisation=organisation, rate=rate, row=row)
    finally:
        await service.stop()


def change_fee_and_record(connection: Connection, *, organisation: str, rate: int | None, row: AuditRecord) -> bool:
    """The new rate, and the row that tells the organisation's admins of it."""
    changed = set_fee_bps(connection, organisation=organisation, bps=rate)
    if changed:
        append_audit_record(connection, row)
    return changed


def allow_private_receivers(
    organisation: Annotated[str, typer.Argument(help="The organisation's id, org_...")],
    off: Annotated[bool, typer.Option("--off", help="Take it back: what is inside is reached no more, from the next delivery on.")] = False,
    data: DatabaseOption = None,
) -> None:
    """Let webhooks of one organisation lead to the networks and hosts that SERVICE_WEBHOOK_PRIVATE names.

    For an organisation that you trust as much as what stands in these networks: it chooses the addresses there, and learns what answers.
    """
    if not asyncio.run(change_private_access(data, organisation, opened=not off)):
        raise Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)
    print_line(
        f"{organisation} " + ("has webhooks at public addresses only" if off else "may have webhooks where SERVICE_WEBHOOK_PRIVATE says")
    )


async def change_private_access(data: Path | None, organisation: str, *, opened: bool) -> bool:
    """Whether there was such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        outcome = "private_receivers_" + ("allowed" if opened else "ended")
        row = operator_audit_record(
            service.ids, organisation=organisation, operation="org_allow_private", outcome=outcome, now=service.clock.now()
        )
        return await service.store.write(change_private_access_and_record, organisation=organisation, opened=opened, row=row)
    finally:
        await service.stop()


def change_private_access_and_record(connection: Connection, *, organisation: str, opened: bool, row: AuditRecord) -> bool:
    """The change, and the row that tells the organisation's admins of it."""
    changed = set_private_access(connection, organisation=organisation, opened=opened)
    if changed:
        append_audit_record(connection, row)
    return changed


org_app = typer.Typer(
    no_args_is_help=True, help="Create and list organisations, change their tier and fee, connect them, say which account is theirs."
)
org_app.command("connect")(connect_organisation)
org_app.command("disconnect")(disconnect_organisation)
org_app.command("assign")(assign_to_organisation)
org_app.command("unassign")(unassign_from_organisation)
org_app.command("set-fee")(set_org_fee)
org_app.command("allow-private")(allow_private_receivers)


@org_app.command("create")
def create_org(
    name: Annotated[str, typer.Argument(help="What the organisation is called.")],
    tier: Annotated[Tier, typer.Option("--tier", help="What it may do.")] = Tier.FREE,
    email: Annotated[str | None, typer.Option("--email", help="Address of its admin.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="The admin's `sub` at the identity provider.")] = None,
    data: DatabaseOption = None,
) -> None:
    """Create an organisation with one admin, and print its id; `reseller keys create` then makes it a key."""
    print_line(asyncio.run(write_organisation(data, name=name.strip(), tier=tier, email=email, subject=subject)))


@org_app.command("list")
def list_orgs(data: DatabaseOption = None) -> None:
    """List organisations: id, tier, name, connection and assigned account."""
    for row in asyncio.run(read_organisations(data)):
        print_line("\t".join((row.id, row.tier, row.name, connection_text(row))))


@org_app.command("set-tier")
def set_org_tier(
    organisation: Annotated[str, typer.Argument(help="The organisation's id, org_...")],
    tier: Annotated[Tier, typer.Argument(help="Its new tier.")],
    data: DatabaseOption = None,
) -> None:
    """Change what an organisation may do; a running server follows with the next call."""
    if not asyncio.run(change_tier_of(data, organisation, tier)):
        raise Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)
    print_line(f"{organisation} is {tier}")


async def write_organisation(data: Path | None, *, name: str, tier: Tier, email: str | None, subject: str | None) -> str:
    """The organisation's id."""
    if not 1 <= len(name) <= 200:
        raise Failure("NAME: 1-200 characters")
    if email is not None and not is_email(email):
        raise Failure("--email: not an address that mails can be sent to; the admin signs in with it")
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data), create=True)
    try:
        now = service.clock.now()
        return await service.store.write(found_organisation, ids=service.ids, name=name, tier=tier, email=email, subject=subject, now=now)
    finally:
        await service.stop()


def found_organisation(
    connection: Connection, *, ids: Ids, name: str, tier: Tier, email: str | None, subject: str | None, now: float
) -> str:
    """An organisation and its admin, in one transaction; an admin who is known by the provider's name or the address stays who they are."""
    known = find_subject(connection, subject=subject, organisation=None)[0] if subject else None
    if known is None and email is not None and subject is None:
        known = find_by_address(connection, address=email.lower())
    organisation, person = ids.new("org_"), known or ids.new("usr_")
    create_organisation(connection, id=organisation, name=name, tier=tier, now=now)
    create_person(connection, id=person, email=email, subject=subject, now=now)
    add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    return organisation


async def read_organisations(data: Path | None) -> list[Organisation]:
    """Every organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        return await service.store.read(list_organisations)
    finally:
        await service.stop()


async def change_tier_of(data: Path | None, organisation: str, tier: Tier) -> bool:
    """Whether there was such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        row = operator_audit_record(
            service.ids, organisation=organisation, operation="org_set_tier", outcome=f"tier_{tier}", now=service.clock.now()
        )
        return await service.store.write(change_tier_and_record, organisation=organisation, tier=tier, row=row)
    finally:
        await service.stop()


def change_tier_and_record(connection: Connection, *, organisation: str, tier: Tier, row: AuditRecord) -> bool:
    """The new tier, and the row that tells the organisation's admins of it."""
    changed = change_tier(connection, organisation=organisation, tier=tier)
    if changed:
        append_audit_record(connection, row)
    return changed
