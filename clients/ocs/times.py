"""Times as the charging system writes them: UTC, `YYYY-MM-DDTHH:MM:SS`, now and then with a fraction, a zone or a blank for the `T`."""

from collections.abc import Mapping
from datetime import UTC, datetime


def wire_time(moment: datetime) -> str:
    """`moment` as the wire writes it; without a zone it is taken as UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.isoformat()[:19]


def parse_wire_time(text: str) -> datetime:
    """The time in UTC that `text` says, with or without fraction, zone or the `T`; without a zone it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("in UTC it lies outside the calendar") from None  # the first or the last hours of it, in another zone


def wire_seconds(text: str | None) -> float | None:
    """The Unix seconds of a time that the wire wrote; None where there is none, or none that can be read."""
    try:
        return None if text is None else parse_wire_time(text).timestamp()
    except (ValueError, OverflowError):
        return None


def event_seconds(event: Mapping[str, object]) -> float:
    """The Unix seconds at which a network event happened; 0 where it names no readable time, so that it sorts first."""
    try:
        return parse_wire_time(str(event.get("eventTime"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0
