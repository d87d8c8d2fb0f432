"""Session tokens: what must hold before a bearer is believed to be someone, and for which door a token was made."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, cast

from clients.identity.jwks import JwksCache, JwksUnavailable

if TYPE_CHECKING:
    from jwt import PyJWK


TokenRefusalCode = Literal["token_expired", "unauthorized"]


class TokenRefused(Exception):
    """The token proves nothing here. The text names the rule and never holds the token or a part of it."""

    def __init__(self, reason: str, code: TokenRefusalCode = "unauthorized") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code: TokenRefusalCode = code


class AudienceRule(Protocol):
    """Decides on the verified claims of a token whether it was made for this door."""

    def accepts(self, claims: Mapping[str, object]) -> bool:
        """Whether the token may be used at this door."""
        ...


@dataclass(frozen=True, slots=True)
class HttpAudience:
    """The HTTP door: `aud` is the configured audience, or `azp` is on the list when there is no `aud` at all."""

    audience: str | None = None
    authorized_parties: frozenset[str] = frozenset()

    def accepts(self, claims: Mapping[str, object]) -> bool:
        """Sessions of common providers carry no `aud`; then the application they were made for must be ours."""
        if "aud" not in claims:
            party = claims.get("azp")
            return isinstance(party, str) and party in self.authorized_parties
        return bool(self.audience) and self.audience in _audiences(claims["aud"])


@dataclass(frozen=True, slots=True)
class McpAudience:
    """The MCP door: `aud` has the MCP resource URL, character for character."""

    resource: str

    def accepts(self, claims: Mapping[str, object]) -> bool:
        """A trailing slash, a prefix or another resource is a token for someone else."""
        return bool(self.resource) and self.resource in _audiences(claims.get("aud"))


def _audiences(value: object) -> list[str]:
    """RFC 7519: one string or a list of strings. Anything else names nobody."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return []
    members = cast("list[object]", value)
    names = [member for member in members if isinstance(member, str)]
    return names if len(names) == len(members) else []


TOKEN_ALGORITHMS = ("RS256", "ES256")
TOKEN_LENGTH_LIMIT = 8 * 1024
SUBJECT_LENGTH_LIMIT = 255
TOKEN_LEEWAY_SECONDS = 5
TOKEN_LIFE_LIMIT_SECONDS = 24 * 3600
LATEST_TOKEN_TIME = 1 << 53
EMAIL_LENGTH_LIMIT = 254
_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
# ASCII alone: there are other letters whose lower case is an ASCII one, so that another's address could be spelled with them.
_EMAIL_ADDRESS = re.compile(r"[!-?A-~]+@[!-?A-~]+", re.ASCII)
_UNREADABLE_TOKEN = "The token is not a signed JWT of this service's identity provider."


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a verified token says. Tier and membership are never read from it."""

    subject: str
    issuer: str
    organisation: str | None
    """A hint: the organisation that was active in the session (`org_id`, or the provider's `o.id`)."""
    issued_at: int
    expires_at: int
    email: str | None = None
    """An address that the provider says it has verified: the person reads its mail."""


class TokenVerifier:
    """Verifies session tokens of one issuer."""

    def __init__(self, issuer: str, keys: JwksCache, now: Callable[[], float]) -> None:
        if not issuer:
            raise ValueError("issuer: empty. Name the identity provider exactly as its tokens do in `iss`.")
        self._issuer = issuer
        self._keys = keys
        self._now = now

    async def verify(self, token: str, audience_rule: AudienceRule) -> TokenClaims:
        """The claims of a token that passes every rule; `TokenRefused` names the first one that fails."""
        header = _token_header(token)
        key = await self._key(_key_id(header))
        if key is None or key.algorithm_name != header["alg"]:
            raise TokenRefused("The token was signed with a key that the identity provider does not publish.")
        claims = _signed_claims(token, key)
        self._check_issuer(claims)
        issued_at, expires_at = self._check_times(claims)
        if not audience_rule.accepts(claims):
            raise TokenRefused("The token was issued for another audience (aud, azp). Ask for one made for this door.")
        return TokenClaims(_subject_claim(claims), self._issuer, _organisation_claim(claims), issued_at, expires_at, _email_claim(claims))

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
        expires_at, issued_at = _claim_seconds(claims, "exp"), _claim_seconds(claims, "iat")
        starts_at = _claim_seconds(claims, "nbf") if "nbf" in claims else issued_at
        if expires_at <= now - TOKEN_LEEWAY_SECONDS:
            raise TokenRefused("The token has expired. Sign in again.", "token_expired")
        if max(issued_at, starts_at) > now + TOKEN_LEEWAY_SECONDS:
            raise TokenRefused("The token is not valid yet (iat or nbf lies in the future).")
        if expires_at - issued_at > TOKEN_LIFE_LIMIT_SECONDS:
            raise TokenRefused("The token lives longer than 24 hours (exp - iat). Ask for a shorter one.")
        return int(issued_at), int(expires_at)


def _token_header(token: str) -> Mapping[str, object]:
    """The unverified header: only `alg`, `kid` and `crit` are looked at; `jku`, `x5u`, `jwk` never are."""
    if len(token) > TOKEN_LENGTH_LIMIT:
        raise TokenRefused(f"The token is longer than {TOKEN_LENGTH_LIMIT} characters.")
    header = _claims_object(_decode_part(token.partition(".")[0]))
    if not token.isascii() or token.count(".") != 2 or header is None:
        raise TokenRefused(_UNREADABLE_TOKEN)
    if header.get("alg") not in TOKEN_ALGORITHMS:
        raise TokenRefused("The token is not signed with RS256 or ES256.")
    if "crit" in header or "b64" in header:
        raise TokenRefused("The token needs a header extension (crit) that is not known here.")
    return header


def _key_id(header: Mapping[str, object]) -> str:
    """The key id is a dictionary key and nothing else; odd ones never get that far."""
    kid = header.get("kid")
    if not isinstance(kid, str) or _KEY_ID.fullmatch(kid) is None:
        raise TokenRefused("The token's key id (kid) must be 1 to 200 characters of A-Z a-z 0-9 . _ -")
    return kid


def _signed_claims(token: str, key: PyJWK) -> Mapping[str, object]:
    import jwt  # start-up budget

    try:
        payload = jwt.PyJWS().decode(token, key, algorithms=[key.algorithm_name])
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise TokenRefused("The token's signature does not match.") from None
    claims = _claims_object(cast("object", payload))
    if claims is None:
        raise TokenRefused(_UNREADABLE_TOKEN)
    return claims


def _decode_part(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _claims_object(document: object) -> Mapping[str, object] | None:
    """A JSON object without repeated members, or None."""
    if not isinstance(document, bytes):
        return None
    try:
        parsed: object = json.loads(document, object_pairs_hook=_unrepeated_members)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", parsed) if isinstance(parsed, dict) else None


def _unrepeated_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("repeated member")
    return members


def _claim_seconds(claims: Mapping[str, object], name: str) -> int | float:
    """A claim that must be a plain number of seconds; the bounds also keep out NaN, infinity and 10^30."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LATEST_TOKEN_TIME:
        raise TokenRefused(f"The token's {name} must be present and a number of Unix seconds.")
    return value


def _subject_claim(claims: Mapping[str, object]) -> str:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LENGTH_LIMIT or not subject.isprintable():
        raise TokenRefused(f"The token's sub must be a text of 1 to {SUBJECT_LENGTH_LIMIT} printable characters.")
    return subject


def _organisation_claim(claims: Mapping[str, object]) -> str | None:
    """`org_id`, or the active organisation object `o` of some providers."""
    hint = claims.get("org_id")
    active = claims.get("o")
    if hint is None and isinstance(active, dict):
        hint = cast("dict[str, object]", active).get("id")
    return hint if isinstance(hint, str) and 0 < len(hint) <= SUBJECT_LENGTH_LIMIT and hint.isprintable() else None


def _email_claim(claims: Mapping[str, object]) -> str | None:
    """The address, when `email_verified` is true and nothing that only looks so; one that is odd is none, and no reason to refuse."""
    email = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(email, str) or len(email) > EMAIL_LENGTH_LIMIT:
        return None
    return email if _EMAIL_ADDRESS.fullmatch(email) else None


ACCESS_TOKEN_TYPE = "at+jwt"


def grant_of_token(token: str) -> str | None:
    """The grant (`sid`) that a verified token was made for; None for a token that is no access token or names no grant."""
    head, payload, _ = token.split(".")
    if str(token_part(head).get("typ")).lower() != ACCESS_TOKEN_TYPE:
        return None
    grant = token_part(payload).get("sid")
    return grant if isinstance(grant, str) and grant else None


def token_part(text: str) -> dict[str, object]:
    """A part of a token; the verifier has seen that it is a JSON object."""
    return cast("dict[str, object]", json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
