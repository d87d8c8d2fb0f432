"""The built-in identity provider behind /auth: the protocol for programs, and the pages for people."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from registry.call import Call
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.http.rules import HttpRules
from transports.identity.protocol import PROTOCOL_PATHS, make_protocol
from transports.pages.app import make_pages

if TYPE_CHECKING:
    from transports.service import Service

IDENTITY_PATH = "/auth"


class IdentityDoor:
    """Hands a request to the protocol or to the pages, each made when it is first asked for."""

    def __init__(self, service: "Service", rules: HttpRules, report: Callable[[Call, BaseException], None]) -> None:
        self._service, self._rules, self._report = service, rules, report
        self._protocol: App | None = None
        self._pages: App | None = None

    def serves(self, path: str) -> bool:
        """Whether a path is the identity provider's."""
        return path in PROTOCOL_PATHS or path == IDENTITY_PATH or path.startswith(IDENTITY_PATH + "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if cast(HttpScope, scope)["path"] in PROTOCOL_PATHS:
            app = self._protocol = self._protocol or await make_protocol(self._service)
        else:
            app = self._pages = self._pages or make_pages(self._service, self._rules, self._report)
        await app(scope, receive, send)
