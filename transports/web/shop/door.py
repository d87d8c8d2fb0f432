"""The shops behind /shop, made when the first buyer comes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio.to_thread

from registry.call import Call, Reply
from registry.errors import Refusal
from transports.http.asgi import HttpScope, Receive, Scope, Send
from transports.http.request import reads_pages

if TYPE_CHECKING:
    from transports.service import Service
    from transports.web.shop.app import ShopsApp

SHOP_PATH = "/shop"


class ShopDoor:
    def __init__(self, service: "Service", report: Callable[[Call, BaseException], None]) -> None:
        self._service, self._report = service, report
        self._shops: ShopsApp | None = None

    def serves(self, path: str) -> bool:
        return path == SHOP_PATH or path.startswith(SHOP_PATH + "/")

    def refused(self, scope: HttpScope, refusal: Refusal, request_id: str) -> Reply | None:
        """A refusal as a page, for somebody with a browser; nothing for programs."""
        return self._made().refused(scope, refusal, request_id) if reads_pages(scope["headers"]) else None

    def _made(self) -> "ShopsApp":
        from transports.web.shop.app import ShopsApp  # only once somebody comes: it brings Starlette and its templates
        from transports.web.shop.request import shop_context_of

        service = self._service
        self._shops = self._shops or ShopsApp(shop_context_of(service.pipeline, self._report, service.site.base_url))
        return self._shops

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._shops or await anyio.to_thread.run_sync(self._made)
        await app(scope, receive, send)
