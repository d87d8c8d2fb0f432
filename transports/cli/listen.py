"""`reseller webhooks listen`: deliveries for a developer whose machine no server can reach."""

import sys
from typing import Annotated
from urllib.parse import urlsplit

import typer

from clients.failure import OutboundFailed
from clients.http import Outbound
from clients.webhooks.sender import SENDER_LIMITS
from clients.webhooks.signature import SECRET_BYTES, new_secret, sign
from operations.services.webhooks.delivery import USER_AGENT
from operations.services.webhooks.event_body import Event, body_of
from registry.clock import Clock, SystemClock
from registry.ids import SystemIds
from transports.cli.door import Data, Key, Org, Url, Where
from transports.cli.failure import Failure
from transports.cli.following import Count, Every, Following, Intent, Last, Types, chosen_types, follow, until_interrupted
from transports.cli.render import print_line
from transports.cli.secret_option import warn_of_argument

LEAST_KEPT = 1024  # of the answer nothing is shown


def listen(
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
    last: Last = 0,
    intent: Intent = None,
    type: Types = None,
    every: Every = 1.0,
    count: Count = None,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Send events as they happen to a receiver on this machine, signed as real deliveries are. No endpoint is registered.

    A try in development, not a delivery: each event is sent once, a failure is shown and not tried again, and what happens while
    this command does not run is not sent. Real endpoints get every event at least once.
    """
    clock, target = SystemClock(), None if forward_to is None else receiver(forward_to)
    following = Following(intent, chosen_types(type), last, every, count)
    if secret is None:
        secret = new_secret(SystemIds(clock).bytes(SECRET_BYTES))
        print_line(f"signing secret: {secret}")
        sys.stdout.flush()
    until_interrupted(run(Where(url, key, org, data), following, Forwarder(target, checked(secret), clock)))


def receiver(url: str) -> str:
    """Any address a person names; deliveries to strangers' addresses are what the server vets."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise Failure(f"--forward-to {url}: must be an http:// or https:// URL, for example http://127.0.0.1:3000/webhooks")
    return url


def checked(secret: str) -> str:
    """A secret that can sign; the refusal does not repeat it."""
    try:
        sign([secret], "evt_", 0, b"")
    except ValueError as error:
        raise Failure(f"--secret: {error}") from None
    return secret


class Forwarder:
    """Signs and sends, or shows what it would send."""

    def __init__(self, target: str | None, secret: str, clock: Clock) -> None:
        self._target, self._secret, self._clock = target, secret, clock
        self._outbound = Outbound(SENDER_LIMITS)  # as patient as a delivery, and a connection for each

    async def aclose(self) -> None:
        """Close its connections."""
        await self._outbound.aclose()

    async def take(self, event: Event) -> None:
        """One event: the very bytes and headers of a delivery's attempt."""
        body = body_of(event)
        headers = sign([self._secret], event["id"], int(self._clock.now()), body)
        headers |= {"content-type": "application/json", "user-agent": USER_AGENT}
        if self._target is None:
            shown = [*(f"{name}: {value}" for name, value in headers.items()), "", body.decode(), ""]
        else:
            shown = [f"{event['type']} {event['id']} -> {await self._post(self._target, headers, body)}"]
        print_line("\n".join(shown))
        sys.stdout.flush()

    async def _post(self, target: str, headers: dict[str, str], body: bytes) -> str:
        """How it went, and how long it took."""
        started = self._clock.monotonic()
        try:
            reply = await self._outbound.exchange("POST", target, headers=headers, content=body, keep=LEAST_KEPT)
        except OutboundFailed as error:
            said = error.kind
        else:
            said = str(reply.status)
        return f"{said} ({(self._clock.monotonic() - started) * 1000:.0f} ms)"


async def run(where: Where, following: Following, forwarder: Forwarder) -> None:
    """Until interrupted."""
    try:
        await follow(where, following, forwarder.take)
    finally:
        await forwarder.aclose()
