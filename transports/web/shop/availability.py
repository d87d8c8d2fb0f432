"""Which plans of a shop cannot be bought at this moment, kept for a while: asking costs reads of the charging system."""

from collections.abc import Mapping, Sequence

import anyio

from operations.deps import Deps
from operations.storefronts.sales.checkout import reasons_against_sale
from registry.errors import Refusal
from storage.storefronts import Storefront, StorefrontPlan, find_published, plans_on_sale

AVAILABILITY_SECONDS = 20.0
AVAILABILITY_PATIENCE = 3.0
"""How long a page waits for the answer. Choice: a plan of which nothing is known is offered; beginning to pay for it asks again."""
CACHED_SHOPS = 1000
AVAILABILITY_READS = 4


class AvailabilityCache:
    """What is known of each shop's plans: the first reason against it, by the plan's slug; nothing is said of those that can be bought."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._known: dict[str, tuple[float, dict[str, str]]] = {}

    async def reasons(self, slug: str) -> Mapping[str, str]:
        """The reasons against selling, by plan slug. While one request asks, others get what is known so far. Waits 3 seconds at most."""
        now = self._deps.clock.monotonic()
        until, found = self._known.get(slug, (0.0, {}))
        if until > now:
            return found
        self._known.pop(slug, None)
        if len(self._known) >= CACHED_SHOPS:
            del self._known[next(iter(self._known))]
        found = dict[str, str]()
        self._known[slug] = (now + AVAILABILITY_SECONDS, found)
        with anyio.move_on_after(AVAILABILITY_PATIENCE):
            shop = await self._deps.store.read(find_published, slug=slug)
            if shop is not None:
                await self._ask(shop, await self._deps.store.read(plans_on_sale, storefront=shop.id), found)
        return found

    def forget(self, slug: str) -> None:
        """Drops what is known of the shop `slug`, because a plan that was offered could not be bought."""
        self._known.pop(slug, None)

    async def _ask(self, shop: Storefront, plans: Sequence[StorefrontPlan], found: dict[str, str]) -> None:
        """Plans of one template and one account are sold from the same eSIMs, so one of them is asked about."""
        alike: dict[tuple[int, int | None], list[StorefrontPlan]] = {}
        for plan in plans:
            alike.setdefault((plan.template_id, plan.account_id), []).append(plan)
        limit = anyio.CapacityLimiter(AVAILABILITY_READS)
        async with anyio.create_task_group() as tasks:
            for group in alike.values():
                tasks.start_soon(self._ask_about, shop, group, found, limit)

    async def _ask_about(
        self, shop: Storefront, group: Sequence[StorefrontPlan], found: dict[str, str], limit: anyio.CapacityLimiter
    ) -> None:
        try:
            async with limit:
                reasons = await reasons_against_sale(self._deps, shop, group[0])
        except Refusal:
            return
        if reasons:
            found.update({plan.slug: reasons[0] for plan in group})
