"""Learning the parts of a large account a few calls at a time, so that nobody who asks for a page or an eSIM waits for all of them."""

import logging

import anyio

from operations.services.network.account_parts import AccountPart, FirstLines
from operations.services.network.fleet import Sweep
from operations.services.network.reached import Upstream
from registry.errors import Refusal

LEARNING_CALLS = 10
"""Calls that a page makes for it: with the account's own list and one more, 12 in all."""
LOOK_CALLS = 5
"""Calls that a look at the stock makes for it, since somebody waits for an eSIM."""
LOG = logging.getLogger(__name__)


async def learn(upstream: Upstream, account: int, first: FirstLines, calls: int = LEARNING_CALLS) -> list[AccountPart]:
    """Ask for some parts of the account and remember them, one caller at a time; the next one goes on. Returns the parts found so far.

    What fails here does not fail the caller, who has what the account's own list (`first`) shows.
    """
    parts, place = upstream.parts, upstream.place(account)
    memory = parts.memory(place)
    try:
        memory.learning.acquire_nowait()
    except anyio.WouldBlock:
        return []
    try:
        sweep = memory.sweep if isinstance(memory.sweep, Sweep) else Sweep(upstream, account, 0, keep_rows=False)
        memory.sweep = sweep
        listing = await parts.find(place)
        sweep.begin(first, [part.prefix for part in listing.parts] if listing else [])
        await sweep.go_on(calls)
        listed = {row.get("subscriberId", 0) for row in first.rows}
        memory.in_order = memory.in_order and not any(id < max(listed, default=0) and id not in listed for id in sweep.found)
        if sweep.over:
            memory.sweep = None
            await sweep.keep_parts()
        return sweep.parts
    except Refusal as refusal:
        LOG.info("The parts of an account could not be learned: %s", refusal.error_code)
        return []
    finally:
        memory.learning.release()
