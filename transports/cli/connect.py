"""`reseller org connect` and `disconnect`: how an organisation reaches the charging system."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from storage.accounts import Organisation, list_organisations, set_connection
from storage.sealed_fields import OWN_TOKEN_FIELD
from transports.cli.failure import Failure
from transports.cli.local import open_local
from transports.cli.render import print_line
from transports.settings import load_settings

Org = Annotated[str, typer.Argument(help="The organisation's id, org_...")]
Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]
LONGEST_TOKEN = 1024
TOKEN = re.compile(rf"[!-~]{{1,{LONGEST_TOKEN}}}")


def connect(
    organisation: Org,
    account: Annotated[int | None, typer.Option("--account", min=1, max=2**53 - 1, help="Managed: id of its sub-account.")] = None,
    own_token_stdin: Annotated[bool, typer.Option("--own-token-stdin", help="Its own token, read from standard input.")] = False,
    data: Data = None,
) -> None:
    """Connect an organisation: to a sub-account of the service's reseller, or with a token of its own.

    A running server follows with the next call. The token is kept sealed, and never given as an argument: arguments can be read by others.
    """
    if (account is None) is not own_token_stdin:
        raise Failure("give either --account ID or --own-token-stdin, and not both")
    token = read_token() if own_token_stdin else None
    change(data, organisation, mode="own" if token else "managed", account=account, token=token)
    print_line(f"{organisation} is connected " + ("with its own token" if token else f"to account {account}"))


def disconnect(organisation: Org, data: Data = None) -> None:
    """Disconnect an organisation from the charging system; its token is forgotten. A running server follows with the next call."""
    change(data, organisation, mode=None, account=None, token=None)
    print_line(f"{organisation} is not connected")


def connection_of(row: Organisation) -> str:
    """In words."""
    if row.mode is None:
        return "not connected"
    return "own token" if row.mode == "own" else f"managed, account {row.account_id}"


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


def change(data: Path | None, organisation: str, *, mode: str | None, account: int | None, token: str | None) -> None:
    """Store the connection, the token sealed."""
    if not asyncio.run(store(data, organisation, mode, account, token)):
        raise Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)


async def store(data: Path | None, organisation: str, mode: str | None, account: int | None, token: str | None) -> bool:
    """Whether there is such an organisation; one that is not there changes nothing."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        known = {row.id for row in await service.store.read(list_organisations)}
        if organisation not in known:
            return False
        keyring = service.pipeline.deps.keyring
        sealed = None if token is None else keyring.seal(token, org_id=organisation, field=OWN_TOKEN_FIELD)
        return await service.store.write(set_connection, organisation=organisation, mode=mode, account_id=account, own_token=sealed)
    finally:
        await service.stop()
