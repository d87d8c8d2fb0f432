"""Identifiers and random bytes: the one place that draws randomness.

A shop's order has a number, which opens nothing, and access tokens, which open it for whoever has one. Until 1.0 an order had one id,
which was its access token and its key everywhere else. Wherever that id was stored or sent, its former number stands in its place from
then on: computed from the id, so that every place comes to the same number without asking another.
"""

import hashlib
import re
import secrets
from threading import Lock
from typing import Protocol

from registry.clock import Clock

BASE32_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base32: its order is the order of the bits
BASE32_PAIRS = [a + b for a in BASE32_ALPHABET for b in BASE32_ALPHABET]
ID_RANDOM_BITS = 80
ID_LAST_MILLISECOND = (1 << 48) - 1
FORTY_BITS = (1 << 40) - 1
RANDOM_POOL_BYTES = 4096


class Ids(Protocol):
    """What makes new names. Tests hand in a predictable one."""

    def new(self, prefix: str) -> str:
        """A time-ordered id: `prefix`, 48 bits of milliseconds, 80 random bits, in 26 base32 characters."""
        ...

    def secret(self, prefix: str) -> str:
        """An id that is itself the secret: `prefix` and 130 random bits, without a time."""
        ...

    def bytes(self, count: int) -> bytes:
        """`count` random bytes for tokens, nonces and keys."""
        ...

    def fraction(self) -> float:
        """A random number in [0, 1), for jitter."""
        ...


def base32(number: int) -> str:
    """130 bits as 26 characters, most significant first."""
    return (
        BASE32_PAIRS[number >> 120]
        + base32_of_40_bits(number >> 80 & FORTY_BITS)
        + base32_of_40_bits(number >> 40 & FORTY_BITS)
        + base32_of_40_bits(number & FORTY_BITS)
    )


def base32_of_40_bits(bits: int) -> str:
    """40 bits as 8 characters: shifting small integers is cheaper."""
    return BASE32_PAIRS[bits >> 30] + BASE32_PAIRS[bits >> 20 & 1023] + BASE32_PAIRS[bits >> 10 & 1023] + BASE32_PAIRS[bits & 1023]


def first_id(prefix: str, at: float) -> str:
    """The smallest id with this prefix that can be made at `at` (Unix seconds, from 1970 on): every id made before is smaller."""
    return prefix + base32(min(max(0, int(at * 1000)), ID_LAST_MILLISECOND) << ID_RANDOM_BITS)


LAST_ID_LETTERS = "z" * 27
"""Sort behind every id: z is the last character of their alphabet."""


def id_bounds(prefix: str, since: float | None, until: float | None, after: str | None) -> tuple[str, str]:
    """The smallest id of a page that goes backwards, and the one that it begins before: of what was made from `since` to before `until`,
    Unix seconds, behind the id `after`; None: no bound."""
    below = after or prefix + LAST_ID_LETTERS
    return prefix if since is None else first_id(prefix, since), below if until is None else min(below, first_id(prefix, until))


def id_created_at(id: str) -> float:
    """When an id was made, Unix seconds: the first ten characters behind its prefix are the milliseconds."""
    number = 0
    for character in id.partition("_")[2][:10]:
        number = number << 5 | BASE32_ALPHABET.index(character)
    return number / 1000


class SystemIds:
    """Ids from the system's random source; ids of one millisecond keep the order in which they were made.

    Threads share it: the writer draws beside the event loop, and no two may be given the same bytes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._last = 0
        self._pool, self._used = b"", 0

    def _take(self, count: int) -> bytes:
        """Drawn from the system 4 KiB at a time, each byte given out once: a system call per id would cost more than the id."""
        if self._used + count > len(self._pool):
            self._pool, self._used = secrets.token_bytes(max(RANDOM_POOL_BYTES, count)), 0
        start, self._used = self._used, self._used + count
        return self._pool[start : self._used]

    def new(self, prefix: str) -> str:
        with self._lock:
            number = (int(self._clock.now() * 1000) & ((1 << 48) - 1)) << ID_RANDOM_BITS
            number |= int.from_bytes(self._take(10))
            # The clock may stand still or step back: step over the last id by a random stride, so that order holds and ids stay
            # unguessable.
            if number <= self._last and self._last - number < (60_000 << ID_RANDOM_BITS):
                number = self._last + 1 + int.from_bytes(self._take(8))
            self._last = number
        return prefix + base32(number)

    def secret(self, prefix: str) -> str:
        return prefix + base32(int.from_bytes(self.bytes(17)) >> 6)

    def bytes(self, count: int) -> bytes:
        with self._lock:
            return self._take(count)

    def fraction(self) -> float:
        return (int.from_bytes(self.bytes(7)) >> 3) / (1 << 53)


ORDER_NUMBER_PREFIX, ORDER_TOKEN_PREFIX = "onr_", "ord_"
ORDER_NUMBER = re.compile(r"onr_[0-9a-z]{26}", re.ASCII)
ORDER_TOKEN = re.compile(r"ord_[0-9a-z]{26}", re.ASCII)


def former_order_number(token: str) -> str:
    """The number of an order whose former id was `token`: 130 bits of a hash, from which the token cannot be computed."""
    return ORDER_NUMBER_PREFIX + base32(int.from_bytes(hashlib.sha256(f"order number|{token}".encode()).digest()[:17]) >> 6)


def without_order_tokens(text: str) -> str:
    """The text with the former number in the place of every access token."""
    return ORDER_TOKEN.sub(lambda found: former_order_number(found[0]), text)
