"""Addresses of pages that people give us: of a host, and without a name and a password."""

import re
from urllib.parse import urlsplit

# Letters of any script; no ASCII sign but . - and _, for one program ends a name at it and another does not.
HOST = re.compile(r"[0-9a-f.]*:[0-9a-f:.]+|[^\W_][^\x00-,/:-@\[-^`{-\x7f]*")


def checked_host(address: str, *, what: str, such_as: str, strict: bool) -> str:
    """The address as it is. A refusal repeats nothing of it. `strict`: people are led there, so every program must see the same host."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    else:
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"{what} holds no user name and no password")
    if not host or port == 0 or not address.isprintable() or (strict and HOST.fullmatch(host) is None):
        raise ValueError(f"must be an {such_as}")
    return address
