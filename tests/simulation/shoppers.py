"""Simulated buyers: each opens a page, pays or does not, waits, adds data, and may see the eSIM given back from two sides at once."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

import anyio

from registry.errors import Refusal
from tests.harness.history import History, Key, Kind
from tests.simulation.agenda import Agenda
from tests.simulation.clients import RELEASE, UNSURE
from tests.simulation.machines import SimulatedMachines
from tests.simulation.process import Gone
from tests.simulation.processor import Processor
from tests.simulation.replica import SIMULATED_SHOP_KEY, ClientAnswer, Outside
from tests.simulation.sales import Pays, Purchase, Sale

BUY, ADD, RETURN = "begin_order", "begin_top_up", "rollback_storefront_order"
REFUND = "operator_billing_create_refund"
TRIES = 4
WAITS = (2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
LONG = 60.0
STATUS = "select status from storefront_order where id = ?"
READY = "select id from storefront_order where status = 'ready' and top_up_of is null order by id"


@dataclass(slots=True)
class Bought:
    """A page that a buyer was shown: of an order, or of a top-up of one. `call` is the number that stands for it in the history."""

    sale: Sale
    purchase: Purchase
    id: str
    top_up_of: str | None
    call: int
    pays: bool = False
    by_hand: bool = False
    """Its operator has asked for a refund."""

    @property
    def address(self) -> str:
        """The buyer's, who buys nothing else."""
        return f"{self.id.lower()}@buyer.sim.invalid"


@dataclass(slots=True)
class Shoppers:
    """All buyers of an episode, and those who take back what they were given."""

    rng: Random
    machines: SimulatedMachines
    history: History
    outside: Outside
    processor: Processor
    agenda: Agenda
    bought: dict[str, Bought] = field(default_factory=dict[str, Bought])

    async def run(self, sale: Sale) -> None:
        """From the shop's page to the end."""
        await anyio.sleep(self.rng.random() * 30)
        order = await self._open(sale, sale.purchase, None)
        if order is None:
            return
        await self._pay(order)
        await self._refund(order)
        if not order.pays or not await self._ready(order.id):
            return
        if sale.together:
            await together([self._adding(order, purchase) for purchase in sale.top_ups])
        else:
            for purchase in sale.top_ups:
                await self._add(order, purchase)
        await anyio.sleep(self.rng.random() ** 2 * 60)
        await self.give_back(order)

    async def give_back(self, order: Bought) -> None:
        """Everybody who wants to, at once: the operator by the ledger's row, the shop by the order."""
        works: list[Callable[[], Coroutine[Any, Any, object]]] = [lambda: self._release(order)] * order.sale.releases
        works += [lambda: self._return(order)] * order.sale.returns
        self.rng.shuffle(works)
        await together(works)

    def _adding(self, order: Bought, purchase: Purchase) -> Callable[[], Coroutine[Any, Any, None]]:
        return lambda: self._add(order, purchase)

    async def _add(self, order: Bought, purchase: Purchase) -> None:
        top_up = await self._open(order.sale, purchase, order.id)
        if top_up is not None:
            await self._pay(top_up)

    async def _open(self, sale: Sale, purchase: Purchase, order: str | None) -> Bought | None:
        """The page to pay on; what failed is tried again, as a new order. Nothing when the shop says no every time."""
        for _ in range(TRIES):
            replica = await self.machines.any()
            try:
                begun = await replica.sell(sale.shop.storefront, purchase.plan, sale.language, order)
            except (Refusal, Gone):
                await anyio.sleep(self.rng.random() * 20)
                continue
            call = self.history.begin(self.outside.loop.time(), BUY if order is None else ADD, Key(sale.tenant.id, begun.order))
            found = self.bought[begun.order] = Bought(sale, purchase, begun.order, order, call)
            if order is None:
                self.outside.calls[begun.order] = call
            return found
        return None

    async def _pay(self, bought: Bought) -> None:
        """On the processor's page, some time later; a bank takes its time."""
        purchase = bought.purchase
        if purchase.after > LONG:
            self.agenda.plan(purchase.after, lambda: self._paying(bought, purchase.pays))
            return
        await anyio.sleep(purchase.after)
        self._paying(bought, purchase.pays)

    def _paying(self, bought: Bought, way: Pays) -> None:
        if way == "never":
            return
        bought.pays = self.processor.pay(bought.id, way, bought.address)
        if bought.pays and way in ("bank", "bank_fails"):
            self.agenda.plan(bought.purchase.settles, lambda: self.processor.settle_bank(bought.id, arrives=way == "bank"))

    async def _refund(self, order: Bought) -> None:
        """The operator gives some of the money back by hand, when something has gone wrong, or nothing has."""
        charges = self.processor.charges_of(order.id)
        if order.sale.refunds is None or not charges:
            return
        await anyio.sleep(self.rng.random() * 20)
        order.by_hand = True
        amount = max(1, int(self.processor.charges[charges[0]].amount * order.sale.refunds))
        replica = await self.machines.any()
        try:
            await replica.call(0, REFUND, order.sale.tenant.secret, {"charge": charges[0], "amount": amount}, key=f"refund-{order.id}")
        except Gone:
            return

    async def _ready(self, order: str) -> bool:
        """Look at the order's page now and then; give up at some time."""
        for seconds in WAITS:
            row = self.outside.disk.raw.execute(STATUS, (order,)).fetchone()
            if row is not None and row[0] in ("ready", "failed"):
                return bool(row[0] == "ready")
            await anyio.sleep(seconds)
        return False

    async def final(self, order: Bought) -> None:
        """When nothing fails any more, the operator asks once more, if anybody did."""
        while order.sale.releases and await self._release(order) == "confirm_token_invalid":
            """The clock of the replica that asked is minutes away from that of the replica that was answered."""

    def ready(self) -> list[Bought]:
        """The orders that have their eSIM."""
        rows = self.outside.disk.raw.execute(READY).fetchall()
        return [self.bought[id] for (id,) in rows if id in self.bought]

    async def _release(self, order: Bought) -> str | None:
        """By the operator, with a token; the code of a refusal."""
        arguments, secret = {"idempotencyKey": order.id}, order.sale.tenant.secret
        said = await self._send(RELEASE, order, arguments, secret)
        if said is not None and said.status == 202:
            said = await self._send(RELEASE, order, arguments, secret, confirm=said.body["confirm_token"])
        return None if said is None else said.body.get("code")

    async def _return(self, order: Bought) -> None:
        await self._send(RETURN, order, {"orderId": order.id}, SIMULATED_SHOP_KEY)

    async def _send(
        self, operation: str, order: Bought, arguments: dict[str, str], secret: str, *, confirm: str | None = None
    ) -> ClientAnswer | None:
        """One call, noted before and after; None when nobody knows what was answered."""
        name = Key(order.sale.tenant.id, order.id)
        replica, now = await self.machines.any(), self.outside.loop.time
        number = self.history.begin(now(), operation, name)
        try:
            said = await replica.call(number, operation, secret, arguments, confirm=confirm)
        except Gone:
            self.history.add(now(), "info", number, operation, name, "gone")
            return None
        kind, detail = understood(said)
        self.history.add(now(), kind, number, operation, name, detail)
        return said


async def together(works: list[Callable[[], Coroutine[Any, Any, object]]]) -> None:
    async with anyio.create_task_group() as group:
        for work in works:
            group.start_soon(work)


def understood(said: ClientAnswer) -> tuple[Kind, str]:
    """What an answer to a roll-back means: given back, not known, or not done by this call."""
    code = str(said.body.get("code"))
    if said.status == 200:
        return "released", "done"
    if said.status == 202:
        return "refused", "asked"
    return ("stuck" if code == UNSURE[1] else "info" if code == UNSURE[0] else "refused"), code
