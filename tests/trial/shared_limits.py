"""What two servers let through together: calls a second of a tier, and calls under way at the charging system."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Sequence

from registry.shared_limits import bucket_portion
from tests.fuzz.limits import FREE, HELD_SECONDS, PLACES, holding, rate_bound
from tests.fuzz.loop import LOOP_ACCOUNT
from tests.fuzz.loop_shapes import http
from tests.fuzz.outage import NEEDS_IT
from tests.trial.door import Door, door_of
from tests.trial.installation import SERVERS, installed
from tests.trial.plan import TrialPlan
from tests.trial.proof import ProofRow

RATE, SIZE = 20, 40
CALLERS, ORGANISATIONS = 24, 6
TIER = f"calls_per_day=1000000,burst_per_second={RATE},burst_size={SIZE}"


async def hammer(door: Door, keys: Sequence[str], path: str, seconds: float) -> tuple[Counter[int], float]:
    """Ask without a pause, so many at a time, in the name of all keys in turn; the statuses, and how long it took altogether."""
    statuses, began = Counter[int](), time.perf_counter()

    async def again(number: int) -> None:
        request = http("GET", path, authorization=f"Bearer {keys[number % len(keys)]}")
        while time.perf_counter() < began + seconds:
            statuses[(await door.ask(request))[0]] += 1

    await asyncio.gather(*map(again, range(CALLERS)))
    return statuses, time.perf_counter() - began


async def limits(plan: TrialPlan) -> list[ProofRow]:
    """The charging system holds every call for a moment, and counts."""
    seconds = max(4.0, plan.seconds / 6)
    async with holding() as (system, port):
        settings = {
            "SERVICE_OCS_URL": f"http://127.0.0.1:{port}/v1",
            "SERVICE_OCS_CONCURRENCY": str(PLACES),
            "SERVICE_BURST_LIMIT": "true",
            "SERVICE_LIMITS_ENTERPRISE": TIER,
        }
        async with installed(plan.place, drain=plan.drain, settings=settings) as made:
            door = door_of(made)
            paced, took = await hammer(door, [made.key], FREE, seconds)
            system.most = 0
            placed, _ = await hammer(door, await made.new_keys(ORGANISATIONS, LOOP_ACCOUNT), NEEDS_IT, seconds)
            door.aclose()
    bound = math.floor(rate_bound(RATE, SIZE, took, len(SERVERS)))
    wrong = {status: count for status, count in paced.items() if status not in (200, 429)}
    a_second = (paced[200] - SIZE) / took
    return [
        ProofRow(
            "burst limit of a tier",
            f"one organisation asks two servers as fast as it can for {took:.1f} s; {RATE} calls a second, burst {SIZE}",
            f"{paced[200]} let through, {a_second:.0f} a second after the burst; {paced[429]} refused, {sum(wrong.values())} failed",
            f"at most {bound}: the burst, {RATE} a second, and a portion of {bucket_portion(SIZE):g} for each server",
            paced[200] <= bound and not wrong and paced[429] > 0,
        ),
        ProofRow(
            "places at the charging system",
            f"{CALLERS} callers at a time for {seconds:.0f} s over two servers; every call takes {HELD_SECONDS} s there",
            f"{system.most} under way at once, {placed[200]} answered",
            f"at most SERVICE_OCS_CONCURRENCY={PLACES}",
            0 < system.most <= PLACES and placed[200] > 0,
        ),
    ]
