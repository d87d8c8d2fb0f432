"""What a receiver asks for with Retry-After."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from clients.webhooks.schedule import LONGEST_RETRY_AFTER


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Seconds from now (at most 24 h), from delta-seconds or an HTTP date; None when absent, past or unreadable."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        # Ten digits already exceed the cap; longer ones are not worth converting.
        return min(float(text[:10]), LONGEST_RETRY_AFTER)
    seconds = _until(text, now)
    return None if seconds is None or seconds <= 0 else min(seconds, LONGEST_RETRY_AFTER)


def _until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.timestamp() - now
    except (ValueError, OverflowError):
        return None
