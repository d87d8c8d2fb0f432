"""The built-in identity provider behind /auth: the protocol for programs, and the pages for people."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from registry.call import Call, Reply
from registry.errors import Refusal
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.identity.metadata import AUTHORIZE, protocol_paths
from transports.identity.reader import reads_pages

if TYPE_CHECKING:
    from transports.pages.app import Pages
    from transports.service import Service

IDENTITY_PATH = "/auth"


class IdentityDoor:
    """Hands a request to the protocol or to the pages, each made when it is first asked for."""

    def __init__(self, service: "Service", report: Callable[[Call, BaseException], None]) -> None:
        self._service, self._report = service, report
        self._paths = protocol_paths(service.site.base_url)
        self._protocol: App | None = None
        self._pages: Pages | None = None

    def serves(self, path: str) -> bool:
        """Whether a path is the identity provider's."""
        return path in self._paths or path == IDENTITY_PATH or path.startswith(IDENTITY_PATH + "/")

    def speaks(self, path: str) -> bool:
        """Whether programs talk at a path, where no person is shown anything."""
        return path in self._paths and path != AUTHORIZE

    def refused(self, scope: HttpScope, refusal: Refusal, request_id: str) -> Reply | None:
        """A refusal as a page, for somebody with a browser; nothing for programs."""
        if not self.serves(scope["path"]) or not reads_pages(scope["headers"]):
            return None
        return self._made_pages().refused(scope, refusal, request_id)

    def _made_pages(self) -> "Pages":
        from transports.pages.app import make_pages  # only once somebody comes, as the protocol

        self._pages = self._pages or make_pages(self._service, self._report)
        return self._pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if cast(HttpScope, scope)["path"] in self._paths:
            from transports.identity.protocol import make_protocol

            app = self._protocol = self._protocol or await make_protocol(self._service)
        else:
            app = self._made_pages()
        await app(scope, receive, send)
