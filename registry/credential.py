"""What a caller without a good credential is told: what was seen, never its value, and the way to a good one."""

from collections.abc import Iterable
from urllib.parse import unquote_plus

from registry.operation import Auth
from registry.ports import Site

SCHEMES = ("Basic", "Digest", "Negotiate", "Token", "ApiKey")
HEADERS = {b"x-api-key": "X-API-Key", b"api-key": "Api-Key", b"x-auth-token": "X-Auth-Token", b"x-access-token": "X-Access-Token"}
IN_ADDRESS = frozenset({"api_key", "apikey", "token", "access_token"})
QUERY_FIELDS = 100
NAME_CHARACTERS = 3 * 12
"""Of the longest of them, all of it percent-encoded."""


def misplaced(headers: Iterable[tuple[bytes, bytes]], query: bytes) -> str:
    """Where a credential was sent that is not read there; empty when none was. Only names are told that are written here."""
    given = {name.lower(): value.strip() for name, value in headers}
    if given.get(b"authorization"):
        return scheme_seen(given[b"authorization"].decode("latin-1"))
    header = next((shown for name, shown in HEADERS.items() if given.get(name)), None)
    if header is not None:
        return f"the header {header} is not read"
    return "a credential in the address is not read, since addresses are kept in logs" if in_address(query) else ""


def scheme_seen(value: str) -> str:
    """What came in place of the word Bearer. Without a space after it, a word is the credential itself."""
    word, space, _ = value.partition(" ")
    if not space or word.startswith("ak_"):
        return "Authorization was sent without the word Bearer"
    known = next((f"the scheme {name}" for name in SCHEMES if name.lower() == word.lower()), "another scheme")
    return f"Authorization was sent with {known}, and only Bearer is read"


def in_address(query: bytes) -> bool:
    """Whether a field of the query is named as credentials are."""
    fields = query.decode("latin-1").split("&", QUERY_FIELDS)[:QUERY_FIELDS]
    names = (field.partition("=")[0] for field in fields)
    return any(unquote_plus(name[:NAME_CHARACTERS]).lower() in IN_ADDRESS for name in names)


def own_pages(site: Site) -> bool:
    """Whether people sign in at the service's own pages."""
    return site.sign_in_url == f"{site.base_url}/auth/sign-in"


def expected(auth: Auth, site: Site) -> str:
    """What to send instead, and where it comes from."""
    if auth is Auth.BEARER:
        where = f"; {site.base_url}/auth/sign-up makes an account, {site.base_url}/auth/api-keys a key" if own_pages(site) else ""
        return f"Send Authorization: Bearer <API key or session token>{where}"
    if auth is Auth.SESSION:
        return session_expected(site)
    what = "deployment's internal" if auth is Auth.INTERNAL else "storefront"
    return f"Send the {what} key as Authorization: Bearer <key>"


def session_expected(site: Site) -> str:
    """How to come by a session token."""
    if own_pages(site):
        page = f"{site.base_url}/auth/session-token"
        return f"Log in with `reseller login`, or take a session token at {page} and send it as Authorization: Bearer <token>"
    where = f" at {site.sign_in_url}" if site.sign_in_url else ""
    return f"Sign in{where} and send the session token as Authorization: Bearer <token>"


def another_key(site: Site) -> str:
    """Where a key comes from for somebody whose key is refused."""
    page = f"Make one at {site.base_url}/auth/api-keys. " if own_pages(site) else ""
    return f"{page}Whoever runs the service makes one with `reseller keys create`; with another good key, POST /v1/api-keys does"
