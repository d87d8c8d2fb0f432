"""What `reseller doctor` says about one thing."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One check: what was looked at, how it stands, and the fix when it is not well."""

    subject: str
    state: str
    fix: str | None = None

    @property
    def mark(self) -> str:
        """What stands before it."""
        return "BAD" if self.fix else "ok"


class Note(Finding):
    """Neither well nor wrong: the reader has to judge."""

    @property
    def mark(self) -> str:
        """What stands before it."""
        return "note"
