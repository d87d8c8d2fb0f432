"""The chores of the shops: what buyers have paid for is delivered, or given back."""

from collections.abc import Callable

from operations.deps import Deps
from operations.services.shop.order_fulfilment import Fulfilment
from transports.chores import Chore

FULFILMENT_SECONDS = 1.0


def shop_chores(deps: Deps, report: Callable[[str], None]) -> list[Chore]:
    """Fulfilment every second: a buyer waits for the eSIM on the page that the payment led to."""
    service = Fulfilment(deps, report)

    async def run() -> None:
        await service.step()

    return [Chore("fulfilment", FULFILMENT_SECONDS, run)]
