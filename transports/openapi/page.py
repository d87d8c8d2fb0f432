"""GET /openapi.json; and representations, which are made once and served with an ETag, in gzip to those who take it."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import orjson
from anyio import to_thread

from registry.answer import refusal_reply
from registry.catalogue import Catalogue
from registry.errors import MethodNotAllowed
from registry.ports import Site
from transports.http.asgi import Headers, HttpScope, Receive, Scope, Send
from transports.http.compression import GZIP_HEADER, SMALLEST_COMPRESSED, takes_gzip, vary_by_coding
from transports.http.response import header_list, send_reply
from transports.openapi.document import build_openapi

_BEST_COMPRESSION = 9


@dataclass(frozen=True)
class Representation:
    """A body, its media type, and how long it may be kept."""

    body: bytes
    media_type: str
    cache_control: str

    @cached_property
    def compressed(self) -> bytes:
        """The same in gzip, as small as it becomes: made once."""
        return gzip.compress(self.body, _BEST_COMPRESSION, mtime=0)

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
        coded = len(self.body) >= SMALLEST_COMPRESSED and takes_gzip(scope["headers"])
        headers: Headers = [(b"etag", self.etags[coded].encode()), (b"cache-control", self.cache_control.encode())]
        vary_by_coding(headers)
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
            headers.append(GZIP_HEADER)
        await send_reply(send, 200, headers, b"" if scope["method"] == "HEAD" else body)


OPENAPI_PATH = "/openapi.json"
READ_METHODS = ("GET", "HEAD")


def openapi_bytes(catalogue: Catalogue, site: Site, *, pretty: bool = False) -> bytes:
    """The document as JSON; `pretty` for files that people read and compare."""
    return orjson.dumps(build_openapi(catalogue, site), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE if pretty else 0)


class OpenapiPage:
    """Serves the document; it is built when it is first asked for."""

    def __init__(self, catalogue: Catalogue, site: Site) -> None:
        self._catalogue, self._site = catalogue, site

    @cached_property
    def representation(self) -> Representation:
        return Representation(openapi_bytes(self._catalogue, self._site), "application/json", "public, max-age=300")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        request = cast(HttpScope, scope)
        if request["method"] in READ_METHODS:
            await self.representation.send(request, send)
        else:
            await refuse_method(request, send)


async def refuse_method(request: HttpScope, send: Send) -> None:
    """405: these pages are only read."""
    request_id = str(request.get("state", {}).get("request_id", ""))
    refusal = MethodNotAllowed(f"{request['method'][:20]} is not offered here", allow=", ".join(READ_METHODS), hint="Use GET")
    reply = refusal_reply(refusal, request_id)
    kept = [(name, value) for name, value in header_list(reply, request_id, private=False) if name != b"request-id"]
    await send_reply(send, reply.status, kept, reply.body)
