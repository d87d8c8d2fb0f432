"""The installation in one piece: all kinds of calls at once, and nobody falls."""

import asyncio
from random import Random

from tests.endurance.buyers import Buyers
from tests.endurance.tally import Tally
from tests.fuzz.outage import Beside
from tests.trial.door import CALLS_A_SECOND, door_of, drawing, figures, judge_keys, mixed, shortened, warm_up
from tests.trial.installation import installed
from tests.trial.plan import TrialPlan
from tests.trial.proof import ProofRow

DRAWS_A_SECOND, ORDERS_A_SECOND = 1.0, 0.1
"""A short trial has more orders, some three."""


def odd(tally: Tally) -> str:
    """Answers that a caller should not have had."""
    seen = {(each.status, each.code): count for each, count in tally.statuses.items() if each.status == 0 or each.status >= 500}
    return "".join(f", {count} x {status} {code}" for (status, code), count in sorted(seen.items()))


async def load(plan: TrialPlan) -> list[ProofRow]:
    """Intents, draws, reads, pages, orders and replays."""
    async with installed(plan.place, drain=plan.drain) as made, drawing(made, plan.seed) as draws:
        door, stop = door_of(made), asyncio.Event()
        await warm_up(made, door)
        calls = Beside(door.ask, mixed(made), CALLS_A_SECOND)
        shop = f"https://localhost:{made.front.port}/shop/{made.seller.slug}"
        buyers = Buyers(shop, visits := Tally(), Random(plan.seed), made.front.authority)
        asyncio.get_running_loop().call_later(plan.seconds, stop.set)
        await asyncio.gather(
            calls.run(plan.seconds),
            draws.run(DRAWS_A_SECOND, stop),
            draws.watch(stop),
            buyers.run(max(ORDERS_A_SECOND, 3 / plan.seconds), stop),
        )
        door.aclose()
        broken = [*made.house.stop(), *draws.tally.broken, *made.house.complaints(), *await judge_keys(made, draws)]
    drawn = sum(errand.decided == "ok" for errand in draws.errands)
    sold = f"{drawn} live eSIMs{odd(draws.tally)}; {buyers.served} paid orders{odd(visits)}"
    reached = f"{figures(calls, plan.seconds)}; {sold}; answers that changed: {door.changed}"
    what = f"{plan.seconds:.0f} s of test intents, replays, reads, shop pages, live draws and paid orders"
    met = not (calls.errors() or broken or door.changed or odd(draws.tally) or odd(visits) or not buyers.served)
    return [ProofRow("load", what, reached + shortened(broken), "no call fails, no answer changes, all ledgers agree", met)]
