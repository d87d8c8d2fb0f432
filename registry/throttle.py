"""Token buckets in memory: the burst limit of an organisation, of its upstream writes, and of an address on public routes."""

from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, IPv6Network
from typing import NamedTuple, Protocol

CAPACITY = 20_000


def network_of(address: str) -> str:
    """The name under which an address is limited: an IPv6 customer has a whole /64; an IPv4 one behind a socket of both kinds has one."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
        return str(found.ipv4_mapped or IPv6Network((found, 64), strict=False))
    except ValueError:
        return address


class Wait(NamedTuple):
    """How long until the next token, in seconds."""

    seconds: float


class Buckets(Protocol):
    """Token buckets by name. `now` is monotonic seconds."""

    def take(self, key: str, rate: float, size: float, now: float) -> Wait | None: ...
    def charge(self, key: str, amount: float, rate: float, size: float, now: float) -> None: ...
    def wait(self, key: str, rate: float, size: float, now: float) -> Wait | None: ...
    async def replenish(self, key: str, now: Callable[[], float]) -> bool: ...


class Throttle:
    """One bucket a key. A bucket that is full again carries no information, so full ones are the first to be forgotten."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float, float]] = {}

    def take(self, key: str, rate: float, size: float, now: float) -> Wait | None:
        """Take one token, or say how long to wait. `now` is monotonic seconds."""
        tokens, then, _ = self._buckets.get(key, (size, now, now))
        tokens = min(size, tokens + max(0.0, now - then) * rate)
        if tokens < 1:
            return Wait((1 - tokens) / rate)
        self._buckets[key] = (tokens - 1, now, now + (size - tokens + 1) / rate)
        if len(self._buckets) > CAPACITY:
            self._forget(now)
        return None

    def charge(self, key: str, amount: float, rate: float, size: float, now: float) -> None:
        """Take tokens that have been used already; the bucket may owe some afterwards."""
        tokens, then, _ = self._buckets.get(key, (size, now, now))
        tokens = min(size, tokens + max(0.0, now - then) * rate) - amount
        self._buckets[key] = (tokens, now, now + (size - tokens) / rate)
        if len(self._buckets) > CAPACITY:
            self._forget(now)

    def wait(self, key: str, rate: float, size: float, now: float) -> Wait | None:
        """How long until there is a token, without taking it."""
        tokens, then, _ = self._buckets.get(key, (size, now, now))
        tokens = min(size, tokens + max(0.0, now - then) * rate)
        return Wait((1 - tokens) / rate) if tokens < 1 else None

    async def replenish(self, key: str, now: Callable[[], float]) -> bool:
        """Nobody else counts, so that nobody can be asked for more."""
        del key, now
        return False

    def levels(self) -> Iterable[tuple[str, tuple[float, float, float]]]:
        """Every bucket: its tokens, at which moment, and when it is full."""
        return self._buckets.items()

    def put(self, key: str, level: tuple[float, float, float]) -> None:
        """A bucket as it was counted elsewhere."""
        self._buckets[key] = level

    def _forget(self, now: float) -> None:
        for key, (_, _, full_at) in list(self._buckets.items()):
            if full_at <= now:
                del self._buckets[key]
        while len(self._buckets) > CAPACITY:
            del self._buckets[next(iter(self._buckets))]
