"""An identity provider that publishes keys and signs whatever a test asks for."""

import base64
import json
from collections.abc import Mapping

import anyio
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from clients.http import OutboundFailed

ISSUER = "https://id.example.com"
NOW = 1_800_000_000

# Made once: an RSA key takes a noticeable part of a second.
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | bytes


def rsa_jwk(kid: str, key: rsa.RSAPrivateKey = RSA_KEY, **more: object) -> dict[str, object]:
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


def ec_jwk(kid: str, key: ec.EllipticCurvePrivateKey = EC_KEY, **more: object) -> dict[str, object]:
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


def claims(**changes: object) -> dict[str, object]:
    """Good claims with changes; None takes a claim away."""
    good: dict[str, object] = {"iss": ISSUER, "sub": "user_1", "iat": NOW - 10, "exp": NOW + 600, "azp": "https://app.example.com"}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def signed_token(
    payload: Mapping[str, object] | bytes, *, kid: object = "rsa-1", alg: str = "RS256", key: SigningKey = RSA_KEY, **header: object
) -> str:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    head = {"alg": alg, "typ": "JWT", "kid": kid, **header}
    content = f"{b64(json.dumps({name: value for name, value in head.items() if value is not None}).encode())}.{b64(body)}"
    algorithm = jwt.PyJWS().get_algorithm_by_name(alg)
    return f"{content}.{b64(algorithm.sign(content.encode(), key))}"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class KeysProvider:
    """Publishes `keys` and counts how often they are read."""

    def __init__(self, *keys: dict[str, object]) -> None:
        self.keys = list(keys)
        self.reads = 0
        self.down = False
        self.answer: bytes | None = None
        self.gate: anyio.Event | None = None

    async def __call__(self) -> bytes:
        self.reads += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.down:
            raise OutboundFailed("timeout")
        return self.answer or json.dumps({"keys": self.keys}).encode()
