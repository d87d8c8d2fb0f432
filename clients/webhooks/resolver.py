"""Name lookup that refuses a whole name when one of its addresses must not be reached."""

# Imported on the first delivery only (aiohttp costs 0.4 s of start-up).
import socket
from collections.abc import Sequence

from aiohttp.abc import AbstractResolver, ResolveResult

from clients.webhooks.addresses import Network, vet
from clients.webhooks.host import LOOPBACK_NAME, canonical_host, loopbacks
from clients.webhooks.lookups import Lookup
from clients.webhooks.private_receivers import PrivateReceivers


class VettingResolver(AbstractResolver):
    """One lookup per connection, every answer checked, only checked numeric addresses handed on."""

    def __init__(self, exempt: Sequence[Network], lookup: Lookup, private: PrivateReceivers | None = None) -> None:
        """`private`: what is opened in the operator's own network; None: nothing."""
        self._exempt = exempt
        self._lookup = lookup
        self._private = private

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """Raise `Blocked` unless every address is allowed. Both families always: a denied one spoils the name."""
        addresses = await self._addresses(host)
        name, private = canonical_host(host), self._private
        inside = [] if private is None else [each for each in addresses if private.reaches(each, name)]
        outside = [each for each in addresses if each not in inside]
        if outside or not inside:
            vet(outside, self._exempt)
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing is held."""

    async def _addresses(self, host: str) -> Sequence[str]:
        local = loopbacks(self._exempt)
        if host == LOOPBACK_NAME and local:
            return local  # RFC 6761: never asked of DNS, and ::1 must not spoil it when only 127.0.0.0/8 is exempt
        return await self._lookup(host)


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=family,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
