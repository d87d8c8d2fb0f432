"""What the composition root tells the MCP door."""

from dataclasses import dataclass

MCP_SERVER_NAME = "connectivity"
MCP_BODY_BYTES = 1 << 20
STATE_KEY_BYTES = 32


@dataclass(frozen=True, slots=True, repr=False)
class McpSettings:
    """`allowed_hosts` are names without a port, `*` stands for any; `allowed_origins` are compared whole.

    `scopes` are those that clients may ask the authorization servers for, where we know them.
    With `edge`, plain calls go a shorter way than through the SDK; the answers are the same.
    `state_keys` seal what a client carries between two calls: the first seals, all open, each at least 32 bytes.
    """

    version: str
    state_keys: tuple[bytes, ...]
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...] = ()
    authorization_servers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    state_seconds: float = 120
    tracing: bool = False
    insist_on_elicitation: bool = False
    edge: bool = True
    events: bool = False
    """Whether clients may poll and subscribe to events."""

    def __post_init__(self) -> None:
        """Refuse at start what the SDK would refuse at the first request."""
        short = [key for key in self.state_keys if len(key) < STATE_KEY_BYTES]
        if not self.state_keys or short or len(set(self.state_keys)) != len(self.state_keys):
            raise ValueError(f"MCP state keys: at least one is needed, each of {STATE_KEY_BYTES} bytes or more and none twice")
