"""`reseller org connect`, `disconnect`, `assign` and `unassign`: how an organisation reaches the charging system."""

import asyncio
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import typer

from operations.setup.onboarding_connection import ConnectionReach, connection_change_text
from registry.errors import OcsError, Refusal
from registry.ports import AuditRecord
from storage.audit import append_audit_record
from storage.change_counters import CALLERS, count_change
from storage.engine.connection import Connection
from storage.organisations import Organisation, list_organisations
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import AccountHolder, assign_account, find_upstream, set_connection, unassign_account, use_own_token
from transports.cli.outside_checks import accounts_of_token, fix_of_refusal, reseller_of_token
from transports.cli.render import print_line
from transports.cli.target import DatabaseOption, open_local, operator_audit_record
from transports.cli.terminal import Failure
from transports.settings import Settings
from transports.settings_files import load_settings
from transports.upstream import ocs_settings

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


async def check_connection(settings: Settings, wanted: ConnectionTarget) -> None:
    """Refuse what the charging system does not know. What cannot be asked here is told on stderr and taken as it is."""
    own = settings.ocs_token.get_secret_value()
    if not settings.ocs_url:
        sys.stderr.write(f"{connection_subject(wanted)} was not checked: {SIMULATED_NOTE}\n")
    elif wanted.token is not None:
        await check_token(settings, wanted.token)
    elif not own:
        sys.stderr.write(f"{connection_subject(wanted)} was not checked: {NO_TOKEN_NOTE}\n")
    else:
        await check_account(settings, own, wanted.account)


def connection_subject(wanted: ConnectionTarget) -> str:
    """In words."""
    return "the token" if wanted.account is None else f"account {wanted.account}"


async def check_token(settings: Settings, token: str) -> None:
    """Whether it belongs to a reseller."""
    try:
        await reseller_of_token(ocs_settings(settings), token)
    except Refusal as refusal:
        if isinstance(refusal, OcsError) and refusal.ocs_code == TOKEN_REFUSED:
            fix = "give the token that the provider gave the organisation, and see that SERVICE_OCS_AUTH is the way it takes it"
            raise Failure(f"standard input: {refusal.message} Fix: {fix}; {UNCHECKED_HINT}", exit_code=1) from None
        raise unasked_failure(settings, refusal) from None


async def check_account(settings: Settings, token: str, account: int | None) -> None:
    """Whether the service's token sees the account."""
    try:
        known = await accounts_of_token(ocs_settings(settings), token)
    except Refusal as refusal:
        raise unasked_failure(settings, refusal) from None
    if account not in known:
        raise Failure(f"--account {account}: SERVICE_OCS_TOKEN sees no such account, {account_list(known)}; {UNCHECKED_HINT}", exit_code=1)


def unasked_failure(settings: Settings, refusal: Refusal) -> Failure:
    """It did not answer as it should."""
    return Failure(f"{settings.ocs_url}: {refusal.message} Fix: {fix_of_refusal(refusal)}; {UNCHECKED_HINT}", exit_code=3)


def account_list(known: dict[int, str]) -> str:
    """The accounts there are; names are the provider's words and are shown without what a terminal would obey."""
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
    wanted = ConnectionTarget(account, read_own_token() if own_token_stdin else None)
    change_connection(data, organisation, wanted, checked=not unchecked)
    print_line(f"{organisation} is connected " + (f"to account {account}" if wanted.token is None else "with its own token"))


def disconnect_organisation(organisation: OrganisationArgument, data: DatabaseOption = None) -> None:
    """Disconnect an organisation from the charging system; its token is forgotten, and what account it was assigned.

    A running server follows with the next call.
    """
    change_connection(data, organisation, ConnectionTarget(), checked=False)
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
    if not asyncio.run(take_account_back(data, organisation)):
        raise unknown_organisation(organisation)
    print_line(f"{organisation} is assigned no account")


def connection_text(row: Organisation) -> str:
    """In words."""
    assigned, own = row.assigned_account_id, "own token" if row.mode == "own" else "not connected"
    shown = f"managed, account {row.account_id}" if row.mode == "managed" else own
    return shown if assigned is None or (row.mode, row.account_id) == ("managed", assigned) else f"{shown}, assigned account {assigned}"


def read_own_token() -> str:
    """The token without the end of its line; asked for without echo where a person sits. A refusal never repeats it."""
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


def change_connection(data: Path | None, organisation: str, wanted: ConnectionTarget, *, checked: bool) -> None:
    """Store the connection, the token sealed."""
    if not asyncio.run(store_connection(data, organisation, wanted, checked=checked)):
        raise unknown_organisation(organisation)


def unknown_organisation(organisation: str) -> Failure:
    """There is none with this id."""
    return Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)


async def store_connection(data: Path | None, organisation: str, wanted: ConnectionTarget, *, checked: bool) -> bool:
    """Whether there is such an organisation; one that is not there changes nothing, and the charging system is not asked."""
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    service = await open_local(settings)
    try:
        known = {row.id for row in await service.store.read(list_organisations)}
        if organisation not in known:
            return False
        if checked:
            await check_connection(settings, wanted)
        keyring = service.pipeline.deps.keyring
        sealed = None if wanted.token is None else keyring.seal(wanted.token, org_id=organisation, field=OWN_TOKEN_FIELD)
        after, now = ConnectionReach(connection_mode(wanted), wanted.account), service.clock.now()
        operation = "org_disconnect" if after.mode is None else "org_connect"
        row = operator_audit_record(service.ids, organisation=organisation, operation=operation, outcome="ok", now=now)
        await service.store.write(change_connection_and_record, organisation=organisation, after=after, sealed=sealed, row=row)
        return True
    finally:
        await service.stop()


def change_connection_and_record(
    connection: Connection, *, organisation: str, after: ConnectionReach, sealed: str | None, row: AuditRecord
) -> None:
    """The new connection, and the row that tells the organisation's admins of it."""
    count_change(connection, name=CALLERS)
    before = find_upstream(connection, organisation=organisation)
    if before is None:
        return
    if sealed is not None:
        use_own_token(connection, organisation=organisation, own_token=sealed, simulated=False, seen=before, now=row.at)
    else:
        set_connection(connection, organisation=organisation, mode=after.mode, account_id=after.account, own_token=None)
    append_audit_record(connection, row._replace(change=connection_change_text(ConnectionReach(before.mode, before.account_id), after)))


async def give_account(data: Path | None, organisation: str, account: int, *, checked: bool) -> None:
    """Assign the account, unless another organisation has it."""
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    service = await open_local(settings)
    try:
        if organisation not in {row.id for row in await service.store.read(list_organisations)}:
            raise unknown_organisation(organisation)
        if checked:
            await check_connection(settings, ConnectionTarget(account))
        change, now = f"assigned managed account {account}", service.clock.now()
        row = operator_audit_record(service.ids, organisation=organisation, operation="org_assign", outcome="ok", now=now, change=change)
        found = await service.store.write(assign_and_record, organisation=organisation, account_id=account, row=row)
    finally:
        await service.stop()
    if found == "unknown":
        raise unknown_organisation(organisation)
    if found != "assigned":
        fix = f"`reseller org disconnect {found.id}` frees it, or `unassign` where that one is connected in another way"
        raise Failure(f"--account {account}: {found.id} has it; {fix}", exit_code=1)


def assign_and_record(
    connection: Connection, *, organisation: str, account_id: int, row: AuditRecord
) -> Literal["assigned", "unknown"] | AccountHolder:
    """The assignment, and the row that tells the organisation's admins of it."""
    found = assign_account(connection, organisation=organisation, account_id=account_id)
    if found == "assigned":
        append_audit_record(connection, row)
    return found


def unassign_and_record(connection: Connection, *, organisation: str, row: AuditRecord) -> bool:
    """No assignment any more, and the row that tells the organisation's admins of it."""
    unassigned = unassign_account(connection, organisation=organisation)
    if unassigned:
        append_audit_record(connection, row)
    return unassigned


async def take_account_back(data: Path | None, organisation: str) -> bool:
    """Whether there is such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        change, now = "assigned no account", service.clock.now()
        row = operator_audit_record(service.ids, organisation=organisation, operation="org_unassign", outcome="ok", now=now, change=change)
        return await service.store.write(unassign_and_record, organisation=organisation, row=row)
    finally:
        await service.stop()


def connection_mode(wanted: ConnectionTarget) -> str | None:
    """As the database names it; None: not connected."""
    if wanted.token is not None:
        return "own"
    return None if wanted.account is None else "managed"
