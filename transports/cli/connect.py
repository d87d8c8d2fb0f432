"""`reseller org connect`, `disconnect`, `assign` and `unassign`: how an organisation reaches the charging system."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from operations.services.people.connection_change import Reach, change_of
from registry.ports import Line
from storage.calls.audit import append_line
from storage.calls.changes import CALLERS, bump
from storage.connection import Connection
from storage.network.connections import find_connection
from storage.people.accounts import (
    Holder,
    Organisation,
    assign_account,
    list_organisations,
    set_connection,
    unassign_account,
    use_own_token,
)
from storage.secrets.sealed_fields import OWN_TOKEN_FIELD
from transports.cli.connect_check import Wanted, check
from transports.cli.failure import Failure
from transports.cli.local import open_local
from transports.cli.operator import done_here
from transports.cli.render import print_line
from transports.settings import load_settings

Org = Annotated[str, typer.Argument(help="The organisation's id, org_...")]
Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]
Unchecked = Annotated[bool, typer.Option("--unchecked", help="Do not ask the charging system whether it is there.")]
MOST_ACCOUNT = 2**53 - 1
LONGEST_TOKEN = 1024
TOKEN = re.compile(rf"[!-~]{{1,{LONGEST_TOKEN}}}")


def connect(
    organisation: Org,
    account: Annotated[int | None, typer.Option("--account", min=1, max=MOST_ACCOUNT, help="Managed: id of its sub-account.")] = None,
    own_token_stdin: Annotated[bool, typer.Option("--own-token-stdin", help="Its own token, read from standard input.")] = False,
    unchecked: Unchecked = False,
    data: Data = None,
) -> None:
    """Connect an organisation: to a sub-account of the service's reseller, or with a token of its own.

    Where SERVICE_OCS_URL names a charging system, it is asked whether it knows the account or the token. A running server follows with the
    next call. The token is kept sealed, and never given as an argument: arguments can be read by others. An account is assigned to the
    organisation as well, so that it finds back to it from a token of its own. A token that another one replaces is kept for 24 hours, in
    which the organisation's admins can go back to it. The audit log of the organisation tells of the change.
    """
    if (account is None) is not own_token_stdin:
        raise Failure("give either --account ID or --own-token-stdin, and not both")
    wanted = Wanted(account, read_token() if own_token_stdin else None)
    change(data, organisation, wanted, checked=not unchecked)
    print_line(f"{organisation} is connected " + (f"to account {account}" if wanted.token is None else "with its own token"))


def disconnect(organisation: Org, data: Data = None) -> None:
    """Disconnect an organisation from the charging system; its token is forgotten, and what account it was assigned.

    A running server follows with the next call.
    """
    change(data, organisation, Wanted(), checked=False)
    print_line(f"{organisation} is not connected")


def assign(
    organisation: Org,
    account: Annotated[int, typer.Option("--account", min=1, max=MOST_ACCOUNT, help="Id of the sub-account that was opened for it.")],
    unchecked: Unchecked = False,
    data: Data = None,
) -> None:
    """Say which sub-account is an organisation's; its members then connect it themselves, in their onboarding.

    Where SERVICE_OCS_URL names a charging system, it is asked whether it knows the account. One that another organisation has is refused:
    it would belong to neither.
    """
    asyncio.run(give(data, organisation, account, checked=not unchecked))
    print_line(f"{organisation} is assigned account {account}; POST /v1/onboarding/managed-account connects it")


def unassign(organisation: Org, data: Data = None) -> None:
    """Take back which sub-account is an organisation's. One that is connected stays connected: `reseller org disconnect` ends that."""
    if not asyncio.run(take_back(data, organisation)):
        raise unknown(organisation)
    print_line(f"{organisation} is assigned no account")


def connection_of(row: Organisation) -> str:
    """In words."""
    assigned, own = row.assigned_account_id, "own token" if row.mode == "own" else "not connected"
    shown = f"managed, account {row.account_id}" if row.mode == "managed" else own
    return shown if assigned is None or (row.mode, row.account_id) == ("managed", assigned) else f"{shown}, assigned account {assigned}"


def read_token() -> str:
    """The token without the end of its line; asked for without echo where a person sits. A refusal never repeats it."""
    try:
        text = typer.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read(LONGEST_TOKEN + 3)
    except UnicodeDecodeError:
        text = "not text"
    token = str(text).removesuffix("\n").removesuffix("\r")
    if not token:
        raise Failure("standard input: no token there; for example: reseller org connect ORG --own-token-stdin < token.txt")
    if TOKEN.fullmatch(token) is None:
        raise Failure(
            f"standard input: a token is 1-{LONGEST_TOKEN} visible ASCII characters in one line; "
            f"this one is longer, or has spaces, control or other characters"
        )
    return token


def change(data: Path | None, organisation: str, wanted: Wanted, *, checked: bool) -> None:
    """Store the connection, the token sealed."""
    if not asyncio.run(store(data, organisation, wanted, checked=checked)):
        raise unknown(organisation)


def unknown(organisation: str) -> Failure:
    """There is none with this id."""
    return Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)


async def store(data: Path | None, organisation: str, wanted: Wanted, *, checked: bool) -> bool:
    """Whether there is such an organisation; one that is not there changes nothing, and the charging system is not asked."""
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    service = await open_local(settings)
    try:
        known = {row.id for row in await service.store.read(list_organisations)}
        if organisation not in known:
            return False
        if checked:
            await check(settings, wanted)
        keyring = service.pipeline.deps.keyring
        sealed = None if wanted.token is None else keyring.seal(wanted.token, org_id=organisation, field=OWN_TOKEN_FIELD)
        after, now = Reach(mode_of(wanted), wanted.account), service.clock.now()
        operation = "org_disconnect" if after.mode is None else "org_connect"
        row = done_here(service.ids, organisation=organisation, operation=operation, outcome="ok", now=now)
        await service.store.write(change_and_record, organisation=organisation, after=after, sealed=sealed, row=row)
        return True
    finally:
        await service.stop()


def change_and_record(connection: Connection, *, organisation: str, after: Reach, sealed: str | None, row: Line) -> None:
    """The new connection, and the row that tells the organisation's admins of it."""
    bump(connection, name=CALLERS)
    before = find_connection(connection, organisation=organisation)
    if before is None:
        return
    if sealed is not None:
        use_own_token(connection, organisation=organisation, own_token=sealed, simulated=False, seen=before, now=row.at)
    else:
        set_connection(connection, organisation=organisation, mode=after.mode, account_id=after.account, own_token=None)
    append_line(connection, row._replace(change=change_of(Reach(before.mode, before.account_id), after)))


async def give(data: Path | None, organisation: str, account: int, *, checked: bool) -> None:
    """Assign the account, unless another organisation has it."""
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    service = await open_local(settings)
    try:
        if organisation not in {row.id for row in await service.store.read(list_organisations)}:
            raise unknown(organisation)
        if checked:
            await check(settings, Wanted(account))
        change, now = f"assigned managed account {account}", service.clock.now()
        row = done_here(service.ids, organisation=organisation, operation="org_assign", outcome="ok", now=now, change=change)
        found = await service.store.write(assign_and_record, organisation=organisation, account_id=account, row=row)
    finally:
        await service.stop()
    if found == "unknown":
        raise unknown(organisation)
    if found != "assigned":
        fix = f"`reseller org disconnect {found.id}` frees it, or `unassign` where that one is connected in another way"
        raise Failure(f"--account {account}: {found.id} has it; {fix}", exit_code=1)


def assign_and_record(connection: Connection, *, organisation: str, account_id: int, row: Line) -> Literal["assigned", "unknown"] | Holder:
    """The assignment, and the row that tells the organisation's admins of it."""
    found = assign_account(connection, organisation=organisation, account_id=account_id)
    if found == "assigned":
        append_line(connection, row)
    return found


def unassign_and_record(connection: Connection, *, organisation: str, row: Line) -> bool:
    """No assignment any more, and the row that tells the organisation's admins of it."""
    unassigned = unassign_account(connection, organisation=organisation)
    if unassigned:
        append_line(connection, row)
    return unassigned


async def take_back(data: Path | None, organisation: str) -> bool:
    """Whether there is such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        change, now = "assigned no account", service.clock.now()
        row = done_here(service.ids, organisation=organisation, operation="org_unassign", outcome="ok", now=now, change=change)
        return await service.store.write(unassign_and_record, organisation=organisation, row=row)
    finally:
        await service.stop()


def mode_of(wanted: Wanted) -> str | None:
    """As the database names it; None: not connected."""
    if wanted.token is not None:
        return "own"
    return None if wanted.account is None else "managed"
