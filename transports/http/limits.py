"""What the HTTP server takes of a request: sizes, hosts and origins, and how long each part of it may take."""

from dataclasses import dataclass

MOST_HEADERS = 100
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
    headers: int = MOST_HEADERS
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


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for the parts of a request, and the caps that only the server can keep."""

    headers: float = 10.0
    body: float = 30.0
    keep_alive: int = 15
    keep_alive_of_proxies: int = 75
    """For connections of trusted proxies, who keep theirs for 60 seconds mostly: they close first, and no request meets a closed one."""
    stall: float = 30.0
    """How long a client may read nothing of an answer that waits for it."""
    rate: int = 4096
    """Bytes a second that a client must read on average of an answer that waits for it."""
    credit: int = 128 * 1024
    """Bytes that it may be behind: the system takes what is written in pieces of about this size."""
    shutdown: int = 10
    concurrency: int = 512
    """Connections and running requests; one more is answered with 503."""
    of_network: int = 64
    """Connections of one network of clients."""
    url_bytes: int = 16 * 1024
    """More than the door's limit for a URL, so that it is the door that answers what is a little too long."""
    head_bytes: int = 25 * 1024
    """Slightly more than the door's limits for URL and headers together, so that it is the door that answers."""
    backlog: int = 2048
