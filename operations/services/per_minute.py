"""What may be done a few times a minute to one thing: the refusal when the minute is used up."""

from registry.errors import QuotaExceeded
from registry.policy import stamp


def minute_of(now: float) -> int:
    """The minute since the epoch."""
    return int(now) // 60


def too_often(what: str, *, most: int, now: float, upgrade_url: str) -> QuotaExceeded:
    """`what` says in the past tense what was done, for example "evt_1 was retried"."""
    reset = (minute_of(now) + 1) * 60
    return QuotaExceeded(
        f"{what} {most} times in this minute; do it again from {stamp(reset)} on",
        code="rate_limited",
        limit=most,
        used=most,
        reset_at=stamp(reset),
        retry_after=reset - int(now),
        upgrade_url=upgrade_url,
    )
