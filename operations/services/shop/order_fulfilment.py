"""What follows a payment, done by the worker: the eSIM is drawn once and is the buyer's, or the money goes back, or a person is told.

Every row is worked on under a lease, several at once, the organisations by turns. What surely was not sent is tried again for an hour
after the payment; whatever a crash interrupts is found by its status: paid, provisioning with the ledger's row beside it, or failed with
its refund owed.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress

import anyio

from clients.ocs.token_places import issuing
from operations.deps import Deps
from operations.services.issuing.errand import Debts, WorkerErrand
from operations.services.issuing.ledger import Order, draw
from operations.services.issuing.purpose import UNKNOWN
from operations.services.network.templates import find_template
from operations.services.network.upstream import reach_for
from operations.services.pauses import pause
from operations.services.shop.order_letters import tell_failed, tell_review
from operations.services.shop.order_payment import PAYMENT_REFUNDED, look_for_payment, was_refunded
from operations.services.shop.order_purpose import FULFIL, NotOurs, OrderPurpose
from operations.services.shop.order_refund import Elsewhere, refund_order
from operations.services.shop.order_sweep import sweep_orders
from operations.services.shop.readiness import account_of_plan
from operations.services.shop.top_up import add_package
from operations.services.shop.top_up_review import look_into
from registry.errors import NotFound, Refusal, StoreUnavailable
from storage.connection import Connection
from storage.issuing.issuance import find_issuance
from storage.shop.order_queue import LEASE_MS, claim_order, due_places, fail_order, hold_order, review_order, work_later
from storage.shop.orders import OrderRow

AT_ONCE = 8
STEP_SECONDS = 25.0
PATIENCE_SECONDS = 3600
PAUSES = (2, 5, 15, 60, 300)
TEMPLATE_GONE, UNREACHED = "template_not_visible", "provider_unreachable"


class TemplateGone(NotFound):
    """What was sold cannot be made any more."""


class Fulfilment:
    """One worker's part of it. `report` is told what could not be done, without names."""

    def __init__(self, deps: Deps, report: Callable[[str], None]) -> None:
        self._deps, self._report, self._debts = deps, report, Debts()

    async def step(self) -> int:
        """Do what is due; how many rows were looked at. StoreUnavailable when there is no beginning without the store."""
        deps = self._deps
        await self._debts.pay(deps)
        moved = await sweep_orders(deps)
        places = deque(await deps.store.read(due_places, now_ms=self._now_ms()))
        if places:
            moved += await self._work(places)
        if moved:
            deps.post()
            deps.wake_worker()
        return moved

    async def _work(self, places: deque[str]) -> int:
        """Several at once, for as long as a step may take; an organisation with nothing left, or no token left, is out of this step."""
        looked, ends, free = 0, self._deps.clock.monotonic() + STEP_SECONDS, anyio.Semaphore(AT_ONCE)

        async def look_at(row: OrderRow) -> None:
            try:
                await self._attend(row)
            finally:
                free.release()

        try:
            async with anyio.create_task_group() as group:
                while places and self._deps.clock.monotonic() < ends:
                    await free.acquire()
                    row = await self._claim(places[0])
                    if row is None:
                        places.popleft()
                        free.release()
                        continue
                    looked += 1
                    places.rotate(-1)
                    group.start_soon(look_at, row)
        except* StoreUnavailable as unavailable:
            raise StoreUnavailable(
                "the store went away in the middle of fulfilment; what was begun goes on when it is back"
            ) from unavailable
        return looked

    async def _claim(self, organisation: str) -> OrderRow | None:
        """The next row of an organisation, if it may be worked on now: what is written upstream is paced, by waiting."""
        deps, token = self._deps, self._deps.ids.new("lse_")
        row = await deps.store.write(claim_order, organisation=organisation, token=token, now_ms=self._now_ms())
        if row is None or not is_written(row):
            return row
        # A top-up takes its token by itself; without one there it would be claimed and put off over and over.
        ask = deps.pace.until_upstream if row.status == "paid" and row.top_up_of is not None else deps.pace.take_upstream
        wait = await ask(organisation)
        if wait is None:
            return row
        # Due as it was: it is still the first of its organisation when the next step begins.
        await deps.store.write(work_later, order=row.id, token=token, due_ms=self._now_ms(), tried=False)
        return None

    async def _attend(self, row: OrderRow) -> None:
        """One row. A fault of ours over it ends the step; those that it ends as well are due before it, and do not meet it again."""
        try:
            await self._look_at(row)
        except (StoreUnavailable, anyio.get_cancelled_exc_class()):
            raise
        except BaseException:
            due_ms = self._now_ms() + 2 * LEASE_MS
            with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                await self._deps.store.write(work_later, order=row.id, token=row.lease or "", due_ms=due_ms)
            raise

    async def _look_at(self, row: OrderRow) -> None:
        deps = self._deps
        try:
            if row.status == "pending_payment":
                await look_for_payment(deps, row)
            elif row.status == "failed":
                await refund_order(deps, self._debts, row)
            elif row.status == "needs_review":
                await look_into(deps, row)
            elif await deps.store.read(was_refunded, row=row):
                await deps.store.write(give_back, deps=deps, row=row, code=PAYMENT_REFUNDED)
            elif row.top_up_of is not None:
                await add_package(deps, self._debts, row)
            else:
                await self._fulfil(row)
        except StoreUnavailable:
            raise
        except (NotOurs, Elsewhere):
            return
        except Refusal as refusal:
            self._report(f"an order that is {row.status} could not be worked on yet: {refusal.error_code}")
            await deps.store.write(work_later, order=row.id, token=row.lease or "", due_ms=self._again_ms(row))

    async def _fulfil(self, row: OrderRow) -> None:
        """Draw the eSIM. Whatever is raised here came surely before it was sent."""
        deps = self._deps
        try:
            await self._draw(row)
        except (StoreUnavailable, NotOurs):
            raise
        except TemplateGone:
            await deps.store.write(give_back, deps=deps, row=row, code=TEMPLATE_GONE)
        except Refusal as refusal:
            if await deps.store.read(find_issuance, organisation=row.organisation, key=row.id) is not None:
                # Its key was used, by whatever: nothing may be drawn, and nothing given back, by itself.
                await deps.store.write(stop, deps=deps, row=row)
            elif deps.clock.now() - (row.paid_at or row.created) >= PATIENCE_SECONDS:
                await deps.store.write(give_back, deps=deps, row=row, code=UNREACHED)
            else:
                raise refusal

    async def _draw(self, row: OrderRow) -> None:
        deps = self._deps
        upstream = await reach_for(deps, row.organisation)
        try:
            with issuing():
                await find_template(upstream, row.template_id, "package_template_id")
        except NotFound as gone:
            raise TemplateGone(gone.message) from gone
        with issuing():
            account = await account_of_plan(upstream, row)
        order = Order(row.id, account, row.template_id, patient=True)
        errand = WorkerErrand(deps, self._debts, organisation=row.organisation, operation_id=FULFIL)
        purpose = OrderPurpose(deps, row.id, row.organisation, row.lease)
        await errand.run(lambda: draw(errand, upstream, order, purpose))

    def _again_ms(self, row: OrderRow) -> int:
        return self._now_ms() + pause(PAUSES, row.tries) * 1000

    def _now_ms(self) -> int:
        return int(self._deps.clock.now() * 1000)


def is_written(row: OrderRow) -> bool:
    """Whether the look at it sends a write."""
    return row.status in ("failed", "paid")


def give_back(connection: Connection, *, deps: Deps, row: OrderRow, code: str) -> None:
    """It was not sent, and will not be."""
    if hold_order(connection, order=row.id, token=row.lease or "") and fail_order(
        connection, order=row.id, code=code, now=deps.clock.now()
    ):
        tell_failed(connection, deps, row.id)


def stop(connection: Connection, *, deps: Deps, row: OrderRow) -> None:
    """A person has to look at it."""
    if hold_order(connection, order=row.id, token=row.lease or "") and review_order(
        connection, order=row.id, code=UNKNOWN, now=deps.clock.now()
    ):
        tell_review(connection, deps, row.id)
