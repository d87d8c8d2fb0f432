"""The decisions of the pipeline, one function each."""

import hashlib
import hmac
import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from registry.call import Call, Surface
from registry.caller import ANONYMOUS, BRIDGE, STOREFRONT, Caller
from registry.credential import another_key, expected
from registry.errors import BadRequest, Conflict, OrgNotConnected, QuotaExceeded, Restricted, RoleRequired, Unauthorized, UpgradeRequired
from registry.idempotency_key import is_key
from registry.limits import Role, Scope, Tier, TierLimits, lowest_tier
from registry.model import Input
from registry.operation import Auth
from registry.ports import Directory, Period, Sessions, SharedSecrets, Site

KEY = re.compile(r"ak_[A-Za-z0-9]{46}", re.ASCII)
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DAY = 86_400
KEY_NAMES: Mapping[Surface, str] = {"mcp": "idempotency_key", "cli": "--idempotency-key"}
"""What the header Idempotency-Key is called where there are no headers."""


def checksum(body: str) -> str:
    """Six base62 characters of the CRC32, so that a mistyped key is refused without a look-up."""
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits


def is_api_key(credential: str) -> bool:
    """Shape and checksum of an API key."""
    return bool(KEY.fullmatch(credential)) and hmac.compare_digest(checksum(credential[3:43]), credential[43:])


def matches(presented: str | None, secret: str) -> bool:
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
        return ANONYMOUS
    if auth is Auth.STOREFRONT_OPEN and not secrets.storefront.strip() and (call.caller is None or call.caller.kind != "local"):
        return ANONYMOUS
    if call.caller is not None:
        return session_only(call, await lasting(call.caller, call.surface, directory, site, now), site)
    credential = call.credential
    if credential is None:
        seen = call.misplaced or "this operation needs one"
        raise Unauthorized(f"No credential: {seen}", presented=False, hint=expected(auth, site))
    if auth is Auth.INTERNAL or auth in (Auth.STOREFRONT, Auth.STOREFRONT_OPEN):
        secret, caller = (secrets.internal, BRIDGE) if auth is Auth.INTERNAL else (secrets.storefront, STOREFRONT)
        if not matches(credential, secret):
            raise Unauthorized("The credential is not accepted here", presented=True, hint=expected(auth, site))
        return caller
    return session_only(call, await bearer(credential, call.surface, directory, sessions, site, now), site)


async def lasting(caller: Caller, surface: Surface, directory: Directory, site: Site, now: float) -> Caller:
    """A chat lasts for minutes: each call in it is made by its caller as they are at that moment."""
    found = await directory.again(caller, now) if surface == "assistant" else caller
    if found is None:
        raise Unauthorized("The credential that this chat began with has ended", presented=True, hint=another_key(site))
    return found


async def bearer(credential: str, surface: Surface, directory: Directory, sessions: Sessions | None, site: Site, now: float) -> Caller:
    """An API key or a session token."""
    if credential.startswith("ak_"):
        found = await directory.by_key(credential, now)
        if found is None:
            raise Unauthorized("The API key is unknown, expired or revoked", presented=True, hint=another_key(site))
        return found
    if sessions is None or credential.count(".") != 2:
        raise Unauthorized("The credential is neither an API key nor a session token", presented=True, hint=expected(Auth.BEARER, site))
    found = await directory.by_session(await sessions.verify(credential, surface), now)
    if found is None:
        raise Unauthorized("The login that this session token belongs to has ended", presented=True, hint=expected(Auth.SESSION, site))
    return found


def session_only(call: Call, caller: Caller, site: Site) -> Caller:
    """Operations that a person must do in a browser refuse API keys."""
    if call.operation.auth is Auth.SESSION and caller.kind != "session":
        raise Unauthorized("This operation takes a signed-in session, not an API key", presented=True, hint=expected(Auth.SESSION, site))
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
        require_carried(operation.scope, caller, site)
        require_role(operation.role, caller)
        require_granted(operation.scope, operation.role, caller)
    if operation.upstream:
        await require_connection(caller, directory, site)


def require(scope: Scope, caller: Caller, site: Site) -> None:
    """Refuse with 402 what the caller's tier or role does not carry, and with 403 what only this credential does not."""
    require_carried(scope, caller, site)
    require_granted(scope, None, caller)


def require_carried(scope: Scope, caller: Caller, site: Site) -> None:
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


def require_granted(scope: Scope, role: Role | None, caller: Caller) -> None:
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
    """Refuse with 409 when the active organisation has no upstream account (api.md 5.3)."""
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


def key_name(call: Call) -> str:
    """What the idempotency key is called at the door of the call."""
    once = call.operation.once
    return KEY_NAMES.get(call.surface) or (once.header if once else "")


def check_key(call: Call) -> None:
    """The Idempotency-Key: there when it must be, and of visible ASCII; named as the door at hand takes it."""
    once, key, name = call.operation.once, call.idempotency_key, key_name(call)
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
    elif not is_key(key):
        raise no_key(name, key)


def no_key(name: str, key: str) -> BadRequest:
    """A key that is none, under the name that the door at hand has for it."""
    return BadRequest(
        f"{name}: must be 1-255 visible ASCII characters, in quotes or not; got {len(key)} characters",
        param="idempotency_key",
        hint="A UUID will do",
    )


def fingerprint(params: Input) -> bytes:
    """SHA-256 of the canonical JSON of the validated input: key order and absent-versus-default do not matter.

    Absent-versus-null matters where null removes something: what was confirmed without it does not confirm it.
    """
    canonical: Any = params.model_dump(mode="json")
    if params.removed:
        canonical = [canonical, params.removed]
    return hashlib.sha256(orjson.dumps(canonical, option=orjson.OPT_SORT_KEYS)).digest()


def period_of(now: float) -> Period:
    """The UTC day."""
    return day_of(int(now) // DAY)


@lru_cache(maxsize=8)
def day_of(day: int) -> Period:
    """A day since the epoch, with the moment it ends."""
    return Period(name=datetime.fromtimestamp(day * DAY, UTC).strftime("%Y-%m-%d"), reset=(day + 1) * DAY)


def over_quota(tier: TierLimits, used: int, period: Period, site: Site, now: float) -> QuotaExceeded:
    """The daily quota is used up."""
    return QuotaExceeded(
        f"The daily quota of {tier.calls_per_day} calls is used up; it starts again at {stamp(period.reset)}",
        limit=tier.calls_per_day,
        used=used,
        reset_at=stamp(period.reset),
        retry_after=int(period.reset - now) + 1,
        upgrade_url=site.upgrade_url,
    )


def over_key_limit(limit: int, period: Period, site: Site, now: float) -> QuotaExceeded:
    """The key's own limit is used up; the organisation's quota may not be."""
    return QuotaExceeded(
        f"This API key is restricted to {limit} calls per UTC day, and they are used up; it works again at {stamp(period.reset)}",
        limit=limit,
        used=limit,
        reset_at=stamp(period.reset),
        retry_after=int(period.reset - now) + 1,
        upgrade_url=site.upgrade_url,
        hint="Use another key, or wait; a larger tier does not change this",
    )


def stamp(seconds: float) -> str:
    """RFC 3339 UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
