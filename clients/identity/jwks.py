"""The identity provider's published keys, fetched rarely and kept through an outage."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, cast

import anyio

from clients.http import OutboundFailed

if TYPE_CHECKING:  # cryptography is imported with the first key set: start-up budget
    from jwt import PyJWK

    from clients.http import Outbound

JWKS_FRESH_SECONDS = 300.0
JWKS_COOLDOWN_SECONDS = 30.0
JWKS_LAST_GOOD_SECONDS = 24 * 3600.0
JWKS_BYTES_LIMIT = 256 * 1024
SMALLEST_RSA_BITS = 2048

JwksFetch = Callable[[], Awaitable[bytes]]


class JwksUnavailable(Exception):
    """There is no usable key set: none was ever read, or the last good one is over a day old."""


class BadJwks(ValueError):
    """What the provider published is not a key set with a usable key."""


def jwks_fetch(outbound: Outbound, url: str) -> JwksFetch:
    """Read the key set from `url`; only a complete 200 counts."""

    async def fetch() -> bytes:
        reply = await outbound.exchange("GET", url, headers={"accept": "application/json"}, keep=JWKS_BYTES_LIMIT)
        if reply.status != 200 or reply.truncated:
            raise BadJwks(f"The key set answered {reply.status} with {len(reply.body)} bytes.")
        return reply.body

    return fetch


class JwksCache:
    """Keys by id. At most one request in `cooldown` seconds, however many unknown ids are asked for."""

    def __init__(self, fetch: JwksFetch, monotonic: Callable[[], float], *, cooldown: float = JWKS_COOLDOWN_SECONDS) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._cooldown = cooldown
        self._keys: Mapping[str, PyJWK] = {}
        self._read_at: float | None = None
        self._asked_at: float | None = None
        self._one_at_a_time = anyio.Lock()

    async def key(self, kid: str) -> PyJWK | None:
        """The key of this id, or None when the provider does not publish it; `JwksUnavailable` without any set."""
        known = self._keys.get(kid)
        if known is not None and (self._age_below(JWKS_FRESH_SECONDS) or self._being_read_with_last_good()):
            return known
        await self._read_once()
        if not self._age_below(JWKS_LAST_GOOD_SECONDS):
            raise JwksUnavailable("The identity provider's keys cannot be read.")
        return self._keys.get(kid)

    def _being_read_with_last_good(self) -> bool:
        """While one caller refreshes, the others go on with the set at hand."""
        return self._one_at_a_time.locked() and self._age_below(JWKS_LAST_GOOD_SECONDS)

    def _age_below(self, seconds: float) -> bool:
        return self._read_at is not None and self._monotonic() - self._read_at < seconds

    def _cooling(self) -> bool:
        return self._asked_at is not None and self._monotonic() - self._asked_at < self._cooldown

    async def _read_once(self) -> None:
        if self._cooling() and not self._one_at_a_time.locked():
            return
        async with self._one_at_a_time:
            if self._cooling():  # a caller before us has just asked
                return
            self._asked_at = self._monotonic()
            # A caller that hangs up must not spend the one request that may be made; the seam limits its time.
            with anyio.CancelScope(shield=True):
                await self._read()

    async def _read(self) -> None:
        """Replace the set by a good answer; a failed one leaves the last good set in place."""
        try:
            keys = parse_jwks(await self._fetch())
        except (OutboundFailed, BadJwks):
            return
        self._keys, self._read_at = keys, self._monotonic()


def parse_jwks(body: bytes) -> dict[str, PyJWK]:
    """The signing keys of a set by id: RSA of at least 2048 bits and P-256. Others are passed over."""
    try:
        published: object = json.loads(body)
    except (ValueError, RecursionError):
        raise BadJwks("The key set is not JSON.") from None
    entries = cast("dict[str, object]", published).get("keys") if isinstance(published, dict) else None
    if not isinstance(entries, list):
        raise BadJwks("The key set has no list `keys`.")
    keys: dict[str, PyJWK] = {}
    for entry in cast("list[object]", entries):
        if isinstance(entry, dict):
            keys.update(_usable_keys(cast("dict[str, object]", entry)))
    if not keys:
        raise BadJwks("The key set has no RS256 or ES256 key with an id.")
    return keys


def _usable_keys(entry: dict[str, object]) -> dict[str, PyJWK]:
    """One entry, or none when it is no signing key that we accept."""
    import jwt  # start-up budget

    kid, algorithm = entry.get("kid"), key_algorithm(entry)
    if not isinstance(kid, str) or algorithm is None or entry.get("use", "sig") != "sig":
        return {}
    public = {name: value for name, value in entry.items() if name in _PUBLIC_MEMBERS}
    try:
        key = jwt.PyJWK(public, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return {}  # one malformed entry must not take the good ones with it
    return {kid: key} if _is_strong_key(key) else {}


def key_algorithm(entry: Mapping[str, object]) -> str | None:
    """The one algorithm a published key is good for, from its type and never from a token."""
    by_type = {"RSA": "RS256", "EC": "ES256"}
    algorithm = by_type.get(str(entry.get("kty")))
    if algorithm == "ES256" and entry.get("crv") != "P-256":
        return None
    return algorithm if entry.get("alg", algorithm) == algorithm else None


def _is_strong_key(key: PyJWK) -> bool:
    size = cast("int", getattr(key.key, "key_size", 0))
    return key.algorithm_name != "RS256" or size >= SMALLEST_RSA_BITS


_PUBLIC_MEMBERS = frozenset({"kty", "kid", "use", "alg", "n", "e", "crv", "x", "y"})
