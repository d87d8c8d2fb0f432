"""What is needed to say what to do about lines outside their zones: steering lists, templates, prices. Each can be done without."""

from collections.abc import Sequence
from typing import NamedTuple

import anyio.to_thread

from operations.deps import Ctx
from operations.intelligence.coverage.verdicts import Judged, Shelf, Steering
from operations.intelligence.packages.offers import offers_of
from operations.network.network_offer import offer_of_tariff
from operations.network.tariffs import rules_of
from operations.services.network.reached import Upstream
from operations.services.network.reseller_lists import reseller_rows
from registry.errors import OcsError

Prices = dict[int, float]


class Advice(NamedTuple):
    """What is needed to say what to do, and what of it could not be read."""

    steering: Steering
    shelf: Shelf
    prices: Prices
    unread: tuple[str, ...]


async def advice_of(ctx: Ctx, upstream: Upstream, found: Sequence[Judged]) -> Advice:
    """Lists, templates and prices, each only where a line needs it, and each dispensable."""
    verdicts, unread = {one.verdict for one in found}, list[str]()
    accounts = {account.get("id", 0): account.get("steeringListId") for account in await upstream.accounts()}
    lists: frozenset[int] | None = None
    shelf, prices = Shelf(None), Prices()
    if "mis_steered" in verdicts:
        try:
            rows = await reseller_rows(upstream, "steering", None, upstream.ocs.reseller.list_steering_list)
            lists = frozenset(row.get("id", 0) for row in rows)
        except OcsError:
            unread.append("The steering lists could not be read: whether those of the lines still exist was not checked.")
        try:
            prices = await prices_of(ctx, upstream)
        except OcsError:
            unread.append("The tariff could not be read: the networks that lines could be on are not in the order of their prices.")
    if verdicts & {"outside_zone", "no_package"}:
        try:
            shelf = Shelf(await offers_of(upstream))
        except OcsError:
            unread.append("The package templates could not be read: no packages are offered.")
    steering = await anyio.to_thread.run_sync(Steering, accounts, lists, found)
    return Advice(steering, shelf, prices, tuple(unread))


async def prices_of(ctx: Ctx, upstream: Upstream) -> Prices:
    """What data costs on each network; a tariff has thousands of rules, so it is read in a thread."""
    rules = await rules_of(upstream, await upstream.reseller_id())
    offer = await anyio.to_thread.run_sync(offer_of_tariff, rules, ctx.now)
    return {network["networkId"]: network["dataPerMb"] for rows in offer.values() for network in rows if "dataPerMb" in network}
