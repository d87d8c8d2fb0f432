"""Session tokens: what must hold before a bearer is believed to be someone."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from clients.identity.audience import AudienceRule
from clients.identity.jwks import JwksCache, JwksUnavailable
from clients.identity.refusal import TokenRefused

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS = ("RS256", "ES256")
LONGEST_TOKEN = 8 * 1024
LONGEST_SUBJECT = 255
LEEWAY_SECONDS = 5
LONGEST_LIFE_SECONDS = 24 * 3600
LATEST_MOMENT = 1 << 53
LONGEST_EMAIL = 254
_KID = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
# ASCII alone: there are other letters whose lower case is an ASCII one, so that another's address could be spelled with them.
_EMAIL = re.compile(r"[!-?A-~]+@[!-?A-~]+", re.ASCII)
_UNREADABLE = "The token is not a signed JWT of this service's identity provider."


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified token says. Tier and membership are never read from it."""

    subject: str
    issuer: str
    organisation: str | None
    """A hint: the organisation that was active in the session (`org_id`, or the provider's `o.id`)."""
    issued_at: int
    expires_at: int
    email: str | None = None
    """An address that the provider says it has verified: the person reads its mail."""


class Verifier:
    """Verifies session tokens of one issuer."""

    def __init__(self, issuer: str, keys: JwksCache, now: Callable[[], float]) -> None:
        if not issuer:
            raise ValueError("issuer: empty. Name the identity provider exactly as its tokens do in `iss`.")
        self._issuer = issuer
        self._keys = keys
        self._now = now

    async def verify(self, token: str, audience_rule: AudienceRule) -> Claims:
        """The claims of a token that passes every rule; `TokenRefused` names the first one that fails."""
        header = _header(token)
        key = await self._key(_kid(header))
        if key is None or key.algorithm_name != header["alg"]:
            raise TokenRefused("The token was signed with a key that the identity provider does not publish.")
        claims = _signed_claims(token, key)
        self._check_issuer(claims)
        issued_at, expires_at = self._check_times(claims)
        if not audience_rule.accepts(claims):
            raise TokenRefused("The token was issued for another audience (aud, azp). Ask for one made for this door.")
        return Claims(_subject(claims), self._issuer, _organisation(claims), issued_at, expires_at, _email(claims))

    async def _key(self, kid: str) -> PyJWK | None:
        try:
            return await self._keys.key(kid)
        except JwksUnavailable:
            raise TokenRefused("The identity provider's keys cannot be read now. Try again in a minute.") from None

    def _check_issuer(self, claims: Mapping[str, object]) -> None:
        if claims.get("iss") != self._issuer:
            raise TokenRefused("The token comes from another issuer (iss) than the one configured here.")

    def _check_times(self, claims: Mapping[str, object]) -> tuple[int, int]:
        """PyJWT reads the real clock and accepts strings of digits, so the times are checked here."""
        now = self._now()
        expires_at, issued_at = _moment(claims, "exp"), _moment(claims, "iat")
        starts_at = _moment(claims, "nbf") if "nbf" in claims else issued_at
        if expires_at <= now - LEEWAY_SECONDS:
            raise TokenRefused("The token has expired. Sign in again.", "token_expired")
        if max(issued_at, starts_at) > now + LEEWAY_SECONDS:
            raise TokenRefused("The token is not valid yet (iat or nbf lies in the future).")
        if expires_at - issued_at > LONGEST_LIFE_SECONDS:
            raise TokenRefused("The token lives longer than 24 hours (exp - iat). Ask for a shorter one.")
        return int(issued_at), int(expires_at)


def _header(token: str) -> Mapping[str, object]:
    """The unverified header: only `alg`, `kid` and `crit` are looked at; `jku`, `x5u`, `jwk` never are."""
    if len(token) > LONGEST_TOKEN:
        raise TokenRefused(f"The token is longer than {LONGEST_TOKEN} characters.")
    header = _json_object(_decoded(token.partition(".")[0]))
    if not token.isascii() or token.count(".") != 2 or header is None:
        raise TokenRefused(_UNREADABLE)
    if header.get("alg") not in ALGORITHMS:
        raise TokenRefused("The token is not signed with RS256 or ES256.")
    if "crit" in header or "b64" in header:
        raise TokenRefused("The token needs a header extension (crit) that is not known here.")
    return header


def _kid(header: Mapping[str, object]) -> str:
    """The key id is a dictionary key and nothing else; odd ones never get that far."""
    kid = header.get("kid")
    if not isinstance(kid, str) or _KID.fullmatch(kid) is None:
        raise TokenRefused("The token's key id (kid) must be 1 to 200 characters of A-Z a-z 0-9 . _ -")
    return kid


def _signed_claims(token: str, key: PyJWK) -> Mapping[str, object]:
    import jwt  # start-up budget

    try:
        payload = jwt.PyJWS().decode(token, key, algorithms=[key.algorithm_name])
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise TokenRefused("The token's signature does not match.") from None
    claims = _json_object(cast("object", payload))
    if claims is None:
        raise TokenRefused(_UNREADABLE)
    return claims


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _json_object(document: object) -> Mapping[str, object] | None:
    """A JSON object without repeated members, or None."""
    if not isinstance(document, bytes):
        return None
    try:
        parsed: object = json.loads(document, object_pairs_hook=_unrepeated)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", parsed) if isinstance(parsed, dict) else None


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("repeated member")
    return members


def _moment(claims: Mapping[str, object], name: str) -> int | float:
    """A claim that must be a plain number of seconds; the bounds also keep out NaN, infinity and 10^30."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LATEST_MOMENT:
        raise TokenRefused(f"The token's {name} must be present and a number of Unix seconds.")
    return value


def _subject(claims: Mapping[str, object]) -> str:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        raise TokenRefused(f"The token's sub must be a text of 1 to {LONGEST_SUBJECT} printable characters.")
    return subject


def _organisation(claims: Mapping[str, object]) -> str | None:
    """`org_id`, or the active organisation object `o` of some providers."""
    hint = claims.get("org_id")
    active = claims.get("o")
    if hint is None and isinstance(active, dict):
        hint = cast("dict[str, object]", active).get("id")
    return hint if isinstance(hint, str) and 0 < len(hint) <= LONGEST_SUBJECT and hint.isprintable() else None


def _email(claims: Mapping[str, object]) -> str | None:
    """The address, when `email_verified` is true and nothing that only looks so; one that is odd is none, and no reason to refuse."""
    email = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(email, str) or len(email) > LONGEST_EMAIL:
        return None
    return email if _EMAIL.fullmatch(email) else None
