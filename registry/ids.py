"""Identifiers and random bytes: the one place that draws randomness."""

import secrets
from typing import Protocol

from registry.clock import Clock

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base32: its order is the order of the bits
PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
RANDOM_BITS = 80


class Ids(Protocol):
    """What makes new names. Tests hand in a predictable one."""

    def new(self, prefix: str) -> str:
        """A time-ordered id: prefix, 48 bits of milliseconds, 80 random bits, in 26 base32 characters."""
        ...

    def secret(self, prefix: str) -> str:
        """An id that is itself the secret: prefix and 130 random bits, without a time."""
        ...

    def bytes(self, count: int) -> bytes:
        """Random bytes for tokens, nonces and keys."""
        ...

    def fraction(self) -> float:
        """A random number in [0, 1), for jitter."""
        ...


def base32(number: int) -> str:
    """130 bits as 26 characters, most significant first."""
    parts: list[str] = []
    for shift in range(120, -1, -10):
        parts.append(PAIRS[(number >> shift) & 1023])
    return "".join(parts)


class SystemIds:
    """Ids from the system's random source; ids of one millisecond keep the order in which they were made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def new(self, prefix: str) -> str:
        number = (int(self._clock.now() * 1000) & ((1 << 48) - 1)) << RANDOM_BITS
        number |= int.from_bytes(secrets.token_bytes(10))
        # The clock may stand still or step back: step over the last id by a random stride, so that order holds and ids stay unguessable.
        if number <= self._last and self._last - number < (60_000 << RANDOM_BITS):
            number = self._last + 1 + int.from_bytes(secrets.token_bytes(8))
        self._last = number
        return prefix + base32(number)

    def secret(self, prefix: str) -> str:
        return prefix + base32(secrets.randbits(130))

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)

    def fraction(self) -> float:
        return secrets.randbits(53) / (1 << 53)
