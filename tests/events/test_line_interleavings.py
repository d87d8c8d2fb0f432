"""Own calls, pushes, lists, readings and processes that die, in any order: each change of a line is told once, and nothing else is.

A model beside it knows what stands in the row of each line, and so which change is seen, and by whom first.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

import anyio
import pytest

from simulators.network.entities import Line, LineStatus
from storage.fleets import claim_next_fleet
from tests.bridge.pushing import push_status
from tests.events.line_stage import LISTING_SECONDS, LineEventStage, open_line_event_stage
from tests.stage import opened_on_both

both = opened_on_both(open_line_event_stage)
ROUNDS = 18
STATUSES: tuple[LineStatus, ...] = ("ACTIVE", "SUSPENDED", "INACTIVE")
ACCOUNTS = (8101, 8102)
Change = tuple[str, object, object]


@dataclass(slots=True)
class KnownState:
    """What the row of a line says, and what was told of the line so far."""

    line: Line
    status: str
    account: int
    told: list[Change] = field(default_factory=list[Change])

    def see(self, *, status: str | None = None, account: int | None = None) -> None:
        """The row becomes so; what it was not before is told."""
        if status is not None and status != self.status:
            self.told.append(("line.status_changed", self.status, status))
            self.status = status
        if account is not None and account != self.account:
            self.told.append(("line.moved", self.account, account))
            self.account = account

    def look(self) -> None:
        """The line is read."""
        self.see(status=self.line.status, account=self.line.account_id)

    @property
    def hidden(self) -> bool:
        """Whether the network says something else than the row."""
        return (self.line.status, self.line.account_id) != (self.status, self.account)


class Interleaving:
    """One history of some lines."""

    def __init__(self, stage: LineEventStage, rng: Random) -> None:
        self.stage, self.rng = stage, rng
        self.known = [KnownState(line, line.status, line.account_id) for line in stage.fleet.network.lines.values()]
        self.marked: set[int] = set()

    def another_status(self, state: KnownState) -> LineStatus:
        return self.rng.choice([each for each in STATUSES if each != state.line.status])

    async def own_status(self, state: KnownState) -> None:
        status = self.another_status(state)
        await self.stage.set_status(state.line, status)
        state.see(status=status)
        self.marked.add(state.line.id)

    async def lost_status(self, state: KnownState) -> None:
        """The charging system does it, and its answer is lost."""
        self.stage.fleet.trouble("modifySubscriberStatus", drop_after=True)
        body = {"status": self.another_status(state)}
        said = await self.stage.http.put(f"/v1/subscribers/{state.line.iccid}/status", json=body)
        assert said.status_code == 502
        self.marked.add(state.line.id)

    async def own_move(self, state: KnownState) -> None:
        account = next(each for each in ACCOUNTS if each != state.line.account_id)
        await self.stage.move(state.line, account)
        state.see(account=account)
        self.marked.add(state.line.id)

    async def foreign_status(self, state: KnownState) -> None:
        """Somebody else, or a process of ours that died before it noted what it had done."""
        self.stage.set_status_elsewhere(state.line, self.another_status(state))

    async def foreign_move(self, state: KnownState) -> None:
        self.stage.move_elsewhere(state.line, next(each for each in ACCOUNTS if each != state.line.account_id))

    async def push(self, state: KnownState) -> None:
        await self.stage.push(push_status(f"state {self.stage.pushes}", state.line.iccid))
        self.marked.add(state.line.id)

    async def sync(self, after: float) -> None:
        """A sync: with a list it sees every line, else those that were marked."""
        lists = len(self.stage.fleet.calls("listSubscriber"))
        await self.stage.sync(after=after)
        listed = len(self.stage.fleet.calls("listSubscriber")) > lists
        for state in self.known:
            if listed or state.line.id in self.marked:
                state.look()
        self.marked.clear()

    async def sync_beside_own_call(self, method: str) -> None:
        """A call of ours is made while an answer of the network is on its way that knows nothing of it."""
        quiet = [state for state in self.known if not state.hidden]
        if quiet:
            state = self.rng.choice(quiet)
            state.line.email = f"somebody.else{self.stage.pushes}@post.example"  # so that the list has something to write
            await self.push(state)
            call: Callable[[KnownState], Awaitable[None]] = self.rng.choice((self.own_status, self.own_move))
            self.stage.fleet.sleep.act = partial(call, state)
            self.stage.fleet.trouble(method, delay=1.0)
        await self.sync(LISTING_SECONDS)
        self.stage.fleet.world.sandbox.faults.clear()
        self.stage.fleet.sleep.act = None

    async def sync_after_death(self) -> None:
        """A process that had begun to read died: its lease is waited for."""
        deps, now = self.stage.fleet.world.pipeline.deps, self.stage.fleet.clock.now()
        await deps.store.write(claim_next_fleet, token="lse_dead", now=now, until=now + 30.0, instance=deps.network_instance)
        await self.sync(31.0)

    async def play(self) -> None:
        single = (self.own_status, self.own_status, self.lost_status, self.own_move, self.foreign_status, self.foreign_move, self.push)
        for _ in range(ROUNDS):
            for state in self.rng.sample(self.known, 4):
                await self.rng.choice(single)(state)
            await self.rng.choice(
                (
                    partial(self.sync, 1.0),
                    partial(self.sync, LISTING_SECONDS),
                    self.sync_after_death,
                    partial(self.sync_beside_own_call, "listSubscriber"),
                    partial(self.sync_beside_own_call, "listSubscriberPrepaidPackages"),
                )
            )()
        await self.sync(LISTING_SECONDS)

    async def told(self) -> dict[str, list[Change]]:
        found: dict[str, list[Change]] = {state.line.iccid: [] for state in self.known}
        for event in await self.stage.told("status_changed", "moved"):
            before, after = ("account_before", "account_after") if event["type"] == "line.moved" else ("before", "after")
            found[event["iccid"]].append((event["type"], event[before], event[after]))
        return found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1))
async def test_each_change_of_a_line_is_told_once_whoever_sees_it_first(both: LineEventStage, seed: int) -> None:
    history = Interleaving(both, Random(seed))
    await history.play()
    expected = {state.line.iccid: state.told for state in history.known}
    assert await history.told() == expected
    assert sum(len(changes) for changes in expected.values()) > ROUNDS
    await both.sync()
    assert await history.told() == expected
    former = both.fleet.who.organisation  # its account is 8101 alone: a line that leaves or comes back begins anew there
    assert await both.told("moved", organisation=former) == []
    assert all(event["before"] != event["after"] for event in await both.told("status_changed", organisation=former))


@pytest.mark.long
async def test_calls_and_lists_at_the_same_time_tell_one_chain_of_statuses(both: LineEventStage) -> None:
    """Each status that is told of a line is the one that was told before it, and the last one is the network's."""
    rng, lines = Random(5), list(both.fleet.network.lines.values())
    before = {line.iccid: line.status for line in lines}
    for _ in range(6):
        both.fleet.clock.advance(LISTING_SECONDS)
        async with anyio.create_task_group() as group:
            for line in rng.sample(lines, 4):
                group.start_soon(both.set_status, line, rng.choice(STATUSES))
            both.set_status_elsewhere(rng.choice(lines), rng.choice(STATUSES))
            group.start_soon(both.fleet.sync)
            for line in rng.sample(lines, 2):
                group.start_soon(both.set_status, line, rng.choice(STATUSES))
            group.start_soon(both.fleet.sync)
    await both.sync()
    told = await both.told("status_changed")
    assert len(told) > 10
    for event in told:
        assert (event["before"], event["after"] != event["before"]) == (before[event["iccid"]], True), event
        before[event["iccid"]] = event["after"]
    assert before == {line.iccid: line.status for line in lines}
