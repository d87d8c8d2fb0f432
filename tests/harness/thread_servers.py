"""A server of the standard library beside a test."""

from collections.abc import Generator
from contextlib import contextmanager
from socketserver import BaseServer
from threading import Thread
from typing import TypeVar

Server = TypeVar("Server", bound=BaseServer)


@contextmanager
def serving_in_thread(server: Server) -> Generator[Server]:
    """`server` answers in a thread of its own for the length of a block, and is closed at its end."""
    with server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
