"""The decisions of the pipeline, one function each: who calls, what they may do, whether the quota holds, what an idempotency key is."""

import hashlib
import hmac
import re
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import unquote_plus

import orjson

from registry.call import Call, Surface
from registry.caller import ANONYMOUS_CALLER, BRIDGE_CALLER, STOREFRONT_CALLER, Caller
from registry.clock import DAY_SECONDS, rfc3339_utc
from registry.errors import BadRequest, Conflict, OrgNotConnected, QuotaExceeded, Restricted, RoleRequired, Unauthorized, UpgradeRequired
from registry.limits import Role, Scope, Tier, TierLimits
from registry.model import Input
from registry.operation import Auth
from registry.ports import Directory, QuotaPeriod, Sessions, SharedSecrets, Site

API_KEY = re.compile(r"ak_[A-Za-z0-9]{46}", re.ASCII)
BASE62_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
IDEMPOTENCY_KEY_NAMES: Mapping[Surface, str] = {"mcp": "idempotency_key", "cli": "--idempotency-key"}
"""What the header Idempotency-Key is called where there are no headers."""


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
        return session_only(call, await refresh_chat_caller(call.caller, call.surface, directory, site, now), site)
    credential = call.credential
    if credential is None:
        seen = call.misplaced or "this operation needs one"
        raise Unauthorized(f"No credential: {seen}", presented=False, hint=expected_credential(auth, site))
    if auth is Auth.INTERNAL or auth in (Auth.STOREFRONT, Auth.STOREFRONT_OPEN):
        secret, caller = (secrets.internal, BRIDGE_CALLER) if auth is Auth.INTERNAL else (secrets.storefront, STOREFRONT_CALLER)
        if not matches_secret(credential, secret):
            raise Unauthorized("The credential is not accepted here", presented=True, hint=expected_credential(auth, site))
        return caller
    return session_only(call, await authenticate_bearer(credential, call.surface, directory, sessions, site, now), site)


async def refresh_chat_caller(caller: Caller, surface: Surface, directory: Directory, site: Site, now: float) -> Caller:
    """A chat lasts for minutes: each call in it is made by its caller as they are at that moment."""
    found = await directory.again(caller, now) if surface == "assistant" else caller
    if found is None:
        raise Unauthorized("The credential that this chat began with has ended", presented=True, hint=key_advice(site))
    return found


async def authenticate_bearer(
    credential: str, surface: Surface, directory: Directory, sessions: Sessions | None, site: Site, now: float
) -> Caller:
    """An API key or a session token."""
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


def session_only(call: Call, caller: Caller, site: Site) -> Caller:
    """Operations that a person must do in a browser refuse API keys."""
    if call.operation.auth is Auth.SESSION and caller.kind != "session":
        raise Unauthorized(
            "This operation takes a signed-in session, not an API key", presented=True, hint=expected_credential(Auth.SESSION, site)
        )
    return caller


async def authorize(call: Call, caller: Caller, directory: Directory, site: Site) -> None:
    """Organisation, scope, tier and connection: everything that does not depend on the input."""
    operation = call.operation
    if operation.organisation and not caller.organisation:
        raise Conflict(
            "You are signed in but belong to no organisation, and this operation acts for one",
            code="organization_required",
            hint="Have whoever runs the service add you to an organisation",
        )
    if operation.auth in (Auth.BEARER, Auth.SESSION):
        require_scope_of_tier(operation.scope, caller, site)
        require_role(operation.role, caller)
        require_scope_of_credential(operation.scope, operation.role, caller)
    if operation.upstream:
        await require_connection(caller, directory, site)


def require_scope(scope: Scope, caller: Caller, site: Site) -> None:
    """Refuse with 402 what the caller's tier or role does not carry, and with 403 what only this credential does not."""
    require_scope_of_tier(scope, caller, site)
    require_scope_of_credential(scope, None, caller)


def require_scope_of_tier(scope: Scope, caller: Caller, site: Site) -> None:
    """Refuse what no credential of this membership could do: the tier or the role does not carry the scope."""
    if not int(scope) & ~(caller.scopes | caller.withheld):  # flags know the operators, too, and take ten times as long
        return
    needed = lowest_tier(scope)
    if scope & Scope.ADMIN and caller.tier is Tier.ENTERPRISE:
        text = "This operation needs the role admin in your organisation, which you do not have; the tier is right"
    else:
        wanted = "admin" if scope & Scope.ADMIN else "write"
        text = f"This operation needs {wanted} access; the tier {caller.tier} of your organisation does not carry it, {needed} does"
    raise UpgradeRequired(text, required_tier=needed, upgrade_url=site.upgrade_url)


def require_role(role: Role | None, caller: Caller, what: str = "This operation") -> None:
    """Refuse with 403 what only admins of the organisation may do, whatever its tier."""
    if role is Role.ADMIN and caller.role is not Role.ADMIN and caller.kind in ("key", "session", "local"):
        raise RoleRequired(
            f"{what} needs the role admin in your organisation, and you are a member; a larger tier does not change that",
            hint="Ask an admin of your organisation: list_members names them",
        )


def require_scope_of_credential(scope: Scope, role: Role | None, caller: Caller) -> None:
    """Refuse what the membership carries and this credential does not."""
    granted = caller.has(scope)
    if not granted and caller.withheld & Scope.ANY and not scope & Scope.ADMIN:
        raise Restricted("This credential may only read, and this operation changes something")
    if not granted or (role is Role.ADMIN and caller.restrictions.no_admin):
        raise Restricted("This credential was made without admin access, which your organisation and your role carry")


def require_admin(caller: Caller, what: str) -> None:
    """Refuse with 403 what of an operation that is open to more only admins may do, with a credential that was made for it."""
    require_role(Role.ADMIN, caller, what)
    if caller.restricted:
        raise Restricted(
            f"{what} needs a credential that may do all that its person may, and this one may do less; nothing was done",
            hint="Use a key without restrictions, a login that was granted all that you may do, or the service's own pages",
        )


async def require_connection(caller: Caller, directory: Directory, site: Site) -> None:
    """Refuse with 409 when the active organisation has no upstream account."""
    if caller.connection is not None:
        return
    connected = await directory.connected(caller.principal)
    raise OrgNotConnected(
        f"The organisation {caller.organisation_name} has no connected account; connect it at connect_url or switch organisation",
        active={"id": caller.organisation, "name": caller.organisation_name},
        connected=[org for org in connected if org["id"] != caller.organisation],
        connect_url=site.connect_url,
        hint="Call onboarding_start_managed_account, or onboarding_connect_ocs_token with a token of your own; connect_url leads a person "
        "through it, and whoever runs the service connects with `reseller org connect`",
    )


def idempotency_key_name(call: Call) -> str:
    """What the idempotency key is called at the door of the call."""
    once = call.operation.once
    return IDEMPOTENCY_KEY_NAMES.get(call.surface) or (once.header if once else "")


def check_idempotency_key(call: Call) -> None:
    """The Idempotency-Key: there when it must be, and of visible ASCII; named as the door at hand takes it."""
    once, key, name = call.operation.once, call.idempotency_key, idempotency_key_name(call)
    if once is None:
        call.idempotency_key = None
    elif key is None:
        if once.required:
            raise BadRequest(
                f"{name}: missing; it is required, so that a repeated call has one effect",
                code="idempotency_key_required",
                param="idempotency_key",
                hint="Send 1-255 visible ASCII characters, for example a UUID, and the same ones when you repeat the call",
            )
    elif not is_idempotency_key(key):
        raise bad_idempotency_key(name, key)


def bad_idempotency_key(name: str, key: str) -> BadRequest:
    """A key that is none, under the name that the door at hand has for it."""
    return BadRequest(
        f"{name}: must be 1-255 visible ASCII characters, in quotes or not; got {len(key)} characters",
        param="idempotency_key",
        hint="A UUID will do",
    )


def input_digest(params: Input) -> bytes:
    """SHA-256 of the canonical JSON of the validated input: key order and absent-versus-default do not matter.

    Absent-versus-null matters where null removes something: what was confirmed without it does not confirm it.
    """
    canonical: Any = params.model_dump(mode="json")
    if params.removed:
        canonical = [canonical, params.removed]
    return hashlib.sha256(orjson.dumps(canonical, option=orjson.OPT_SORT_KEYS)).digest()


def quota_period(now: float) -> QuotaPeriod:
    """The UTC day."""
    return utc_day(int(now) // DAY_SECONDS)


@lru_cache(maxsize=8)
def utc_day(day: int) -> QuotaPeriod:
    """A day since the epoch, with the moment it ends."""
    return QuotaPeriod(name=datetime.fromtimestamp(day * DAY_SECONDS, UTC).strftime("%Y-%m-%d"), reset=(day + 1) * DAY_SECONDS)


def daily_quota_exceeded(tier: TierLimits, used: int, period: QuotaPeriod, site: Site, now: float) -> QuotaExceeded:
    """The daily quota is used up."""
    return QuotaExceeded(
        f"The daily quota of {tier.calls_per_day} calls is used up; it starts again at {rfc3339_utc(period.reset)}",
        limit=tier.calls_per_day,
        used=used,
        reset_at=rfc3339_utc(period.reset),
        retry_after=int(period.reset - now) + 1,
        upgrade_url=site.upgrade_url,
    )


def key_limit_exceeded(limit: int, period: QuotaPeriod, site: Site, now: float) -> QuotaExceeded:
    """The key's own limit is used up; the organisation's quota may not be."""
    return QuotaExceeded(
        f"This API key is restricted to {limit} calls per UTC day, and they are used up; it works again at {rfc3339_utc(period.reset)}",
        limit=limit,
        used=limit,
        reset_at=rfc3339_utc(period.reset),
        retry_after=int(period.reset - now) + 1,
        upgrade_url=site.upgrade_url,
        hint="Use another key, or wait; a larger tier does not change this",
    )


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
    """Where a credential was sent that is not read there; empty when none was. Only names are told that are written here."""
    given = {name.lower(): value.strip() for name, value in headers}
    if given.get(b"authorization"):
        return describe_auth_scheme(given[b"authorization"].decode("latin-1"))
    header = next((shown for name, shown in OTHER_CREDENTIAL_HEADERS.items() if given.get(name)), None)
    if header is not None:
        return f"the header {header} is not read"
    return "a credential in the address is not read, since addresses are kept in logs" if has_credential_in_query(query) else ""


def describe_auth_scheme(value: str) -> str:
    """What came in place of the word Bearer. Without a space after it, a word is the credential itself."""
    word, space, _ = value.partition(" ")
    if not space or word.startswith("ak_"):
        return "Authorization was sent without the word Bearer"
    known = next((f"the scheme {name}" for name in AUTH_SCHEMES if name.lower() == word.lower()), "another scheme")
    return f"Authorization was sent with {known}, and only Bearer is read"


def has_credential_in_query(query: bytes) -> bool:
    """Whether a field of the query is named as credentials are."""
    fields = query.decode("latin-1").split("&", SCANNED_QUERY_FIELDS)[:SCANNED_QUERY_FIELDS]
    names = (field.partition("=")[0] for field in fields)
    return any(unquote_plus(name[:SCANNED_NAME_CHARACTERS]).lower() in CREDENTIAL_QUERY_NAMES for name in names)


def has_own_sign_in_pages(site: Site) -> bool:
    """Whether people sign in at the service's own pages."""
    return site.sign_in_url == f"{site.base_url}/auth/sign-in"


def expected_credential(auth: Auth, site: Site) -> str:
    """What to send instead, and where it comes from."""
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
    """How to come by a session token."""
    if has_own_sign_in_pages(site):
        page = f"{site.base_url}/auth/session-token"
        return f"Log in with `reseller login`, or take a session token at {page} and send it as Authorization: Bearer <token>"
    where = f" at {site.sign_in_url}" if site.sign_in_url else ""
    return f"Sign in{where} and send the session token as Authorization: Bearer <token>"


def key_advice(site: Site) -> str:
    """Where a key comes from for somebody whose key is refused."""
    page = f"Make one at {site.base_url}/auth/api-keys. " if has_own_sign_in_pages(site) else ""
    return f"{page}Whoever runs the service makes one with `reseller keys create`; with another good key, POST /v1/api-keys does"


IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
QUOTED_KEY = re.compile(r'"(?:[ !\x23-\x5b\x5d-\x7e]|\\["\\])*"', re.ASCII)
ESCAPED_KEY_CHARACTER = re.compile(r'\\(["\\])')
KEY_SPELLING_LIMIT = 2 + 2 * 255
"""Characters of the longest spelling: 255, each escaped, in quotes."""


def unquoted_key(text: str) -> str | None:
    """The text that a well-formed string holds; None when `text` is not one."""
    return ESCAPED_KEY_CHARACTER.sub(r"\1", text[1:-1]) if text[:1] == '"' and QUOTED_KEY.fullmatch(text) else None


def key_spellings(text: str) -> tuple[str, ...]:
    """`text` itself, and after it what its quotes hold. The last one is the key: all that have the same last one are the same key.

    Choice: quotes inside quotes come off too. Were they kept, `"a"` would be the key `a` on one day, and on the day after somebody has
    sent `"\\"a\\""`, another one.
    """
    found, inner = [text], unquoted_key(text)
    while inner is not None:
        found.append(inner)
        inner = unquoted_key(inner)
    return tuple(found)


def is_idempotency_key(text: str) -> bool:
    """Whether `text` is a key as it is, or in quotes holds one. What was stored before quotes were read is a key as it is."""
    return IDEMPOTENCY_KEY.fullmatch(text) is not None or (
        len(text) <= KEY_SPELLING_LIMIT and IDEMPOTENCY_KEY.fullmatch(key_spellings(text)[-1]) is not None
    )


def lowest_tier(scope: Scope) -> Literal["pro", "enterprise"]:
    """The cheapest tier that carries a scope the free tier lacks."""
    return "enterprise" if scope & Scope.ADMIN else "pro"
