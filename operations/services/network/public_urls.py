"""URLs that the network shows of its customers' systems, without what opens them."""

import re
from typing import cast

from clients.ocs.wire.members import Json
from registry.errors import OcsError

DEEPEST = 100
URL = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)([^\s/?#]*@)?([^\s?#]*)([?#]\S*)?")


def without_secrets(value: Json, depth: int = 0) -> Json:
    """The value with every URL in it shortened to address and path.

    Choice: queries go as a whole, since nobody can tell which of their names holds the secret.
    """
    if isinstance(value, str):
        return URL.sub(shortened, value)
    if depth > DEEPEST:
        raise OcsError("The charging system's answer is nested too deeply to be passed on")
    if isinstance(value, list):
        return [without_secrets(part, depth + 1) for part in value]
    if isinstance(value, dict):
        return {name: without_secrets(part, depth + 1) for name, part in value.items()}
    return value


def shortened(found: "re.Match[str]") -> str:
    """Scheme, host and path; marks where something was left out."""
    scheme, user, rest, tail = (cast("str | None", part) for part in found.groups())
    return f"{scheme}{'***@' if user else ''}{rest}{'?***' if tail else ''}"
