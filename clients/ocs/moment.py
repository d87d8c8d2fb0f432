"""Times as the wire writes them: UTC, whole seconds, no zone."""

from datetime import UTC, datetime


def wire_time(moment: datetime) -> str:
    """Write a time; one without a zone is taken as UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.isoformat()[:19]


def read_time(text: str) -> datetime:
    """Read a time with or without fraction, zone or the `T`; one without a zone is UTC. ValueError when it is none."""
    moment = datetime.fromisoformat(text)
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("in UTC it lies outside the calendar") from None  # the first or the last hours of it, in another zone
