"""The built-in identity provider behind /auth: the endpoints of OAuth 2.1 for programs, and the pages for people.

Pages of other origins may call the endpoints when whoever runs the service lists them: the HTTP door says so to browsers (CORS), for all
but the page that people are sent to.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread
import orjson

from clients.identity.client_metadata import ClientDocuments
from operations.deps import Deps
from operations.people.session_tokens import LOGIN_SCOPES, token_issuer
from operations.people.signing_keys import signing_key_set
from registry.call import Call, Reply
from registry.errors import BadRequest, MethodNotAllowed, Refusal
from registry.ports import Site
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.http.request import reads_pages
from transports.oauth.messages import (
    AUTHORIZE_PATH,
    JWKS_PATH,
    REGISTER_PATH,
    REVOKE_PATH,
    TOKEN_PATH,
    OauthAnswer,
    OauthError,
    error_answer,
    header_text,
    protocol_paths,
    public_answer,
    send_oauth_answer,
)
from transports.sessions import own_verifier

if TYPE_CHECKING:
    from transports.oauth.endpoints import OauthEndpoints
    from transports.service import Service
    from transports.web.pages.app import PagesApp

IDENTITY_PATH = "/auth"


class IdentityDoor:
    """Hands a request to the protocol or to the pages, each made when it is first asked for."""

    def __init__(self, service: "Service", report: Callable[[Call, BaseException], None]) -> None:
        self._service, self._report = service, report
        self._paths = protocol_paths(service.site.base_url)
        self._protocol: App | None = None
        self._pages: PagesApp | None = None

    def serves(self, path: str) -> bool:
        return path in self._paths or path == IDENTITY_PATH or path.startswith(IDENTITY_PATH + "/")

    def speaks(self, path: str) -> bool:
        """Whether programs talk at a path, where no person is shown anything."""
        return path in self._paths and path != AUTHORIZE_PATH

    def refused(self, scope: HttpScope, refusal: Refusal, request_id: str) -> Reply | None:
        """A refusal as a page, for somebody with a browser; nothing for programs."""
        if not self.serves(scope["path"]) or not reads_pages(scope["headers"]):
            return None
        return self._made_pages().refused(scope, refusal, request_id)

    def _made_pages(self) -> "PagesApp":
        from transports.web.pages.app import PagesApp  # only once somebody comes
        from transports.web.pages.request import make_page_context

        self._pages = self._pages or PagesApp(make_page_context(self._service, self._report))
        return self._pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if cast(HttpScope, scope)["path"] in self._paths:
            app = self._protocol
            if app is None:
                deps, ca_file = self._service.pipeline.deps, self._service.settings.ca_file
                documents = ClientDocuments(deps.clock.now, exempt=deps.webhook_exempt, ca_file=ca_file)
                app = self._protocol = OauthProtocol(deps, documents)
        else:
            app = self._pages or await anyio.to_thread.run_sync(self._made_pages)
        await app(scope, receive, send)


JWKS_SECONDS, METADATA_SECONDS = 300, 3600
PROTOCOL_METHODS = {AUTHORIZE_PATH: "GET", TOKEN_PATH: "POST", REGISTER_PATH: "POST", REVOKE_PATH: "POST"}


CLIENT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]


def server_metadata(site: Site) -> bytes:
    """The metadata document (RFC 8414). The SDK's model has no `jwks_uri` and rewrites addresses that programs compare whole."""
    base = site.base_url
    return orjson.dumps(
        {
            "issuer": token_issuer(site),
            "authorization_endpoint": base + AUTHORIZE_PATH,
            "token_endpoint": base + TOKEN_PATH,
            "registration_endpoint": base + REGISTER_PATH,
            "revocation_endpoint": base + REVOKE_PATH,
            "jwks_uri": base + JWKS_PATH,
            "scopes_supported": list(LOGIN_SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": CLIENT_AUTH_METHODS,
            "revocation_endpoint_auth_methods_supported": CLIENT_AUTH_METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "service_documentation": site.docs_url,
        }
    )


class OauthProtocol:
    """The public documents, and behind them the endpoints."""

    def __init__(self, deps: Deps, documents: ClientDocuments) -> None:
        self._deps, self._documents = deps, documents
        self._metadata = server_metadata(deps.site)
        self._endpoints: OauthEndpoints | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. What the store refuses is answered as everywhere else."""
        request = cast(HttpScope, scope)
        allow = PROTOCOL_METHODS.get(request["path"], "GET, HEAD")
        if request["method"] not in allow.split(", "):
            raise MethodNotAllowed(f"This address takes {allow}", allow=allow, hint=f"Use {allow.partition(',')[0]}")
        try:
            answer = await self._answer(request, receive)
        except OauthError as refused:
            if request["path"] == AUTHORIZE_PATH and reads_pages(request["headers"]):
                hint = "The program that sent you here did something wrong: begin the login again there, or tell whoever makes it"
                raise BadRequest(refused.description, hint=hint) from None
            answer = error_answer(refused, basic=bool(header_text(request["headers"], b"authorization")))
        await send_oauth_answer(send, answer, head_only=request["method"] == "HEAD")

    async def _answer(self, request: HttpScope, receive: Receive) -> OauthAnswer:
        if request["path"] == JWKS_PATH:
            return public_answer(await signing_key_set(self._deps), JWKS_SECONDS)
        if request["path"] not in PROTOCOL_METHODS:
            return public_answer(self._metadata, METADATA_SECONDS)
        if self._endpoints is None:
            self._endpoints = await anyio.to_thread.run_sync(self._load)
        return await self._endpoints.answer(request, receive)

    def _load(self) -> "OauthEndpoints":
        """In a thread: it imports the SDK, and the loop has others to serve meanwhile."""

        from transports.oauth.endpoints import OauthEndpoints

        return OauthEndpoints(self._deps, self._documents, own_verifier(self._deps))
