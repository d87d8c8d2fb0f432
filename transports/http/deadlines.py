"""How long a client may take, and how much the server holds."""

from dataclasses import dataclass


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
