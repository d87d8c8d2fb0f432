"""The OAuth 2.1 authorization server's endpoints."""

from typing import TYPE_CHECKING

from transports.http.asgi import App, Receive, Scope, Send
from transports.http.response import send_reply

if TYPE_CHECKING:
    from transports.service import Service

PROTOCOL_PATHS = frozenset(
    {
        "/.well-known/oauth-authorization-server/auth",
        "/auth/jwks",
        "/auth/authorize",
        "/auth/token",
        "/auth/register",
        "/auth/revoke",
    }
)


async def make_protocol(service: "Service") -> App:
    """The endpoints; the SDK that serves them is imported here."""
    del service

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_reply(send, 404, [(b"content-length", b"0")], b"")

    return app
