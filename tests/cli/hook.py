"""A receiver of webhooks on loopback, whose mood a test chooses."""

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Event
from typing import cast

from standardwebhooks import Webhook

from tests.harness.thread_servers import serving_in_thread


class Hook(ThreadingHTTPServer):
    """Puts every delivery into `seen`, then answers `status`; 0 is no answer at all until the test ends."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status, self.ended = 204, Event()
        self.seen: Queue[tuple[int, dict[str, str], bytes]] = Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    def take(self, secret: str) -> tuple[int, str]:
        """The next delivery, verified by the independent library: how it was answered, and the event's id."""
        status, headers, body = self.seen.get(timeout=60)
        event = cast(dict[str, str], Webhook(secret).verify(body, headers))
        assert headers["webhook-id"] == event["id"]
        return status, event["id"]


class Answer(BaseHTTPRequestHandler):
    """One delivery."""

    def do_POST(self) -> None:
        hook = cast(Hook, self.server)
        status = hook.status
        body = self.rfile.read(int(self.headers["content-length"]))
        hook.seen.put((status, {name.lower(): value for name, value in self.headers.items()}, body))
        if status == 0:
            hook.ended.wait(60)
            self.close_connection = True
            return
        self.send_response_only(status)
        self.end_headers()


@contextmanager
def listening() -> Generator[Hook]:
    """A receiver for the length of a block."""
    with serving_in_thread(Hook()) as hook:
        try:
            yield hook
        finally:
            hook.ended.set()
