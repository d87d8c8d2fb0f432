"""One request to the application by hand, so that a test can hang up in the middle of it."""

from typing import cast

import anyio
import orjson

from tests.mcp.house import House, wire_headers
from tests.world import HOST, Credentials
from transports.http.asgi import Message


class Wire:
    """A client that sends one whole request and then listens until it hangs up."""

    def __init__(self, house: House, who: Credentials, body: dict[str, object], **headers: str) -> None:
        given = {"host": HOST, "content-type": "application/json", "authorization": f"Bearer {who.secret}", **wire_headers(body), **headers}
        self._house, self._body = house, orjson.dumps(body)
        given["content-length"] = str(len(self._body))
        self._headers = [(name.encode(), value.encode()) for name, value in given.items()]
        self._sent, self._gone = False, anyio.Event()
        self.promises_more = False
        self.started, self.ended = anyio.Event(), anyio.Event()
        self.status, self.received = 0, b""

    async def run(self) -> None:
        scope: dict[str, object] = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": self._headers,
            "client": ("127.0.0.1", 50000),
        }
        try:
            await self._house.app(scope, self._receive, self._send)
        finally:
            self.ended.set()

    def hang_up(self) -> None:
        self._gone.set()

    def events(self) -> list[dict[str, object]]:
        lines = self.received.decode().splitlines()
        return [orjson.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]

    async def _receive(self) -> Message:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self._body, "more_body": self.promises_more}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = cast(int, message["status"])
        else:
            self.received += cast(bytes, message.get("body", b""))
        self.started.set()
