"""The service's own signing keys (ES256): made at first need, changed every 90 days, published before and after they sign."""

import base64
import json
from typing import TYPE_CHECKING, NamedTuple

from operations.deps import Deps
from registry.clock import DAY_SECONDS
from storage.sealing import SERVICE_OWNER, signing_key_field
from storage.signing_keys import PUBLISHED_AHEAD, SigningKey, insert_signing_key, published_keys, signer_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

SIGNING_KEY_SECONDS = 90.0 * DAY_SECONDS
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
_SCALAR_BYTES, _SCALAR_SEED_BYTES = 32, 48  # 16 more than the scalar has: what a remainder then favours cannot be seen (FIPS 186-5 A.2.1)


class KeyRotation(NamedTuple):
    """A new key, and when it signs for the first time."""

    kid: str
    signs_from: float


async def signing_key_set(deps: Deps) -> bytes:
    """What verifies our tokens, as a JWK set (RFC 7517); the first call makes the first key, so that the set is never empty."""
    keys = [json.loads(key.public) for key in await signing_keys_at(deps, deps.clock.now())]
    return json.dumps({"keys": keys}, separators=(",", ":")).encode()


async def sign_token(deps: Deps, claims: dict[str, object], now: float) -> str:
    """An access token (RFC 9068) with `claims`, signed by the key in use at `now`, in Unix seconds."""
    import jwt  # start-up budget

    key = signer_of(await signing_keys_at(deps, now), now)
    secret = deps.keyring.open(key.private, org_id=SERVICE_OWNER, field=signing_key_field(key.kid))
    return jwt.encode(claims, signing_private_key(int(secret, 16)), algorithm="ES256", headers={"kid": key.kid, "typ": "at+jwt"})


async def make_next_signing_key(deps: Deps, now: float) -> KeyRotation:
    """Makes the next key; the one in use signs for ten minutes more. `now`: Unix seconds."""
    newest = (await signing_keys_at(deps, now))[0]
    await _make_signing_key(deps, newest.number + 1, now)
    made = (await deps.store.read(published_keys, now=now))[0]
    return KeyRotation(made.kid, made.created + PUBLISHED_AHEAD)


async def signing_keys_at(deps: Deps, now: float) -> list[SigningKey]:
    """The published keys, newest first, after making one where none is young enough."""
    keys = await deps.store.read(published_keys, now=now)
    if not keys or keys[0].created <= now - SIGNING_KEY_SECONDS:
        await _make_signing_key(deps, keys[0].number + 1 if keys else 1, now)
        keys = await deps.store.read(published_keys, now=now)
    return keys


async def _make_signing_key(deps: Deps, number: int, now: float) -> bool:
    """Makes the key of `number`; where several processes do so at once, the first one's is stored."""
    kid, scalar = deps.ids.new("sig_"), int.from_bytes(deps.ids.bytes(_SCALAR_SEED_BYTES)) % (_P256_ORDER - 1) + 1
    private = deps.keyring.seal(f"{scalar:064x}", org_id=SERVICE_OWNER, field=signing_key_field(kid))
    return await deps.store.write(
        insert_signing_key, kid=kid, number=number, private=private, public=json.dumps(_public_jwk(kid, scalar)), now=now
    )


def signing_private_key(scalar: int) -> "EllipticCurvePrivateKey":
    """The key of a scalar, whose randomness is ours."""
    from cryptography.hazmat.primitives.asymmetric import ec  # start-up budget

    return ec.derive_private_key(scalar, ec.SECP256R1())


def _public_jwk(kid: str, scalar: int) -> dict[str, str]:
    point = signing_private_key(scalar).public_key().public_numbers()
    return {
        "kty": "EC",
        "crv": "P-256",
        "use": "sig",
        "alg": "ES256",
        "kid": kid,
        "x": _jwk_coordinate(point.x),
        "y": _jwk_coordinate(point.y),
    }


def _jwk_coordinate(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(_SCALAR_BYTES)).rstrip(b"=").decode()
