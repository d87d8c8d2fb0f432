"""`reseller org`: organisations on the local database: their tier, fee, private receivers, and connection to the charging system."""

import asyncio
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from operations.ledger.payment_accounts import PLATFORM_FEE_BPS_LIMIT
from operations.people.organisation_events import log_connection_change, log_member_added
from operations.setup.onboarding_connection import ConnectionReach, connection_change_text
from operations.vocabulary import is_email
from registry.caller import Role, Tier
from registry.errors import OcsError, Refusal
from registry.ids import Ids
from registry.ports import AuditRecord
from storage.audit import append_audit_record
from storage.directory import find_subject
from storage.engine.sql import Connection
from storage.organisations import (
    Organisation,
    add_member,
    count_change,
    create_organisation,
    list_organisations,
    set_fee_bps,
    set_private_access,
    set_tier,
)
from storage.people import create_person, find_by_address
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import assign_account, find_upstream, set_connection, unassign_account, use_own_token
from transports.cli.outside_checks import accounts_of_token, fix_of_refusal, reseller_of_token
from transports.cli.target import DatabaseOption, open_local, require_organisation, unknown_organisation, user_name
from transports.cli.terminal import Failure, command_settings, print_line
from transports.service import Service
from transports.settings import Settings
from transports.upstream import ocs_settings

Written = TypeVar("Written")

TOKEN_REFUSED = 8
MOST_NAMED = 20
LONGEST_ACCOUNT_NAME = 60
SIMULATED_NOTE = "without SERVICE_OCS_URL every process simulates a network of its own"
NO_TOKEN_NOTE = "no managed account is reached before SERVICE_OCS_TOKEN is set"
UNCHECKED_HINT = "nothing was changed; --unchecked does it without asking"


@dataclass(frozen=True, slots=True)
class ConnectionTarget:
    """What an organisation is to be connected to: an account, the reseller of a token, or nothing."""

    account: int | None = None
    token: str | None = field(default=None, repr=False)


async def check_connection(settings: Settings, target: ConnectionTarget) -> None:
    """Raises Failure for what the charging system does not know. What cannot be asked is reported on stderr and accepted."""
    own = settings.ocs_token.get_secret_value()
    if not settings.ocs_url:
        sys.stderr.write(f"{connection_subject(target)} was not checked: {SIMULATED_NOTE}\n")
    elif target.token is not None:
        await check_token(settings, target.token)
    elif not own:
        sys.stderr.write(f"{connection_subject(target)} was not checked: {NO_TOKEN_NOTE}\n")
    else:
        await check_account(settings, own, target.account)


def connection_subject(target: ConnectionTarget) -> str:
    return "the token" if target.account is None else f"account {target.account}"


async def check_token(settings: Settings, token: str) -> None:
    """Raises Failure unless `token` belongs to a reseller."""
    try:
        await reseller_of_token(ocs_settings(settings), token)
    except Refusal as refusal:
        if isinstance(refusal, OcsError) and refusal.ocs_code == TOKEN_REFUSED:
            fix = "give the token that the provider gave the organisation, and see that SERVICE_OCS_AUTH is the way it takes it"
            raise Failure(f"standard input: {refusal.message} Fix: {fix}; {UNCHECKED_HINT}", exit_code=1) from None
        raise unasked_failure(settings, refusal) from None


async def check_account(settings: Settings, token: str, account: int | None) -> None:
    """Raises Failure unless the service's token sees `account`."""
    try:
        known = await accounts_of_token(ocs_settings(settings), token)
    except Refusal as refusal:
        raise unasked_failure(settings, refusal) from None
    if account not in known:
        raise Failure(f"--account {account}: SERVICE_OCS_TOKEN sees no such account, {account_list(known)}; {UNCHECKED_HINT}", exit_code=1)


def unasked_failure(settings: Settings, refusal: Refusal) -> Failure:
    """The failure when the charging system did not answer as it should."""
    return Failure(f"{settings.ocs_url}: {refusal.message} Fix: {fix_of_refusal(refusal)}; {UNCHECKED_HINT}", exit_code=3)


def account_list(known: dict[int, str]) -> str:
    """The known accounts; names come from the provider and are shown without control characters."""
    if not known:
        return "nor any other"
    shown = [f"{id} ({''.join(c if c.isprintable() else '?' for c in name[:LONGEST_ACCOUNT_NAME])})" for id, name in known.items()][
        :MOST_NAMED
    ]
    more = len(known) - len(shown)
    return f"only {', '.join(shown)}" + (f" and {more} more" if more else "")


OrganisationArgument = Annotated[str, typer.Argument(help="The organisation's id, org_...")]
UncheckedOption = Annotated[bool, typer.Option("--unchecked", help="Do not ask the charging system whether it is there.")]
LARGEST_ACCOUNT_ID = 2**53 - 1
LONGEST_TOKEN = 1024
TOKEN_PATTERN = re.compile(rf"[!-~]{{1,{LONGEST_TOKEN}}}")


def connect_organisation(
    organisation: OrganisationArgument,
    account: Annotated[int | None, typer.Option("--account", min=1, max=LARGEST_ACCOUNT_ID, help="Managed: id of its sub-account.")] = None,
    own_token_stdin: Annotated[bool, typer.Option("--own-token-stdin", help="Its own token, read from standard input.")] = False,
    unchecked: UncheckedOption = False,
    data: DatabaseOption = None,
) -> None:
    """Connect an organisation: to a sub-account of the service's reseller, or with a token of its own.

    Where SERVICE_OCS_URL names a charging system, it is asked whether it knows the account or the token. A running server follows with the
    next call. The token is kept sealed, and never given as an argument: arguments can be read by others. An account is assigned to the
    organisation as well, so that it finds back to it from a token of its own. A token that another one replaces is kept for 24 hours, in
    which the organisation's admins can go back to it. The audit log of the organisation tells of the change.
    """
    if (account is None) is not own_token_stdin:
        raise Failure("give either --account ID or --own-token-stdin, and not both")
    target = ConnectionTarget(account, read_own_token() if own_token_stdin else None)
    asyncio.run(store_connection(data, organisation, target, checked=not unchecked))
    print_line(f"{organisation} is connected " + (f"to account {account}" if target.token is None else "with its own token"))


def disconnect_organisation(organisation: OrganisationArgument, data: DatabaseOption = None) -> None:
    """Disconnect an organisation from the charging system; its token is forgotten, and what account it was assigned.

    A running server follows with the next call.
    """
    asyncio.run(store_connection(data, organisation, ConnectionTarget(), checked=False))
    print_line(f"{organisation} is not connected")


def assign_to_organisation(
    organisation: OrganisationArgument,
    account: Annotated[int, typer.Option("--account", min=1, max=LARGEST_ACCOUNT_ID, help="Id of the sub-account that was opened for it.")],
    unchecked: UncheckedOption = False,
    data: DatabaseOption = None,
) -> None:
    """Say which sub-account is an organisation's; its members then connect it themselves, in their onboarding.

    Where SERVICE_OCS_URL names a charging system, it is asked whether it knows the account. One that another organisation has is refused:
    it would belong to neither.
    """
    asyncio.run(give_account(data, organisation, account, checked=not unchecked))
    print_line(f"{organisation} is assigned account {account}; POST /v1/onboarding/managed-account connects it")


def unassign_from_organisation(organisation: OrganisationArgument, data: DatabaseOption = None) -> None:
    """Take back which sub-account is an organisation's. One that is connected stays connected: `reseller org disconnect` ends that."""
    write = partial(unassign_account, organisation=organisation)
    asyncio.run(change_organisation(data, organisation, "org_unassign", "ok", write, "assigned no account"))
    print_line(f"{organisation} is assigned no account")


def connection_text(row: Organisation) -> str:
    assigned, own = row.assigned_account_id, "own token" if row.mode == "own" else "not connected"
    shown = f"managed, account {row.account_id}" if row.mode == "managed" else own
    return shown if assigned is None or (row.mode, row.account_id) == ("managed", assigned) else f"{shown}, assigned account {assigned}"


def read_own_token() -> str:
    """The token without its line end; a person types it without echo. A refusal never repeats it."""
    try:
        text = typer.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read(LONGEST_TOKEN + 3)
    except UnicodeDecodeError:
        text = "not text"
    token = str(text).removesuffix("\n").removesuffix("\r")
    if not token:
        raise Failure("standard input: no token there; for example: reseller org connect ORG --own-token-stdin < token.txt")
    if TOKEN_PATTERN.fullmatch(token) is None:
        raise Failure(
            f"standard input: a token is 1-{LONGEST_TOKEN} visible ASCII characters in one line; "
            f"this one is longer, or has spaces, control or other characters"
        )
    return token


async def store_connection(data: Path | None, organisation: str, target: ConnectionTarget, *, checked: bool) -> None:
    """Store the connection, its token sealed. An unknown organisation changes nothing, and the charging system is not asked about it."""
    settings = command_settings(data=data)
    async with open_local(settings) as service:
        await require_organisation(service, organisation)
        if checked:
            await check_connection(settings, target)
        keyring = service.pipeline.deps.keyring
        sealed = None if target.token is None else keyring.seal(target.token, org_id=organisation, field=OWN_TOKEN_FIELD)
        after = ConnectionReach(connection_mode(target), target.account)
        row = operator_audit_record(service, organisation, "org_disconnect" if after.mode is None else "org_connect")
        await service.store.write(
            change_connection_and_record, organisation=organisation, after=after, sealed=sealed, ids=service.ids, row=row
        )


def change_connection_and_record(
    connection: Connection, *, organisation: str, after: ConnectionReach, sealed: str | None, ids: Ids, row: AuditRecord
) -> None:
    """Stores the new connection, and the audit row that tells the organisation's admins."""
    count_change(connection)
    before = find_upstream(connection, organisation=organisation)
    if before is None:
        return
    if sealed is not None:
        use_own_token(connection, organisation=organisation, own_token=sealed, simulated=False, seen=before, now=row.at)
    else:
        set_connection(connection, organisation=organisation, mode=after.mode, account_id=after.account, own_token=None)
    log_connection_change(connection, organisation=organisation, before=before, ids=ids, now=row.at)
    append_audit_record(connection, row._replace(change=connection_change_text(ConnectionReach(before.mode, before.account_id), after)))


async def give_account(data: Path | None, organisation: str, account: int, *, checked: bool) -> None:
    """Assigns the account. Raises Failure if another organisation has it."""
    settings = command_settings(data=data)
    async with open_local(settings) as service:
        await require_organisation(service, organisation)
        if checked:
            await check_connection(settings, ConnectionTarget(account))
        row = operator_audit_record(service, organisation, "org_assign", change=f"assigned managed account {account}")
        write = partial(assign_account, organisation=organisation, account_id=account)
        found = await service.store.write(write_and_record, write=write, row=row)
    if found == "unknown":
        raise unknown_organisation(organisation)
    if found != "assigned":
        fix = f"`reseller org disconnect {found.id}` frees it, or `unassign` where that one is connected in another way"
        raise Failure(f"--account {account}: {found.id} has it; {fix}", exit_code=1)


async def change_organisation(
    data: Path | None, organisation: str, operation: str, outcome: str, write: Callable[[Connection], bool], change: str | None = None
) -> None:
    """Run `write` in one transaction with the audit row of `operation`; a `Failure` where `write` finds no such organisation."""
    async with open_local(command_settings(data=data)) as service:
        row = operator_audit_record(service, organisation, operation, outcome, change)
        changed = await service.store.write(write_and_record, write=write, row=row)
    if not changed:
        raise unknown_organisation(organisation)


def write_and_record(connection: Connection, *, write: Callable[[Connection], Written], row: AuditRecord) -> Written:
    """What `write` says; if that is True or "assigned", it is stored with the row that tells the organisation's admins of the change."""
    said = write(connection)
    if said in (True, "assigned"):
        append_audit_record(connection, row)
    return said


NAMELESS_OPERATOR = "operator"


def operator_audit_record(
    service: Service, organisation: str, operation: str, outcome: str = "ok", change: str | None = None
) -> AuditRecord:
    """The audit row of a change that is not a call. `change`: what it changed about the receivers of money or SIMs."""
    who, request = user_name() or NAMELESS_OPERATOR, service.ids.new("req_")
    return AuditRecord(service.clock.now(), organisation, "cli", operation, who, "", outcome, 200, 0.0, request, change)


def connection_mode(target: ConnectionTarget) -> str | None:
    """The mode as the database names it; None: not connected."""
    if target.token is not None:
        return "own"
    return None if target.account is None else "managed"


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
    outcome, write = f"fee_{DEFAULT_RATE if rate is None else rate}", partial(set_fee_bps, organisation=organisation, bps=rate)
    asyncio.run(change_organisation(data, organisation, "org_set_fee", outcome, write))
    print_line(f"{organisation} pays " + ("the platform fee of all" if rate is None else f"a platform fee of {rate} basis points"))


def parse_rate(text: str) -> int | None:
    """Basis points; None for the default rate. Raises Failure."""
    if text == DEFAULT_RATE:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and int(text) <= PLATFORM_FEE_BPS_LIMIT):
        raise Failure(
            f"BPS: {text[:20]!r}; a whole number of basis points from 0 to {PLATFORM_FEE_BPS_LIMIT} (150 is 1.5 %), or `{DEFAULT_RATE}`"
        )
    return int(text)


def allow_private_receivers(
    organisation: Annotated[str, typer.Argument(help="The organisation's id, org_...")],
    off: Annotated[bool, typer.Option("--off", help="Take it back: what is inside is reached no more, from the next delivery on.")] = False,
    data: DatabaseOption = None,
) -> None:
    """Let webhooks of one organisation lead to the networks and hosts that SERVICE_WEBHOOK_PRIVATE names.

    For an organisation that you trust as much as what stands in these networks: it chooses the addresses there, and learns what answers.
    """
    outcome = "private_receivers_" + ("ended" if off else "allowed")
    write = partial(set_private_access, organisation=organisation, opened=not off)
    asyncio.run(change_organisation(data, organisation, "org_allow_private", outcome, write))
    print_line(
        f"{organisation} " + ("has webhooks at public addresses only" if off else "may have webhooks where SERVICE_WEBHOOK_PRIVATE says")
    )


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
    write = partial(set_tier, organisation=organisation, tier=tier)
    asyncio.run(change_organisation(data, organisation, "org_set_tier", f"tier_{tier}", write))
    print_line(f"{organisation} is {tier}")


async def write_organisation(data: Path | None, *, name: str, tier: Tier, email: str | None, subject: str | None) -> str:
    if not 1 <= len(name) <= 200:
        raise Failure("NAME: 1-200 characters")
    if email is not None and not is_email(email):
        raise Failure("--email: not an address that mails can be sent to; the admin signs in with it")
    async with open_local(command_settings(data=data), create=True) as service:
        now = service.clock.now()
        return await service.store.write(found_organisation, ids=service.ids, name=name, tier=tier, email=email, subject=subject, now=now)


def found_organisation(
    connection: Connection, *, ids: Ids, name: str, tier: Tier, email: str | None, subject: str | None, now: float
) -> str:
    """Makes an organisation and its admin in one transaction; an admin who is known by subject or address keeps the id. Returns its id."""
    known = find_subject(connection, subject=subject, organisation=None)[0] if subject else None
    if known is None and email is not None and subject is None:
        known = find_by_address(connection, address=email.lower())
    organisation, person = ids.new("org_"), known or ids.new("usr_")
    create_organisation(connection, id=organisation, name=name, tier=tier, now=now)
    create_person(connection, id=person, email=email, subject=subject, now=now)
    add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    log_member_added(connection, organisation=organisation, person=person, role=Role.ADMIN, ids=ids, now=now)
    return organisation


async def read_organisations(data: Path | None) -> list[Organisation]:
    async with open_local(command_settings(data=data)) as service:
        return await service.store.read(list_organisations)
