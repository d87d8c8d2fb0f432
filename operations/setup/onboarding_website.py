"""The address of an operator's website."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field


def without_credentials(address: str) -> str:
    """An address of a host, that holds no name and password. A refusal repeats nothing of it."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    else:
        if parts.username is not None or parts.password is not None:
            raise ValueError("an address of a website holds no user name and no password")
    if not host or port == 0 or not address.isprintable():
        raise ValueError("must be an address such as https://fjord.example")
    return address


Website = Annotated[str, Field(max_length=300, pattern=r"^https?://[^\s\\]+$"), AfterValidator(without_credentials)]
