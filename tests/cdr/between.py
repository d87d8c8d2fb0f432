"""Somebody between the command and the server, who hands on, loses answers, asks to wait, or never answers."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import cast

import httpx

from tests.harness.thread_servers import serving_in_thread

PASS, LOSE, HAND_ON_SILENTLY = "hand on", "hand on, and lose the answer", "hand on, and never answer"
WAIT = (429, {"Retry-After": "1"}, b'{"error": "slowly", "code": "rate_limited", "request_id": "req_1"}')
NO_MORE = (402, dict[str, str](), b'{"error": "write access has ended", "code": "upgrade_required", "request_id": "req_2"}')
Act = str | tuple[int, dict[str, str], bytes]


class Between(ThreadingHTTPServer):
    """What is done with each request, in order; everything after that is handed on."""

    daemon_threads = True

    def __init__(self, target: str, acts: Iterator[Act]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.acts = target, acts
        self.hanging, self.over = Event(), Event()
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def way(self) -> Between:
        return cast(Between, self.server)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.way.asked += 1
        act = next(self.way.acts, PASS)
        if isinstance(act, tuple):
            self.answer(*act)
            return
        headers = {name: self.headers[name] for name in ("authorization", "content-type")}
        passed = httpx.post(self.way.target + self.path, content=body, headers=headers)
        if act == HAND_ON_SILENTLY:
            self.way.hanging.set()
            self.way.over.wait(60)
        if act == PASS:
            self.answer(passed.status_code, {"content-type": passed.headers["content-type"]}, passed.content)
        else:
            self.close_connection = True

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def between(target: str, *acts: Act) -> Generator[Between]:
    with serving_in_thread(Between(target, iter(acts))) as server:
        try:
            yield server
        finally:
            server.over.set()
