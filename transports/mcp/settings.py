"""What the composition root tells the MCP door."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = "connectivity"
BODY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, repr=False)
class McpSettings:
    """`state_keys` seal what a client carries between two calls: the first seals, all open, each at least 32 bytes.

    `limits` holds, by operation id, the page size that is used when a tool call names none.
    """

    version: str
    state_keys: tuple[bytes, ...]
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...] = ()
    authorization_servers: tuple[str, ...] = ()
    state_seconds: float = 120
    page_size: int = 100
    tracing: bool = False
    insist_on_elicitation: bool = False
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
