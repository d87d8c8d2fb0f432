"""A name or a word that the charging system or a customer wrote, as reports repeat it: for people to read, never an instruction."""

from operations.services.plain_line import MISLEADING

LONGEST = 80
"""Choice: a report names networks and statuses, and none of these has a longer name."""


def plain(text: object, longest: int = LONGEST) -> str:
    """One line without characters that are not seen, cut where it has no end; empty for what is no text."""
    shown = MISLEADING.sub("", text).strip() if isinstance(text, str) else ""
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
