"""`reseller webhooks`: listen without a public address, list endpoints, send again what failed."""

import sys
from typing import Annotated
from urllib.parse import urlsplit

import orjson
import typer

from clients.http import Outbound, OutboundFailed
from clients.webhooks.sender import SENDER_LIMITS
from clients.webhooks.signature import WEBHOOK_SECRET_BYTES, new_webhook_secret, sign_delivery
from operations.ledger.webhooks import WEBHOOK_USER_AGENT, Event, event_bytes
from registry.clock import Clock, SystemClock
from registry.ids import SystemIds
from transports.cli.events import (
    CountOption,
    EveryOption,
    FollowOptions,
    IntentOption,
    LastOption,
    TypesOption,
    chosen_types,
    follow_events,
    until_interrupted,
)
from transports.cli.render import print_reply
from transports.cli.target import TargetOptions, at_target, call_once
from transports.cli.terminal import Failure, print_line, warn_of_argument
from transports.cli.terminal import past_moment as moment_of

KEPT_ANSWER_BYTES = 1024  # of the answer nothing is shown


@at_target
def listen_for_events(
    where: TargetOptions,
    forward_to: Annotated[
        str | None, typer.Option("--forward-to", metavar="URL", help="POST each event there; without it, show it.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            "--secret",
            envvar="RESELLER_WEBHOOK_SECRET",
            callback=warn_of_argument,
            help="Sign with this whsec_...; without it, a new one is made.",
        ),
    ] = None,
    last: LastOption = 0,
    intent: IntentOption = None,
    type: TypesOption = None,
    every: EveryOption = 1.0,
    count: CountOption = None,
) -> None:
    """Send events as they happen to a receiver on this machine, signed as real deliveries are. No endpoint is registered.

    A try in development, not a delivery: each event is sent once, a failure is shown and not tried again, and what happens while
    this command does not run is not sent. Real endpoints get every event at least once.
    """
    clock, target = SystemClock(), None if forward_to is None else checked_receiver(forward_to)
    following = FollowOptions(intent, chosen_types(type), last, every, count)
    if secret is None:
        secret = new_webhook_secret(SystemIds(clock).bytes(WEBHOOK_SECRET_BYTES))
        print_line(f"signing secret: {secret}")
        sys.stdout.flush()
    until_interrupted(run_forwarder(where, following, EventForwarder(target, checked_secret(secret), clock)))


def checked_receiver(url: str) -> str:
    """`url`, if it is one; a person may name any address, while the server vets those of strangers. Raises Failure."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise Failure(f"--forward-to {url}: must be an http:// or https:// URL, for example http://127.0.0.1:3000/webhooks")
    return url


def checked_secret(secret: str) -> str:
    """`secret`, if it can sign. Raises Failure, which does not repeat it."""
    try:
        sign_delivery([secret], "evt_", 0, b"")
    except ValueError as error:
        raise Failure(f"--secret: {error}") from None
    return secret


class EventForwarder:
    """Signs and sends, or shows what it would send."""

    def __init__(self, target: str | None, secret: str, clock: Clock) -> None:
        self._target, self._secret, self._clock = target, secret, clock
        self._outbound = Outbound(SENDER_LIMITS)  # as patient as a delivery, and a connection for each

    async def aclose(self) -> None:
        await self._outbound.aclose()

    async def take(self, event: Event) -> None:
        """Sends or prints one event, with the bytes and headers of a real delivery."""
        body = event_bytes(event)
        headers = sign_delivery([self._secret], event["id"], int(self._clock.now()), body)
        headers |= {"content-type": "application/json", "user-agent": WEBHOOK_USER_AGENT}
        if self._target is None:
            lines = [*(f"{name}: {value}" for name, value in headers.items()), "", body.decode(), ""]
        else:
            lines = [f"{event['type']} {event['id']} -> {await self._post(self._target, headers, body)}"]
        print_line("\n".join(lines))
        sys.stdout.flush()

    async def _post(self, target: str, headers: dict[str, str], body: bytes) -> str:
        """The status or the fault, and how long it took."""
        started = self._clock.monotonic()
        try:
            reply = await self._outbound.exchange("POST", target, headers=headers, content=body, keep=KEPT_ANSWER_BYTES)
        except OutboundFailed as error:
            outcome = error.kind
        else:
            outcome = str(reply.status)
        return f"{outcome} ({(self._clock.monotonic() - started) * 1000:.0f} ms)"


async def run_forwarder(where: TargetOptions, following: FollowOptions, forwarder: EventForwarder) -> None:
    try:
        await follow_events(where, following, forwarder.take)
    finally:
        await forwarder.aclose()


webhooks_app = typer.Typer(no_args_is_help=True, help="Listen on this machine, list endpoints, send failed deliveries again.")
webhooks_app.command("listen")(listen_for_events)
TerminalJsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal too.")]


@webhooks_app.command("list")
@at_target
def list_endpoints(where: TargetOptions, as_json: TerminalJsonOption = False) -> None:
    """List the webhook endpoints."""
    reply = call_once(where, "list_connectivity_webhook_endpoints", {}, "reseller webhooks list")
    print_reply(reply, as_json=as_json)


@webhooks_app.command("replay")
@at_target
def replay_deliveries(
    where: TargetOptions,
    endpoint: Annotated[str, typer.Argument(help="The endpoint's id, we_...; `reseller webhooks list` names them.")],
    delivery: Annotated[
        str | None, typer.Option("--delivery", help="Only this one, dlv_..., though it had arrived; not with --since.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what was queued since: 2h, 30m, 1d, RFC 3339 or Unix seconds.")
    ] = None,
    as_json: TerminalJsonOption = False,
) -> None:
    """Send an endpoint's failed deliveries again and those that wait for a later attempt now: all, those since a time; or a single one.

    `reseller call list_event_deliveries --id evt_...` names the deliveries of an event.
    """
    arguments: dict[str, object] = {"id": endpoint}
    if since is not None:
        arguments["since"] = moment_of("--since", since, SystemClock())
    if delivery is not None:
        arguments["delivery"] = delivery
    command = f"reseller webhooks replay {endpoint}"
    reply = call_once(where, "replay_failed_deliveries", arguments, command)
    if as_json or not sys.stdout.isatty():
        print_reply(reply, as_json=True)
        return
    answer = orjson.loads(reply.body)
    print_line(replay_text(answer["replayed"], answer["brought_forward"], delivery))


def replay_text(ended: int, waiting: int, delivery: str | None) -> str:
    if delivery is not None:
        return f"{delivery} is on the way now" if ended or waiting else f"{delivery} is on its way already, so it was left alone"
    failed = f"{ended or 'no'} failed {'delivery is' if ended == 1 else 'deliveries are'} on the way again"
    return f"{failed}, and {waiting or 'no'} waiting {'one' if waiting == 1 else 'ones'} now"
