"""Secrets of 256 random bits that are handed out, and the digests that are all we keep of them."""

import base64
import hashlib

from registry.ids import Ids

BYTES = 32


def new_token(ids: Ids, prefix: str = "") -> str:
    """As base64url; by a prefix, scanners recognise it."""
    return prefix + base64.urlsafe_b64encode(ids.bytes(BYTES)).decode().rstrip("=")


def digest_of(secret: str) -> bytes:
    """What is kept of one: nobody can make the secret of it."""
    return hashlib.sha256(secret.encode()).digest()
