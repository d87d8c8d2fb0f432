"""The 429 refusals of what may be done only so often an hour, or in one minute."""

import math
from collections.abc import Sequence

from registry.errors import QuotaExceeded
from registry.policy import rfc3339_utc
from registry.rate_limits import rate_limited
from storage.allowances import Allowance, take_allowances
from storage.engine.connection import Connection


def spend_allowances(connection: Connection, *, wanted: Sequence[Allowance], what: str, upgrade_url: str, now: float) -> None:
    """Counts one use of each allowance in `wanted`; raises QuotaExceeded where one of this hour is used up.

    Call it first in a write: the refusal undoes the whole transaction. `what` is a plural noun; `now`: Unix seconds.
    """
    exceeded = take_allowances(connection, wanted=wanted, now=now)
    if exceeded is None:
        return
    limit, seconds = exceeded.limit, max(1, math.ceil(exceeded.seconds))
    text = f"Too many {what}: {limit} per hour are allowed here; wait {seconds} s and repeat the call"
    raise rate_limited(text, limit=limit, reset=math.ceil(now) + seconds, retry_after=seconds, upgrade_url=upgrade_url)


def minute_number(now: float) -> int:
    """The whole minutes from the Unix epoch to `now`, in Unix seconds."""
    return int(now) // 60


def minute_limit_reached(what: str, *, most: int, now: float, upgrade_url: str) -> QuotaExceeded:
    """The refusal until the next minute begins. `what` says in the past tense what was done, for example "evt_1 was retried"."""
    reset = (minute_number(now) + 1) * 60
    text = f"{what} {most} times in this minute; do it again from {rfc3339_utc(reset)} on"
    return rate_limited(text, limit=most, reset=reset, retry_after=reset - int(now), upgrade_url=upgrade_url)
