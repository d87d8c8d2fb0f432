"""A moment that a person names: a time, or how long ago it was."""

import re

from operations.connectivity.moment import LATEST, unix_seconds
from registry.clock import Clock
from transports.cli.failure import Failure

AGO = re.compile(r"([0-9]{1,6})([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
RULE = "must be Unix seconds, a time with its offset such as 2026-11-20T09:00:00Z, or how long ago it was: 30m, 2h, 1d"


def since(option: str, text: str, clock: Clock) -> int:
    """Whole Unix seconds; a moment that has not come yet is a mistake."""
    now = clock.now()
    found = moment(option, text, now)
    if found > now:
        raise Failure(f"{option} {text}: has not come yet; {RULE}")
    return int(found)


def moment(option: str, text: str, now: float) -> float:
    """In each of the ways it may be written."""
    ago = AGO.fullmatch(text)
    if ago is not None:
        return max(0.0, now - int(ago[1]) * SECONDS[ago[2]])
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return min(float(text), LATEST)
    try:
        found = unix_seconds(text)
    except ValueError:
        raise Failure(f"{option} {text[:60]}: {RULE}") from None
    return found if isinstance(found, float) and found >= 0 else 0.0
