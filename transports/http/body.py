"""The body of a request: read when the pipeline asks for it, which is after authentication, and counted while it comes in."""

import re
from typing import cast

from registry.errors import BadRequest, BodyTooLarge, Refusal, RequestTimeout, UnsupportedMediaType
from transports.http.asgi import BodyMessage, HttpScope, Receive
from transports.http.connection import TIMED_OUT
from transports.http.request import Head

JSON_TYPE = re.compile(rb'application/json(?:[ \t]*;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8"))?[ \t]*;?[ \t]*', re.IGNORECASE)


class ClientGone(BadRequest):
    """The connection ended before the body did: nobody reads this answer, but the log tells it from a fault of ours."""

    code = "client_disconnected"


class Body:
    """What `Call.read_body` reads."""

    __slots__ = ("_any_type", "_head", "_receive", "_scope")

    def __init__(self, head: Head, receive: Receive, scope: HttpScope, *, any_type: bool = False) -> None:
        """`any_type`: what others push says of itself whatever their wire's authors thought of; it is parsed as JSON all the same."""
        self._head, self._receive, self._scope, self._any_type = head, receive, scope, any_type

    async def read(self, limit: int) -> bytes:
        """The whole body, or a refusal as soon as it is known to be too large."""
        head = self._head
        if head.has_body:
            self._check_type()
            if head.length is not None and head.length > limit:
                raise too_large(limit)
        message = await self._next()
        body, more = message.get("body", b""), message.get("more_body", False)
        if not more:
            return self._checked(body, limit)
        pieces, size = [body], len(body)
        while more and size <= limit:
            message = await self._next()
            body, more = message.get("body", b""), message.get("more_body", False)
            pieces.append(body)
            size += len(body)
        return self._checked(b"".join(pieces), limit)

    def _checked(self, body: bytes, limit: int) -> bytes:
        if len(body) > limit:
            raise too_large(limit)
        if body and not self._head.has_body:  # a server that frames bodies without headers (HTTP/2)
            self._check_type()
        return body

    async def _next(self) -> BodyMessage:
        message = cast(BodyMessage, await self._receive())
        if message["type"] == "http.disconnect":
            raise broken_off(self._scope)
        return message

    def _check_type(self) -> None:
        single = self._head.single
        if single.get(b"content-encoding", b"identity").lower() != b"identity":
            raise UnsupportedMediaType("content-encoding: compressed bodies are not taken", hint="Send the JSON as it is")
        if not self._any_type and not JSON_TYPE.fullmatch(single.get(b"content-type", b"")):
            raise UnsupportedMediaType("content-type: must be application/json, in UTF-8", hint="Send Content-Type: application/json")


def broken_off(scope: HttpScope) -> Refusal:
    """A body that never became whole; mostly there is nobody left to tell, but for the log line."""
    if scope.get("state", {}).get(TIMED_OUT):
        return RequestTimeout("The body did not arrive in time", hint="Send the request again, at once and whole")
    return ClientGone("The connection ended before the body was complete")


def too_large(limit: int) -> BodyTooLarge:
    """The refusal of a body over the operation's limit."""
    return BodyTooLarge(f"The body is larger than {limit} bytes", hint="Send it in smaller pieces")
