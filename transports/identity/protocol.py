"""The OAuth 2.1 authorization server's endpoints.

Pages of other origins may call it when whoever runs the service lists them: the HTTP door says so to browsers (CORS), for all but the page
that people are sent to.
"""

from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread

from clients.identity.client_metadata import ClientDocuments
from operations.deps import Deps
from operations.services.people.signing_keys import key_set
from registry.errors import BadRequest, MethodNotAllowed
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.identity.answer import Answer, error_answer, public_answer, send_answer
from transports.identity.metadata import AUTHORIZE, JWKS, REGISTER, REVOKE, TOKEN, metadata
from transports.identity.oauth_error import OauthError
from transports.identity.parameters import header
from transports.identity.reader import reads_pages
from transports.sessions import own_verifier

if TYPE_CHECKING:
    from transports.identity.endpoints import Endpoints
    from transports.service import Service

JWKS_SECONDS, METADATA_SECONDS = 300, 3600
METHODS = {AUTHORIZE: "GET", TOKEN: "POST", REGISTER: "POST", REVOKE: "POST"}


class Protocol:
    """The public documents, and behind them what the SDK serves."""

    def __init__(self, deps: Deps, documents: ClientDocuments) -> None:
        self._deps, self._documents = deps, documents
        self._metadata = metadata(deps.site)
        self._endpoints: Endpoints | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. What the store refuses is answered as everywhere else."""
        request = cast(HttpScope, scope)
        allow = METHODS.get(request["path"], "GET, HEAD")
        if request["method"] not in allow.split(", "):
            raise MethodNotAllowed(f"This address takes {allow}", allow=allow, hint=f"Use {allow.partition(',')[0]}")
        try:
            answer = await self._answer(request, receive)
        except OauthError as refused:
            if request["path"] == AUTHORIZE and reads_pages(request["headers"]):
                hint = "The program that sent you here did something wrong: begin the login again there, or tell whoever makes it"
                raise BadRequest(refused.description, hint=hint) from None
            answer = error_answer(refused, basic=bool(header(request["headers"], b"authorization")))
        await send_answer(send, answer, head_only=request["method"] == "HEAD")

    async def _answer(self, request: HttpScope, receive: Receive) -> Answer:
        if request["path"] == JWKS:
            return public_answer(await key_set(self._deps), JWKS_SECONDS)
        if request["path"] not in METHODS:
            return public_answer(self._metadata, METADATA_SECONDS)
        if self._endpoints is None:
            self._endpoints = await anyio.to_thread.run_sync(self._load)
        return await self._endpoints.answer(request, receive)

    def _load(self) -> "Endpoints":
        """In a thread: it imports the SDK, and the loop has others to serve meanwhile."""
        from transports.identity.endpoints import Endpoints

        return Endpoints(self._deps, self._documents, own_verifier(self._deps))


async def make_protocol(service: "Service") -> App:
    """The endpoints of a service."""
    deps = service.pipeline.deps
    return Protocol(deps, ClientDocuments(deps.clock.now, exempt=deps.webhook_exempt, ca_file=service.settings.ca_file))
