"""The registration endpoint (RFC 7591): a program names itself, and where its answers go."""

import hashlib
from typing import NamedTuple, cast

import orjson
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.provider import RegistrationError
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull

from clients.identity.client_metadata import displayed_address, displayed_name
from clients.identity.redirect_uris import BadRedirect, check_redirects
from operations.deps import Deps
from operations.people.session_tokens import LOGIN_SCOPES
from operations.secret_tokens import SERVICE_OWNER, new_secret_token
from registry.errors import BadRequest
from registry.guard import parse_json
from registry.rate_limits import address_network
from storage.oauth_clients import ClientOrigin, OauthClient, insert_client
from storage.sealing import client_secret_field
from transports.oauth.messages import OauthError
from transports.oauth.programs import GRANT_TYPES, RegisteredProgram
from transports.oauth.sdk import UnusedProvider, body_request, response_object

MOST_UNUSED_PROGRAMS = 500
"""Registrations of one network that nobody has consented to.

Choice: the next one takes the place of the oldest of whichever address has the most, where a limit per hour would let one host use up
what its neighbours need. Behind one address that many people share, the burst limit of public requests gives each eight minutes.
"""
REGISTRATION_OPTIONS = ClientRegistrationOptions(enabled=True, valid_scopes=list(LOGIN_SCOPES), default_scopes=list(LOGIN_SCOPES))
# Kept and told back; whatever else was sent is left out of both.
ANSWERED_FIELDS = frozenset(
    {
        "client_id", "client_id_issued_at", "client_secret", "client_secret_expires_at", "client_name", "client_uri", "redirect_uris",
        "grant_types", "response_types", "token_endpoint_auth_method", "scope", "application_type",
    }
)  # fmt: skip

REGISTRATION_FIELDS = ANSWERED_FIELDS | {"logo_uri", "contacts", "tos_uri", "policy_uri", "jwks_uri", "software_id", "software_version"}
"""What the SDK looks at; it makes an error for every entry that is none, so that lists are counted first."""
MOST_LIST_ENTRIES = 20


class RegistrationAnswer(NamedTuple):
    """The answer's status and object."""

    status: int
    body: dict[str, object]


class RegistrationProvider(UnusedProvider):
    """What the SDK's handler asks about one registration."""

    def __init__(self, deps: Deps, address: str, sent: dict[str, object]) -> None:
        self._deps, self._sent = deps, sent
        self._origin = ClientOrigin(address_digest(address_network(address)), address_digest(address))
        self.redirect_uris: tuple[str, ...] = ()

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        deps, now = self._deps, self._deps.clock.now()
        try:
            self.redirect_uris = check_redirects(self._sent.get("redirect_uris"))
        except BadRedirect as bad:
            raise RegistrationError("invalid_redirect_uri", bad.reason) from None
        # The SDK's own random names and its clock are replaced by ours.
        client_info.client_id, client_info.client_id_issued_at = deps.ids.new("cli_"), int(now)
        client_info.client_name = displayed_name(client_info.client_name) or None
        uri = displayed_address(self._sent.get("client_uri"))
        client_info.grant_types = [name for name in GRANT_TYPES if name in client_info.grant_types]
        client_info.response_types = ["code"]
        sealed = None
        if client_info.client_secret is not None:
            client_info.client_secret = new_secret_token(deps.ids, "cs_")
            sealed = deps.keyring.seal(client_info.client_secret, org_id=SERVICE_OWNER, field=client_secret_field(client_info.client_id))
        kept = RegisteredProgram(
            name=client_info.client_name or "",
            uri=uri,
            redirect_uris=list(self.redirect_uris),
            grant_types=client_info.grant_types,
            authentication=client_info.token_endpoint_auth_method or "none",
            scopes=client_info.scope.split() if client_info.scope else list(LOGIN_SCOPES),
        )
        row = OauthClient(client_info.client_id, orjson.dumps(kept).decode(), sealed, now)
        await deps.store.write(insert_client, client=row, origin=self._origin, most=MOST_UNUSED_PROGRAMS, now=now)


def address_digest(address: str) -> str:
    """What is kept of an address: enough to tell two apart."""
    return hashlib.sha256(f"register|{address}".encode()).hexdigest()


async def register_program(deps: Deps, body: bytes, address: str) -> RegistrationAnswer:
    """One registration."""
    try:
        sent: object = parse_json(body)
    except BadRequest as bad:
        raise OauthError("invalid_client_metadata", bad.message) from None
    if not isinstance(sent, dict):
        raise OauthError("invalid_client_metadata", "The body must be a JSON object")
    known = {name: value for name, value in cast("dict[str, object]", sent).items() if name in REGISTRATION_FIELDS}
    for name, value in known.items():
        if isinstance(value, list | dict) and len(cast("list[object]", value)) > MOST_LIST_ENTRIES:
            wrong = "invalid_redirect_uri" if name == "redirect_uris" else "invalid_client_metadata"
            raise OauthError(wrong, f"{name}: more than {MOST_LIST_ENTRIES} entries")
    asked = RegistrationProvider(deps, address, known)
    response = await RegistrationHandler(asked, REGISTRATION_OPTIONS).handle(body_request(orjson.dumps(known), "application/json"))
    answer = response_object(response)
    if response.status_code == 201:
        answer = {name: value for name, value in answer.items() if name in ANSWERED_FIELDS} | {"redirect_uris": list(asked.redirect_uris)}
    return RegistrationAnswer(response.status_code, answer)
