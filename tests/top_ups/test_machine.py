"""Whatever befalls an order and its top-ups: one that was paid is added once, or refunded, or a person looks at it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from operations.storefronts.sales.top_up_sender import TopUpImpossible, TopUpNotOurs, TopUpSending, prepare_top_up
from registry.errors import Refusal
from simulators.network.faults import NetworkFault
from simulators.processor.call import ProcessorRefusal as PageClosed
from storage.order_queue import claim_order
from tests.harness.machine_runner import ServiceMachine
from tests.length import examples
from tests.top_ups.counter import ADD, TopUpShop, open_counter

pytestmark = pytest.mark.long

PICK = st.integers(0, 5)
TROUBLES = (
    NetworkFault(ADD, drop_after=True),
    NetworkFault(ADD, drop_before=True),
    NetworkFault(ADD, code=14),
    NetworkFault(ADD, code=100),
    NetworkFault(ADD, code=5, commit=True),
    NetworkFault("listSubscriberPrepaidPackages", null_lists=True),
    NetworkFault("getSingleSubscriber", status=503, times=3),
)


class TopUps(ServiceMachine):
    """One order, and what its buyer adds to it."""

    async def open(self, folder: Path, url: str | None) -> None:
        self.shop: TopUpShop = await self.stack.enter_async_context(open_counter(folder, url))
        self.order = await self.shop.buy()
        self.begun: list[str] = []
        self.paid: list[str] = []

    @rule(plan=st.sampled_from(["nordic", "nordic-big"]))
    def somebody_begins(self, plan: str) -> None:
        async def begins() -> None:
            try:
                self.begun.append((await self.shop.begin_top_up(self.order, plan)).order)
            except Refusal:  # cancelled, given back, or the charging system is in trouble
                return

        self.run(begins())

    @rule(pick=PICK, told=st.booleans())
    def somebody_pays(self, pick: int, *, told: bool) -> None:
        self.run(self.pays(pick, told=told))

    async def pays(self, pick: int, *, told: bool) -> None:
        """One of those that were begun, if its page is open still."""
        if self.begun:
            top_up = self.begun.pop(pick % len(self.begun))
            try:
                await self.shop.pay(top_up)
                self.paid.append(top_up)
            except PageClosed:
                pass
        if told:
            await self.shop.told()

    @rule(pick=PICK)
    def a_page_is_closed(self, pick: int) -> None:
        if self.begun:
            self.run(self.shop.http.post(f"/api/orders/{self.order}/top-up-checkouts/{self.begun.pop(pick % len(self.begun))}/cancel"))

    @rule()
    def the_order_is_cancelled(self) -> None:
        self.run(self.shop.cancel(self.order))

    @rule()
    def the_esim_goes_back(self) -> None:
        assert self.run(self.shop.roll_back(self.order)).status_code in (200, 409, 502)

    @rule(trouble=st.sampled_from(TROUBLES))
    def the_charging_system_is_in_trouble(self, trouble: NetworkFault) -> None:
        self.shop.trouble(trouble)

    @rule(sent=st.booleans())
    def a_process_dies_over_one(self, *, sent: bool) -> None:
        self.run(self.dies(sent=sent))

    async def dies(self, *, sent: bool) -> None:
        """It has taken a row, and at times it has sent it."""
        shop, dead = self.shop, replace(self.shop.deps, replica="rpl_dead")
        now_ms = int(shop.world.clock.now() * 1000)
        row = await shop.world.store.write(claim_order, organisation=shop.me.organisation, token="lse_dead", now_ms=now_ms)
        if row is None or row.status != "paid":
            return
        try:
            target = await prepare_top_up(dead, row)
            await shop.world.store.write(TopUpSending(dead, row, target).begin, now=shop.world.clock.now())
            if sent:
                await target.upstream.ocs.packages.affect_to_subscriber(row.template_id, target.line.subscriber_id)
        except (Refusal, TopUpImpossible, TopUpNotOurs):
            return

    @rule()
    def the_worker_works(self) -> None:
        self.run(self.shop.work(1))

    @rule(seconds=st.sampled_from([1, 31, 130, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.run(self.shop.live_on(seconds))

    @invariant()
    def nothing_is_added_twice(self) -> None:
        assert self.shop.world.faults == []
        rows = self.run(self.shop.top_ups(self.order))
        held = [row.package_id for row in rows if row.package_id is not None]
        assert len(held) == len(set(held))
        for row in rows:
            assert row.refund is None or row.status == "failed"

    def teardown(self) -> None:
        try:
            self.run(self.all_is_settled_in_the_end())
        finally:
            super().teardown()

    async def all_is_settled_in_the_end(self) -> None:
        shop = self.shop
        shop.world.sandbox.faults.clear()
        await shop.told()
        for seconds in (31, 130, 31, 31, 400, 400, 400, 400, 301, 301, 86_400, 301):
            await shop.live_on(seconds)
        rows = {row.id: row for row in await shop.top_ups(self.order)}
        for top_up in self.paid:
            row = rows[top_up]
            assert (row.status, row.refund) in (("ready", None), ("failed", "done"), ("needs_review", None)), row
        on_line = {package.id for package in await shop.packages(self.order)} - {(await shop.row(self.order)).package_id}
        ready = {row.package_id for row in rows.values() if row.status == "ready"}
        assert ready <= on_line
        assert len(on_line - ready) <= sum(row.status == "needs_review" for row in rows.values())


TopUps.TestCase.settings = settings(max_examples=examples(5), stateful_step_count=14, deadline=None)
TestTopUps = TopUps.TestCase
