"""The part of an episode that sells: buyers, the processor that they pay at, and its words to the service."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from tests.harness.history import History, Key, Kind
from tests.simulation.agenda import Agenda
from tests.simulation.courier import Courier
from tests.simulation.ending import read_orders, read_sales
from tests.simulation.machines import SimulatedMachines
from tests.simulation.payments import PaymentFaults, Payments
from tests.simulation.processor import Processor
from tests.simulation.replica import Outside
from tests.simulation.sales import Sale, draw_sales
from tests.simulation.sales_checker import OrderEnd, SalesEnding, check_sales
from tests.simulation.shoppers import Shoppers
from tests.simulation.tenants import Tenants
from tests.world import NOON

TOLD: dict[str, Kind] = {"ready": "ok", "failed": "fail"}


class Market:
    """Whoever sells and buys. All that is drawn here comes from a source of its own: an episode without it is as it always was."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        outside: Outside,
        machines: SimulatedMachines,
        history: History,
        tenants: Tenants,
        seed: int,
        *,
        calm: bool,
    ) -> None:
        rng = Random(f"market {seed}")
        self._loop, self._outside, self._history = loop, outside, history
        self._faults = PaymentFaults(rng, 0.0 if calm else 0.6 * rng.random())
        self._agenda = Agenda(loop)
        self._courier = Courier(loop, rng, self._agenda, machines, 0.0 if calm else 0.5 * rng.random())
        self.processor = Processor(lambda: NOON + loop.time(), self._courier.announce, self._agenda.plan, rng)
        self.sales: list[Sale] = draw_sales(rng, tenants, 1 + int(rng.random() * 3))
        self.shoppers = Shoppers(rng, machines, history, outside, self.processor, self._agenda)
        self.ending: SalesEnding | None = None
        self._before: list[OrderEnd] = []
        outside.payments = Payments(self.processor, self._faults)

    @property
    def visits(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        return [lambda sale=sale: self.shoppers.run(sale) for sale in self.sales]

    @property
    def wanted(self) -> dict[Key, frozenset[int]]:
        """Which template each order may draw."""
        orders = [each for each in self.shoppers.bought.values() if each.top_up_of is None]
        return {Key(each.sale.tenant.id, each.id): frozenset({each.purchase.plan.template_id}) for each in orders}

    @property
    def counts(self) -> dict[str, int]:
        return self._faults.counts | self._courier.counts

    @property
    def rows(self) -> Sequence[OrderEnd]:
        return [] if self.ending is None else self.ending.rows

    @property
    def wait(self) -> float | None:
        """Seconds until something happens by itself; nothing when nothing will."""
        if self._courier.busy:
            return 1.0
        coming = self._agenda.next
        return None if coming is None else max(0.0, coming - self._loop.time())

    def heal(self) -> None:
        self._faults.rate = 0.0

    async def final(self) -> None:
        """Whoever wants something back asks once more."""
        for order in self.shoppers.ready():
            await self.shoppers.final(order)

    def tell(self) -> None:
        """What each buyer sees in the end, for the judge of keys; then every word of the processor's comes once more."""
        self._before = read_orders(self._outside)
        for row in self._before:
            bought = self.shoppers.bought.get(row.id)
            if row.top_up_of is None and bought is not None and row.status != "pending_payment":
                name, at = Key(row.organisation, row.id), self._loop.time()
                self._history.add(at, TOLD.get(row.status, "info"), bought.call, "order", name, row.iccid or row.code or "")
        self._courier.again()

    def end(self) -> None:
        self._agenda.end()
        self._courier.end()

    def judge(self) -> list[str]:
        bought = self.shoppers.bought
        self.ending = read_sales(self._outside, self.processor, bought, {id for id, each in bought.items() if each.by_hand})
        moved = [
            f"{now.id}: a word that was late changed {was} to {now}"
            for was, now in zip(self._before, self.ending.rows, strict=True)
            if was != now and not self._is_told_late(was, now)
        ]
        return check_sales(self.ending) + moved + self._courier.refused

    def _is_told_late(self, was: OrderEnd, now: OrderEnd) -> bool:
        """The one thing that may come after all: that the payer's bank did not take a refund, which nothing asks about."""
        return self.processor.fell(now.id) and was._replace(refund="failed") == now

    def told(self) -> list[object]:
        """What an episode's hash is over."""
        return [] if self.ending is None else [*self.ending.rows, *self.processor.log]
