"""An answer that is written to the connection itself, because no application has the request."""

from registry.errors import Refusal
from transports.http.response import header_list, refusal_reply
from transports.http.whole import CLOSE, head_of


def raw_answer(refusal: Refusal, request_id: str) -> bytes:
    """A whole HTTP/1.1 answer that ends its connection."""
    reply = refusal_reply(refusal, request_id)
    return head_of(reply.status, [*header_list(reply, request_id, private=True), CLOSE]) + reply.body
