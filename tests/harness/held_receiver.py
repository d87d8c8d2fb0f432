"""A receiver that a test can hold up: it notes every delivery at once and answers when the gate is open."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event
from typing import cast

from standardwebhooks import Webhook

from tests.harness.thread_servers import serving_in_thread


class Receiver(ThreadingHTTPServer):
    """Whoever posts here waits for the gate, and gets a 204."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.gate, self.news = Event(), Condition()
        self.posts: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    def wait(self, posts: int) -> None:
        with self.news:
            assert self.news.wait_for(lambda: len(self.posts) >= posts, timeout=60), f"{len(self.posts)} of {posts} posts"

    def wait_for_events(self, events: set[str]) -> None:
        with self.news:
            assert self.news.wait_for(lambda: events <= set(self.ids()), timeout=60), events - set(self.ids())

    def ids(self) -> Counter[str]:
        return Counter(headers["webhook-id"] for headers, _ in self.posts)

    def check(self, secret: str) -> None:
        """Every post is signed, names its event, and says the same each time."""
        bodies = dict[str, bytes]()
        for headers, body in self.posts:
            event = cast(dict[str, str], Webhook(secret).verify(body, headers))
            assert headers["webhook-id"] == event["id"]
            assert bodies.setdefault(event["id"], body) == body


class Answer(BaseHTTPRequestHandler):
    """One delivery."""

    def do_POST(self) -> None:
        receiver = cast(Receiver, self.server)
        body = self.rfile.read(int(self.headers["content-length"]))
        with receiver.news:
            receiver.posts.append(({name.lower(): value for name, value in self.headers.items()}, body))
            receiver.news.notify_all()
        receiver.gate.wait(60)
        self.send_response_only(204)
        self.end_headers()

    def handle(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the process that posted was killed
            super().handle()


@contextmanager
def receiving(*, held: bool = False) -> Generator[Receiver]:
    with serving_in_thread(Receiver()) as receiver:
        if not held:
            receiver.gate.set()
        try:
            yield receiver
        finally:
            receiver.gate.set()
