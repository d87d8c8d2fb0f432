"""The endpoints for programs, and the one among them that sends a browser on to the page that asks the person.

The SDK's models are imported with this module, which takes a second: in a thread, when first asked.
"""

import re
from urllib.parse import urlsplit

from mcp.server.auth.errors import stringify_pydantic_error
from mcp.server.auth.handlers.authorize import AuthorizationRequest as SdkRequest
from pydantic import ValidationError

from clients.identity.client_metadata import ClientDocuments, is_document_address
from clients.identity.redirect_uris import is_loopback_redirect
from clients.identity.session_tokens import TokenVerifier
from operations.deps import Deps
from operations.people.consents import AuthorizationRequest, authorization_answer_url, keep_authorization_request
from operations.people.session_tokens import token_issuer, token_resources
from transports.http.asgi import HttpScope, Receive
from transports.oauth.messages import (
    AUTHORIZE_PATH,
    OAUTH_FORM,
    OAUTH_JSON,
    REGISTER_PATH,
    TOKEN_PATH,
    OauthAnswer,
    OauthError,
    OauthParameters,
    header_text,
    json_answer,
    read_oauth_body,
    read_parameters,
)
from transports.oauth.programs import Program, program_of_document, registered_program
from transports.oauth.registration import register_program
from transports.oauth.tokens import exchange_token, revoke_oauth_token

CHALLENGE_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # SHA-256 in base64url


async def authorize_program(deps: Deps, documents: ClientDocuments, parameters: OauthParameters) -> str:
    """Where the browser goes: to our consent page, or with an error back to a program on the person's own computer. OauthError: every
    other error, which is told on a page of ours."""
    program = await find_program(deps, documents, parameters)
    redirect, issuer = program.redirect, token_issuer(deps.site)
    if redirect is None:
        raise OauthError("invalid_request", "redirect_uri: missing, or not one that this program registered and that is accepted today")
    try:
        request = consent_request(deps, program, redirect, parameters)
    except OauthError as refused:
        # Choice: only where the program is on the person's own computer. Everybody may register an address, or publish one in a document:
        # a link to us would lead whoever follows it there without being asked (RFC 9700 section 4.11.2), so others are told on our page.
        if not is_loopback_redirect(redirect):
            raise
        said = {"error": refused.error, "error_description": refused.description, "state": parameters.get("state")}
        return authorization_answer_url(redirect, **said, iss=issuer)
    token = await keep_authorization_request(deps, request, now=deps.clock.now())
    return f"{issuer}/consent?request={token}"


async def find_program(deps: Deps, documents: ClientDocuments, parameters: OauthParameters) -> Program:
    """The program that `client_id` names. OauthError: there is none, or its document cannot be read."""
    client_id, presented = parameters.get("client_id", ""), parameters.get("redirect_uri")
    if is_document_address(client_id):
        return await program_of_document(documents, client_id, presented)
    program = await registered_program(deps, client_id, presented)
    if program is None:
        raise OauthError("invalid_client", "client_id: no program of this name is registered here; register it anew")
    return program


def consent_request(deps: Deps, program: Program, redirect: str, parameters: OauthParameters) -> AuthorizationRequest:
    """What the person is asked, and what the code will be bound to: the MCP resource where the program names none.

    OauthError: a parameter breaks a rule of OAuth, or asks for more than the program may have.
    """
    asked, resources = sdk_request(parameters), token_resources(deps.site)
    scopes = program.granted_scopes(asked.scope)
    if asked.resource is not None and asked.resource not in resources:
        raise OauthError("invalid_target", f"resource: must be {' or '.join(resources)}")
    if not CHALLENGE_PATTERN.fullmatch(asked.code_challenge):
        raise OauthError("invalid_request", "code_challenge: must be the SHA-256 of the verifier in base64url, 43 characters")
    return AuthorizationRequest(
        client_id=program.client_id,
        client_name=program.name or (urlsplit(redirect).hostname or "A program"),
        client_uri=program.uri,
        redirect_uri=redirect,
        explicit="redirect_uri" in parameters,
        scopes=scopes,
        resource=asked.resource or deps.site.mcp_url,
        state=asked.state,
        challenge=asked.code_challenge,
        vouched=program.vouched,
        renewable="refresh_token" in program.grant_types,
    )


def sdk_request(parameters: OauthParameters) -> SdkRequest:
    """The parameters as the SDK's model checks them.

    RFC 7636 reads a missing method as `plain`, the SDK as S256. We take S256 when it is said, and nothing else.
    """
    try:
        return SdkRequest.model_validate({"code_challenge_method": "plain", **parameters})
    except ValidationError as invalid:
        wrong_type = any(each["loc"] == ("response_type",) and each["type"] == "literal_error" for each in invalid.errors())
        error = "unsupported_response_type" if wrong_type else "invalid_request"
        raise OauthError(error, stringify_pydantic_error(invalid).replace("\n", "; ")) from None


class OauthEndpoints:
    def __init__(self, deps: Deps, documents: ClientDocuments, verifier: TokenVerifier) -> None:
        self._deps, self._documents, self._verifier = deps, documents, verifier

    async def answer(self, scope: HttpScope, receive: Receive) -> OauthAnswer:
        if scope["path"] == AUTHORIZE_PATH:
            location = await authorize_program(self._deps, self._documents, read_parameters(scope["query_string"]))
            return OauthAnswer(302, b"", [(b"location", location.encode("ascii"))])
        if scope["path"] == REGISTER_PATH:
            client = scope.get("client")
            body = await read_oauth_body(OAUTH_JSON, scope, receive)
            return json_answer(201, await register_program(self._deps, body, client[0] if client else ""))
        parameters = read_parameters(await read_oauth_body(OAUTH_FORM, scope, receive))
        authorization = header_text(scope["headers"], b"authorization")
        if scope["path"] == TOKEN_PATH:
            tokens = await exchange_token(self._deps, parameters, authorization)
            return json_answer(200, tokens.model_dump(mode="json", exclude_none=True))
        await revoke_oauth_token(self._deps, self._verifier, parameters, authorization)
        return OauthAnswer(200, b"", [])
