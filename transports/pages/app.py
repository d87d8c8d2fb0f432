"""The pages, by path."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from registry.call import Call
from transports.http.asgi import App, Receive, Scope, Send
from transports.http.response import send_reply
from transports.http.rules import HttpRules

if TYPE_CHECKING:
    from transports.service import Service


def make_pages(service: "Service", rules: HttpRules, report: Callable[[Call, BaseException], None]) -> App:
    """Every page of the built-in identity provider."""
    del service, rules, report

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_reply(send, 404, [(b"content-length", b"0")], b"")

    return app
