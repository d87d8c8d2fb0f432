"""A model that says one word, and the next when it is told to: who reads the first before that reads a stream that nobody gathers."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.harness.thread_servers import serving_in_thread

FIRST, SECOND = "first ", "second"


def piece(content: str | None) -> bytes:
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": "stop" if content is None else None}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


@contextmanager
def slow_model() -> Generator[tuple[str, threading.Event]]:
    """Its address, and what lets it go on."""
    go_on = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(piece(FIRST))
            self.wfile.flush()
            go_on.wait(20)
            self.wfile.write(piece(SECOND) + piece(None) + b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", go_on
        finally:
            go_on.set()
