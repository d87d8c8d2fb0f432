"""Confirm tokens over HTTP and MCP: one use, by whom they were given to, for what they were given for, for 120 seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from registry.call import Surface
from registry.catalogue import AnyOperation
from storage.confirm_tokens import sweep_confirm_tokens
from tests.harness.machine_runner import ServiceMachine
from tests.registry import things
from tests.registry.bench import Bench, BenchAnswer, open_bench
from tests.world import Credentials

LIVES = 120.0
ENDS = {"ok": 200, "early": 409, "late": 404, "sure": 502, "unknown": 502, "crash": 500, "down": 503}
WHO, NAMES, HOW = st.sampled_from(["me", "colleague", "stranger", "elsewhere"]), st.sampled_from("xy"), st.sampled_from(sorted(ENDS))
DOORS, PICK = st.sampled_from(["http", "mcp"]), st.integers(0, 9)


class Act(NamedTuple):
    operation: str
    name: str
    how: str

    @property
    def arguments(self) -> dict[str, Any]:
        return {"name": self.name, "how": self.how} if self.operation == "release" else {"name": self.name}

    @property
    def effect(self) -> str:
        return f"sent {self.name}" if self.operation == "release" else self.name


OPERATIONS: Mapping[str, AnyOperation] = {"release": things.release_thing, "remove": things.remove_thing}
ACTS = st.builds(Act, st.sampled_from(sorted(OPERATIONS)), NAMES, HOW).map(
    lambda act: act if act.operation == "release" else act._replace(how="ok")
)


@dataclass
class Token:
    text: str
    who: tuple[str, str]
    act: Act
    ends: float
    spent: bool = False


class TokenMachine(ServiceMachine):
    """A person in two organisations, their colleague, and a stranger; all may do the same."""

    async def open(self, folder: Path, url: str | None) -> None:
        self.bench: Bench = await self.stack.enter_async_context(open_bench(folder, url))
        world, me = self.bench.world, await self.bench.connected()
        other = await self.bench.connected()
        await world.join(me.person, other.organisation)
        key_id, secret = await world.key(me.person, other.organisation)
        self.people = {
            "me": me,
            "colleague": await world.caller(organisation=me.organisation),
            "stranger": other,
            "elsewhere": Credentials(other.organisation, me.person, key_id, secret),
        }
        self.http = await self.stack.enter_async_context(world.client())
        self.tokens: list[Token] = []
        self.did: dict[str, int] = {}
        self.crashes = 0
        self.shut: set[str] = set()

    async def ask(self, who: str, act: Act, door: Surface, token: str | None) -> BenchAnswer:
        if door == "mcp":
            return await self.bench.ask(OPERATIONS[act.operation], self.people[who], surface="mcp", token=token, **act.arguments)
        path = f"/v1/orders/{act.name}?how={act.how}" if act.operation == "release" else f"/v1/things/{act.name}"
        headers = {"Authorization": f"Bearer {self.people[who].secret}"} | ({} if token is None else {"X-Confirm-Token": token})
        answer = await self.http.delete(path, headers=headers)
        return BenchAnswer(answer.status_code, answer.content, dict(answer.headers))

    def principal(self, who: str) -> tuple[str, str]:
        """Whom a token is given to: a person in an organisation, with whatever key."""
        return self.people[who].organisation, self.people[who].person

    @rule(who=WHO, act=ACTS, door=DOORS)
    def challenge(self, who: str, act: Act, door: Surface) -> None:
        """Somebody asks without a token: nothing is done."""
        said = self.run(self.ask(who, act, door, None))
        if who in self.shut:
            assert said.status == 401
            return
        assert (said.status, said.json["expires_in_seconds"]) == (202, 120), said
        text = str(said.json["confirm_token"])
        assert text not in {token.text for token in self.tokens}
        self.tokens.append(Token(text, self.principal(who), act, self.bench.clock.now() + LIVES))

    @precondition(lambda self: self.tokens)
    @rule(pick=PICK, door=DOORS)
    def use_well(self, pick: int, door: Surface) -> None:
        """Whoever has it does what it was given for."""
        token = self.tokens[-1 - pick % len(self.tokens)]
        who = next(who for who in self.people if self.principal(who) == token.who)
        self.use(token, who, token.act, door)

    @rule(owner=WHO, who=WHO, act=ACTS, door=DOORS)
    def another_uses_it(self, owner: str, who: str, act: Act, door: Surface) -> None:
        """Somebody does what it was given for; if it was not given to them, its owner still may."""
        self.challenge(owner, act, door)
        if owner not in self.shut:
            self.use(self.tokens[-1], who, act, door)
            self.use(self.tokens[-1], owner, act, door)

    @rule(who=WHO, act=ACTS, other=ACTS, door=DOORS)
    def use_for_something_else(self, who: str, act: Act, other: Act, door: Surface) -> None:
        """Its owner does something else with it."""
        self.challenge(who, act, door)
        if who not in self.shut:
            self.use(self.tokens[-1], who, other, door)

    @precondition(lambda self: self.tokens)
    @rule(door=DOORS, early=st.sampled_from([0.0, 0.001]), sweep=st.booleans())
    def use_at_its_end(self, door: Surface, early: float, sweep: bool) -> None:
        """The newest, at the moment it ends or just before."""
        token = self.tokens[-1]
        self.time_passes(max(0.0, token.ends - early - self.bench.clock.now()), sweep)
        who = next(who for who in self.people if self.principal(who) == token.who)
        self.use(token, who, token.act, door)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICK, wrong=st.sampled_from(["", "A" * 43, "{}x", "x{}"]))
    def use_a_made_up_one(self, pick: int, wrong: str) -> None:
        token = self.tokens[-1 - pick % len(self.tokens)]
        said = self.run(self.ask("me", token.act, "http", wrong.format(token.text)))
        self.refuses("me", said)

    def use(self, token: Token, who: str, act: Act, door: Surface) -> None:
        """One use, and what must come of it."""
        said = self.run(self.ask(who, act, door, token.text))
        good = not token.spent and token.ends > self.bench.clock.now() and token.who == self.principal(who) and token.act == act
        if good and who not in self.shut:
            self.done(token, said)
        else:
            self.refuses(who, said)

    def refuses(self, who: str, said: BenchAnswer) -> None:
        """Nothing is done, and no other token is given."""
        if who in self.shut:
            assert said.status == 401, said
            return
        assert (said.status, said.code) == (400, "confirm_token_invalid"), said
        assert "expires_in_seconds" not in said.json

    def done(self, token: Token, said: BenchAnswer) -> None:
        """It was done once, however it ended."""
        assert said.status == ENDS[token.act.how], said
        token.spent = True
        if token.act.how not in ("early", "down"):
            self.did[token.act.effect] = self.did.get(token.act.effect, 0) + 1
        self.crashes += token.act.how == "crash"

    @precondition(lambda self: self.tokens)
    @rule(pick=PICK, times=st.integers(2, 4))
    def use_at_once(self, pick: int, times: int) -> None:
        """Several uses in parallel are one."""
        token = self.tokens[-1 - pick % len(self.tokens)]
        who = next(who for who in self.people if self.principal(who) == token.who)
        answers = self.together(*(self.ask(who, token.act, "http", token.text) for _ in range(times)))
        good = not token.spent and token.ends > self.bench.clock.now() and who not in self.shut
        first = [said for said in answers if said.code != "confirm_token_invalid" and said.status != 401]
        assert len(first) == good, answers
        for said in answers:
            if said in first:
                self.done(token, said)
            else:
                self.refuses(who, said)

    @rule(seconds=st.sampled_from([0.001, 1.0, 59.0]), sweep=st.booleans())
    def time_passes(self, seconds: float, sweep: bool) -> None:
        """By the clock; what is over may be swept away."""
        self.bench.clock.advance(seconds)
        if sweep:
            self.run(self.bench.store.write(sweep_confirm_tokens, now=self.bench.clock.now()))

    @rule(who=WHO)
    def revoke(self, who: str) -> None:
        self.run(self.bench.world.revoke(self.people[who]))
        self.shut.add(who)

    @rule(who=WHO)
    def rotate(self, who: str) -> None:
        """Another key of the same person is as good."""
        of = self.people[who]
        key_id, secret = self.run(self.bench.world.key(of.person, of.organisation))
        self.people[who] = Credentials(of.organisation, of.person, key_id, secret)
        self.shut.discard(who)

    @invariant()
    def each_use_had_one_effect(self) -> None:
        counted = self.run(self.bench.counters())
        assert {name: count for name, count in counted.items() if not name.startswith("kept ")} == self.did
        assert len(self.bench.world.faults) == self.crashes


class PostgresTokenMachine(TokenMachine):
    engine = "postgresql"
