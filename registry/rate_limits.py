"""Every burst limit: the token buckets of a process, and whose bucket a call empties. It is not the quota."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network
from typing import NamedTuple, Protocol

from registry.call import Call
from registry.caller import Caller
from registry.clock import Clock, rfc3339_utc
from registry.errors import QuotaExceeded
from registry.limits import Limits
from registry.ports import Site

BUCKETS_LIMIT = 20_000


def address_network(address: str) -> str:
    """The name under which an address is limited: an IPv6 customer has a whole /64; an IPv4 one behind a socket of both kinds has one."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
        return str(found.ipv4_mapped or IPv6Network((found, 64), strict=False))
    except ValueError:
        return address


def rate_limited(message: str, *, limit: int, reset: float, retry_after: int, upgrade_url: str, hint: str | None = None) -> QuotaExceeded:
    """The 429 `rate_limited` of a limit that is used up. `reset`: Unix seconds at which it allows more, `retry_after` seconds from now."""
    return QuotaExceeded(
        message,
        code="rate_limited",
        limit=limit,
        used=limit,
        reset_at=rfc3339_utc(reset),
        retry_after=retry_after,
        upgrade_url=upgrade_url,
        hint=hint,
    )


class BucketStore(Protocol):
    """Token buckets by name. `key` names one, `rate` is tokens a second, `size` is tokens, `now` is monotonic seconds."""

    def take(self, key: str, rate: float, size: float, now: float) -> float | None:
        """Takes one token of the bucket `key`; where it has none, the seconds to wait for one."""
        ...

    def charge(self, key: str, amount: float, rate: float, size: float, now: float) -> None:
        """Takes `amount` tokens that have been used already; the bucket `key` may owe some afterwards."""
        ...

    def wait(self, key: str, rate: float, size: float, now: float) -> float | None:
        """The seconds until the bucket `key` has a token; None where it has one, which is not taken."""
        ...

    async def replenish(self, key: str, now: Callable[[], float]) -> bool:
        """Whether it is worth while to try the empty bucket `key` again. May wait for the database; `now` reads the monotonic clock."""
        ...


class TokenBuckets:
    """One bucket a key. A bucket that is full again carries no information, so full ones are the first to be forgotten."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float, float]] = {}

    def take(self, key: str, rate: float, size: float, now: float) -> float | None:
        tokens, then, _ = self._buckets.get(key, (size, now, now))
        tokens = min(size, tokens + max(0.0, now - then) * rate)
        if tokens < 1:
            return (1 - tokens) / rate
        self._buckets[key] = (tokens - 1, now, now + (size - tokens + 1) / rate)
        if len(self._buckets) > BUCKETS_LIMIT:
            self._forget(now)
        return None

    def charge(self, key: str, amount: float, rate: float, size: float, now: float) -> None:
        tokens, then, _ = self._buckets.get(key, (size, now, now))
        tokens = min(size, tokens + max(0.0, now - then) * rate) - amount
        self._buckets[key] = (tokens, now, now + (size - tokens) / rate)
        if len(self._buckets) > BUCKETS_LIMIT:
            self._forget(now)

    def wait(self, key: str, rate: float, size: float, now: float) -> float | None:
        tokens, then, _ = self._buckets.get(key, (size, now, now))
        tokens = min(size, tokens + max(0.0, now - then) * rate)
        return (1 - tokens) / rate if tokens < 1 else None

    async def replenish(self, key: str, now: Callable[[], float]) -> bool:
        del key, now  # nobody else counts, so nobody can be asked for more
        return False

    def levels(self) -> Iterable[tuple[str, tuple[float, float, float]]]:
        """Every bucket: its tokens, at which moment, and when it is full."""
        return self._buckets.items()

    def put(self, key: str, level: tuple[float, float, float]) -> None:
        self._buckets[key] = level

    def _forget(self, now: float) -> None:
        for key, (_, _, full_at) in list(self._buckets.items()):
            if full_at <= now:
                del self._buckets[key]
        while len(self._buckets) > BUCKETS_LIMIT:
            del self._buckets[next(iter(self._buckets))]


class BucketSize(NamedTuple):
    """A bucket's name, the tokens that it gains in a second, and how many it holds."""

    key: str
    rate: int
    size: int


@dataclass(slots=True)
class RateLimiter:
    """Refuses what comes too fast, with QuotaExceeded. The worker's writes, which no call makes, keep these limits as well.

    It waits for the database only where the process is not alone and has used up its portion of a bucket.
    """

    limits: Limits
    site: Site
    clock: Clock
    buckets: BucketStore = field(default_factory=TokenBuckets)

    async def call(self, call: Call, caller: Caller) -> None:
        """Lets `call` in, or raises QuotaExceeded."""
        operation = call.operation
        if not operation.limited or caller.kind in ("internal", "storefront") or call.surface == "change":
            return  # rows of change sets, and the reading of their lines, are paced by whoever works on them
        if call.surface == "web" and (caller.kind == "public" or call.draws_page):  # the page that it is called for was counted
            return
        if caller.kind == "public":
            await self.address(call.client)
            return
        if not self.limits.burst_enabled:
            return
        tier = self.limits.tiers[caller.tier]
        await self._spend(f"org:{caller.owner}", tier.burst_per_second, tier.burst_size)
        if operation.provided and not operation.read_only:
            await self.upstream(caller.owner)

    async def upstream(self, owner: str) -> None:
        """Writes that reach the charging system or the payment processor have a bucket of their own per organisation."""
        wait = await self.take_upstream(owner)
        if wait is not None:
            raise self._too_fast(int(self.limits.upstream_writes_per_second), wait)

    async def take_upstream(self, owner: str) -> float | None:
        """Takes the token of one such write of the organisation `owner`; where there is none, the seconds to wait for one."""
        rate = self.limits.upstream_writes_per_second
        return await self._ask(self.buckets.take, f"up:{owner}", rate, int(rate)) if self.limits.burst_enabled else None

    async def until_upstream(self, owner: str) -> float | None:
        """The seconds until `owner` has such a token; None where there is one, which is not taken."""
        rate = self.limits.upstream_writes_per_second
        return await self._ask(self.buckets.wait, f"up:{owner}", rate, int(rate)) if self.limits.burst_enabled else None

    async def address(self, client: str) -> None:
        """Public operations and pages share one count per address."""
        await self._per_minute(f"ip:{address_network(client)}", self.limits.public_per_minute)

    async def page(self, person: str) -> None:
        """Counts a page of the console that `person` looks at. Raises QuotaExceeded."""
        await self._per_minute(f"page:{person}", self.limits.pages_per_minute)

    async def order(self, client: str) -> None:
        """Counts the beginning of a purchase, which makes a row of ours and a page at the payment processor. Raises QuotaExceeded."""
        await self._per_minute(f"order:{address_network(client)}", self.limits.orders_per_minute)

    async def message(self, caller: Caller) -> None:
        """Messages of a protocol that are not calls (lists, handshakes) have a bucket of their own, twice as large as that of calls."""
        if self.limits.burst_enabled:
            tier = self.limits.tiers[caller.tier]
            await self._spend(f"msg:{caller.owner}", 2 * tier.burst_per_second, 2 * tier.burst_size)

    async def guess(self, call: Call, caller: Caller) -> None:
        """Refuses a public caller whose address has sent too many wrong ids; the shop's own key is never refused."""
        if self.limits.burst_enabled and caller.kind == "public":
            size = self.limits.misses_per_minute
            wait = await self._ask(self.buckets.wait, f"miss:{address_network(call.client)}", size / 60, size)
            if wait is not None:
                raise self._too_fast(size, wait)

    async def missed(self, call: Call) -> None:
        """Counts a wrong id. Raises QuotaExceeded beyond the limit, so that calls that were let in together learn no more than others."""
        if call.identified is not None and call.identified.kind == "public":
            await self._per_minute(f"miss:{address_network(call.client)}", self.limits.misses_per_minute)

    async def body(self, caller: Caller, client: str) -> None:
        """Lets a body be read; raises QuotaExceeded, unread, while too many bytes from the same sender were refused."""
        bucket = self._refused_input(caller, client)
        if bucket is None:
            return
        wait = await self._ask(self.buckets.wait, bucket.key, bucket.rate, bucket.size)
        if wait is not None:
            seconds = max(1, math.ceil(wait))
            raise rate_limited(
                f"Too many bodies from you were refused: {bucket.size} bytes of them may come at once, and {bucket.rate} a second after; "
                f"wait {seconds} s",
                limit=bucket.size,
                reset=self.clock.now() + seconds,
                retry_after=seconds,
                upgrade_url=self.site.upgrade_url,
                hint="Mend what the refusals named before you send it again; a larger tier does not change this",
            )

    def refused_body(self, caller: Caller, client: str, size: int) -> None:
        """Charge a body of `size` bytes that was refused: it costs no quota, and would otherwise cost nothing."""
        bucket = self._refused_input(caller, client)
        if bucket is not None:
            amount = max(size, self.limits.refused_bytes_least)
            self.buckets.charge(bucket.key, amount, bucket.rate, bucket.size, self.clock.monotonic())

    def _refused_input(self, caller: Caller, client: str) -> BucketSize | None:
        """Whose bucket it is: an organisation's or an address's; the deployment's own systems have none."""
        limits = self.limits
        if not limits.burst_enabled or caller.kind in ("internal", "storefront"):
            return None
        if caller.kind == "public" or not caller.owner:
            return BucketSize(f"bad-ip:{address_network(client)}", limits.public_refused_bytes_per_second, limits.public_refused_bytes)
        return BucketSize(f"bad:{caller.owner}", limits.refused_bytes_per_second, limits.refused_bytes)

    async def _per_minute(self, key: str, size: int) -> None:
        if self.limits.burst_enabled:
            await self._spend(key, size / 60, size)

    async def _spend(self, key: str, rate: float, size: int) -> None:
        """Takes one token, or raises the refusal that says when to come again."""
        wait = self.buckets.take(key, rate, size, self.clock.monotonic())
        if wait is not None:
            wait = await self._ask(self.buckets.take, key, rate, size)
        if wait is not None:
            raise self._too_fast(size, wait)

    async def _ask(self, ask: Callable[[str, float, float, float], float | None], key: str, rate: float, size: int) -> float | None:
        """What `ask` (take or wait) says of a bucket, once the bucket cannot be replenished any more."""
        monotonic = self.clock.monotonic
        while (wait := ask(key, rate, size, monotonic())) is not None:
            if not await self.buckets.replenish(key, monotonic):
                return wait
        return None

    def _too_fast(self, size: int, wait: float) -> QuotaExceeded:
        seconds = max(1, math.ceil(wait))
        return rate_limited(
            f"Too many calls at once: the burst limit is {size}; wait {seconds} s and repeat the call",
            limit=size,
            reset=self.clock.now() + seconds,
            retry_after=seconds,
            upgrade_url=self.site.upgrade_url,
        )


def minute_number(now: float) -> int:
    """The whole minutes from the Unix epoch to `now`, in Unix seconds."""
    return int(now) // 60


def minute_limit_reached(what: str, *, most: int, now: float, upgrade_url: str) -> QuotaExceeded:
    """The refusal until the next minute begins. `what` says in the past tense what was done, for example "evt_1 was retried"."""
    reset = (minute_number(now) + 1) * 60
    text = f"{what} {most} times in this minute; do it again from {rfc3339_utc(reset)} on"
    return rate_limited(text, limit=most, reset=reset, retry_after=reset - int(now), upgrade_url=upgrade_url)
