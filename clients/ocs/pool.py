"""One link per token, all over one outbound client."""

from collections import OrderedDict
from hashlib import sha256

from clients.http import Outbound, OutboundLimits
from clients.ocs.client import Ocs
from clients.ocs.link import OcsLink
from clients.ocs.settings import OcsSettings
from registry.clock import Clock

MOST_TOKENS = 1000


class OcsPool:
    """Hands out the client of a token; the ones used longest ago are forgotten."""

    def __init__(self, outbound: Outbound, settings: OcsSettings, clock: Clock) -> None:
        self._outbound = outbound
        self._settings = settings
        self._clock = clock
        self._clients: OrderedDict[bytes, Ocs] = OrderedDict()

    def for_token(self, token: str) -> Ocs:
        """The client that calls with this token; the same one every time, so that its limit holds."""
        key = sha256(token.encode("utf-8", "surrogatepass")).digest()
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = Ocs(OcsLink(self._outbound, self._settings, token, self._clock), self._settings)
        self._clients.move_to_end(key)
        if len(self._clients) > MOST_TOKENS:
            self._clients.popitem(last=False)
        return client

    async def aclose(self) -> None:
        """Close all connections."""
        await self._outbound.aclose()


def ocs_limits(settings: OcsSettings) -> OutboundLimits:
    """What the outbound client of the pool is opened with.

    Connections are kept for less than the shortest idle time of common servers (5 s): a write that meets one just closed
    would leave its outcome unknown.
    """
    return OutboundLimits(connections=200, keepalive_seconds=4.0, total_seconds=settings.total_seconds)
