"""The console behind /console, made when the first operator comes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio.to_thread

from registry.call import Call, Reply
from registry.errors import Refusal
from transports.http.asgi import HttpScope, Receive, Scope, Send
from transports.http.request import reads_pages

if TYPE_CHECKING:
    from transports.service import Service
    from transports.web.console.app import ConsoleApp

CONSOLE_ROOT = "/console"


class ConsoleDoor:
    """Hands a request to the console. Only the built-in identity provider signs people in here."""

    def __init__(self, service: "Service", report: Callable[[Call, BaseException], None]) -> None:
        self._service, self._report = service, report
        self._console: ConsoleApp | None = None

    def serves(self, path: str) -> bool:
        return path == CONSOLE_ROOT or path.startswith(CONSOLE_ROOT + "/")

    def refused(self, scope: HttpScope, refusal: Refusal, request_id: str) -> Reply | None:
        """A refusal as a page, for somebody with a browser; nothing for programs."""
        return self._made().refused(scope, refusal, request_id) if reads_pages(scope["headers"]) else None

    def _made(self) -> "ConsoleApp":
        from transports.web.console.app import ConsoleApp  # only once somebody comes
        from transports.web.pages.request import make_page_context

        self._console = self._console or ConsoleApp(make_page_context(self._service, self._report))
        return self._console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._console or await anyio.to_thread.run_sync(self._made)
        await app(scope, receive, send)
