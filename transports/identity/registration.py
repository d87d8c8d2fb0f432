"""The registration endpoint (RFC 7591): a program names itself, and where its answers go."""

import hashlib
from typing import NamedTuple, cast

import orjson
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.provider import RegistrationError
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull

from clients.identity.client_metadata import shown_address, shown_name
from clients.identity.redirects import BadRedirect, check_redirects
from operations.deps import Deps
from operations.services.people.letters import SERVICE
from operations.services.people.session_tokens import SCOPES
from operations.services.secret_token import new_token
from registry.errors import BadRequest
from registry.guard import parse
from registry.throttle import network_of
from storage.people.oauth_clients import OauthClient, Origin, insert_client
from storage.secrets.sealed_fields import client_secret_field
from transports.identity.oauth_error import OauthError
from transports.identity.programs import GRANTS, Registered
from transports.identity.sdk import Unused, posted, told

MOST_UNUSED = 500
"""Registrations of one network that nobody has consented to.

Choice: the next one takes the place of the oldest of whichever address has the most, where a limit per hour would let one host use up
what its neighbours need. Behind one address that many people share, the burst limit of public requests gives each eight minutes.
"""
OPTIONS = ClientRegistrationOptions(enabled=True, valid_scopes=list(SCOPES), default_scopes=list(SCOPES))
# Kept and told back; whatever else was sent is left out of both.
TOLD = frozenset(
    {
        "client_id", "client_id_issued_at", "client_secret", "client_secret_expires_at", "client_name", "client_uri", "redirect_uris",
        "grant_types", "response_types", "token_endpoint_auth_method", "scope", "application_type",
    }
)  # fmt: skip

READ = TOLD | {"logo_uri", "contacts", "tos_uri", "policy_uri", "jwks_uri", "software_id", "software_version"}
"""What the SDK looks at; it makes an error for every entry that is none, so that lists are counted first."""
MOST_ENTRIES = 20


class Answered(NamedTuple):
    """The answer's status and object."""

    status: int
    body: dict[str, object]


class Registering(Unused):
    """What the SDK's handler asks about one registration."""

    def __init__(self, deps: Deps, address: str, sent: dict[str, object]) -> None:
        self._deps, self._sent = deps, sent
        self._origin = Origin(digest(network_of(address)), digest(address))
        self.redirect_uris: tuple[str, ...] = ()

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        deps, now = self._deps, self._deps.clock.now()
        try:
            self.redirect_uris = check_redirects(self._sent.get("redirect_uris"))
        except BadRedirect as bad:
            raise RegistrationError("invalid_redirect_uri", bad.reason) from None
        # The SDK's own random names and its clock are replaced by ours.
        client_info.client_id, client_info.client_id_issued_at = deps.ids.new("cli_"), int(now)
        client_info.client_name = shown_name(client_info.client_name) or None
        uri = shown_address(self._sent.get("client_uri"))
        client_info.grant_types = [name for name in GRANTS if name in client_info.grant_types]
        client_info.response_types = ["code"]
        sealed = None
        if client_info.client_secret is not None:
            client_info.client_secret = new_token(deps.ids, "cs_")
            sealed = deps.keyring.seal(client_info.client_secret, org_id=SERVICE, field=client_secret_field(client_info.client_id))
        kept = Registered(
            name=client_info.client_name or "",
            uri=uri,
            redirect_uris=list(self.redirect_uris),
            grant_types=client_info.grant_types,
            authentication=client_info.token_endpoint_auth_method or "none",
            scopes=client_info.scope.split() if client_info.scope else list(SCOPES),
        )
        row = OauthClient(client_info.client_id, orjson.dumps(kept).decode(), sealed, now)
        await deps.store.write(insert_client, client=row, origin=self._origin, most=MOST_UNUSED, now=now)


def digest(address: str) -> str:
    """What is kept of an address: enough to tell two apart."""
    return hashlib.sha256(f"register|{address}".encode()).hexdigest()


async def register(deps: Deps, body: bytes, address: str) -> Answered:
    """One registration."""
    try:
        sent: object = parse(body)
    except BadRequest as bad:
        raise OauthError("invalid_client_metadata", bad.message) from None
    if not isinstance(sent, dict):
        raise OauthError("invalid_client_metadata", "The body must be a JSON object")
    known = {name: value for name, value in cast("dict[str, object]", sent).items() if name in READ}
    for name, value in known.items():
        if isinstance(value, list | dict) and len(cast("list[object]", value)) > MOST_ENTRIES:
            wrong = "invalid_redirect_uri" if name == "redirect_uris" else "invalid_client_metadata"
            raise OauthError(wrong, f"{name}: more than {MOST_ENTRIES} entries")
    asked = Registering(deps, address, known)
    response = await RegistrationHandler(asked, OPTIONS).handle(posted(orjson.dumps(known), "application/json"))
    answer = told(response)
    if response.status_code == 201:
        answer = {name: value for name, value in answer.items() if name in TOLD} | {"redirect_uris": list(asked.redirect_uris)}
    return Answered(response.status_code, answer)
