"""`reseller webhooks`: listen without a public address, list endpoints, send again what failed."""

import asyncio
import sys
from typing import Annotated

import orjson
import typer

from registry.call import Reply
from registry.clock import SystemClock
from transports.cli.door import Data, Key, Org, Url, Where, accepted, open_door
from transports.cli.listen import listen
from transports.cli.render import print_line, show
from transports.cli.since import since as moment_of

webhooks_app = typer.Typer(no_args_is_help=True, help="Listen on this machine, list endpoints, send failed deliveries again.")
webhooks_app.command("listen")(listen)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal too.")]


@webhooks_app.command("list")
def endpoints(as_json: AsJson = False, url: Url = None, key: Key = None, org: Org = None, data: Data = None) -> None:
    """List the webhook endpoints."""
    reply = asyncio.run(ask(Where(url, key, org, data), "list_connectivity_webhook_endpoints", {}))
    show(accepted(reply, "reseller webhooks list"), as_json=as_json)


@webhooks_app.command("replay")
def replay(
    endpoint: Annotated[str, typer.Argument(help="The endpoint's id, we_...; `reseller webhooks list` names them.")],
    delivery: Annotated[
        str | None, typer.Option("--delivery", help="Only this one, dlv_..., though it had arrived; not with --since.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what was queued since: 2h, 30m, 1d, RFC 3339 or Unix seconds.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Send an endpoint's failed deliveries again and those that wait for a later attempt now: all, those since a time; or a single one.

    `reseller call list_event_deliveries --id evt_...` names the deliveries of an event.
    """
    arguments: dict[str, object] = {"id": endpoint}
    if since is not None:
        arguments["since"] = moment_of("--since", since, SystemClock())
    if delivery is not None:
        arguments["delivery"] = delivery
    reply = accepted(
        asyncio.run(ask(Where(url, key, org, data), "replay_failed_deliveries", arguments)), f"reseller webhooks replay {endpoint}"
    )
    if as_json or not sys.stdout.isatty():
        show(reply, as_json=True)
        return
    answer = orjson.loads(reply.body)
    print_line(told(answer["replayed"], answer["brought_forward"], delivery))


def told(ended: int, waiting: int, delivery: str | None) -> str:
    """In words."""
    if delivery is not None:
        return f"{delivery} is on the way now" if ended or waiting else f"{delivery} is on its way already, so it was left alone"
    failed = f"{ended or 'no'} failed {'delivery is' if ended == 1 else 'deliveries are'} on the way again"
    return f"{failed}, and {waiting or 'no'} waiting {'one' if waiting == 1 else 'ones'} now"


async def ask(where: Where, operation: str, arguments: dict[str, object]) -> Reply:
    """One call."""
    async with open_door(where) as door:
        return await door.ask(operation, arguments)
