"""The server's connections: how long each part of a request may take there, and who holds them: so many for each network, and idle ones
make way when there is no room."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from registry.errors import Refusal
from registry.signals import Counts
from transports.http.asgi import Overloaded
from transports.http.forwarded import LOOPBACK_NETWORKS, ClientNetwork, is_within, network_of


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


PROBE_CONNECTIONS = 4
"""Connections beyond its cap that a network may open to ask whether the server is up, and for nothing else."""


class OpenConnection(Protocol):
    @property
    def is_idle(self) -> bool:
        """No request of it is being received or answered; one whose head has not come whole is idle."""
        ...

    def make_way(self) -> None:
        """Close it without an answer, as an idle connection is closed."""
        ...


class Connections:
    """The open connections of a server, by network, the oldest first. `ended` counts those that the server
    ended for them: idle ones, new ones of a network that has too many, and those of clients that read too slowly.

    Choice: connections from this machine are not capped, since behind a proxy on it all clients have its address; those of `trusted`
    proxies are neither capped nor closed.
    """

    def __init__(
        self, most: int, of_one: int, *, trusted: Sequence[ClientNetwork] = (), uncapped: Sequence[ClientNetwork] = LOOPBACK_NETWORKS
    ) -> None:
        self.most, self._of_one = most, min(of_one, most)
        self._trusted, self._uncapped = tuple(trusted), tuple(uncapped)
        self._networks: dict[str, dict[OpenConnection, None]] = {}
        self._places: dict[OpenConnection, str] = {}
        self.draining = False
        """The server is about to end: each answer ends its connection."""
        self.only_probes: dict[OpenConnection, Refusal] = {}
        """Connections beyond the cap of their network, and what they are answered but for a probe."""
        self.rejected = Counts(("code",))
        """Requests that were refused before they were whole."""
        self.ended = Counter[str](idle=0, network=0, slow=0)

    def __len__(self) -> int:
        return len(self._places)

    def opened(self, connection: OpenConnection, address: str) -> Refusal | None:
        """Count a new connection; why it cannot stay, where its network has too many that are busy.

        A few more than the cap stay for a probe (`only_probes`): a load balancer that is no trusted proxy has its health checks answered
        while all that it hands on waits.
        """
        network = "" if is_within(address, self._trusted) else network_of(address)
        held = self._networks.setdefault(network, {})
        capped = network and len(held) >= self._of_one and not is_within(address, self._uncapped)
        if capped and not self._make_room(held):
            self.ended["network"] += 1
            refusal = Overloaded(
                f"{self._of_one} connections of your network are open, and none of them is idle",
                hint="Use fewer connections, and each for several requests",
            )
            if len(held) >= self._of_one + PROBE_CONNECTIONS:
                return refusal
            self.only_probes[connection] = refusal
        if len(self._places) >= self.most:
            others = [each for name, each in self._networks.items() if name]
            any(self._make_room(each) for each in sorted(others, key=len, reverse=True))
        self._networks.setdefault(network, {})[connection] = None
        self._places[connection] = network
        return None

    def is_of_proxy(self, connection: OpenConnection) -> bool:
        """Whether it is a trusted proxy's."""
        return self._places.get(connection) == ""

    def closed(self, connection: OpenConnection) -> None:
        network = self._places.pop(connection, None)
        self.only_probes.pop(connection, None)
        if network is not None:
            held = self._networks[network]
            del held[connection]
            if not held:
                del self._networks[network]

    def _make_room(self, held: dict[OpenConnection, None]) -> bool:
        """End the oldest idle connection of a network; False where none is idle."""
        idle = next((each for each in held if each.is_idle), None)
        if idle is None:
            return False
        self.ended["idle"] += 1
        self.closed(idle)
        idle.make_way()
        return True
