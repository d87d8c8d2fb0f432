"""Answers of the protocol: none of them is ever stored by anybody, but for what is public."""

from typing import NamedTuple

import orjson

from transports.http.asgi import Headers, Send
from transports.http.response import send_reply
from transports.identity.oauth_error import OauthError

NO_STORE: Headers = [(b"cache-control", b"no-store"), (b"pragma", b"no-cache"), (b"referrer-policy", b"no-referrer")]
JSON = (b"content-type", b"application/json")


class Answer(NamedTuple):
    """One whole answer."""

    status: int
    body: bytes
    headers: Headers
    stored: bool = False


def json_answer(status: int, body: dict[str, object]) -> Answer:
    """A JSON object."""
    return Answer(status, orjson.dumps(body), [JSON])


def public_answer(body: bytes, seconds: int) -> Answer:
    """A document for everybody."""
    return Answer(200, body, [JSON, (b"cache-control", b"public, max-age=%d" % seconds)], stored=True)


def error_answer(refused: OauthError, *, basic: bool) -> Answer:
    """OAuth's error object; a program that came with a header is told which one is taken (RFC 6749 section 5.2)."""
    answer = json_answer(refused.status, {"error": refused.error, "error_description": refused.description})
    if refused.status == 401 and basic:
        answer.headers.append((b"www-authenticate", b'Basic realm="connectivity"'))
    return answer


async def send_answer(send: Send, answer: Answer, *, head_only: bool = False) -> None:
    """Send it."""
    headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body)), (b"x-content-type-options", b"nosniff")]
    if not answer.stored:
        headers += NO_STORE
    await send_reply(send, answer.status, headers, b"" if head_only else answer.body)
