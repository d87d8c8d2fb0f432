"""`reseller audit`: who did what in an organisation."""

import shlex
import sys
from typing import Annotated

import typer

from registry.clock import SystemClock, rfc3339_utc
from transports.cli.render import next_cursor, print_reply
from transports.cli.target import JsonOption, TargetOptions, at_target, call_once
from transports.cli.terminal import past_moment as moment_of


@at_target
def audit(
    where: TargetOptions,
    operation: Annotated[str | None, typer.Option("--operation", help="Only of this operation.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", help="Only of this person, usr_...")] = None,
    key_id: Annotated[str | None, typer.Option("--key-id", help="Only with this key, key_..., or login, gnt_....")] = None,
    outcome: Annotated[str | None, typer.Option("--outcome", help="Only what ended so: ok, replayed, or the code of a refusal.")] = None,
    surface: Annotated[str | None, typer.Option("--surface", help="Only what came this way: http, mcp, cli or web.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="2h, 30m, 1d, RFC 3339 or Unix seconds.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="At most so many.")] = 20,
    starting_after: Annotated[str | None, typer.Option("--starting-after", help="The last id of the page before.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List who called what and how it ended, newest first; for admins."""
    fields: dict[str, object] = {
        "operation": operation,
        "principal": principal,
        "key_id": key_id,
        "outcome": outcome,
        "surface": surface,
        "from": None if since is None else rfc3339_utc(moment_of("--since", since, SystemClock())),
        "limit": limit,
        "starting_after": starting_after,
    }
    arguments = {name: value for name, value in fields.items() if value is not None}
    reply = call_once(where, "list_audit_log", arguments, "reseller audit")
    print_reply(reply, as_json=as_json)
    cursor = next_cursor(reply)
    if cursor is not None:
        sys.stdout.flush()
        sys.stderr.write(f"more: --starting-after {shlex.quote(cursor)}\n")
