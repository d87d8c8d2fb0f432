"""What `reseller doctor` says about one thing."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One check: what was looked at, how it stands, and the fix when it is not well."""

    subject: str
    state: str
    fix: str | None = None
