"""The daily quota and a key's own, over HTTP, MCP and a second process: never oversold, never lost but in a crash, anew at midnight UTC."""

from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from registry.caller import Restrictions, Tier
from registry.clock import DAY_SECONDS
from registry.limits import Limits, TierLimits
from registry.policy import quota_period
from registry.ports import QuotaPeriod
from storage.quota import EXHAUSTED_SECONDS, read_quota_used
from tests.harness.machine_runner import ServiceMachine
from tests.registry import things
from tests.registry.bench import Bench, BenchAnswer, BenchReplica, open_bench
from tests.world import Credentials

FREE, PRO, OWN, BLOCK = 25, 40, 9, 4
LIMITS = Limits(
    burst_enabled=False, quota_block=BLOCK, tiers={tier: TierLimits(FREE if tier is Tier.FREE else PRO, 5, 10, 10) for tier in Tier}
)
WHO, CALLS = st.sampled_from(["me", "colleague", "limited"]), st.integers(1, 6)
KINDS = st.sampled_from(["read", "write", "mcp", "elsewhere"])
"""Charged from a block, with its own commit, through the other door, or by another process."""
COSTLESS = ("invalid", "replay", "reused", "refused", "early", "challenge", "missing")


@dataclass
class Day:
    """What was used in one UTC day, by everybody and by the limited key; and what went with a process that crashed."""

    used: int = 0
    own: int = 0
    lost: int = 0
    own_lost: int = 0


class QuotaMachine(ServiceMachine):
    """Three keys of one organisation, one of them limited, and two processes."""

    async def open(self, folder: Path, url: str | None) -> None:
        self.bench: Bench = await self.stack.enter_async_context(open_bench(folder, url, limits=LIMITS))
        world, me = self.bench.world, await self.bench.world.caller(Tier.PRO)
        key_id, secret = await world.key(me.person, me.organisation, restrictions=Restrictions(calls_per_day=OWN))
        limited = Credentials(me.organisation, me.person, key_id, secret)
        self.people = {"me": me, "colleague": await world.caller(organisation=me.organisation), "limited": limited}
        self.http = await self.stack.enter_async_context(world.client())
        self.other: BenchReplica = await self.bench.replica()
        self.limit, self.day = PRO, Day()
        self.keyed = 0
        self.given_back_at = -EXHAUSTED_SECONDS
        self.past: list[tuple[str, int, int]] = []

    @property
    def period(self) -> QuotaPeriod:
        return quota_period(self.bench.clock.now())

    async def ask(self, who: str, kind: str) -> BenchAnswer:
        if kind in ("mcp", "elsewhere"):
            at, surface = (None, "mcp") if kind == "mcp" else (self.other, "http")
            return await self.bench.ask(things.read_thing, self.people[who], surface=surface, at=at, name="x")
        return (
            await self.over_http(who, "GET", "/v1/things/x")
            if kind == "read"
            else await self.over_http(who, "POST", "/v1/things", name="x")
        )

    async def over_http(self, who: str, method: str, path: str, key: str | None = None, **body: object) -> BenchAnswer:
        headers = {"Authorization": f"Bearer {self.people[who].secret}"} | ({} if key is None else {"Idempotency-Key": key})
        answer = await self.http.request(method, path, json=body or None, headers=headers)
        return BenchAnswer(answer.status_code, answer.content, dict(answer.headers))

    def count(self, who: str, said: BenchAnswer) -> None:
        """What an answer means for the model."""
        if said.status < 300:
            self.day.used += 1
            self.day.own += who == "limited"
            return
        assert (said.status, said.code) == (429, "quota_exceeded"), said
        if said.json["limit"] == OWN:
            assert who == "limited"
            assert self.stored(self.people[who].key_id) == OWN or self.may_not_know(), "refused although the key had calls left"
        else:
            assert said.json["limit"] == self.limit
            assert self.stored(self.people[who].organisation) >= self.limit or self.may_not_know(), "refused although calls were left"

    def may_not_know(self) -> bool:
        """Whether calls were given back so lately that the other process may still believe that there are none."""
        return self.bench.clock.now() - self.given_back_at < EXHAUSTED_SECONDS

    def stored(self, owner: str, period: str | None = None) -> int:
        """Charged or leased, as it is kept."""
        return self.run(self.bench.store.read(read_quota_used, organisation=owner, period=period or self.period.name))

    def unspent(self, owner: str) -> int:
        return sum(each.unspent(owner, self.period) for each in (self.bench.world.blocks, self.other.blocks))

    @rule(who=WHO, kind=KINDS, calls=CALLS)
    def use(self, who: str, kind: str, calls: int) -> None:
        for _ in range(calls):
            self.count(who, self.run(self.ask(who, kind)))

    @rule(who=WHO, kinds=st.lists(KINDS, min_size=2, max_size=12))
    def use_at_once(self, who: str, kinds: list[str]) -> None:
        for said in self.together(*(self.ask(who, kind) for kind in kinds)):
            self.count(who, said)

    @rule(who=WHO, kind=st.sampled_from(COSTLESS))
    def ask_for_nothing(self, who: str, kind: str) -> None:
        if kind in ("replay", "reused"):
            self.keyed += 1
            key = f"key-{self.keyed}"
            self.count(who, first := self.run(self.over_http(who, "POST", "/v1/things", key, name="x")))
            name = "x" if kind == "replay" else "y"
            again = self.run(self.over_http(who, "POST", "/v1/things", key, name=name))
            if first.status == 201:
                assert again.status == (201 if kind == "replay" else 409), again
            else:
                assert again.status == 429
            return
        asked = {
            "invalid": self.over_http(who, "POST", "/v1/things", nonsense=1),
            "refused": self.over_http(who, "POST", "/v1/refused", name="x"),
            "early": self.over_http(who, "GET", "/v1/things/x?how=early"),
            "challenge": self.over_http(who, "DELETE", "/v1/things/x"),
            "missing": self.over_http(who, "POST", "/v1/kept", name="x"),
        }
        wanted = asked.pop(kind)
        for each in asked.values():
            each.close()
        expected = {"invalid": 400, "refused": 409, "early": 404, "challenge": 202 if self.limit == PRO else 402, "missing": 400}[kind]
        said = self.run(wanted)
        assert said.status in (expected, 429), said

    @rule(tier=st.sampled_from([Tier.FREE, Tier.PRO]))
    def move(self, tier: Tier) -> None:
        self.run(self.bench.world.move_to(tier, self.people["me"].organisation))
        self.limit = FREE if tier is Tier.FREE else PRO

    @rule()
    def end_in_order(self) -> None:
        """The other process gives back what it had, and another begins."""
        self.run(self.other.blocks.drain())
        self.given_back_at = self.bench.clock.now()
        self.other = self.run(self.bench.replica())

    @rule()
    def crash(self) -> None:
        """The other process is gone with what it had."""
        self.day.lost += self.other.blocks.unspent(self.people["me"].organisation, self.period)
        self.day.own_lost += self.other.blocks.unspent(self.people["limited"].key_id, self.period)
        self.other = self.run(self.bench.replica())

    @precondition(lambda self: self.day.used > 5)
    @rule()
    def midnight(self) -> None:
        """A new day; what was used yesterday stays so, and what was leased and not used may still be given back."""
        organisation = self.people["me"].organisation
        self.past.append((self.period.name, self.day.used + self.day.lost, self.stored(organisation)))
        self.bench.clock.advance(DAY_SECONDS - self.bench.clock.now() % DAY_SECONDS)
        self.day = Day()
        assert self.stored(organisation) == 0

    @rule(seconds=st.sampled_from([0.5, 3600.0]))
    def time_passes(self, seconds: float) -> None:
        if (self.bench.clock.now() + seconds) // DAY_SECONDS == self.bench.clock.now() // DAY_SECONDS:
            self.bench.clock.advance(seconds)

    @invariant()
    def nothing_is_oversold_and_nothing_lost(self) -> None:
        organisation, key = self.people["me"].organisation, self.people["limited"].key_id
        assert self.day.used <= PRO and self.day.own <= OWN
        assert self.stored(organisation) == self.day.used + self.day.lost + self.unspent(organisation)
        assert self.stored(key) == self.day.own + self.day.own_lost + self.unspent(key)
        for period, used, most in self.past:
            assert used <= self.stored(organisation, period) <= most


class PostgresQuotaMachine(QuotaMachine):
    engine = "postgresql"
