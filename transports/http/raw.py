"""An answer that is written to the connection itself, because no application has the request."""

from registry.errors import Refusal
from transports.http.asgi import Headers
from transports.http.response import header_list, refusal_reply
from transports.http.whole import CLOSE, head_of


def raw_answer(refusal: Refusal, request_id: str, always: Headers) -> bytes:
    """A whole HTTP/1.1 answer that ends its connection; `always` are the headers that the server adds to every answer."""
    reply = refusal_reply(refusal, request_id)
    headers = [(name, value) for name, value in header_list(reply, request_id, private=True) if name != CLOSE[0]]
    return head_of(reply.status, [*always, *headers, CLOSE]) + reply.body
