"""Share links of schedules: a token that only its holder knows, and what is kept of it."""

import base64
import hashlib

from registry.ids import Ids

TOKEN_BYTES = 32


def new_token(ids: Ids) -> str:
    """256 random bits, as base64url."""
    return base64.urlsafe_b64encode(ids.bytes(TOKEN_BYTES)).decode().rstrip("=")


def digest_of(token: str) -> bytes:
    """What is stored of a token: nobody can make the link of it."""
    return hashlib.sha256(token.encode()).digest()


def share_url(base_url: str, token: str) -> str:
    """Where strangers read the newest report."""
    return f"{base_url}/v1/intelligence/share/{token}"
