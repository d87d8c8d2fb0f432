"""Whatever is done to invoices in whatever order, with a processor that fails: their states, figures and money hold together."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from storage.invoices import find_invoice
from tests.cdr.records import Json
from tests.harness.machine_runner import ServiceMachine
from tests.invoices.billing import GB, INVOICES, Billing, sim
from tests.invoices.test_sending import TO
from tests.length import examples
from tests.world import open_world

pytestmark = pytest.mark.long

RATE = 100
"""What a GB costs where no price is named, or 0."""
PATHS = ("/v1/customers", "/v1/invoices", "/v1/invoiceitems", "*/finalize", "*/send", "*/void")
FIGURES = ("invoice_number", "currency", "subtotal_cents", "tax_cents", "total_cents", "platform_fee_cents", "line_items")
AFTER = {"draft": {"draft", "sent", "paid", "void"}, "sent": {"sent", "paid", "void"}, "paid": {"paid"}, "void": {"void"}}


class InvoiceMachine(ServiceMachine):
    """One organisation with an account at the processor, a few invoices, and a model that remembers what was seen of each."""

    def __init__(self) -> None:
        self.seen: dict[str, Json] = {}
        self.perhaps_void: set[str] = set()
        """Nobody knows whether the processor voided them; whoever voids them again finds out."""
        super().__init__()

    async def open(self, folder: Path, url: str | None) -> None:
        opening = open_world(folder, CATALOGUE, url=url, limits=Limits(burst_enabled=False))
        self.world = await self.stack.enter_async_context(opening)
        caller = await self.world.caller(Tier.PRO)
        self.bill = Billing(self.world, caller, await self.stack.enter_async_context(self.world.client(caller.secret)))
        self.account = await self.world.connect_payments(caller)
        await self.bill.config(price_per_gb_cents=RATE)
        self.used: dict[int, int] = {}
        """Bytes of each SIM, those of late records as well."""
        await self.record(1, 4 * GB)

    async def record(self, number: int, count: int) -> None:
        self.used[number] = self.used.get(number, 0) + count
        await self.bill.use((sim(number), 0, count))

    def named(self, pick: int) -> str:
        return list(self.seen)[pick % len(self.seen)]

    def keep(self, answer: httpx.Response) -> None:
        assert answer.status_code in (200, 400, 404, 409, 502), answer.text
        if answer.request.method == "DELETE" and answer.status_code == 502:
            self.perhaps_void.add(answer.request.url.path.rpartition("/")[2])

    @rule(price=st.sampled_from([0, 1, 250]))
    def create(self, price: int) -> None:
        answer = self.run(self.bill.create(price_per_gb_cents=price))
        assert answer.status_code == 201
        assert answer.json()["invoice_number"] == f"INV-2027-{len(self.seen) + 1:06d}"
        lines = [(2 * count * (price or RATE) + GB) // (2 * GB) for count in self.used.values()]
        assert answer.json()["subtotal_cents"] == sum(lines), (self.used, price)
        self.seen[answer.json()["id"]] = self.run(self.bill.read(answer.json()["id"]))

    @rule(number=st.integers(1, 3), count=st.sampled_from([GB, 1, 2_000_000, 1_005_000_000]))
    def late_records(self, number: int, count: int) -> None:
        """What was billed stays as it was; the next invoice has them."""
        self.run(self.record(number, count))

    @precondition(lambda self: self.seen)
    @rule(pick=st.integers(0, 7), name=st.sampled_from(["Fjord", "Fjell", None]))
    def edit(self, pick: int, name: str | None) -> None:
        id = self.named(pick)
        answer = self.run(self.bill.update(id, recipient_name=name))
        self.keep(answer)
        if answer.status_code == 200:
            assert answer.json()["recipient_name"] == name

    @precondition(lambda self: self.seen)
    @rule(pick=st.integers(0, 7), full=st.booleans())
    def send(self, pick: int, full: bool) -> None:
        answer = self.run(self.bill.send(self.named(pick), **(TO if full else {})))
        self.keep(answer)
        assert answer.status_code != 200 or answer.json()["status"] == "sent"

    @precondition(lambda self: self.seen)
    @rule(pick=st.integers(0, 7))
    def void(self, pick: int) -> None:
        answer = self.run(self.bill.void(self.named(pick)))
        self.keep(answer)
        assert answer.status_code != 200 or answer.json()["status"] == "void"

    @precondition(lambda self: self.seen)
    @rule(pick=st.integers(0, 7), other=st.integers(0, 7))
    def send_and_void_at_once(self, pick: int, other: int) -> None:
        async def both() -> tuple[httpx.Response, ...]:
            bill = self.bill
            return await asyncio.gather(bill.send(self.named(pick), **TO), bill.void(self.named(pick)), bill.send(self.named(other), **TO))

        for answer in self.run(both()):
            self.keep(answer)

    @rule(path=st.sampled_from(PATHS), trouble=st.sampled_from(["timeout", "error", "garbage", "rate_limited"]), after=st.booleans())
    def break_the_processor(self, path: str, trouble: str, after: bool) -> None:
        fault: dict[str, object] = {"path": path, "trouble": trouble, "after": after, "times": 3}
        self.run(self.world.ask_payments("POST", "faults", fault))

    @rule()
    def mend_the_processor(self) -> None:
        self.run(self.world.ask_payments("DELETE", "faults"))

    @rule(pick=st.integers(0, 7))
    def somebody_pays(self, pick: int) -> None:
        there = [row for row in self.there() if row.status == "open"]
        if there:
            self.run(self.world.ask_payments("POST", f"invoices/{there[pick % len(there)].id}", {}))

    @rule()
    def the_processor_tells(self) -> None:
        assert set(self.run(self.world.settle_payments())) <= {200}

    @rule(seconds=st.sampled_from([1, 3600, 40 * 86_400]))
    def time_passes(self, seconds: int) -> None:
        if self.world.clock.now() + seconds < 1_830_000_000:
            self.world.clock.advance(seconds)

    def there(self) -> list[Any]:
        state = self.world.payments.state if self.world.payments.begun else None
        return [] if state is None else list(state.book(self.account).invoices.values())

    @invariant()
    def what_was_frozen_stays_and_states_only_go_forward(self) -> None:
        assert self.world.faults == []
        for id, before in self.seen.items():
            now = self.run(self.bill.read(id))
            assert now["status"] in AFTER[before["status"]], (before["status"], now["status"])
            assert {name: now[name] for name in FIGURES} == {name: before[name] for name in FIGURES}
            if before["issued_at"] is not None:
                texts = ("issued_at", "due_at", "recipient_name", "recipient_email")
                assert {name: now[name] for name in texts} == {name: before[name] for name in texts}
            assert (now["paid_at"] is not None) == (now["status"] == "paid")
            assert now["status"] not in ("sent", "paid") or now["issued_at"] is not None
            self.seen[id] = now

    @invariant()
    def nobody_can_pay_an_invoice_twice_or_one_that_is_void(self) -> None:
        mine: dict[str, list[str]] = {}
        for row in self.there():
            mine.setdefault(row.metadata["invoice"], []).append(row.status)
        for id, statuses in mine.items():
            payable = [status for status in statuses if status in ("open", "paid")]
            row = self.run(self.world.store.read(find_invoice, invoice=id, organisation=self.bill.who.organisation))
            assert row is not None
            assert len(payable) <= 1, statuses
            assert row.status != "void" or payable == [], (row, statuses)
            there = len(payable) == 1 or id in self.perhaps_void
            assert row.status != "sent" or row.processor_invoice is None or there, (row, statuses)
            assert not payable or row.status != "draft" or row.sending, (row, statuses)

    @invariant()
    def the_list_has_them_all(self) -> None:
        listed = self.run(self.bill.http.get(INVOICES, params={"limit": 100})).json()["data"]
        assert [each["id"] for each in listed] == list(self.seen)[::-1][:100]


TestInvoices = InvoiceMachine.TestCase
TestInvoices.settings = settings(max_examples=examples(8), stateful_step_count=30, deadline=None)
