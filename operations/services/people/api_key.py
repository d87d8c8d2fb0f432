"""Making an API key: ak_ + 40 base62 + 6 base62 of checksum (security.md 3.10)."""

from typing import NamedTuple

from operations.services.secret_token import digest_of
from registry.ids import Ids
from registry.policy import BASE62, checksum

PREFIX_LENGTH = 12


class NewKey(NamedTuple):
    """A key as it is shown once, and what is kept of it."""

    secret: str
    digest: bytes
    prefix: str


def new_api_key(ids: Ids) -> NewKey:
    """A key of 238 random bits."""
    number = int.from_bytes(ids.bytes(40))  # 320 bits over 62^40: the remainder's bias is below 2^-80
    body = ""
    for _ in range(40):
        number, digit = divmod(number, 62)
        body += BASE62[digit]
    secret = f"ak_{body}{checksum(body)}"
    return NewKey(secret, digest_of(secret), secret[:PREFIX_LENGTH])
