"""Bytes that are made once and served with an ETag."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from transports.http.asgi import Headers, HttpScope, Send
from transports.http.response import send_reply


@dataclass(frozen=True)
class Representation:
    """A body, its media type, and how long it may be kept."""

    body: bytes
    media_type: str
    cache_control: str

    @cached_property
    def etag(self) -> str:
        """A strong validator: the SHA-256 of the bytes."""
        return f'"{hashlib.sha256(self.body).hexdigest()}"'

    def matches(self, if_none_match: str) -> bool:
        """The client has these very bytes (RFC 9110 13.1.2: weak comparison)."""
        known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        return "*" in known or self.etag in known

    async def send(self, scope: HttpScope, send: Send) -> None:
        """200 with the bytes, 304 without; HEAD gets the headers alone."""
        condition = ", ".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match")
        headers: Headers = [(b"etag", self.etag.encode()), (b"cache-control", self.cache_control.encode())]
        if condition and self.matches(condition):
            await send_reply(send, 304, headers, b"")
            return
        headers += [
            (b"content-type", self.media_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send_reply(send, 200, headers, b"" if scope["method"] == "HEAD" else self.body)
