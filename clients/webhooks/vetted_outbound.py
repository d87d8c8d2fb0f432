"""The outbound client for addresses that strangers chose: only vetted ones are ever connected to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clients.http import Outbound, OutboundLimits
from clients.webhooks.addresses import IpNetwork, NameLookup, PrivateReceivers

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    import aiohttp


def vetted_outbound(
    limits: OutboundLimits,
    exempt: Sequence[IpNetwork],
    *,
    lookup: NameLookup,
    private: PrivateReceivers | None = None,
    tls: ssl.SSLContext | None = None,
    ca_file: Path | None = None,
) -> Outbound:
    """A client that checks every address of a name when it connects. A failed check is OutboundFailed, `blocked`.

    `exempt` opens networks for local servers, `private` some of the operator's own network. `lookup` asks DNS, or what takes its place;
    `tls` replaces the trusted authorities, `ca_file` names some beside the public ones.
    """

    def connector(limits: OutboundLimits, tls: ssl.SSLContext) -> aiohttp.BaseConnector:
        from clients.webhooks.connector import VettingResolver, vetted_connector  # imports aiohttp: start-up budget

        return vetted_connector(limits, tls, exempt, VettingResolver(exempt, lookup, private), private)

    return Outbound(limits, connector=connector, tls=tls, ca_file=ca_file)
