"""Access tokens of the built-in identity provider (RFC 9068), read after they have been verified."""

import base64
import json
from typing import cast

TYPE = "at+jwt"


def grant_in(token: str) -> str | None:
    """The grant (`sid`) that a verified token was made for; None for a token that is no access token or names no grant."""
    head, payload, _ = token.split(".")
    if str(part(head).get("typ")).lower() != TYPE:
        return None
    grant = part(payload).get("sid")
    return grant if isinstance(grant, str) and grant else None


def part(text: str) -> dict[str, object]:
    """A part of a token; the verifier has seen that it is a JSON object."""
    return cast("dict[str, object]", json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
