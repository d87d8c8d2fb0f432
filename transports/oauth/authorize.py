"""The authorization endpoint: checks a program's request, then sends the browser on to the page that asks the person."""

import re
from urllib.parse import parse_qs, urlsplit

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.provider import AuthorizationParams, AuthorizeError
from mcp.shared.auth import OAuthClientInformationFull
from starlette.responses import Response

from clients.identity.client_metadata import ClientDocuments, is_document_address
from clients.identity.redirect_uris import is_loopback_redirect
from operations.deps import Deps
from operations.people.consents import AuthorizationRequest, authorization_answer_url, keep_authorization_request
from operations.people.session_tokens import token_issuer, token_resources
from transports.oauth.messages import OauthError, OauthParameters
from transports.oauth.programs import Program, program_of_document, registered_program
from transports.oauth.sdk import UnusedProvider, query_request, response_object

CHALLENGE_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # SHA-256 in base64url
ASKED_REDIRECT = "about:asked"
ERROR_PARAMETERS = ("error", "error_description", "state")


class AuthorizationProvider(UnusedProvider):
    """What the SDK's handler asks about one request. It only looks: the row is written when the handler is done, or its fault is lost."""

    def __init__(self, program: Program, resources: tuple[str, str]) -> None:
        self.program, self.resources = program, resources
        self.checked: AuthorizationParams | None = None

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.program

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if params.resource is not None and params.resource not in self.resources:
            raise AuthorizeError("invalid_target", f"resource: must be {' or '.join(self.resources)}")
        if not CHALLENGE_PATTERN.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge: must be the SHA-256 of the verifier in base64url, 43 characters")
        self.checked = params
        return ASKED_REDIRECT


async def authorize_program(deps: Deps, documents: ClientDocuments, parameters: OauthParameters) -> str:
    """Where the browser goes: to our consent page, or with an error back to a program on the person's own computer. OauthError: every
    other error, which is told on a page of ours."""
    program = await find_program(deps, documents, parameters)
    asking = AuthorizationProvider(program, token_resources(deps.site))
    response = await AuthorizationHandler(asking).handle(query_request(with_challenge_method(parameters)))
    if program.redirect is None:
        raise OauthError("invalid_request", "redirect_uri: missing, or not one that this program registered and that is accepted today")
    if asking.checked is None:
        return refusal_redirect(handler_errors(response), program.redirect, token_issuer(deps.site))
    request = consent_request(program, program.redirect, asking.checked, deps.site.mcp_url, explicit="redirect_uri" in parameters)
    token = await keep_authorization_request(deps, request, now=deps.clock.now())
    return f"{token_issuer(deps.site)}/consent?request={token}"


async def find_program(deps: Deps, documents: ClientDocuments, parameters: OauthParameters) -> Program:
    """Who asks."""
    client_id, presented = parameters.get("client_id", ""), parameters.get("redirect_uri")
    if is_document_address(client_id):
        return await program_of_document(documents, client_id, presented)
    program = await registered_program(deps, client_id, presented)
    if program is None:
        raise OauthError("invalid_client", "client_id: no program of this name is registered here; register it anew")
    return program


def with_challenge_method(parameters: OauthParameters) -> OauthParameters:
    """RFC 7636 reads a missing method as `plain`, the SDK as S256. We take S256 when it is said, and nothing else."""
    return {**parameters, "code_challenge_method": parameters.get("code_challenge_method", "plain")}


def consent_request(
    program: Program, redirect: str, checked: AuthorizationParams, resource: str, *, explicit: bool
) -> AuthorizationRequest:
    """What the person is asked, and what the code will be bound to."""
    return AuthorizationRequest(
        client_id=program.client_id,
        client_name=program.shown_name or (urlsplit(redirect).hostname or "A program"),
        client_uri=program.shown_uri,
        redirect_uri=redirect,
        explicit=explicit,
        scopes=checked.scopes or [],
        resource=checked.resource or resource,
        state=checked.state,
        challenge=checked.code_challenge,
        vouched=program.vouched,
        renewable="refresh_token" in program.grant_types,
    )


def refusal_redirect(said: dict[str, str | None], redirect: str, issuer: str) -> str:
    """The handler's error at the program's own address, untouched, with the issuer that the SDK leaves out (RFC 9207).

    Choice: only where the program is on the person's own computer. Everybody may register an address, or publish one in a document: a
    link to us would lead whoever follows it there without being asked (RFC 9700 section 4.11.2), so others are told on our page.
    """
    if not is_loopback_redirect(redirect):
        error, description = said.get("error") or "invalid_request", said.get("error_description")
        raise OauthError(error, description or "The request breaks a rule of OAuth")
    return authorization_answer_url(redirect, **said, iss=issuer)


def handler_errors(response: Response) -> dict[str, str | None]:
    """What the handler says, wherever it says it."""
    location = response.headers.get("location")
    found = {name: values[-1] for name, values in parse_qs(urlsplit(location).query).items()} if location else response_object(response)
    said: dict[str, str | None] = {name: str(found[name]).replace("\n", "; ") for name in ERROR_PARAMETERS if name in found}
    if said.get("error") == "server_error":
        raise RuntimeError("the authorization handler failed")
    return said
