"""Tiers, scopes and every limit that is a setting, in one table; and the words in which limits are spoken of everywhere.

- limit: how much of something somebody may do. Beyond it a call is refused with QuotaExceeded.
- quota: the calls of a UTC day, by tier. Its block is what a process takes of it at once, so that reads are not counted one by one.
- bucket: a token bucket, which limits bursts. It gains `rate` tokens a second, up to `size`; what is done takes tokens from it.
- portion: the tokens of a bucket that a process may spend before the database has counted them.
- allowance: how often something that costs (a mail, a question to a language model) may be done in an hour or a UTC day.
- place: room for one call under way; what has no place waits.
- lease: the time for which a process may count by itself what all processes share, until it reports again.
- ledger: the shared count in the database, to which processes report.

Sizes of one input (registry.input_bounds) and of one request (transports.http.request) are bounds: nobody uses them up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from registry.caller import Tier
from registry.clock import DAY_SECONDS


@dataclass(frozen=True, slots=True)
class TierLimits:
    """What one tier may use."""

    calls_per_day: int
    burst_per_second: float
    burst_size: int
    ai_calls_per_day: int


TIERS: Mapping[Tier, TierLimits] = {
    Tier.FREE: TierLimits(1_000, 5, 10, 10),
    Tier.PRO: TierLimits(50_000, 25, 50, 200),
    Tier.ENTERPRISE: TierLimits(1_000_000, 100, 200, 2_000),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Everything a deployment may tune. The burst limiter can be switched off for load tests, the quota cannot."""

    tiers: Mapping[Tier, TierLimits] = field(default_factory=lambda: TIERS)
    upstream_writes_per_second: float = 10
    public_per_minute: int = 60
    pages_per_minute: int = 60
    """Of the console, a person."""
    misses_per_minute: int = 10
    orders_per_minute: int = 10
    refused_bytes: int = 4 << 20
    """Of bodies that were refused, an organisation may send so many at once, and `refused_bytes_per_second` after that."""
    refused_bytes_per_second: int = 256 << 10
    public_refused_bytes: int = 1 << 20
    """The same of an address, for whoever shows no credential."""
    public_refused_bytes_per_second: int = 16 << 10
    refused_bytes_least: int = 4 << 10
    """What a small body counts for when it is refused."""
    burst_enabled: bool = True
    confirm_seconds: int = 120
    approval_seconds: int = DAY_SECONDS
    """How long a call waits for a person to approve it."""
    claim_days: int = 30
    audit_days: int = 90
    quota_block: int = 20
