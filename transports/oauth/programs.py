"""Programs as they registered or describe themselves, and how one proves who it is at the token and revocation endpoints."""

import base64
import binascii
import hmac
from dataclasses import dataclass
from typing import TypedDict, cast
from urllib.parse import unquote

import orjson

from clients.identity.client_metadata import BadClientDocument, ClientDocuments, is_document_address
from clients.identity.redirect_uris import is_redirect_accepted, same_redirect
from operations.deps import Deps
from operations.people.session_tokens import LOGIN_SCOPES
from storage.oauth_clients import OauthClient, find_client
from storage.sealing import SERVICE_OWNER, client_secret_field
from transports.oauth.messages import VISIBLE_ASCII, OauthError, OauthParameters

GRANT_TYPES = ["authorization_code", "refresh_token"]


class RegisteredProgram(TypedDict):
    """What is kept of a registration; addresses as they were written, since they are compared whole."""

    name: str
    uri: str | None
    redirect_uris: list[str]
    grant_types: list[str]
    authentication: str
    scopes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that asks for access. `addresses` are its redirect URIs, `presented` the one of this request, as it was sent.

    `authentication` is how it proves who it is (RFC 7591: token_endpoint_auth_method); `vouched`: its document is at its own address.
    """

    client_id: str
    secret: str | None = None
    authentication: str = "none"
    grant_types: list[str]
    scopes: list[str]
    addresses: tuple[str, ...] = ()
    presented: str | None = None
    name: str = ""
    uri: str | None = None
    vouched: bool = False

    @property
    def redirect(self) -> str | None:
        """Where the answer goes: the address that was presented when it is a registered one, or the only one there is."""
        if self.presented is None:
            return self.addresses[0] if len(self.addresses) == 1 else None
        return self.presented if any(same_redirect(known, self.presented) for known in self.addresses) else None

    def granted_scopes(self, requested: str | None) -> list[str]:
        """What was asked for, of what the program registered for; without a word all of that. OauthError: something else was asked for."""
        wanted = self.scopes if requested is None else requested.split()
        if not set(wanted) <= set(self.scopes) or not wanted:
            raise OauthError("invalid_scope", f"scope: of {' '.join(self.scopes)}, separated by single spaces")
        return [scope for scope in LOGIN_SCOPES if scope in wanted]


async def program_of_document(documents: ClientDocuments, client_id: str, presented: str | None) -> Program:
    """A program as it describes itself at its address. OauthError: its document cannot be read."""
    try:
        document = await documents.get(client_id)
    except BadClientDocument as bad:
        raise OauthError("invalid_client", str(bad)) from None
    return Program(
        client_id=client_id,
        grant_types=GRANT_TYPES,
        scopes=list(LOGIN_SCOPES),
        addresses=document.redirect_uris,
        presented=presented,
        name=document.name,
        uri=document.uri,
        vouched=True,
    )


async def registered_program(deps: Deps, client_id: str, presented: str | None = None) -> Program | None:
    found = await deps.store.read(find_client, client=client_id)
    if found is None:
        return None
    kept = cast(RegisteredProgram, orjson.loads(found.metadata_json))
    return Program(
        client_id=found.id,
        secret=program_secret(deps, found),
        authentication=kept["authentication"],
        grant_types=kept["grant_types"],
        scopes=kept["scopes"] or list(LOGIN_SCOPES),
        addresses=tuple(uri for uri in kept["redirect_uris"] if is_redirect_accepted(uri)),
        presented=presented,
        name=kept["name"],
        uri=kept["uri"],
    )


def program_secret(deps: Deps, client: OauthClient) -> str | None:
    if client.secret is None:
        return None
    return deps.keyring.open(client.secret, org_id=SERVICE_OWNER, field=client_secret_field(client.id))


async def identify_program(deps: Deps, parameters: OauthParameters, authorization: str) -> Program:
    """The program that asks, by its secret where it has one (RFC 6749 section 2.3.1). `authorization`: the header, empty without one.

    Where a program speaks for itself, no document is fetched: a login must outlive an outage of the place where it stands.
    OauthError: it did not say or did not prove who it is.
    """
    client_id = parameters.get("client_id") or basic_name(authorization)
    if not client_id:
        raise unproven_program("Missing client_id")
    program = (
        # Its document does not matter: what it presents is bound to its name.
        Program(client_id=client_id, grant_types=GRANT_TYPES, scopes=list(LOGIN_SCOPES))
        if is_document_address(client_id)
        else await registered_program(deps, client_id)
    )
    if program is None:
        raise unproven_program("Invalid client_id")
    if authorization and program.authentication != "client_secret_basic":
        raise unproven_program("This program does not authenticate with the Authorization header")
    if program.authentication == "none":
        return program
    if program.authentication == "client_secret_basic":
        presented = basic_secret(authorization, client_id)
    else:
        presented = parameters.get("client_secret", "")
    if not program.secret:
        raise unproven_program("Client is registered for secret-based authentication but has no stored secret")
    if not presented:
        raise unproven_program("Client secret is required")
    if not hmac.compare_digest(program.secret.encode(), presented.encode()):
        raise unproven_program("Invalid client_secret")
    return program


def unproven_program(description: str) -> OauthError:
    return OauthError("invalid_client", description, 401)


def basic_secret(authorization: str, client_id: str) -> str:
    """The secret in a Basic header. OauthError: there is none, or the header names another program."""
    if not authorization.startswith("Basic "):
        raise unproven_program("Missing or invalid Basic authentication in Authorization header")
    try:
        name, separator, secret = base64.b64decode(authorization[6:]).decode().partition(":")
    except ValueError:
        name, separator, secret = "", "", ""
    if not separator:
        raise unproven_program("Invalid Basic authentication header")
    if unquote(name) != client_id:
        raise unproven_program("Client ID mismatch in Basic auth")
    return unquote(secret)


def basic_name(authorization: str) -> str:
    """The program's name in a Basic header; empty where it holds none that could be one."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme != "Basic":
        return ""
    try:
        name = unquote(base64.b64decode(encoded, validate=True).decode().partition(":")[0])
    except (binascii.Error, ValueError):
        return ""
    return name if VISIBLE_ASCII.fullmatch(name) else ""
