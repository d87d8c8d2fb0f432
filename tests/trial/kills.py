"""Servers, workers and the database's postmaster end as in a crash, one after the other, while eSIMs are drawn."""

import asyncio
import signal
from collections import Counter
from itertools import cycle
from typing import NamedTuple

from tests.endurance.draws import Draws
from tests.fuzz.outage import Beside
from tests.kill.dispatches import NOBODY, dispatches
from tests.network_facts import DRAW
from tests.trial.door import CALLS_A_SECOND, alone, door_of, drawing, failures, judge_keys, shortened
from tests.trial.installation import Installation, installed
from tests.trial.plan import TrialPlan
from tests.trial.proof import ProofRow

POSTGRES = "PostgreSQL"
VICTIMS = ("server 1", "worker 1", POSTGRES, "server 2", "worker 2")
DRAWS_A_SECOND, UP_SECONDS, DOWN_SECONDS, PATIENCE = 4.0, 1.5, 0.5, 20.0
AIM = "no key draws twice, no eSIM is lost, no stored answer changes, all ledgers agree"


async def crash(made: Installation, seconds: float) -> Counter[str]:
    """One after the other for so long, each at least once; what was ended how often. All run again when this returns."""
    loop, ended = asyncio.get_running_loop(), Counter[str]()
    ends = loop.time() + seconds
    for name in cycle(VICTIMS):
        if loop.time() >= ends and len(ended) == len(VICTIMS):
            return ended
        await asyncio.sleep(UP_SECONDS)
        if name == POSTGRES:
            await asyncio.to_thread(made.postgres.stop_at_once)
        else:
            await asyncio.to_thread(made.end, name, signal.SIGKILL)
        ended[name] += 1
        await asyncio.sleep(DOWN_SECONDS)
        await asyncio.to_thread(made.postgres.start if name == POSTGRES else lambda name=name: made.start(name))
    return ended


class Count(NamedTuple):
    """What the network's own log says. `doubles`: draws beyond a key's first; `losses`: eSIMs whose key says that there is none, or that
    no key has; `open`: eSIMs whose key says that a person has to look; `changed`: keys with two final answers.
    """

    doubles: int
    losses: int
    open: int
    changed: int


def counted(made: Installation, draws: Draws) -> Count:
    """After all was settled that settles by itself."""
    stage = made.house.stage
    drawn = [entry.by for entry in dispatches(stage.network, draws.errands, stage.since) if entry.method == DRAW and entry.effect]
    decided = {errand.call: errand.decided for errand in draws.errands}
    return Count(
        sum(count - 1 for by, count in Counter(drawn).items() if by != NOBODY),
        sum(decided.get(by, "fail") == "fail" for by in drawn),
        sum(by in decided and decided[by] is None for by in drawn),
        sum(len(errand.bodies) > 1 for errand in draws.errands),
    )


async def kill(plan: TrialPlan) -> list[ProofRow]:
    """Under the load of draws and of calls beside."""
    async with installed(plan.place, drain=plan.drain) as made, drawing(made, plan.seed) as draws:
        door, stop = door_of(made, PATIENCE), asyncio.Event()
        calls = Beside(door.ask, alone(made), CALLS_A_SECOND)
        load = asyncio.gather(calls.run(3600, stop), draws.run(DRAWS_A_SECOND, stop), draws.watch(stop), draws.give_back(stop))
        try:
            ended = await crash(made, plan.seconds)
        finally:
            stop.set()
            await load
        door.aclose()
        broken = [*made.house.stop(), *draws.tally.broken, *await judge_keys(made, draws)]
        count = counted(made, draws)
    crashes = ", ".join(f"{name} {count} x" for name, count in sorted(ended.items()))
    drawn, errors = sum(errand.decided == "ok" for errand in draws.errands), calls.errors()
    reached = (
        f"{drawn} eSIMs for {len(draws.errands)} keys (one stock is soon empty), {count.doubles} doubles, {count.losses} losses, "
        f"{count.open} unknown until a person looks, {count.changed + door.changed} answers changed"
    )
    beside = f"; of {sum(map(len, calls.waits.values()))} calls beside {door.again} were made again, {errors} failed{failures(calls)}"
    done = f"kill -9 and, of PostgreSQL, an immediate stop, each started again, under load: {crashes}"
    met = not (count.doubles or count.losses or count.changed or door.changed or broken)
    return [ProofRow("kill", done, reached + beside + shortened(broken), AIM, met)]
