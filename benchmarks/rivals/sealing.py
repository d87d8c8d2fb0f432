"""AES-256-GCM in the service's own form (kid.nonce.ciphertext), so that a rival opens what the seed database holds."""

import base64
import os
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class Seal:
    """The first key of a keyring; the cipher object is made once."""

    def __init__(self, keyring: Path) -> None:
        self._name, _, material = keyring.read_text().split(",")[0].strip().partition(":")
        self._cipher = AESGCM(base64.b64decode(material))

    def close(self, text: bytes, organisation: str, field: str) -> str:
        """Sealed text."""
        nonce = os.urandom(12)
        sealed = self._cipher.encrypt(nonce, text, f"v1|{organisation}|{field}".encode())
        return f"{self._name}.{encode(nonce)}.{encode(sealed)}"

    def open(self, sealed: str, organisation: str, field: str) -> bytes:
        """The text."""
        _, nonce, ciphertext = sealed.split(".")
        return self._cipher.decrypt(decode(nonce), decode(ciphertext), f"v1|{organisation}|{field}".encode())


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
