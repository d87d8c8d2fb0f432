"""An answer that is written to the connection itself, because no application has the request."""

import http

import orjson

from registry.errors import Refusal
from transports.http.response import header_list, refusal_reply


def raw_answer(refusal: Refusal, request_id: str) -> bytes:
    """A whole HTTP/1.1 answer that ends its connection."""
    body = orjson.dumps(refusal.body(request_id))
    phrase = http.HTTPStatus(refusal.status).phrase
    lines = [b"HTTP/1.1 %d %s" % (refusal.status, phrase.encode())]
    lines += [name + b": " + value for name, value in header_list(refusal_reply(refusal, request_id), request_id, private=True)]
    return b"\r\n".join([*lines, b"connection: close", b"", body])
