"""Who calls: the credential of a call, and what somebody is told whose credential is missing or not accepted."""

import hashlib
import hmac
import re
import zlib
from collections.abc import Iterable
from urllib.parse import unquote_plus

from registry.call import Call, Surface
from registry.caller import ANONYMOUS_CALLER, Caller
from registry.errors import Unauthorized
from registry.operation import Auth, Scope
from registry.ports import Directory, Sessions, SharedSecrets, Site

API_KEY = re.compile(r"ak_[A-Za-z0-9]{46}", re.ASCII)
BASE62_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


BRIDGE_CALLER = Caller(kind="internal", principal="internal", scopes=int(Scope.READ | Scope.ANY))

STOREFRONT_CALLER = Caller(kind="storefront", principal="storefront", scopes=int(Scope.READ | Scope.ANY))


def api_key_checksum(body: str) -> str:
    """Six base62 characters of the CRC32, so that a mistyped key is refused without a look-up."""
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62_DIGITS[digit] + digits
    return digits


def is_api_key(credential: str) -> bool:
    """Shape and checksum of an API key."""
    return bool(API_KEY.fullmatch(credential)) and hmac.compare_digest(api_key_checksum(credential[3:43]), credential[43:])


def matches_secret(presented: str | None, secret: str) -> bool:
    """Equal to a shared secret that is really set; unset, empty and blank secrets match nothing."""
    if not presented or not secret.strip():
        return False
    return hmac.compare_digest(hashlib.sha256(presented.encode()).digest(), hashlib.sha256(secret.encode()).digest())


async def authenticate(
    call: Call, directory: Directory, sessions: Sessions | None, secrets: SharedSecrets, site: Site, now: float
) -> Caller:
    """Who calls. Nothing here says what they may do."""
    auth = call.operation.auth
    if auth in (Auth.PUBLIC, Auth.SIGNATURE, Auth.BRIDGE):
        return ANONYMOUS_CALLER
    if auth is Auth.STOREFRONT_OPEN and not secrets.storefront.strip() and (call.caller is None or call.caller.kind != "local"):
        return ANONYMOUS_CALLER
    if call.caller is not None:
        chat = call.surface == "assistant"
        caller = await refresh_chat_caller(call.caller, directory, site, now) if chat else call.caller
        return session_only(caller, site) if auth is Auth.SESSION else caller
    credential = call.credential
    if credential is None:
        seen = call.misplaced or "this operation needs one"
        raise Unauthorized(f"No credential: {seen}", presented=False, hint=expected_credential(auth, site))
    if auth is Auth.INTERNAL or auth in (Auth.STOREFRONT, Auth.STOREFRONT_OPEN):
        secret, caller = (secrets.internal, BRIDGE_CALLER) if auth is Auth.INTERNAL else (secrets.storefront, STOREFRONT_CALLER)
        if not matches_secret(credential, secret):
            raise Unauthorized("The credential is not accepted here", presented=True, hint=expected_credential(auth, site))
        return caller
    caller = await authenticate_bearer(credential, call.surface, directory, sessions, site, now)
    return session_only(caller, site) if auth is Auth.SESSION else caller


async def refresh_chat_caller(caller: Caller, directory: Directory, site: Site, now: float) -> Caller:
    """The caller of a chat as they are now, since a chat lasts for minutes. Raises Unauthorized where their credential has ended."""
    found = await directory.again(caller, now)
    if found is None:
        raise Unauthorized("The credential that this chat began with has ended", presented=True, hint=key_advice(site))
    return found


async def authenticate_bearer(
    credential: str, surface: Surface, directory: Directory, sessions: Sessions | None, site: Site, now: float
) -> Caller:
    if credential.startswith("ak_"):
        found = await directory.by_key(credential, now)
        if found is None:
            raise Unauthorized("The API key is unknown, expired or revoked", presented=True, hint=key_advice(site))
        return found
    if sessions is None or credential.count(".") != 2:
        raise Unauthorized(
            "The credential is neither an API key nor a session token", presented=True, hint=expected_credential(Auth.BEARER, site)
        )
    found = await directory.by_session(await sessions.verify(credential, surface), now)
    if found is None:
        raise Unauthorized(
            "The login that this session token belongs to has ended", presented=True, hint=expected_credential(Auth.SESSION, site)
        )
    return found


def session_only(caller: Caller, site: Site) -> Caller:
    """Operations that a person must do in a browser refuse API keys."""
    if caller.kind != "session":
        raise Unauthorized(
            "This operation takes a signed-in session, not an API key", presented=True, hint=expected_credential(Auth.SESSION, site)
        )
    return caller


AUTH_SCHEMES = ("Basic", "Digest", "Negotiate", "Token", "ApiKey")
OTHER_CREDENTIAL_HEADERS = {
    b"x-api-key": "X-API-Key",
    b"api-key": "Api-Key",
    b"x-auth-token": "X-Auth-Token",
    b"x-access-token": "X-Access-Token",
}


CREDENTIAL_QUERY_NAMES = frozenset({"api_key", "apikey", "token", "access_token"})
SCANNED_QUERY_FIELDS = 100


SCANNED_NAME_CHARACTERS = 3 * 12
"""Of the longest of them, all of it percent-encoded."""


def find_misplaced_credential(headers: Iterable[tuple[bytes, bytes]], query: bytes) -> str:
    """Says where a credential was sent that is not read there; empty when none was. Names only headers and schemes of this file."""
    given = {name.lower(): value.strip() for name, value in headers}
    if given.get(b"authorization"):
        return describe_auth_scheme(given[b"authorization"].decode("latin-1"))
    header = next((shown for name, shown in OTHER_CREDENTIAL_HEADERS.items() if given.get(name)), None)
    if header is not None:
        return f"the header {header} is not read"
    return "a credential in the address is not read, since addresses are kept in logs" if has_credential_in_query(query) else ""


def describe_auth_scheme(value: str) -> str:
    """Says which scheme `value` has in place of Bearer. A value without a space is the credential itself and is not repeated."""
    word, space, _ = value.partition(" ")
    if not space or word.startswith("ak_"):
        return "Authorization was sent without the word Bearer"
    known = next((f"the scheme {name}" for name in AUTH_SCHEMES if name.lower() == word.lower()), "another scheme")
    return f"Authorization was sent with {known}, and only Bearer is read"


def has_credential_in_query(query: bytes) -> bool:
    fields = query.decode("latin-1").split("&", SCANNED_QUERY_FIELDS)[:SCANNED_QUERY_FIELDS]
    names = (field.partition("=")[0] for field in fields)
    return any(unquote_plus(name[:SCANNED_NAME_CHARACTERS]).lower() in CREDENTIAL_QUERY_NAMES for name in names)


def has_own_sign_in_pages(site: Site) -> bool:
    return site.sign_in_url == f"{site.base_url}/auth/sign-in"


def expected_credential(auth: Auth, site: Site) -> str:
    if auth is Auth.BEARER:
        where = (
            f"; {site.base_url}/auth/sign-up makes an account, {site.base_url}/auth/api-keys a key" if has_own_sign_in_pages(site) else ""
        )
        return f"Send Authorization: Bearer <API key or session token>{where}"
    if auth is Auth.SESSION:
        return expected_session(site)
    what = "deployment's internal" if auth is Auth.INTERNAL else "storefront"
    return f"Send the {what} key as Authorization: Bearer <key>"


def expected_session(site: Site) -> str:
    if has_own_sign_in_pages(site):
        page = f"{site.base_url}/auth/session-token"
        return f"Log in with `reseller login`, or take a session token at {page} and send it as Authorization: Bearer <token>"
    where = f" at {site.sign_in_url}" if site.sign_in_url else ""
    return f"Sign in{where} and send the session token as Authorization: Bearer <token>"


def key_advice(site: Site) -> str:
    page = f"Make one at {site.base_url}/auth/api-keys. " if has_own_sign_in_pages(site) else ""
    return f"{page}Whoever runs the service makes one with `reseller keys create`; with another good key, POST /v1/api-keys does"
