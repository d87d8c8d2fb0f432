"""The decisions of the pipeline, one function each: what a caller may do, whether the quota holds, what an idempotency key is."""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from registry.call import Call, Surface
from registry.caller import Caller, Role, Tier
from registry.clock import DAY_SECONDS, rfc3339_utc
from registry.errors import BadRequest, Conflict, OrgNotConnected, QuotaExceeded, Restricted, RoleRequired, UpgradeRequired
from registry.operation import Auth, Document, Input, Scope, StreamedAnswer
from registry.ports import Directory, QuotaPeriod, Site

IDEMPOTENCY_KEY_NAMES: Mapping[Surface, str] = {"mcp": "idempotency_key", "cli": "--idempotency-key"}
"""What the header Idempotency-Key is called where there are no headers."""


def scopes_of(tier: Tier, role: Role) -> Scope:
    """The scopes a member of a role has in an organisation of a tier."""
    scopes = Scope.READ | Scope.ANY
    if tier is not Tier.FREE:
        scopes |= Scope.WRITE
    if tier is Tier.ENTERPRISE and role is Role.ADMIN:
        scopes |= Scope.ADMIN
    return scopes


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
        if operation.role is not None:
            require_role(operation.role, caller)
        require_scope_of_credential(operation.scope, operation.role, caller)
    if operation.upstream and caller.connection is None:
        await require_connection(caller, directory, site)


def require_scope(scope: Scope, caller: Caller, site: Site) -> None:
    """Raises UpgradeRequired where the caller's tier or role does not carry `scope`, Restricted where only this credential does not."""
    require_scope_of_tier(scope, caller, site)
    require_scope_of_credential(scope, None, caller)


def require_scope_of_tier(scope: Scope, caller: Caller, site: Site) -> None:
    """Raises UpgradeRequired where the tier or the role of the membership does not carry `scope`, whatever the credential."""
    if not int(scope) & ~(caller.scopes | caller.withheld):  # flags know the operators, too, and take ten times as long
        return
    needed = "enterprise" if scope & Scope.ADMIN else "pro"  # the cheapest tier that carries what the free one lacks
    if scope & Scope.ADMIN and caller.tier is Tier.ENTERPRISE:
        text = "This operation needs the role admin in your organisation, which you do not have; the tier is right"
    else:
        wanted = "admin" if scope & Scope.ADMIN else "write"
        text = f"This operation needs {wanted} access; the tier {caller.tier} of your organisation does not carry it, {needed} does"
    raise UpgradeRequired(text, required_tier=needed, upgrade_url=site.upgrade_url)


def require_role(role: Role, caller: Caller, what: str = "This operation") -> None:
    """Refuse with 403 what only admins of the organisation may do, whatever its tier."""
    if role is Role.ADMIN and caller.role is not Role.ADMIN and caller.kind in ("key", "session", "local"):
        raise RoleRequired(
            f"{what} needs the role admin in your organisation, and you are a member; a larger tier does not change that",
            hint="Ask an admin of your organisation: list_members names them",
        )


def require_scope_of_credential(scope: Scope, role: Role | None, caller: Caller) -> None:
    """Raises Restricted where the membership carries `scope` or `role`, and this credential does not."""
    granted = caller.has(scope)
    if not granted and caller.withheld & Scope.ANY and not scope & Scope.ADMIN:
        raise Restricted("This credential may only read, and this operation changes something")
    if not granted or (role is Role.ADMIN and caller.restrictions.no_admin):
        raise Restricted("This credential was made without admin access, which your organisation and your role carry")


def require_admin(caller: Caller, what: str) -> None:
    """Raises RoleRequired unless the caller is an admin, and Restricted unless the credential may do all that its person may.

    For the part of an open operation that is for admins; `what` begins the message.
    """
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
    once, key = call.operation.once, call.idempotency_key
    if once is None:
        call.idempotency_key = None
    elif key is None:
        if once.required:
            raise BadRequest(
                f"{idempotency_key_name(call)}: missing; it is required, so that a repeated call has one effect",
                code="idempotency_key_required",
                param="idempotency_key",
                hint="Send 1-255 visible ASCII characters, for example a UUID, and the same ones when you repeat the call",
            )
    elif IDEMPOTENCY_KEY.fullmatch(key) is None and not is_quoted_key(key):
        raise bad_idempotency_key(idempotency_key_name(call), key)
    elif call.surface != "change" and ROW_KEY.fullmatch(key_spellings(key)[-1]):
        raise BadRequest(
            f"{idempotency_key_name(call)}: a key that begins with chg_ and ends with two numbers is of a row of a change set",
            param="idempotency_key",
            hint="A UUID will do",
        )


def bad_idempotency_key(name: str, key: str) -> BadRequest:
    return BadRequest(
        f"{name}: must be 1-255 visible ASCII characters, in quotes or not; got {len(key)} characters",
        param="idempotency_key",
        hint="A UUID will do",
    )


def check_answer_form(call: Call, result: object) -> None:
    """Raises BadRequest for an answer that is no JSON where the door of `call` hands on nothing else."""
    if call.takes_json_alone and isinstance(result, Document | StreamedAnswer) and "json" not in result.media_type:
        kind, operation = result.media_type.partition(";")[0], call.operation
        raise BadRequest(
            f"The answer would be {kind}, and a tool answers JSON alone",
            hint=f"Leave out what asks for that form, or ask for it over HTTP: {operation.method} {operation.path}",
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


def daily_quota_exceeded(limit: int, used: int, period: QuotaPeriod, site: Site, now: float) -> QuotaExceeded:
    """The refusal of a call when `used` calls of the tier's daily quota, which is `limit`, are used up; `now`: Unix seconds."""
    text = f"The daily quota of {limit} calls is used up; it starts again at {rfc3339_utc(period.reset)}"
    return quota_exceeded(text, limit=limit, used=used, period=period, site=site, now=now)


def key_limit_exceeded(limit: int, period: QuotaPeriod, site: Site, now: float) -> QuotaExceeded:
    """The refusal when the `limit` of the key itself is used up; the organisation's quota may not be. `now`: Unix seconds."""
    text = f"This API key is restricted to {limit} calls per UTC day, and they are used up; it works again at {rfc3339_utc(period.reset)}"
    hint = "Use another key, or wait; a larger tier does not change this"
    return quota_exceeded(text, limit=limit, used=limit, period=period, site=site, now=now, hint=hint)


def quota_exceeded(
    message: str, *, limit: int, used: int, period: QuotaPeriod, site: Site, now: float, hint: str | None = None
) -> QuotaExceeded:
    """The 429 `quota_exceeded` of what is counted by `period`, a UTC day, and begins again with the next; `now`: Unix seconds."""
    reset = period.reset
    return QuotaExceeded(
        message,
        limit=limit,
        used=used,
        reset_at=rfc3339_utc(reset),
        retry_after=int(reset - now) + 1,
        upgrade_url=site.upgrade_url,
        hint=hint,
    )


IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
ROW_KEY = re.compile(r"chg_[0-9a-z]{26}\.[0-9]+\.[0-9]+", re.ASCII)
"""Keys of the rows of change sets: a caller that could take one would keep its row from being sent."""
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


def is_quoted_key(text: str) -> bool:
    """Whether `text` in quotes holds a key. What was stored before quotes were read is a key as it is."""
    return len(text) <= KEY_SPELLING_LIMIT and IDEMPOTENCY_KEY.fullmatch(key_spellings(text)[-1]) is not None
