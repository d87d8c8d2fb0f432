"""One attempt to deliver: post the bytes, note how it went, keep nothing the receiver says; and when a failed delivery is tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clients.http import HttpReply, Outbound, OutboundFailed, OutboundLimits
from clients.webhooks.addresses import NameLookup, PrivateReceivers
from clients.webhooks.name_lookup import ThreadedLookups
from clients.webhooks.receiver_url import BadReceiverUrl, check_receiver_url
from clients.webhooks.vetted_outbound import vetted_outbound
from registry.clock import Clock

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from clients.webhooks.addresses import IpNetwork


_SECOND, _MINUTE, _HOUR = 1.0, 60.0, 3600.0
RETRY_DELAYS = (
    0.0,
    5 * _SECOND,
    5 * _MINUTE,
    30 * _MINUTE,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    14 * _HOUR,
    20 * _HOUR,
    24 * _HOUR,
)
"""Seconds to wait before attempt 1, 2, ... 10: 75 h 35 m 05 s in all."""
DELIVERY_ATTEMPTS = len(RETRY_DELAYS)
RETRY_JITTER = 0.2
RETRY_AFTER_LIMIT = 24 * _HOUR


def next_retry_delay(attempt: int, jitter: Callable[[], float], retry_after: float | None = None) -> float | None:
    """Seconds until the attempt after number `attempt` (0: none made yet), or None when all ten are spent.

    `jitter` draws from [0, 1), as `random.Random().random` does.
    """
    if attempt >= DELIVERY_ATTEMPTS:
        return None
    delay = RETRY_DELAYS[attempt] * (1 - RETRY_JITTER + 2 * RETRY_JITTER * jitter())
    # Choice: Retry-After may put an attempt off, never bring it forward.
    return max(delay, min(retry_after or 0.0, RETRY_AFTER_LIMIT))


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Seconds from now (at most 24 h), from delta-seconds or an HTTP date; None when absent, past or unreadable."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        # Ten digits already exceed the cap; longer ones are not worth converting.
        return min(float(text[:10]), RETRY_AFTER_LIMIT)
    seconds = _seconds_until(text, now)
    return None if seconds is None or seconds <= 0 else min(seconds, RETRY_AFTER_LIMIT)


def _seconds_until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.timestamp() - now
    except (ValueError, OverflowError):
        return None


RECEIVER_BODY_LIMIT = 16 * 1024
GONE_STATUS = 410
CHECKED_URLS_LIMIT = 4096
NO_SIMULATED_RECEIVERS: Mapping[str, Outbound] = MappingProxyType({})
SENDER_LIMITS = OutboundLimits(connections=200, keepalive_seconds=None, connect_seconds=5.0, total_seconds=15.0)


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """How one attempt went: a class and figures, never the receiver's words or its address."""

    outcome: str
    """`ok`, `status:502`, or a failure class such as `timeout`, `tls`, `blocked`, `refused`, `dns`."""
    status: int | None
    milliseconds: int
    retry_after: float | None = None
    """Seconds the receiver asked to wait, at most 24 h."""
    gone: bool = False
    """The receiver answered 410: its endpoint is to be disabled at once."""

    @property
    def ok(self) -> bool:
        """Whether the receiver took the event (any 2xx)."""
        return self.outcome == "ok"


class WebhookSender:
    """Posts to addresses that customers chose; connects to vetted addresses only."""

    def __init__(
        self,
        clock: Clock,
        *,
        exempt: Sequence[IpNetwork] = (),
        private: PrivateReceivers | None = None,
        limits: OutboundLimits = SENDER_LIMITS,
        lookup: NameLookup | None = None,
        tls: ssl.SSLContext | None = None,
        ca_file: Path | None = None,
        simulated: Mapping[str, Outbound] = NO_SIMULATED_RECEIVERS,
    ) -> None:
        """`exempt` opens networks for local receivers, `private` some of the operator's own network for posts that say so.

        `lookup` replaces DNS, `tls` the trusted authorities; `ca_file` names some beside the public ones. `simulated`: hosts that are in
        this process, and how they are reached.
        """
        self._clock = clock
        self._exempt = tuple(exempt)
        # The rules for a URL change only with the exemptions, so a URL that passed is remembered; a refusal is not.
        self._check = lru_cache(maxsize=CHECKED_URLS_LIMIT)(partial(check_receiver_url, exempt=self._exempt))
        self._private, self._simulated = private or None, simulated
        outbound = partial(vetted_outbound, limits, self._exempt, lookup=lookup or ThreadedLookups(), tls=tls, ca_file=ca_file)
        # Two clients: what one may reach is never decided by a flag that another post may have left.
        self._outbound, self._inside = outbound(), outbound(private=self._private)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool = False) -> DeliveryAttempt:
        """Post `body` to `url` once and wait for the answer. Never raises for what the receiver, its name or its network does.

        `private`: the organisation may have receivers in the operator's own network.
        """
        return (await self.ask(url, body, headers, private=private))[0]

    async def ask(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool = False) -> tuple[DeliveryAttempt, bytes]:
        """The same, with what the receiver answered, at most 16 kB of it, for whoever has asked it something."""
        started = self._clock.monotonic()
        inside = private and self._private is not None
        try:
            # Again: what is opened may have changed since the URL was registered.
            if inside:
                check_receiver_url(url, self._exempt, self._private)
            else:
                self._check(url)
            outbound = self._simulated_host(url) or (self._inside if inside else self._outbound)
            reply = await outbound.exchange("POST", url, headers=headers, content=body, keep=RECEIVER_BODY_LIMIT)
        except BadReceiverUrl:
            return DeliveryAttempt("blocked", None, self._since(started)), b""
        except OutboundFailed as error:
            return DeliveryAttempt(error.kind, None, self._since(started)), b""
        return self._judge(reply, self._since(started)), reply.body

    async def aclose(self) -> None:
        for outbound in (self._outbound, self._inside, *self._simulated.values()):
            await outbound.aclose()

    def _simulated_host(self, url: str) -> Outbound | None:
        return self._simulated.get(urlsplit(url).hostname or "") if self._simulated else None

    def _judge(self, reply: HttpReply, milliseconds: int) -> DeliveryAttempt:
        """Only 2xx counts; a redirect is a failure like any other."""
        if 200 <= reply.status < 300:
            return DeliveryAttempt("ok", reply.status, milliseconds)
        wait = retry_after_seconds(reply.headers.get("retry-after"), self._clock.now())
        return DeliveryAttempt(f"status:{reply.status}", reply.status, milliseconds, wait, gone=reply.status == GONE_STATUS)

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)
