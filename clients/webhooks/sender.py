"""One attempt to deliver: post the bytes, note how it went, keep nothing the receiver says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from clients.failure import OutboundFailed
from clients.http import Outbound, OutboundLimits, Reply
from clients.webhooks.lookups import Lookup, Lookups
from clients.webhooks.private_receivers import PrivateReceivers
from clients.webhooks.retry_after import retry_after_seconds
from clients.webhooks.url import BadUrl, check_url
from registry.clock import Clock

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    import aiohttp

    from clients.webhooks.addresses import Network

MOST_BODY_READ = 16 * 1024
GONE = 410
URLS_REMEMBERED = 4096
SENDER_LIMITS = OutboundLimits(connections=200, keepalive_seconds=None, connect_seconds=5.0, total_seconds=15.0)


@dataclass(frozen=True, slots=True)
class Attempt:
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


class Sender:
    """Posts to addresses that strangers chose, so only vetted ones are ever connected to."""

    def __init__(
        self,
        clock: Clock,
        *,
        exempt: Sequence[Network] = (),
        private: PrivateReceivers | None = None,
        limits: OutboundLimits = SENDER_LIMITS,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
        ca_file: Path | None = None,
    ) -> None:
        """`exempt` opens networks for local receivers, `private` some of the operator's own network for posts that say so.

        `lookup` replaces DNS, `tls` the trusted authorities; `ca_file` names some beside the public ones.
        """
        self._clock = clock
        self._exempt = tuple(exempt)
        # What a URL may be does not change while the exemptions do not; a refusal is never kept.
        self._check = lru_cache(maxsize=URLS_REMEMBERED)(partial(check_url, exempt=self._exempt))
        self._lookup = lookup or Lookups()
        self._private = private or None
        self._outbound = Outbound(limits, connector=partial(self._connector, private=None), tls=tls, ca_file=ca_file)
        # A client of its own: what one may reach is never decided by a flag that another post may have left.
        self._inside = Outbound(limits, connector=partial(self._connector, private=self._private), tls=tls, ca_file=ca_file)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool = False) -> Attempt:
        """Deliver once. Never raises for what the receiver, its name or its network does.

        `private`: the organisation may have receivers in the operator's own network.
        """
        started = self._clock.monotonic()
        inside = private and self._private is not None
        try:
            # Again: what is opened may have changed since the URL was registered.
            if inside:
                check_url(url, self._exempt, self._private)
            else:
                self._check(url)
            outbound = self._inside if inside else self._outbound
            reply = await outbound.exchange("POST", url, headers=headers, content=body, keep=MOST_BODY_READ)
        except BadUrl:
            return Attempt("blocked", None, self._since(started))
        except OutboundFailed as error:
            return Attempt(error.kind, None, self._since(started))
        return self._judge(reply, self._since(started))

    async def aclose(self) -> None:
        """Close what is open."""
        await self._outbound.aclose()
        await self._inside.aclose()

    def _judge(self, reply: Reply, milliseconds: int) -> Attempt:
        """Only 2xx counts; a redirect is a failure like any other."""
        if 200 <= reply.status < 300:
            return Attempt("ok", reply.status, milliseconds)
        wait = retry_after_seconds(reply.headers.get("retry-after"), self._clock.now())
        return Attempt(f"status:{reply.status}", reply.status, milliseconds, wait, gone=reply.status == GONE)

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)

    def _connector(self, limits: OutboundLimits, tls: ssl.SSLContext, *, private: PrivateReceivers | None) -> aiohttp.BaseConnector:
        from clients.webhooks.connector import vetted_connector  # these two import aiohttp: start-up budget
        from clients.webhooks.resolver import VettingResolver

        resolver = VettingResolver(self._exempt, self._lookup, private)
        return vetted_connector(limits, tls, self._exempt, resolver, private)
