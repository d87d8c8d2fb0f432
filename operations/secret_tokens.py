"""Secrets that are handed out once (tokens, API keys), and the digests that are all we keep of them."""

import base64
import hashlib
from typing import NamedTuple

from registry.authentication import BASE62_DIGITS, api_key_checksum
from registry.ids import Ids

KEY_PREFIX_LENGTH = 12
_TOKEN_BYTES = 32


def new_secret_token(ids: Ids, prefix: str = "") -> str:
    """A secret of 256 random bits as base64url. By its `prefix`, scanners of leaked secrets recognise it."""
    return prefix + base64.urlsafe_b64encode(ids.bytes(_TOKEN_BYTES)).decode().rstrip("=")


def secret_digest(secret: str) -> bytes:
    """The SHA-256 of `secret`, which is all that is stored of it."""
    return hashlib.sha256(secret.encode()).digest()


class NewApiKeySecret(NamedTuple):
    """An API key as it is shown once (`secret`), and what is stored of it."""

    secret: str
    digest: bytes
    prefix: str


def new_api_key(ids: Ids) -> NewApiKeySecret:
    """An API key of 238 random bits: ak_, 40 characters of base 62 and 6 of checksum (docs/security.md)."""
    number = int.from_bytes(ids.bytes(40))  # 320 bits over 62^40: the remainder's bias is below 2^-80
    body = ""
    for _ in range(40):
        number, digit = divmod(number, 62)
        body += BASE62_DIGITS[digit]
    secret = f"ak_{body}{api_key_checksum(body)}"
    return NewApiKeySecret(secret, secret_digest(secret), secret[:KEY_PREFIX_LENGTH])
