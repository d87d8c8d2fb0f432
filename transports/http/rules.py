"""What the HTTP door takes: sizes, hosts and origins."""

from dataclasses import dataclass

HEADERS = 100
"""Choice: as many header fields as Apache takes; each costs the same, however short it is."""


@dataclass(frozen=True, slots=True)
class HttpRules:
    """Sizes in bytes. `hosts` are names without a port, `*` stands for any; `origins` are compared whole.

    Pages of `cross_origins` are told by CORS headers that they may call; that of our own pages needs none.
    `probed` are the paths that load balancers ask: by address, without a Host, and also when the server is at its limit.
    """

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    cross_origins: frozenset[str] = frozenset()
    url_bytes: int = 8 * 1024
    header_bytes: int = 16 * 1024
    authorization_bytes: int = 8 * 1024
    headers: int = HEADERS
    probed: frozenset[bytes] = frozenset({b"/health", b"/health/ready"})

    def serves(self, host: str) -> bool:
        """Whether a Host header names one of our hosts; its port does not matter, since a proxy may have changed it."""
        if host in self.hosts or "*" in self.hosts:
            return True
        if host.startswith("["):
            name, closed, port = host[1:].partition("]")
            port = port.removeprefix(":") if closed and port[:1] in ("", ":") else "?"
        else:
            name, _, port = host.partition(":")
        return name.removesuffix(".") in self.hosts and (not port or (port.isascii() and port.isdigit()))
