"""Credentials with limits, and what they have used."""

from dataclasses import dataclass, replace

from registry.caller import Money, Restrictions, SpendLimits, Tier
from storage.spending import read_spending
from tests.registry.bench import Bench
from tests.world import Credentials

TODAY, THIS_MONTH = "2027-01-15", "2027-01"


@dataclass(slots=True)
class LimitBench(Bench):
    """A bench whose callers have limits."""

    async def holder(self, *limits: SpendLimits, of: Credentials | None = None) -> Credentials:
        """A key that is held to `limits`, in an organisation that is connected, or that of another key."""
        of = of or await self.connected(Tier.PRO)
        key, secret = await self.world.key(of.person, of.organisation, restrictions=Restrictions(limits=limits))
        return replace(of, key_id=key, secret=secret)

    async def used(self, who: Credentials, subject: str = "EUR", period: str = TODAY) -> int:
        return await self.store.read(read_spending, credential=who.key_id, period=period, subject=subject)


def euros(cents: int) -> Money:
    return Money(cents, "EUR")
