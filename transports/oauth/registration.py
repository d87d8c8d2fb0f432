"""The registration endpoint (RFC 7591): a program names itself, and where its answers go."""

import hashlib
from typing import cast

import orjson
from mcp.server.auth.errors import stringify_pydantic_error
from mcp.shared.auth import JWT_BEARER_GRANT_TYPE, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import ValidationError

from clients.identity.client_metadata import displayed_address, displayed_name
from clients.identity.redirect_uris import BadRedirect, check_redirects
from operations.deps import Deps
from operations.people.session_tokens import LOGIN_SCOPES
from operations.secret_tokens import new_secret_token
from registry.errors import BadRequest
from registry.guard import parse_json
from registry.rate_limits import address_network
from storage.oauth_clients import ClientOrigin, OauthClient, insert_client
from storage.sealing import SERVICE_OWNER, client_secret_field
from transports.oauth.messages import OauthError
from transports.oauth.programs import GRANT_TYPES, RegisteredProgram

MOST_UNUSED_PROGRAMS = 500
"""Registrations of one network that nobody has consented to.

Choice: the next one takes the place of the oldest of whichever address has the most, where a limit per hour would let one host use up
what its neighbours need. Behind one address that many people share, the burst limit of public requests gives each eight minutes.
"""
# Kept and told back; whatever else was sent is left out of both.
ANSWERED_FIELDS = frozenset(
    {
        "client_id", "client_id_issued_at", "client_secret", "client_secret_expires_at", "client_name", "client_uri", "redirect_uris",
        "grant_types", "response_types", "token_endpoint_auth_method", "scope", "application_type",
    }
)  # fmt: skip

REGISTRATION_FIELDS = ANSWERED_FIELDS | {"logo_uri", "contacts", "tos_uri", "policy_uri", "jwks_uri", "software_id", "software_version"}
"""What the SDK's model looks at; it makes an error for every entry that is none, so that lists are counted first."""
MOST_LIST_ENTRIES = 20


def address_digest(address: str) -> str:
    """The digest that is stored in place of a client's address."""
    return hashlib.sha256(f"register|{address}".encode()).hexdigest()


async def register_program(deps: Deps, body: bytes, address: str) -> dict[str, object]:
    """Registers the program that `body` describes and returns what it is told. `address`: where the request comes from.

    OauthError: the description breaks a rule of RFC 7591, or of ours.
    """
    sent = registration_members(body)
    metadata = checked_metadata(sent)
    now, confidential = deps.clock.now(), metadata.token_endpoint_auth_method != "none"
    try:
        redirect_uris = check_redirects(sent.get("redirect_uris"))
    except BadRedirect as bad:
        raise OauthError("invalid_redirect_uri", bad.reason) from None
    program = OAuthClientInformationFull.model_validate(
        {
            **metadata.model_dump(),
            "client_id": deps.ids.new("cli_"),
            "client_id_issued_at": int(now),
            "client_secret": new_secret_token(deps.ids, "cs_") if confidential else None,
            "client_secret_expires_at": 0 if confidential else None,
            "client_name": displayed_name(metadata.client_name),
            "grant_types": [name for name in GRANT_TYPES if name in metadata.grant_types],
            "response_types": ["code"],
        }
    )
    await keep_program(deps, program, redirect_uris, displayed_address(sent.get("client_uri")), address, now)
    answer: dict[str, object] = program.model_dump(mode="json", exclude_none=True, include=set(ANSWERED_FIELDS))
    return answer | {"redirect_uris": list(redirect_uris)}


async def keep_program(
    deps: Deps, program: OAuthClientInformationFull, redirect_uris: tuple[str, ...], uri: str | None, address: str, now: float
) -> None:
    """Stores the registration, its secret sealed. `uri`: what may be shown as the program's page; `now`: Unix seconds."""
    sealed = None
    if program.client_secret is not None:
        sealed = deps.keyring.seal(program.client_secret, org_id=SERVICE_OWNER, field=client_secret_field(program.client_id))
    kept = RegisteredProgram(
        name=program.client_name or "",
        uri=uri,
        redirect_uris=list(redirect_uris),
        grant_types=program.grant_types,
        authentication=program.token_endpoint_auth_method or "none",
        scopes=program.scope.split() if program.scope else list(LOGIN_SCOPES),
    )
    row = OauthClient(program.client_id, orjson.dumps(kept).decode(), sealed, now)
    origin = ClientOrigin(address_digest(address_network(address)), address_digest(address))
    await deps.store.write(insert_client, client=row, origin=origin, most=MOST_UNUSED_PROGRAMS, now=now)


def registration_members(body: bytes) -> dict[str, object]:
    """The members of a registration that are looked at. OauthError: it is no JSON object, or a list in it is too long."""
    try:
        sent: object = parse_json(body)
    except BadRequest as bad:
        raise bad_metadata(bad.message) from None
    if not isinstance(sent, dict):
        raise bad_metadata("The body must be a JSON object")
    known = {name: value for name, value in cast("dict[str, object]", sent).items() if name in REGISTRATION_FIELDS}
    for name, value in known.items():
        if isinstance(value, list | dict) and len(cast("list[object]", value)) > MOST_LIST_ENTRIES:
            wrong = "invalid_redirect_uri" if name == "redirect_uris" else "invalid_client_metadata"
            raise OauthError(wrong, f"{name}: more than {MOST_LIST_ENTRIES} entries")
    return known


def checked_metadata(sent: dict[str, object]) -> OAuthClientMetadata:
    """The SDK's model of a registration, with its defaults. OauthError: it breaks a rule of RFC 7591."""
    try:
        metadata = OAuthClientMetadata.model_validate_json(orjson.dumps(sent))
    except ValidationError as invalid:
        raise bad_metadata(stringify_pydantic_error(invalid)) from None
    if metadata.token_endpoint_auth_method is None:
        metadata.token_endpoint_auth_method = "client_secret_post"
    if metadata.token_endpoint_auth_method == "private_key_jwt":
        raise bad_metadata("token_endpoint_auth_method 'private_key_jwt' is not supported")
    if metadata.scope is None:
        metadata.scope = " ".join(LOGIN_SCOPES)
    unknown = set(metadata.scope.split()) - set(LOGIN_SCOPES)
    if unknown:
        raise bad_metadata(f"Requested scopes are not valid: {', '.join(sorted(unknown))}")
    if "authorization_code" not in metadata.grant_types:
        raise bad_metadata("grant_types must include 'authorization_code'")
    if JWT_BEARER_GRANT_TYPE in metadata.grant_types:
        raise bad_metadata(
            f"grant_types must not include '{JWT_BEARER_GRANT_TYPE}'; the identity-assertion grant requires a pre-registered client"
        )
    if "code" not in metadata.response_types:
        raise bad_metadata("response_types must include 'code' for authorization_code grant")
    return metadata


def bad_metadata(description: str) -> OauthError:
    """The refusal of a description that breaks a rule of RFC 7591."""
    return OauthError("invalid_client_metadata", description)
