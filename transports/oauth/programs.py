"""Programs as the SDK's handlers see them, and how one proves who it is at the token and revocation endpoints."""

import base64
import binascii
from typing import TypedDict, cast
from urllib.parse import unquote

import orjson
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.shared.auth import InvalidRedirectUriError, InvalidScopeError, OAuthClientInformationFull
from pydantic import AnyUrl, Field, TypeAdapter

from clients.identity.client_metadata import BadClientDocument, ClientDocuments, is_document_address
from clients.identity.redirect_uris import is_redirect_accepted, same_redirect
from operations.deps import Deps
from operations.people.session_tokens import LOGIN_SCOPES
from operations.secret_tokens import SERVICE_OWNER
from storage.oauth_clients import OauthClient, find_client
from storage.sealing import client_secret_field
from transports.oauth.messages import VISIBLE_ASCII, OauthError, OauthParameters
from transports.oauth.sdk import UnusedProvider, form_request

URL_ADAPTER = TypeAdapter(AnyUrl)
GRANT_TYPES = ["authorization_code", "refresh_token"]
NOT_REGISTERED = "redirect_uri is not one that this program registered"


class RegisteredProgram(TypedDict):
    """What is kept of a registration; addresses as they were written, since they are compared whole."""

    name: str
    uri: str | None
    redirect_uris: list[str]
    grant_types: list[str]
    authentication: str
    scopes: list[str]


class Program(OAuthClientInformationFull):
    """A program with our rules: redirect URIs are compared as texts, and scopes are ours."""

    addresses: tuple[str, ...] = Field(default=(), exclude=True)
    presented: str | None = Field(default=None, exclude=True)
    """The redirect URI of this request, as it was sent."""
    shown_name: str = Field(default="", exclude=True)
    shown_uri: str | None = Field(default=None, exclude=True)
    vouched: bool = Field(default=False, exclude=True)

    @property
    def redirect(self) -> str | None:
        """Where the answer goes: the address that was presented when it is a registered one, or the only one there is."""
        if self.presented is None:
            return self.addresses[0] if len(self.addresses) == 1 else None
        return self.presented if any(same_redirect(known, self.presented) for known in self.addresses) else None

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """The SDK compares what its URL type makes of both: other texts would match, and no other port would."""
        if self.redirect is None:
            raise InvalidRedirectUriError(NOT_REGISTERED)
        return URL_ADAPTER.validate_python(self.redirect)

    def validate_scope(self, requested_scope: str | None) -> list[str]:
        """What was asked for, of what the program registered for; without a word all of that."""
        known = (self.scope or " ".join(LOGIN_SCOPES)).split()
        wanted = known if requested_scope is None else requested_scope.split()
        if not set(wanted) <= set(known) or not wanted:
            raise InvalidScopeError(f"scope: of {' '.join(known)}, separated by single spaces")
        return [scope for scope in LOGIN_SCOPES if scope in wanted]


def program_named_by_address(client_id: str) -> Program:
    """A program whose document does not matter: what it presents is bound to its name."""
    return Program(client_id=client_id, token_endpoint_auth_method="none", grant_types=GRANT_TYPES)


async def program_of_document(documents: ClientDocuments, client_id: str, presented: str | None) -> Program:
    """A program as it describes itself at its address."""
    try:
        document = await documents.get(client_id)
    except BadClientDocument as bad:
        raise OauthError("invalid_client", str(bad)) from None
    program = program_named_by_address(client_id)
    return program.model_copy(
        update={
            "addresses": document.redirect_uris,
            "presented": presented,
            "shown_name": document.name,
            "shown_uri": document.uri,
            "vouched": True,
        }
    )


async def registered_program(deps: Deps, client_id: str, presented: str | None = None) -> Program | None:
    """A program that registered here."""
    found = await deps.store.read(find_client, client=client_id)
    if found is None:
        return None
    kept = cast(RegisteredProgram, orjson.loads(found.metadata_json))
    return Program(
        client_id=found.id,
        client_secret=program_secret(deps, found),
        token_endpoint_auth_method=kept["authentication"],
        grant_types=kept["grant_types"],
        scope=" ".join(kept["scopes"]),
        addresses=tuple(uri for uri in kept["redirect_uris"] if is_redirect_accepted(uri)),
        presented=presented,
        shown_name=kept["name"],
        shown_uri=kept["uri"],
    )


def program_secret(deps: Deps, client: OauthClient) -> str | None:
    """A confidential program's secret."""
    if client.secret is None:
        return None
    return deps.keyring.open(client.secret, org_id=SERVICE_OWNER, field=client_secret_field(client.id))


async def program_at_back_channel(deps: Deps, client_id: str) -> Program | None:
    """Where a program speaks for itself, no document is fetched: a login must outlive an outage of the place where it stands."""
    return program_named_by_address(client_id) if is_document_address(client_id) else await registered_program(deps, client_id)


class ProgramProvider(UnusedProvider):
    """The program that the SDK's authenticator asks for."""

    def __init__(self, program: Program | None) -> None:
        self.program = program

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.program


async def identify_program(deps: Deps, parameters: OauthParameters, authorization: str) -> tuple[Program, OauthParameters]:
    """The program, by its secret where it has one; and its parameters with its name, which a header alone may hold."""
    parameters = {**parameters}
    parameters.setdefault("client_id", basic_name(authorization))
    program = await program_at_back_channel(deps, parameters["client_id"]) if parameters["client_id"] else None
    if program is not None and authorization and program.token_endpoint_auth_method != "client_secret_basic":
        raise OauthError("invalid_client", "This program does not authenticate with the Authorization header", 401)
    try:
        await ClientAuthenticator(ProgramProvider(program)).authenticate_request(form_request(parameters, authorization))
    except AuthenticationError as refused:
        raise OauthError("invalid_client", refused.message, 401) from None
    assert program is not None
    return program, parameters


def basic_name(authorization: str) -> str:
    """The name in a Basic header; the SDK wants it in the form as well (RFC 6749 section 2.3.1 does not)."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme != "Basic":
        return ""
    try:
        name = unquote(base64.b64decode(encoded, validate=True).decode().partition(":")[0])
    except (binascii.Error, ValueError):
        return ""
    return name if VISIBLE_ASCII.fullmatch(name) else ""
