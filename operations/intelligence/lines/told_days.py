"""Days that the charging system writes at the beginning of its times."""

from datetime import date


def day_told(text: str | None) -> date | None:
    """The UTC day of a time; nothing where none is told, or none that can be read."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
