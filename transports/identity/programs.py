"""Programs as the SDK's handlers see them: those that registered here, and those that are named by an address of their own."""

from typing import TypedDict, cast

import orjson
from mcp.shared.auth import InvalidRedirectUriError, InvalidScopeError, OAuthClientInformationFull
from pydantic import AnyUrl, Field, TypeAdapter

from clients.identity.client_metadata import BadDocument, ClientDocuments, is_document
from clients.identity.redirects import is_accepted, same_redirect
from operations.deps import Deps
from operations.services.people.letters import SERVICE
from operations.services.people.session_tokens import SCOPES
from storage.people.oauth_clients import OauthClient, find_client
from storage.secrets.sealed_fields import client_secret_field
from transports.identity.oauth_error import OauthError

URL = TypeAdapter(AnyUrl)
GRANTS = ["authorization_code", "refresh_token"]
NOT_REGISTERED = "redirect_uri is not one that this program registered"


class Registered(TypedDict):
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
        return URL.validate_python(self.redirect)

    def validate_scope(self, requested_scope: str | None) -> list[str]:
        """What was asked for, of what the program registered for; without a word all of that."""
        known = (self.scope or " ".join(SCOPES)).split()
        wanted = known if requested_scope is None else requested_scope.split()
        if not set(wanted) <= set(known) or not wanted:
            raise InvalidScopeError(f"scope: of {' '.join(known)}, separated by single spaces")
        return [scope for scope in SCOPES if scope in wanted]


def named_by_address(client_id: str) -> Program:
    """A program whose document does not matter: what it presents is bound to its name."""
    return Program(client_id=client_id, token_endpoint_auth_method="none", grant_types=GRANTS)


async def program_of_document(documents: ClientDocuments, client_id: str, presented: str | None) -> Program:
    """A program as it describes itself at its address."""
    try:
        document = await documents.get(client_id)
    except BadDocument as bad:
        raise OauthError("invalid_client", str(bad)) from None
    program = named_by_address(client_id)
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
    kept = cast(Registered, orjson.loads(found.metadata_json))
    return Program(
        client_id=found.id,
        client_secret=secret_of(deps, found),
        token_endpoint_auth_method=kept["authentication"],
        grant_types=kept["grant_types"],
        scope=" ".join(kept["scopes"]),
        addresses=tuple(uri for uri in kept["redirect_uris"] if is_accepted(uri)),
        presented=presented,
        shown_name=kept["name"],
        shown_uri=kept["uri"],
    )


def secret_of(deps: Deps, client: OauthClient) -> str | None:
    """A confidential program's secret."""
    if client.secret is None:
        return None
    return deps.keyring.open(client.secret, org_id=SERVICE, field=client_secret_field(client.id))


async def program_at_back_channel(deps: Deps, client_id: str) -> Program | None:
    """Where a program speaks for itself, no document is fetched: a login must outlive an outage of the place where it stands."""
    return named_by_address(client_id) if is_document(client_id) else await registered_program(deps, client_id)
