"""GET /openapi.json."""

from functools import cached_property
from typing import cast

import orjson

from registry.catalogue import Catalogue
from registry.errors import MethodNotAllowed
from registry.ports import Site
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.http.response import header_list, refusal_reply, send_reply
from transports.openapi.document import build_document
from transports.openapi.representation import Representation

PATH = "/openapi.json"
READS = ("GET", "HEAD")


def openapi_bytes(catalogue: Catalogue, site: Site, *, pretty: bool = False) -> bytes:
    """The document as JSON; `pretty` for files that people read and compare."""
    return orjson.dumps(build_document(catalogue, site), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE if pretty else 0)


class OpenapiPage:
    """Serves the document; it is built when it is first asked for."""

    def __init__(self, catalogue: Catalogue, site: Site) -> None:
        self._catalogue, self._site = catalogue, site

    @cached_property
    def representation(self) -> Representation:
        """The bytes, made once."""
        return Representation(openapi_bytes(self._catalogue, self._site), "application/json", "public, max-age=300")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The document, whoever asks."""
        del receive
        request = cast(HttpScope, scope)
        if request["method"] in READS:
            await self.representation.send(request, send)
        else:
            await refuse_method(request, send)


async def refuse_method(request: HttpScope, send: Send) -> None:
    """405: these pages are only read."""
    request_id = str(request.get("state", {}).get("request_id", ""))
    refusal = MethodNotAllowed(f"{request['method'][:20]} is not offered here", allow=", ".join(READS), hint="Use GET")
    reply = refusal_reply(refusal, request_id)
    kept = [(name, value) for name, value in header_list(reply, request_id, private=False) if name != b"request-id"]
    await send_reply(send, reply.status, kept, reply.body)


def openapi_app(catalogue: Catalogue, site: Site) -> App:
    """The document as an ASGI application."""
    return OpenapiPage(catalogue, site)
