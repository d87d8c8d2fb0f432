"""Orders and top-ups whose worker has died after it may have sent them: from then on nobody knows, and the operator is told, once each."""

from operations.deps import Deps
from operations.services.issuing.purpose import UNKNOWN
from operations.services.shop.order_letters import tell_review
from storage.calls.replicas import LEASE_SECONDS
from storage.connection import Connection
from storage.shop.order_queue import has_stale_top_up, lost_orders, review_order
from storage.shop.top_ups import lose_orphans

AT_ONCE = 100


async def sweep_orders(deps: Deps) -> int:
    """How many need review from now on. The ledger's own recovery comes first: what it froze as unknown is found here."""
    now, count = deps.clock.now(), 0
    for order in await deps.store.read(lost_orders, most=AT_ONCE):
        count += await deps.store.write(review, deps=deps, order=order, now=now)
    if await deps.store.read(has_stale_top_up, before=now - LEASE_SECONDS):
        count += await deps.store.write(review_top_ups, deps=deps, now=now)
    return count


def review(connection: Connection, *, deps: Deps, order: str, now: float) -> bool:
    """One order, and the mail about it."""
    news = review_order(connection, order=order, code=UNKNOWN, now=now)
    if news:
        tell_review(connection, deps, order)
    return news


def review_top_ups(connection: Connection, *, deps: Deps, now: float) -> int:
    """All top-ups of processes that are gone, and the mails about them."""
    lost = lose_orphans(connection, code=UNKNOWN, now=now)
    for top_up in lost:
        tell_review(connection, deps, top_up)
    return len(lost)
