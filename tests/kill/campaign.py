"""A run: calls are under way, the server is killed, the next one starts on the same database, every key is tried again; and so on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Literal, NamedTuple

import httpx

from tests.harness.kill_points import MAIL, Point
from tests.harness.tenant_stage import TenantStage
from tests.kill.ending import judge, under_way
from tests.kill.errands import INTENT, ISSUE_OPERATION, RELEASE_OPERATION, Callers, KilledErrand, intent_errand, inventory_errand
from tests.kill.mails import all_mailed
from tests.network_facts import CHANGE, DELETE, DRAW

PLACES = ("before claim", "after claim", "before dispatch", "after dispatch", "before save", "within save", "after save")
LINE = "getSingleSubscriber"
# The line is looked at when a token is asked for, when it is used, before the SIM goes to stock and when all is done.
ROLLBACK_STEPS = ((DELETE, 1), ("getSimProviderStatus", 1), (CHANGE, 1), (LINE, 3), (LINE, 4))
# Notices become mails in one commit, and a mail is gone in another one.
MAIL_PLACES = (("before write", "_tell"), ("after write", "_tell"), ("before send", MAIL), ("after reply", MAIL), ("after reply", MAIL))
CAMPAIGN_HELD_SECONDS = 5.0
LONGEST_RANDOM = 0.25
OLDER = 5
# A dead process is known to be dead when its lease has ended, 30 s after it was renewed for the last time.
LEASE_OVER = 31
# A delivery's lease ends after 60 s; nothing drawn is proved by a quarter of an hour without a change; a day is the end of patience.
PAUSES = (LEASE_OVER, 61, 901, 901, 901, 86_400, 901)


class Blow(NamedTuple):
    """How the server dies: at a point of its own, at a moment of ours, or while the answer to a draw is on its way."""

    kind: Literal["point", "moment", "after send"]
    point: Point | None = None
    after: float = 0.0

    def __str__(self) -> str:
        if self.point is not None:
            return f"{self.point.place} {self.point.subject} #{self.point.nth}"
        return self.kind if self.kind == "after send" else f"after {self.after * 1000:.0f} ms"


def draw_blow(rng: Random) -> Blow:
    """Half of them at any moment, half at one that is known to hurt."""
    choice = rng.random()
    if choice < 0.4:
        return Blow("moment", after=rng.random() * LONGEST_RANDOM)
    if choice < 0.5:
        return Blow("point", Point(*MAIL_PLACES[int(rng.random() * len(MAIL_PLACES))], 1 + int(choice * 100) % 3))
    if choice < 0.6:
        return Blow("after send")
    nth = 1 + int(rng.random() * 4)
    if choice < 0.7:
        return Blow("point", Point(("before send", "after reply")[nth % 2], *ROLLBACK_STEPS[int(rng.random() * len(ROLLBACK_STEPS))]))
    if choice < 0.8:
        return Blow("point", Point(("before send", "after reply")[int(rng.random() * 2)], DRAW, nth))
    if choice < 0.85:
        return Blow("point", Point(PLACES[2 + int(rng.random() * 5)], RELEASE_OPERATION))
    operation = ISSUE_OPERATION if rng.random() < 0.7 else INTENT
    return Blow("point", Point(PLACES[int(rng.random() * len(PLACES))], operation, nth if operation == ISSUE_OPERATION else 1))


class Campaign:
    def __init__(self, stage: TenantStage, seed: int, say: Callable[[str], None]) -> None:
        self._stage, self._say, self._rng = stage, say, Random(seed)
        self.callers = Callers(stage.network)
        self.errands: list[KilledErrand] = []
        self._latest: list[KilledErrand] = []

    async def run(self, kills: int) -> list[str]:
        for number in range(kills):
            await self._cycle(number)
        return await finish_campaign(self._stage, self.callers, self.errands)

    async def _cycle(self, number: int) -> None:
        stage, rng = self._stage, self._rng
        blow = draw_blow(rng)
        await stage.servers.start(blow.point)
        async with stage.client() as http:
            fresh = await self._fresh(http, number)
            if blow.kind == "after send":
                await stage.network.meet(method=DRAW, delay=CAMPAIGN_HELD_SECONDS)
            await self._give_back(http, int(rng.random() * 3))  # in peace, unless its point is one of these
            calls = self._calls(http, fresh)
            await strike(stage, blow, calls)
        await stage.network.heal()
        self._say(f"kill {number + 1}: {blow}; {len(fresh)} new keys, {len(calls)} calls")
        self._latest = fresh
        await stage.network.look()
        if rng.random() < 0.85:  # else the next one starts while the lease of the dead one is still good
            await stage.network.advance(901 if rng.random() < 0.15 else LEASE_OVER)

    async def _fresh(self, http: httpx.AsyncClient, number: int) -> list[KilledErrand]:
        """New keys; some organisations use the same one, which makes it two."""
        rng, network = self._rng, self._stage.network
        found: list[KilledErrand] = []
        for place in range(4 + int(rng.random() * 3)):
            tenant = self._stage.tenants[min(int(rng.random() * 7) // 3, 2)]
            key = f"key-{number}-{place}"
            if found and rng.random() < 0.2 and (tenant, found[0].key) not in [(errand.tenant, errand.key) for errand in found]:
                key = found[0].key
            errand = await intent_errand(http, network, tenant, key) if rng.random() < 0.25 else None
            found.append(errand or inventory_errand(network, tenant, key))
        self.errands += found
        return found

    def _calls(self, http: httpx.AsyncClient, fresh: Sequence[KilledErrand]) -> list[Awaitable[object]]:
        """What is under way when the blow falls: new keys, some twice at once, old keys again, and roll-backs."""
        rng, callers = self._rng, self.callers
        older = [errand for errand in self.errands if errand not in fresh and errand not in self._latest]
        again = self._latest + rng.sample(older, min(len(older), OLDER))
        wanted = [errand for errand in fresh for _ in range(2 if rng.random() < 0.25 else 1)] + again
        calls: list[Awaitable[object]] = [callers.issue(http, errand) for errand in wanted]
        calls += [callers.roll_back(http, errand) for errand in self._held(int(rng.random() * 3))]
        rng.shuffle(calls)
        return calls

    async def _give_back(self, http: httpx.AsyncClient, most: int) -> None:
        for errand in self._held(most):
            await self.callers.roll_back(http, errand)

    def _held(self, most: int) -> list[KilledErrand]:
        held = [errand for errand in self.errands if errand.decided == "ok" and not errand.given_back]
        return self._rng.sample(held, min(len(held), most))


async def strike(stage: TenantStage, blow: Blow, calls: Sequence[Awaitable[object]]) -> None:
    """Let the calls begin, and kill. Every call ends: answered, or cut off."""
    servers, network = stage.servers, stage.network
    sent = await network.count(DRAW) if blow.kind == "after send" else 0
    under_way = asyncio.gather(*calls)
    if blow.kind == "moment":
        await asyncio.sleep(blow.after)
    elif blow.kind == "after send":
        while await network.count(DRAW) == sent and not under_way.done():
            await asyncio.sleep(0.002)
    else:
        dead = asyncio.ensure_future(servers.died())
        await asyncio.wait({dead, under_way}, return_when=asyncio.FIRST_COMPLETED)
        dead.cancel()
        await asyncio.wait({dead})
    await servers.kill()
    await under_way


async def finish_campaign(
    stage: TenantStage, callers: Callers, errands: Sequence[KilledErrand], *, look: Callable[[], Awaitable[None]] | None = None
) -> list[str]:
    """Nobody dies any more: time passes until all is settled, everybody asks once more, and we judge.

    `look` looks at the network where others use it, too, and leaves out what is theirs.
    """
    await stage.network.advance(LEASE_OVER)
    await stage.servers.start()
    async with stage.client() as http:
        await ask_all(http, callers, errands)
        for seconds in PAUSES:
            await stage.network.advance(seconds)
            await stage.servers.settled(stage.network.clock.ahead)
            await delivered(stage)
            await (look or stage.network.look)()
            if not any(under_way(stage).values()):
                break
        await ask_all(http, callers, errands)
        await delivered(stage)
        if stage.mails is not None:
            await all_mailed(stage)
            await delivered(stage)
    return await judge(stage, errands, callers.history, look=look)


async def ask_all(http: httpx.AsyncClient, callers: Callers, errands: Sequence[KilledErrand]) -> None:
    for start in range(0, len(errands), 8):
        await asyncio.gather(*(callers.issue(http, errand) for errand in errands[start : start + 8]))


async def delivered(stage: TenantStage) -> None:
    """Until nothing that is due waits; a long run leaves many, so the time limit is of the next one."""
    left = waiting(stage)
    while left:
        async with asyncio.timeout(60):
            while (found := waiting(stage)) >= left:
                await asyncio.sleep(0.02)
        left = found


def waiting(stage: TenantStage) -> int:
    """Deliveries that are due, or under way: if time passed over a lease, its delivery would be sent again, and the attempt not counted."""
    now_ms = int(stage.network.clock.now() * 1000)
    return stage.number(f"select count(*) from delivery where state = 0 and (due_ms <= {now_ms} or lease is not null)")
