"""`reseller audit`: who did what in an organisation."""

import asyncio
import shlex
import sys
from typing import Annotated

import typer

from registry.call import Reply
from registry.clock import SystemClock
from registry.policy import stamp
from transports.cli.door import Data, Key, Org, Url, Where, accepted, open_door
from transports.cli.keys import AsJson
from transports.cli.paging import next_cursor
from transports.cli.render import show
from transports.cli.since import since as moment_of


def audit(
    operation: Annotated[str | None, typer.Option("--operation", help="Only of this operation.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", help="Only of this person, usr_...")] = None,
    outcome: Annotated[str | None, typer.Option("--outcome", help="Only what ended so: ok, replayed, or the code of a refusal.")] = None,
    surface: Annotated[str | None, typer.Option("--surface", help="Only what came this way: http, mcp, cli or web.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="2h, 30m, 1d, RFC 3339 or Unix seconds.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="At most so many.")] = 20,
    starting_after: Annotated[str | None, typer.Option("--starting-after", help="The last id of the page before.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """List who called what and how it ended, newest first; for admins."""
    asked: dict[str, object] = {
        "operation": operation,
        "principal": principal,
        "outcome": outcome,
        "surface": surface,
        "from": None if since is None else stamp(moment_of("--since", since, SystemClock())),
        "limit": limit,
        "starting_after": starting_after,
    }
    arguments = {name: value for name, value in asked.items() if value is not None}
    reply = accepted(asyncio.run(ask(Where(url, key, org, data), arguments)), "reseller audit")
    show(reply, as_json=as_json)
    cursor = next_cursor(reply)
    if cursor is not None:
        sys.stdout.flush()
        sys.stderr.write(f"more: --starting-after {shlex.quote(cursor)}\n")


async def ask(where: Where, arguments: dict[str, object]) -> Reply:
    """One call."""
    async with open_door(where) as door:
        return await door.ask("list_audit_log", arguments)
