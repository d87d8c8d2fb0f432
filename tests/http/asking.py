"""Requests byte by byte, for what no client would send."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

import orjson

from tests.world import HOST
from transports.http.asgi import App, Headers, Message

GONE = None
"""In place of a piece of the body: the client has hung up."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    headers: dict[str, str]
    body: bytes
    pieces_left: int
    """Pieces of the body that nobody asked for."""

    @property
    def code(self) -> str:
        return orjson.loads(self.body)["code"]


async def ask(
    door: App,
    method: str = "GET",
    target: bytes = b"/health",
    headers: Sequence[tuple[bytes, bytes]] = (),
    pieces: Sequence[bytes | None] = (b"",),
    *,
    host: bytes | None = HOST.encode(),
    state: dict[str, object] | None = None,
) -> RawAnswer:
    """One request; the body arrives in the pieces given."""
    raw_path, _, query = target.partition(b"?")
    scope: Message = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw_path.decode("latin-1")),  # as the server does
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": [*([] if host is None else [(b"host", host)]), *headers],
        "client": ("203.0.113.9", 4711),
        "server": (HOST, 80),
        "state": {} if state is None else state,
    }
    waiting, sent = list(pieces), list[Message]()

    async def receive() -> Message:
        piece = waiting.pop(0)
        if piece is GONE:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        sent.append(message)

    await door(scope, receive, send)
    start, *rest = sent
    names = [name for name, _ in cast(Headers, start["headers"])]
    assert len(names) == len(set(names)), f"a header was sent twice: {names}"
    found = {name.decode(): value.decode() for name, value in cast(Headers, start["headers"])}
    return RawAnswer(cast(int, start["status"]), found, b"".join(cast(bytes, m["body"]) for m in rest), len(waiting))


def bearer_fields(secret: str) -> tuple[bytes, bytes]:
    return (b"authorization", f"Bearer {secret}".encode())


def json_body(raw: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(raw))]
