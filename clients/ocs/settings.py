"""Where the charging system is, how a call shows its token, and how long an answer is waited for; read once, never changed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class OcsSettings:
    """The address of the server, the variants of its wire, and time limits. Tokens are not settings: each call's owner has one."""

    url: str
    """The main address, ending in its version segment: there is no default, since every provider has its own."""
    statistics_url: str = ""
    """The address of the two usage statistics; empty: the main address."""
    auth: Literal["query", "bearer", "token-header"] = "query"
    concurrency: int = 8
    """Calls under way at once, per token."""
    total_seconds: float = 20.0
    """From the wait for a free place to the last byte, retry included. For streams: to the first byte, and between two chunks."""
    zone_method: str = "changeNetworkProfileOfLocationZone"
    """The wire name of the one undocumented method."""
    zone_key: str = "locationZoneId"
    profile_key: str = "networkProfileId"
    legacy_expiry: bool = False
    """Whether the server still wants the parameter names of before December 2025 when an expiry is changed."""
    ca_file: Path | None = None
    """Authorities that are trusted beside the public ones."""
    backoff_seconds: float = 0.5
    """How long a read waits before it asks again after the traffic limit."""


WireVersion = Literal["v1", "v2"]
