"""A charging system that repeats the caller's token wherever it can: in texts, members, headers, pages, addresses and half answers."""

import asyncio
import gzip
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import orjson

from simulators.network.dispatch import ANSWER_KEYS
from simulators.network.entities import NetworkToken
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World
from tests.harness.thread_servers import serving_in_thread

START = 1_800_014_400
PIN = "pin-canary-0417"


def laden(value: Any, token: str) -> Any:
    """The payload with the token in a member that nobody documents, in every record."""
    if isinstance(value, list):
        return [laden(row, token) for row in cast(list[Any], value)]
    if isinstance(value, dict):
        return {**{name: laden(part, token) for name, part in cast(dict[str, Any], value).items()}, "credential": f"Token {token}"}
    return value


def failing(code: int, token: str, **payload: Any) -> bytes:
    """A refusal of the wire that says the token in its text."""
    return orjson.dumps({"status": {"code": code, "msg": f"invalid token {token}", "message": token}, **payload})


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        echo, address = cast(TokenEchoServer, self.server), urlsplit(self.path)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.token = parse_qs(address.query)["token"][0]
        self.method: str = next(iter(orjson.loads(body)))
        self.key = ANSWER_KEYS.get(self.method, self.method)
        echo.heard.add(self.token)
        self.answer = echo.ask(address.path, address.query, body)
        if echo.squawk is not None and self.method == echo.strikes:
            echo.squawk(self)
        else:
            self.say(200, self.answer)

    def say(self, status: int, body: bytes, **headers: str) -> None:
        """An answer; the reason phrase is a header's neighbour."""
        self.send_response(status, headers.pop("reason", None))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


def new_member(handler: Handler) -> None:
    """A success that holds it, where newer servers may add members."""
    document = orjson.loads(handler.answer)
    payload = {name: laden(value, handler.token) for name, value in document.items() if name != "status"}
    handler.say(200, orjson.dumps({"status": {**document["status"], "msg": handler.token}, **payload}))


def page(status: int) -> Callable[[Handler], None]:
    """An error page, with headers of the kind that proxies add."""

    def send(handler: Handler) -> None:
        token = handler.token
        html = f"<html><title>{token}</title><body>Token {token} failed</body></html>".encode()
        handler.say(status, html, reason=f"Bad token {token}", www_authenticate=f'Bearer token="{token}"', set_cookie=f"t={token}")

    return send


def invented(handler: Handler) -> None:
    """Details in which it stands for a network."""
    there = {"invalidTadigs": [handler.token], "existingLZ": {"Id": 1, "name": handler.token}}
    handler.say(200, failing(10001, handler.token, **{handler.key: there}))


def address(handler: Handler) -> None:
    """Another place, with the token in its address."""
    handler.say(302, b"", location=f"http://127.0.0.1:1/{handler.token}?token={handler.token}")


SQUAWKS: dict[str, Callable[[Handler], None]] = {
    "code 8": lambda handler: handler.say(200, failing(8, handler.token)),
    "code 3 with a payload": lambda handler: handler.say(200, failing(3, handler.token, **{handler.key: {"token": handler.token}})),
    "code 10001": invented,
    "code 18": lambda handler: handler.say(200, failing(18, handler.token)),
    "code 100": lambda handler: handler.say(200, failing(100, handler.token)),
    "a code that is none": lambda handler: handler.say(200, b'{"status":{"code":"%s"}}' % handler.token.encode()),
    "status 401": page(401),
    "status 500": page(500),
    "another place": address,
    "cut off": lambda handler: handler.say(200, b'{"status":{"code":0,"msg":"%s"},"' % handler.token.encode()),
    "text": lambda handler: handler.say(200, f"ERROR {handler.token}".encode(), content_type="text/plain"),
    "another shape": lambda handler: handler.say(200, orjson.dumps({"status": {"code": 0}, handler.key: handler.token})),
    "not gzip": lambda handler: handler.say(200, handler.token.encode(), content_encoding="gzip"),
    "gzip": lambda handler: handler.say(200, gzip.compress(failing(3, handler.token)), content_encoding="gzip"),
    "not HTTP": lambda handler: cast(None, handler.wfile.write(f"HTTP/{handler.token} {handler.token}\r\n\r\n".encode())),
    "nothing": lambda handler: None,
    "a new member": new_member,
}


class TokenEchoServer(HTTPServer):
    """A simulated network behind a server that takes one call at a time. `squawk` answers calls of the method `strikes`."""

    squawk: Callable[[Handler], None] | None = None
    strikes = ""

    def __init__(self, *tokens: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.world: World = build_world(1, START, history_days=1)
        for token in tokens:
            self.world.tokens[token] = NetworkToken(token, 7001)
        for line in self.world.lines.values():
            line.sim.pin1 = line.sim.pin2 = line.sim.puk1 = line.sim.puk2 = PIN
        self.heard: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._sandbox = SimulatedNetwork(self.world, wall=lambda: float(START))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/ocs-custo/main/v1"

    def ask(self, path: str, query: str, body: bytes) -> bytes:
        return self._loop.run_until_complete(self._sandbox.handle("POST", path, query, {}, body)).body

    def server_close(self) -> None:
        super().server_close()
        self._loop.close()


@contextmanager
def token_echo_server(*tokens: str) -> Generator[TokenEchoServer]:
    with serving_in_thread(TokenEchoServer(*tokens)) as server:
        yield server
