"""Who speaks at the token and revocation endpoints."""

import base64
import binascii
from urllib.parse import unquote

from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.shared.auth import OAuthClientInformationFull

from operations.deps import Deps
from transports.identity.oauth_error import OauthError
from transports.identity.parameters import VISIBLE, Parameters
from transports.identity.programs import Program, program_at_back_channel
from transports.identity.sdk import Unused, posted_form


class Known(Unused):
    """The program that the SDK's authenticator asks for."""

    def __init__(self, program: Program | None) -> None:
        self.program = program

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.program


async def identified(deps: Deps, parameters: Parameters, authorization: str) -> tuple[Program, Parameters]:
    """The program, by its secret where it has one; and its parameters with its name, which a header alone may hold."""
    parameters = {**parameters}
    parameters.setdefault("client_id", name_in(authorization))
    program = await program_at_back_channel(deps, parameters["client_id"]) if parameters["client_id"] else None
    if program is not None and authorization and program.token_endpoint_auth_method != "client_secret_basic":
        raise OauthError("invalid_client", "This program does not authenticate with the Authorization header", 401)
    try:
        await ClientAuthenticator(Known(program)).authenticate_request(posted_form(parameters, authorization))
    except AuthenticationError as refused:
        raise OauthError("invalid_client", refused.message, 401) from None
    assert program is not None
    return program, parameters


def name_in(authorization: str) -> str:
    """The name in a Basic header; the SDK wants it in the form as well (RFC 6749 section 2.3.1 does not)."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme != "Basic":
        return ""
    try:
        name = unquote(base64.b64decode(encoded, validate=True).decode().partition(":")[0])
    except (binascii.Error, ValueError):
        return ""
    return name if VISIBLE.fullmatch(name) else ""
