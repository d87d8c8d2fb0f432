"""Idempotency keys over HTTP, whoever asks, however it ends and whatever becomes of their access: one key, one effect, one answer."""

from dataclasses import dataclass
from pathlib import Path

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.clock import DAY_SECONDS
from storage.claims import release_orphaned_claims, sweep_claims
from storage.engine.sweep import sweep_in_steps
from storage.replicas import renew_replica
from tests.harness.machine_runner import ServiceMachine
from tests.registry import things
from tests.registry.bench import Bench, open_bench
from tests.world import Credentials

PATHS = {"make": "/v1/things", "keep": "/v1/kept", "order": "/v1/orders"}
OPERATIONS: dict[str, AnyOperation] = {"make": things.make_thing, "keep": things.keep_thing, "order": things.order_thing}
ENDS = {"ok": 201, "early": 409, "late": 404, "sure": 502, "unknown": 502, "crash": 500, "down": 503}
FREES = ("early", "down")
"""The provider was not asked: the key is free again."""
WHO, WHAT = st.sampled_from(["me", "colleague", "stranger"]), st.sampled_from(sorted(PATHS))
KEYS, NAMES, HOW = st.sampled_from("kl"), st.sampled_from("xy"), st.sampled_from(sorted(ENDS))


@dataclass
class Kept:
    """What a key was first used for, and what was answered."""

    given: dict[str, str]
    answer: httpx.Response
    until: float | None


class ClaimCallsMachine(ServiceMachine):
    """Two members of one organisation and one of another use the same few keys."""

    async def open(self, folder: Path, url: str | None) -> None:
        self.bench: Bench = await self.stack.enter_async_context(open_bench(folder, url))
        world, me = self.bench.world, await self.bench.connected()
        self.people = {"me": me, "colleague": await world.caller(organisation=me.organisation), "stranger": await self.bench.connected()}
        self.http = await self.stack.enter_async_context(world.client())
        self.kept: dict[tuple[str, str, str], Kept] = {}
        self.did: dict[str, int] = {}
        self.crashes = 0
        self.shut: set[str] = set()
        """Whose key was revoked."""
        self.free: set[str] = set()
        """Organisations that may not order."""

    async def ask(self, who: str, what: str, key: str, given: dict[str, str]) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.people[who].secret}", "Idempotency-Key": key}
        return await self.http.post(PATHS[what], json=given, headers=headers)

    def given(self, what: str, name: str, how: str) -> dict[str, str]:
        return {"name": name, "how": how} if what == "order" else {"name": name}

    def place(self, who: str, what: str, key: str) -> tuple[str, str, str]:
        return self.people[who].organisation, what, key

    def known(self, place: tuple[str, str, str]) -> Kept | None:
        kept = self.kept.get(place)
        return None if kept is None or (kept.until is not None and kept.until <= self.bench.clock.now()) else kept

    def refused(self, who: str, what: str, answer: httpx.Response) -> bool:
        """Whether the caller may not call it now; then nothing of what is kept is shown."""
        status = 401 if who in self.shut else 402 if what == "order" and self.people[who].organisation in self.free else None
        if status is not None:
            assert answer.status_code == status, answer.text
            assert "Idempotent-Replayed" not in answer.headers
        return status is not None

    def note(self, place: tuple[str, str, str], given: dict[str, str], answer: httpx.Response) -> None:
        """A first call did what it was to do."""
        what, how = place[1], given.get("how", "ok")
        assert answer.status_code == ENDS[how], answer.text
        assert "Idempotent-Replayed" not in answer.headers
        if how in FREES:
            self.kept.pop(place, None)
            return
        until = self.bench.clock.now() + 30 * DAY_SECONDS if what == "make" else None
        self.kept[place] = Kept(given, answer, until)
        self.crashes += how == "crash"
        effect = f"sent {given['name']}" if what == "order" else given["name"]
        self.did[effect] = self.did.get(effect, 0) + 1

    def replayed(self, kept: Kept, answer: httpx.Response) -> None:
        """The same bytes as at first, and the word for it."""
        assert (answer.status_code, answer.content) == (kept.answer.status_code, kept.answer.content)
        assert answer.headers["Idempotent-Replayed"] == "true"

    @rule(who=WHO, what=WHAT, key=KEYS, name=NAMES, how=HOW)
    def call(self, who: str, what: str, key: str, name: str, how: str) -> None:
        """A call, again or for the first time."""
        place, given = self.place(who, what, key), self.given(what, name, how)
        kept, answer = self.known(place), self.run(self.ask(who, what, key, given))
        if self.refused(who, what, answer):
            return
        if kept is None:
            self.note(place, given, answer)
        elif kept.given == given:
            self.replayed(kept, answer)
        else:
            assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")
            assert "Retry-After" not in answer.headers

    @rule(who=WHO, what=WHAT, key=KEYS, name=NAMES, how=HOW, times=st.integers(2, 5))
    def call_at_once(self, who: str, what: str, key: str, name: str, how: str, times: int) -> None:
        """The same call several times in parallel: one is the first, unless the first of them freed the key for the next."""
        place, given = self.place(who, what, key), self.given(what, name, how)
        kept, answers = self.known(place), self.together(*(self.ask(who, what, key, given) for _ in range(times)))
        if self.refused(who, what, answers[0]) or (kept is not None and kept.given != given):
            return
        busy = [each for each in answers if each.status_code == 409 and each.json()["code"] == "idempotency_in_progress"]
        assert all(each.headers["Retry-After"] == "1" for each in busy)
        rest = [each for each in answers if each not in busy]
        first = [each for each in rest if "Idempotent-Replayed" not in each.headers]
        if kept is None and given.get("how", "ok") not in FREES:
            assert len(first) == 1, [each.text for each in first]
        for each in first:
            assert kept is None
            self.note(place, given, each)
        for each in rest:
            if each not in first:
                self.replayed(self.kept[place], each)

    @rule(who=WHO)
    def revoke(self, who: str) -> None:
        self.run(self.bench.world.revoke(self.people[who]))
        self.shut.add(who)

    @rule(who=WHO)
    def rotate(self, who: str) -> None:
        """The person has another key: what was answered to them before is still theirs."""
        of = self.people[who]
        key_id, secret = self.run(self.bench.world.key(of.person, of.organisation))
        self.people[who] = Credentials(of.organisation, of.person, key_id, secret)
        self.shut.discard(who)

    @rule(who=WHO, tier=st.sampled_from([Tier.FREE, Tier.PRO]))
    def move(self, who: str, tier: Tier) -> None:
        """An organisation pays for less, or for more again."""
        organisation = self.people[who].organisation
        self.run(self.bench.world.move_to(tier, organisation))
        (self.free.add if tier is Tier.FREE else self.free.discard)(organisation)

    @rule(days=st.sampled_from([0.01, 1, 29, 31]), sweep=st.booleans())
    def time_passes(self, days: float, sweep: bool) -> None:
        """The process lives; what has had its time may be swept away."""
        world, now = self.bench.world, self.bench.clock
        now.advance(days * DAY_SECONDS)
        self.run(world.store.write(renew_replica, replica=world.journal.replica, now=now.now()))
        self.run(world.store.write(release_orphaned_claims, now=now.now()))
        if sweep:
            self.run(sweep_in_steps(world.store, sweep_claims, before=now.now()))

    @invariant()
    def each_key_had_one_effect(self) -> None:
        counted = self.run(self.bench.counters())
        assert {name: count for name, count in counted.items() if not name.startswith("kept ")} == self.did
        assert len(self.bench.world.faults) == self.crashes


class PostgresClaimMachine(ClaimCallsMachine):
    engine = "postgresql"
