"""Bytes that are made once and served with an ETag, in gzip to those who take it."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property

from anyio import to_thread

from transports.http.asgi import Headers, HttpScope, Send
from transports.http.compression import GZIP, SMALLEST, takes_gzip, varied
from transports.http.response import send_reply

BEST = 9


@dataclass(frozen=True)
class Representation:
    """A body, its media type, and how long it may be kept."""

    body: bytes
    media_type: str
    cache_control: str

    @cached_property
    def compressed(self) -> bytes:
        """The same in gzip, as small as it becomes: made once."""
        return gzip.compress(self.body, BEST, mtime=0)

    @cached_property
    def etags(self) -> tuple[str, str]:
        """Strong validators of the bytes as they are and in gzip, which are two representations (RFC 9110 8.8.3.3): their SHA-256."""
        digest = hashlib.sha256(self.body).hexdigest()
        return f'"{digest}"', f'"{digest}-gzip"'

    def matches(self, if_none_match: str) -> bool:
        """The client has this content, in either coding (RFC 9110 13.1.2: weak comparison)."""
        known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        return "*" in known or not known.isdisjoint(self.etags)

    async def send(self, scope: HttpScope, send: Send) -> None:
        """200 with the bytes, 304 without; HEAD gets the headers alone."""
        condition = ", ".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match")
        coded = len(self.body) >= SMALLEST and takes_gzip(scope["headers"])
        headers: Headers = [(b"etag", self.etags[coded].encode()), (b"cache-control", self.cache_control.encode())]
        varied(headers)
        if condition and self.matches(condition):
            await send_reply(send, 304, headers, b"")
            return
        body = await to_thread.run_sync(lambda: self.compressed) if coded else self.body
        headers += [
            (b"content-type", self.media_type.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"x-content-type-options", b"nosniff"),
        ]
        if coded:
            headers.append(GZIP)
        await send_reply(send, 200, headers, b"" if scope["method"] == "HEAD" else body)
