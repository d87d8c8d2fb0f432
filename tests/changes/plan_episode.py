"""One random plan from its beginning to its end: planned, disturbed, applied, sent, judged by the network itself, undone, judged again."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple, Protocol

from operations.changes.plans.changes import RequestedChange
from operations.changes.plans.rows import row_operations
from simulators.network import packages
from simulators.network.entities import Line, NetworkRefusal
from simulators.network.faults import NetworkFault
from simulators.network.methods.subscribers import begin_line_status
from simulators.network.simulated_network import SimulatedNetwork
from tests.changes.line_states import (
    WRITES,
    LineState,
    all_states,
    assignment_matches,
    differing,
    expected_states,
    last_call,
    without_derived_days,
    writes_that_arrived,
)
from tests.changes.plan_draws import SPEEDS, STATUSES, STEERING_LISTS, Drawer, plant_network
from tests.simulation.process import Gone

ENDED_STATES = frozenset({"applied", "partly_applied", "cancelled", "expired"})
ENDED_ROWS = frozenset({"done", "failed", "skipped", "not_sent", "unknown"})
FAULTS = (
    NetworkFault("*", drop_after=True),
    NetworkFault("*", drop_before=True),
    NetworkFault("*", code=100),
    NetworkFault("*", status=503),
    NetworkFault("*", code=3),
)
READS = ("getSingleSubscriber", "listSubscriberPrepaidPackages")
ROUNDS = 120
TRIES = 12
ROUND_SECONDS = 12.0
NOT_UNDOABLE = frozenset({"end_of_life", "delete_packages"})


class EpisodeAnswer(NamedTuple):
    status: int
    body: dict[str, Any]


class PlanPlayer(Protocol):
    """Where an episode is played: who answers calls, who sends rows, and how time passes."""

    @property
    def network(self) -> SimulatedNetwork:
        """The network behind the service."""
        ...

    async def ask(
        self, operation: str, arguments: Mapping[str, Any], *, key: str | None = None, confirm: str | None = None
    ) -> EpisodeAnswer:
        """One call. Raises Gone when the process dies before it has answered."""
        ...

    async def work(self) -> None:
        """The worker's chore, by one process or several, of which some may die."""
        ...

    async def begin_work(self) -> None:
        """The same, and it is under way yet when this returns, where the player can do that."""
        ...

    def sending(self) -> None:
        """From now on rows are sent."""
        ...

    async def pass_time(self, seconds: float) -> None:
        """The clocks go on."""
        ...

    async def heal(self) -> None:
        """From now on nobody dies, and the store takes everything."""
        ...

    async def revoke_key(self) -> None:
        """The asker's key ends."""
        ...


class Disturbances(NamedTuple):
    """What happens in an episode beside the plan itself."""

    foreign_before: bool = False
    foreign_during: bool = False
    foreign_after: bool = False
    faults: bool = False
    cancelled: bool = False
    revoked: bool = False


def draw_disturbances(rng: Random) -> Disturbances:
    """Some of them, each by itself."""
    shares = (0.4, 0.15, 0.4, 0.5, 0.08, 0.05)
    return Disturbances(*(rng.random() < share for share in shares))


class PlanEpisode:
    """One plan. `broken`: what was not as it has to be; `told`: what happened."""

    def __init__(
        self, player: PlanPlayer, rng: Random, accounts: tuple[int, ...], everybody: tuple[int, ...], wanted: Disturbances
    ) -> None:
        world = player.network.world
        assert world is not None
        self.player, self.rng, self.wanted = player, rng, wanted
        self.broken: list[str] = []
        self.told: list[str] = []
        self.rows_judged = Counter[str]()
        plant_network(world, rng)
        self._accounts = accounts
        self._draw = Drawer(rng, world, accounts, everybody)
        self._calls = 0

    @property
    def states(self) -> dict[str, LineState]:
        world = self.player.network.world
        assert world is not None
        return all_states(world)

    def line(self, iccid: str) -> Line:
        world = self.player.network.world
        assert world is not None
        return next(line for line in world.lines.values() if line.iccid == iccid)

    async def run(self) -> list[str]:
        made = await self.plan()
        if made is None:
            return self.broken
        touched = self.disturb_lines(made) if self.wanted.foreign_before else set[str]()
        sent = await self.send(made, touched)
        if sent is None:
            return self.broken
        answer, before, since = sent
        if self.wanted.revoked:
            return self.broken
        others = self.disturb_lines(made) if self.wanted.foreign_after else set[str]()
        await self.undo(answer, before, others | since)
        return self.broken

    async def plan(self) -> dict[str, Any] | None:
        """The plan, whole; None where it was refused, as it should be."""
        drawn, unread = self._draw.draw(), self.states
        self.tell(f"plan {drawn.change} lines {len(drawn.iccids)} values {drawn.values}")
        if self.wanted.faults and self.rng.random() < 0.3:
            self.trouble(READS)
        said = await self.ask("plan_changes", drawn.arguments, key="plan")
        self.player.network.faults.clear()
        if said.status >= 400:
            self.tell(f"refused {said.body}")
            if said.status not in (400, 502, 503):
                self.fail(f"plan_changes answered {said.status}: {said.body}")
            return None
        page = await self.settled(said.body["id"], {"planned"})
        if self.states != unread:
            self.fail("a plan has changed something")
        rows = await self.rows(said.body["id"])
        if page is None:
            return None
        if {row["iccid"] for row in rows} != {*drawn.iccids}:
            self.fail(f"lines without a row: {sorted({*drawn.iccids} - {row['iccid'] for row in rows})}")
        self.check_counts(page, rows)
        self.check_sight(rows)
        return {**page, "rows": rows}

    def check_sight(self, rows: list[dict[str, Any]]) -> None:
        """Lines of others, and of nobody, are never planned."""
        accounts = {iccid: state["account"] for iccid, state in self.states.items()}
        for row in rows:
            if accounts.get(row["iccid"]) not in self._accounts and (
                row["state"] != "skipped" or row.get("code") not in ("not_found", "invalid_value")
            ):
                self.fail(f"a line that is not ours: {row}")

    async def send(self, plan: dict[str, Any], touched: set[str]) -> tuple[dict[str, Any], dict[str, LineState], set[str]] | None:
        """Applies the plan and waits for its end; the set with its rows, what the lines were before, and whom others changed meanwhile."""
        before, number = self.states, last_call(self.player.network)
        if self.wanted.faults:
            self.trouble((*WRITES, *WRITES, *READS))
        said = await self.confirmed("apply_changes", {"id": plan["id"], "digest": plan["digest"]})
        if said.status != 200:
            self.fail(f"apply_changes answered {said.status}: {said.body}")
            return None
        self.player.sending()
        since = set[str]()
        if self.wanted.foreign_during or self.wanted.cancelled or self.wanted.revoked:
            since = await self.disturb_sending(plan)
        page = await self.settled(plan["id"], ENDED_STATES)
        if page is None:
            return None
        rows = await self.rows(plan["id"])
        answer = {**page, "rows": rows}
        self.check_counts(page, rows)
        self.check_lines(answer, before, touched, since)
        self.check_calls(number)
        return answer, before, since

    async def disturb_sending(self, plan: dict[str, Any]) -> set[str]:
        await self.player.begin_work()
        since = self.disturb_lines(plan) if self.wanted.foreign_during else set[str]()
        if self.wanted.cancelled:
            said = await self.ask("cancel_change_set", {"id": plan["id"]})
            self.tell(f"cancelled {said.status}")
            if said.status not in (200, 409):
                self.fail(f"cancel_change_set answered {said.status}: {said.body}")
        elif self.wanted.revoked:
            self.tell("key revoked")
            await self.player.revoke_key()
        return since

    async def undo(self, done: dict[str, Any], before: dict[str, LineState], others: set[str]) -> None:
        """The way back: what was changed is what it was, or is named with a reason that is true."""
        had = self.states
        said = await self.ask("undo_changes", {"id": done["id"]}, key="undo")
        effective = [row for row in done["rows"] if row["state"] == "done" or row.get("code") == "partly_done"]
        if said.status == 409 and not effective:
            return
        if said.status != 201:
            self.fail(f"undo_changes answered {said.status}: {said.body}")
            return
        page = await self.settled(said.body["id"], {"planned"})
        if page is None:
            return
        plan = {**page, "rows": await self.rows(page["id"])}
        self.check_counts(page, plan["rows"])
        for row in plan["rows"]:
            self.check_undo_row(done, row, others)
        self.wanted = self.wanted._replace(foreign_during=False, cancelled=False, revoked=False)
        sent = await self.send(plan, set())
        if sent is None:
            return
        after, result = self.states, defaultdict[str, list[str]](list)
        for row in sent[0]["rows"]:
            result[row["iccid"]].append(row["state"])
        for iccid in {row["iccid"] for row in effective} - others:
            if {*result[iccid]} != {"done"}:
                continue
            was, now = without_derived_days(before[iccid]), without_derived_days(after[iccid])
            if done["action"] == "assign_series":
                now = {name: value for name, value in now.items() if name in was or not name.startswith("series.")}
            if was != now:
                self.fail(f"undone {iccid}: {differing(was, now)}; had {differing(before[iccid], had[iccid])}")

    def check_undo_row(self, done: Mapping[str, Any], row: Mapping[str, Any], others: set[str]) -> None:
        if row["state"] == "planned":
            return
        code, first = row["code"], [each for each in done["rows"] if each["iccid"] == row["iccid"]]
        final = done["action"] in NOT_UNDOABLE or any(not each["undoable"] for each in first)
        partly = any(each.get("code") == "partly_done" for each in first)
        fine = row["iccid"] in others or (final and code in ("irreversible", "subscriber_end_of_life", "changed_since")) or partly
        if not fine:
            self.fail(f"not undone without a reason: {row}")

    def check_lines(self, answer: Mapping[str, Any], before: dict[str, LineState], touched: set[str], since: set[str]) -> None:
        """Applied equals planned, or the row says why, and nothing else was changed."""
        action, after = answer["action"], self.states
        undoes = "undo_of" in answer
        rows = defaultdict[str, list[dict[str, Any]]](list)
        for row in answer["rows"]:
            self.rows_judged[f"{row['state']} {row.get('code', '')}"] += 1
            rows[row["iccid"]].append(row)
            if row["state"] not in ENDED_ROWS:
                self.fail(f"a set at its end has a row that is {row['state']}: {row}")
            if row["state"] == "unknown" and row["iccid"] not in since | touched and not self.wanted.revoked:
                self.fail(f"never settled: {row}")
            if row["state"] in ("failed", "skipped", "not_sent") and not (row.get("code") and row.get("reason")):
                self.fail(f"no reason: {row}")
        for iccid, state in before.items():
            if iccid in since:
                continue
            now = after.get(iccid, {})
            wanted = expected_states(action, without_derived_days(state), rows.get(iccid, []))
            if not any(fits(action, each, without_derived_days(now), undoes=undoes) for each in wanted):
                self.fail(f"{iccid}: {differing(state, now)} but rows {rows.get(iccid)}")

    def check_calls(self, since: int) -> None:
        """No call reached the network twice."""
        calls = Counter(f"{call.method} {call.payload}" for call in writes_that_arrived(self.player.network, since))
        twice = [call for call, count in calls.items() if count > 1]
        if twice:
            self.fail(f"sent twice: {twice}")

    def check_counts(self, page: Mapping[str, Any], rows: list[dict[str, Any]]) -> None:
        """The counts of the set are those of its rows, and rows call what the set's rights and money were looked at for."""
        known = row_operations(RequestedChange.model_validate(page["change"]), undoes="undo_of" in page)
        strange = {call for row in rows for call in row["calls"]} - set(known)
        if strange:
            self.fail(f"rows call {sorted(strange)}, and the set is known to call {known}")
        states, counts = Counter(row["state"] for row in rows), page["counts"]
        for state in ("skipped", "done", "failed", "unknown", "not_sent"):
            if counts[state] != states[state]:
                self.fail(f"{page['state']}: {state} is {counts[state]}, and {states[state]} rows are so: {counts}")
        if counts["lines"] != counts["lines_read"] and page["state"] != "cancelled":
            self.fail(f"not every line was read: {counts}")
        if page["state"] == "applied" and states["done"] + states["skipped"] != len(rows):
            self.fail(f"applied, and yet {states}")

    def disturb_lines(self, plan: Mapping[str, Any]) -> set[str]:
        """Somebody else changes lines, most of them of the plan; their ICCIDs."""
        world, rng = self.player.network.world, self.rng
        assert world is not None
        found = [line for line in world.lines.values() if line.status != "END_OF_LIFE" and line.sim.status != "FREE"]
        named = {row["iccid"] for row in plan["rows"]}
        mine = [line for line in found if line.iccid in named]
        touched = set[str]()
        for _ in range(1 + rng.randrange(3)):
            line = rng.choice(mine if mine and rng.random() < 0.8 else found)
            kind = rng.choice(FOREIGN)
            self.tell(f"foreign {kind} {line.iccid}")
            try:
                change_line(self, line, kind)
            except NetworkRefusal:
                continue
            touched.add(line.iccid)
        return touched

    def trouble(self, methods: tuple[str, ...]) -> None:
        for _ in range(1 + self.rng.randrange(3)):
            fault = replace(self.rng.choice(FAULTS), method=self.rng.choice(("*", *methods)), times=1 + self.rng.randrange(3))
            self.tell(f"fault {fault.method} {fault.kinds} {fault.times}")
            self.player.network.faults.add(fault)

    async def settled(self, id: str, wanted: frozenset[str] | set[str]) -> dict[str, Any] | None:
        """The set, once it is in one of these states."""
        for round in range(ROUNDS):
            if round == 3:
                await self.player.heal()
            if round == 6:
                self.player.network.faults.clear()
            await self.player.work()
            said = await self.look(id)
            if said.status == 200 and said.body["state"] in wanted:
                self.tell(f"{said.body['state']} {said.body['counts']} {said.body.get('stopped', '')}")
                return said.body
            await self.player.pass_time(ROUND_SECONDS)
        self.fail(f"the set never ends: {(await self.look(id)).body}")
        return None

    async def look(self, id: str) -> EpisodeAnswer:
        return await self.ask("get_change_set", {"id": id, "limit": 1})

    async def rows(self, id: str) -> list[dict[str, Any]]:
        return (await self.ask("get_change_set", {"id": id, "limit": 1000})).body["rows"]

    async def confirmed(self, operation: str, arguments: Mapping[str, Any]) -> EpisodeAnswer:
        """A call whose confirmation is given. A repetition after a death finds the set applied already."""
        said = await self.ask(operation, arguments)
        if said.status == 202:
            said = await self.ask(operation, arguments, confirm=said.body["confirm_token"])
        if said.status in (401, 409) and self._calls:
            shown = await self.look(arguments["id"])
            return EpisodeAnswer(200 if shown.body["state"] != "planned" else said.status, shown.body)
        return said

    async def ask(
        self, operation: str, arguments: Mapping[str, Any], *, key: str | None = None, confirm: str | None = None
    ) -> EpisodeAnswer:
        """A call, again and again while nobody answers; outages of the store pass."""
        self._calls += 1
        named = None if key is None else f"{key}{self._calls}"
        said = EpisodeAnswer(0, {})
        for _ in range(TRIES):
            try:
                said = await self.player.ask(operation, arguments, key=named, confirm=confirm)
            except Gone:
                await self.player.pass_time(40.0)
                continue
            if said.status != 503 and said.body.get("code") != "idempotency_in_progress":
                return said
            await self.player.pass_time(10.0)
        return said

    def fail(self, text: str) -> None:
        self.tell(f"BROKEN {text}")
        self.broken.append(text)

    def tell(self, text: str) -> None:
        self.told.append(text)


FOREIGN = ("status", "steering", "traffic", "speed", "package", "package_status", "package_limit", "package_gone", "series", "used")


def change_line(episode: PlanEpisode, line: Line, kind: str) -> None:
    """One change by somebody else, of this kind; NetworkRefusal where it is impossible."""
    rng, world = episode.rng, episode.player.network.world
    assert world is not None
    held = line.packages
    if kind == "status":
        begin_line_status(world, line, rng.choice(STATUSES) if rng.random() < 0.9 else "END_OF_LIFE")
    elif kind == "steering":
        line.steering_list_id = rng.choice((None, *STEERING_LISTS))
    elif kind == "traffic":
        line.allowed_data = not line.allowed_data
    elif kind == "speed":
        line.bitrate = rng.choice(SPEEDS)
    elif kind == "package":
        packages.assign_package(world, line, world.templates[55010], period=None, validity_days=7)
    elif kind == "series" and line.series:
        packages.set_series_active(world, line.series[-1:], active=not line.series[-1].active)
    elif kind == "package_status" and held:
        packages.set_package_active(world, held[-1], active=not held[-1].active)
    elif kind == "package_limit" and held:
        packages.set_package_limits(world, held[-1], (rng.randrange(1 << 31), None, None, None, None), "foreign")
    elif kind == "package_gone" and held:
        packages.remove_package(world, held[-1])
    elif kind == "used" and held:
        held[-1].data_used += 1000


def fits(action: str, expected: LineState, actual: LineState, *, undoes: bool) -> bool:
    if "new" in expected and not undoes:
        return assignment_matches(action, expected, actual, expected["new"])
    if undoes and action in ("assign_package", "assign_series"):
        return True  # what undoing an assignment leaves is compared with what was before it
    return without_derived_days(expected) == actual
