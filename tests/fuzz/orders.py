"""Orders of a shop, whatever happens when, with processor and stock in trouble: each payment is one eSIM, or the money, or a person's."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from operations.storefronts.sales.checkout import OrderCancelled
from registry.errors import PaymentsError
from tests.fulfilment.floor import PRICE, Floor, open_floor
from tests.harness.machine_runner import ServiceMachine
from tests.network_facts import HOUR, MINUTE

PICK = st.integers(0, 9)
STRIKES: dict[str, dict[str, Any]] = {"none left": {"code": 6}, "lost": {"drop_after": True}, "not sent": {"code": 3}}
TROUBLES, PATHS = ("timeout", "closed", "error", "garbage", "rate_limited"), ("/v1/refunds", "/v1/checkout*", "/v1/charges*")
AFTER = {
    "pending_payment": {"pending_payment", "paid", "provisioning", "ready", "failed", "needs_review"},
    "paid": {"paid", "provisioning", "ready", "failed", "needs_review"},
    "provisioning": {"provisioning", "ready", "failed", "needs_review", "paid"},
    "needs_review": {"needs_review", "ready", "failed"},
    "ready": {"ready", "rolled_back", "rollback_pending", "rollback_unknown"},
    "rollback_pending": {"rollback_pending", "rollback_unknown", "rolled_back", "ready"},
    "rollback_unknown": {"rollback_unknown", "rolled_back", "ready"},
    "failed": {"failed"},
    "rolled_back": {"rolled_back"},
}
GIVEN_BACK = ("rolled_back", "rollback_pending", "rollback_unknown")


@dataclass
class Seen:
    """What is known of an order: how it stood, whether it was paid, and the eSIM it had."""

    status: str = "pending_payment"
    paid: bool = False
    iccid: str | None = None
    closed: bool = False
    """For top-ups."""
    top_ups: list[str] = field(default_factory=list[str])


class OrderMachine(ServiceMachine):
    """A few buyers, a worker, the shop's own server and its operator."""

    async def open(self, folder: Path, url: str | None) -> None:
        self.floor: Floor = await self.stack.enter_async_context(open_floor(folder, url))
        self.shop = self.floor.shop
        self.operator = await self.stack.enter_async_context(self.shop.world.client(self.shop.me.secret))
        self.orders: dict[str, Seen] = {}
        self.top_ups: dict[str, bool] = {}
        """Whether each was paid."""

    def named(self, pick: int) -> str:
        """One of the orders, the newest first."""
        return list(self.orders)[-1 - pick % len(self.orders)]

    @rule()
    def begin(self) -> None:
        """Somebody goes to pay, unless the processor makes no page: what that leaves, nobody can pay."""
        if len(self.orders) >= 6:
            return
        troubled = self.troubled()
        try:
            self.orders[self.run(self.shop.begin()).order] = Seen()
        except PaymentsError:
            assert troubled

    @precondition(lambda self: self.orders)
    @rule(pick=PICK)
    def pay(self, pick: int) -> None:
        """The buyer pays, if the page is still open."""
        order = self.named(pick)
        if not self.orders[order].paid:
            self.orders[order].paid = self.run(self.paid(order))

    async def paid(self, order: str) -> bool:
        session = (await self.shop.row(order)).session
        page = next((page for page in self.shop.sessions() if page.id == session), None)
        if page is None or page.status != "open":
            return False
        await self.shop.pay(order)
        return True

    @rule(shuffle=st.booleans(), double=st.booleans())
    def the_processor_tells(self, shuffle: bool, double: bool) -> None:
        self.run(self.shop.world.ask_payments("POST", "hooks", {"shuffle": shuffle, "double": double}))
        self.run(self.shop.told())

    @rule(steps=st.integers(1, 3), every=st.sampled_from([0, 1, MINUTE, HOUR]))
    def the_worker_works(self, steps: int, every: int) -> None:
        self.run(self.floor.work(steps, every=every))

    @rule(kind=st.sampled_from(sorted(STRIKES)), times=st.integers(1, 2))
    def the_stock_is_in_trouble(self, kind: str, times: int) -> None:
        """The next draws fail, or their answers are lost."""
        self.floor.strike(times, **STRIKES[kind])

    @rule(trouble=st.sampled_from(TROUBLES), path=st.sampled_from(PATHS), after=st.booleans())
    def the_processor_is_in_trouble(self, trouble: str, path: str, after: bool) -> None:
        """Its next calls fail, or their answers are lost."""
        self.run(self.floor.at_processor(trouble, path, after=after, times=2))

    @rule()
    def all_is_calm(self) -> None:
        self.shop.world.sandbox.faults.clear()
        self.run(self.floor.calm())

    @rule()
    def it_is_found_out(self) -> None:
        self.run(self.floor.reconcile(5 * MINUTE))

    async def take_back(self, order: str, by: str) -> httpx.Response:
        """The eSIM goes back to stock, through one of the two doors."""
        if by == "shop":
            return await self.shop.roll_back(order)
        path = f"/v1/subscribers/issue-from-inventory/{order}"
        asked = await self.operator.delete(path)
        if asked.status_code != 202:
            return asked
        return await self.operator.delete(path, headers={"X-Confirm-Token": asked.json()["confirm_token"]})

    @precondition(lambda self: self.orders)
    @rule(pick=PICK, by=st.lists(st.sampled_from(["shop", "operator"]), min_size=1, max_size=3))
    def roll_back(self, pick: int, by: list[str]) -> None:
        """Through both doors, perhaps at once."""
        order = self.named(pick)
        before = self.run(self.shown(order))
        for answer in self.together(*(self.take_back(order, each) for each in by)):
            assert answer.status_code in (200, 404, 409, 502), answer.text
            assert answer.status_code != 200 or before in ("ready", *GIVEN_BACK), (before, answer.text)

    @precondition(lambda self: self.orders)
    @rule(pick=PICK)
    def want_no_more(self, pick: int) -> None:
        """The buyer wants no more top-ups."""
        order = self.named(pick)
        answer = self.run(self.shop.http.post(f"/api/orders/{order}/cancel"))
        assert answer.status_code in (200, 409, 502), answer.text
        self.orders[order].closed |= answer.status_code == 200

    @precondition(lambda self: any(seen.status == "ready" for seen in self.orders.values()))
    @rule(pick=PICK, pays=st.booleans())
    def top_up(self, pick: int, pays: bool) -> None:
        """Somebody goes to pay for more data, and perhaps does."""
        ready = [order for order, seen in self.orders.items() if seen.status == "ready"]
        if len(self.top_ups) > 4:
            return
        order, troubled = ready[pick % len(ready)], self.troubled()
        try:
            made = self.run(self.shop.begin_top_up(order)).order
        except OrderCancelled:
            assert self.orders[order].closed
            return
        except PaymentsError:
            assert troubled
            return
        assert not self.orders[order].closed
        self.orders[order].top_ups.append(made)
        self.top_ups[made] = pays and self.run(self.paid(made))

    @precondition(lambda self: self.top_ups)
    @rule(pick=PICK)
    def close_a_page(self, pick: int) -> None:
        """The buyer thinks better of a top-up: what is paid is not closed."""
        made = list(self.top_ups)[pick % len(self.top_ups)]
        order = next(order for order, seen in self.orders.items() if made in seen.top_ups)
        answer = self.run(self.shop.http.post(f"/api/orders/{order}/top-up-checkouts/{made}/cancel", json={}))
        assert answer.status_code in (200, 409, 502), answer.text
        assert answer.status_code != 200 or not self.top_ups[made], "a paid page was closed"

    def troubled(self) -> bool:
        return bool(self.shop.world.payments.faults.queue)

    async def shown(self, order: str) -> str:
        answer = await self.shop.http.get(f"/api/orders/{order}")
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert (told["esim"] is not None) == (told["status"] == "ready"), told
        return told["status"]

    @invariant()
    def orders_go_forward_and_nobody_pays_for_nothing(self) -> None:
        iccids: list[str] = []
        for order, seen in self.orders.items():
            status, row = self.run(self.shown(order)), self.run(self.floor.row(order))
            assert status in AFTER[seen.status], (order, seen.status, status)
            assert seen.paid or status == "pending_payment", (order, status)
            assert seen.iccid in (None, row.iccid), "another eSIM than before"
            assert row.refund is None or status == "failed", (status, row.refund)
            seen.status, seen.iccid = status, row.iccid
            iccids += [row.iccid] if row.iccid and status not in GIVEN_BACK else []
        assert len(iccids) == len(set(iccids)), "two orders have one eSIM"
        assert sum(self.floor.refunds()) <= PRICE * (self.count() + sum(self.top_ups.values()))
        assert self.shop.added() <= sum(self.top_ups.values()) * 2  # a read that is asked again is none

    def count(self) -> int:
        return sum(seen.paid for seen in self.orders.values())

    def teardown(self) -> None:
        """When all is calm again, every payment has come to its one end."""
        try:
            self.run(self.settle())
        finally:
            super().teardown()

    async def settle(self) -> None:
        self.shop.world.sandbox.faults.clear()
        await self.floor.calm()
        await self.shop.told()
        await self.floor.work(4, every=HOUR)
        await self.floor.reconcile(10 * MINUTE)
        await self.shop.told()
        await self.floor.work(3, every=HOUR)
        listed = (await self.operator.get("/v1/storefronts/orders?limit=100")).json()["data"]
        assert {each["id"] for each in listed} == {order for order, seen in self.orders.items() if seen.paid}
        for order, seen in self.orders.items():
            status = await self.shown(order)
            if seen.paid and status not in GIVEN_BACK:
                assert await self.floor.is_settled_well(order), (order, status, await self.floor.end(order))
        assert sum(self.floor.refunds()) <= PRICE * (self.count() + sum(self.top_ups.values()))


class PostgresOrderMachine(OrderMachine):
    engine = "postgresql"
