"""What may be asked only so often: the refusal beyond it."""

import math
from collections.abc import Sequence

from registry.errors import QuotaExceeded
from registry.policy import stamp
from storage.calls.allowances import Allowance, take
from storage.connection import Connection


def spend_allowances(connection: Connection, *, wanted: Sequence[Allowance], what: str, upgrade_url: str, now: float) -> None:
    """Count it, or refuse with 429; to be called first in a write, which the refusal undoes whole."""
    exceeded = take(connection, wanted=wanted, now=now)
    if exceeded is None:
        return
    limit, seconds = exceeded.limit, max(1, math.ceil(exceeded.seconds))
    raise QuotaExceeded(
        f"Too many {what}: {limit} per hour are allowed here; wait {seconds} s and repeat the call",
        code="rate_limited",
        limit=limit,
        used=limit,
        reset_at=stamp(math.ceil(now) + seconds),
        retry_after=seconds,
        upgrade_url=upgrade_url,
    )
