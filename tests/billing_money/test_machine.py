"""Whatever happens to an account's money, through us and elsewhere, told well or badly: our records end as the processor's."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from simulators.processor.refunds import fail_refund
from storage.payment_records import open_attempts
from tests.billing_money.stage import MoneyStage, Object, open_money_stage
from tests.harness.machine_runner import ServiceMachine
from tests.length import examples

pytestmark = pytest.mark.long

OUTCOMES = ("succeeded", "available", "declined", "disputed", "refund_fails")
TROUBLES = ("timeout", "closed", "error", "rate_limited", "garbage")
PATHS = ("/v1/refunds", "/v1/payouts", "/v1/charges*")
PICK = st.integers(0, 9)
KEYS = st.integers(0, 5)
AMOUNTS = st.sampled_from([1, 333, 2500, 10_000, None])


class MoneyMachine(ServiceMachine):
    """An organisation with an account at the processor; what was answered under each key is remembered."""

    def __init__(self) -> None:
        self.asked: dict[tuple[str, str], Object] = {}
        self.made: dict[tuple[str, str], str] = {}
        super().__init__()

    async def open(self, folder: Path, url: str | None) -> None:
        self.shop: MoneyStage = await self.stack.enter_async_context(open_money_stage(folder, url=url, connected=True))
        self.world = self.shop.world

    def there(self, what: str) -> list[Any]:
        return self.shop.at_processor(what)

    def charges(self) -> list[Any]:
        return self.there("charges")

    @rule(outcome=st.sampled_from(OUTCOMES), fee=st.sampled_from([0, 33, 100]))
    def somebody_pays(self, outcome: str, fee: int) -> None:
        self.run(self.world.charge(self.shop.account, 10_000, "USD", fee=fee, metadata={"order": "ord_1"}, outcome=outcome))

    def check(self, kind: str, key: str, answer: httpx.Response) -> None:
        assert answer.status_code in (201, 400, 409, 502), answer.text
        if answer.status_code == 201:
            assert self.made.setdefault((kind, key), answer.json()["id"]) == answer.json()["id"]

    @precondition(lambda self: self.charges())
    @rule(pick=PICK, key=KEYS, amount=AMOUNTS, again=st.booleans())
    def refund(self, pick: int, key: int, amount: int | None, again: bool) -> None:
        charge, named = self.charges()[pick % len(self.charges())], f"key-{key}"
        body = self.asked.setdefault(("refund", named), {"charge": charge.id, **({} if amount is None else {"amount": amount})})

        async def together() -> list[httpx.Response]:
            return await asyncio.gather(*(self.shop.refund(named, **body) for _ in range(1 + again)))

        for answer in self.run(together()):
            self.check("refund", named, answer)

    @precondition(lambda self: self.charges())
    @rule(pick=PICK, amount=AMOUNTS)
    def refund_elsewhere(self, pick: int, amount: int | None) -> None:
        charge = self.charges()[pick % len(self.charges())]
        left = charge.amount - charge.amount_refunded
        if charge.status == "succeeded" and not charge.disputed and 0 < (amount or left) <= left:
            self.run(self.elsewhere(charge.id, amount or left))

    async def elsewhere(self, charge: str, amount: int) -> None:
        kept = list(self.world.payments.faults.queue)
        await self.shop.calm()
        ask, key = self.world.pipeline.deps.payments, self.world.ids.new("key_")
        await ask.refund(self.shop.account, charge=charge, amount=amount, reason=None, key=key, metadata={})
        self.world.payments.faults.queue.extend(kept)

    @rule(pick=PICK)
    def a_refund_fails_later(self, pick: int) -> None:
        fell = [row.id for row in self.there("refunds") if row.status == "succeeded"]

        async def fail() -> None:
            async with self.world.payments.turn(writes=True) as state:
                fail_refund(state, self.shop.account, state.book(self.shop.account).refunds[fell[pick % len(fell)]])

        if fell:
            self.run(fail())

    @rule(key=KEYS, amount=st.sampled_from([1, 700, 9000, 50_000]))
    def pay_out(self, key: int, amount: int) -> None:
        body = self.asked.setdefault(("payout", f"key-{key}"), {"amount": amount, "currency": "USD"})
        self.check("payout", f"key-{key}", self.run(self.shop.pay_out(f"key-{key}", **body)))

    @rule(pick=PICK, end=st.sampled_from(["paid", "failed"]))
    def a_payout_ends(self, pick: int, end: str) -> None:
        self.run(self.world.ask_payments("POST", "clock", {"advance": 0}))  # those that are due by now have arrived
        going = [row.id for row in self.there("payouts") if row.status in ("pending", "in_transit")]
        if going:
            self.run(self.world.ask_payments("POST", f"payouts/{going[pick % len(going)]}", {"account": self.shop.account, "status": end}))

    @rule(pick=PICK, inquiry=st.booleans())
    def a_bank_asks_back(self, pick: int, inquiry: bool) -> None:
        calm = [row.id for row in self.charges() if row.status == "succeeded" and not row.disputed]
        if calm:
            told: Object = {"account": self.shop.account, "charge": calm[pick % len(calm)], "inquiry": inquiry}
            self.run(self.world.ask_payments("POST", "disputes", told))

    @rule(pick=PICK, outcome=st.sampled_from(["won", "lost"]))
    def a_bank_decides(self, pick: int, outcome: str) -> None:
        going = [row.id for row in self.there("disputes") if row.status not in ("won", "lost", "warning_closed")]
        if going:
            told: Object = {"account": self.shop.account, "outcome": outcome}
            self.run(self.world.ask_payments("POST", f"disputes/{going[pick % len(going)]}", told))

    @rule(path=st.sampled_from(PATHS), trouble=st.sampled_from(TROUBLES), after=st.booleans(), times=st.sampled_from([1, 3]))
    def break_the_processor(self, path: str, trouble: str, after: bool, times: int) -> None:
        fault: Object = {"method": "*", "path": path, "trouble": trouble, "after": after, "times": times}
        self.run(self.world.ask_payments("POST", "faults", fault))

    @rule()
    def mend_the_processor(self) -> None:
        self.run(self.shop.calm())

    @rule(shuffle=st.booleans(), double=st.booleans())
    def the_processor_tells(self, shuffle: bool, double: bool) -> None:
        self.run(self.world.ask_payments("POST", "hooks", {"shuffle": shuffle, "double": double}))
        assert set(self.run(self.world.settle_payments())) <= {200}

    @rule(every=st.integers(1, 3))
    def some_events_are_lost(self, every: int) -> None:
        async def lose() -> None:
            async with self.world.payments.turn(writes=True) as state:
                del state.pending[::every]

        self.run(lose())

    @rule(seconds=st.sampled_from([1, 60, 1000, 2 * 86_400]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @rule()
    def what_is_there_is_read_while_it_is_told(self) -> None:
        async def both() -> None:
            kept = list(self.world.payments.faults.queue)
            await self.shop.calm()
            await asyncio.gather(self.shop.sync(), self.world.settle_payments())
            self.world.payments.faults.queue.extend(kept)

        self.run(both())

    @invariant()
    def nothing_is_given_back_twice(self) -> None:
        assert self.world.faults == []
        for charge in self.charges():
            assert charge.amount_refunded <= charge.amount
        for what in ("refunds", "payouts"):
            named = [row.metadata["attempt"] for row in self.there(what) if "attempt" in row.metadata]
            assert len(named) == len(set(named))
        for kind, what in (("refund", "refunds"), ("payout", "payouts")):
            keys = sum(1 for asked in self.asked if asked[0] == kind)
            assert sum("attempt" in row.metadata for row in self.there(what)) <= keys

    def teardown(self) -> None:
        try:
            self.run(self.all_is_known_in_the_end())
        finally:
            super().teardown()

    async def all_is_known_in_the_end(self) -> None:
        await self.shop.calm()
        await self.world.settle_payments()
        self.world.clock.advance(1000)
        await self.shop.sync()
        assert await self.world.store.read(open_attempts, account=self.shop.account, most=99) == []
        await self.the_lists_are_the_processors()
        for charge in self.charges():
            reserved = await self.shop.reserved(charge.id)
            assert reserved in (0, charge.amount_refunded), charge
        for (kind, key), body in self.asked.items():
            answer = await (self.shop.refund(key, **body) if kind == "refund" else self.shop.pay_out(key, **body))
            assert answer.status_code in (201, 400, 409), answer.text
            self.check(kind, key, answer)

    async def the_lists_are_the_processors(self) -> None:
        fees = list(self.world.payments.state.book(self.world.payments.state.platform).fees.values())
        for what, members, rows in (
            ("charges", ("amount", "amount_refunded", "status", "disputed"), self.charges()),
            ("refunds", ("amount", "status", "charge", "failure_reason"), self.there("refunds")),
            ("payouts", ("amount", "status", "automatic"), self.there("payouts")),
            ("disputes", ("amount", "status", "charge"), self.there("disputes")),
            ("fees", ("amount", "amount_refunded", "charge"), fees),
        ):
            listed = {row["id"]: [row[name] for name in members] for row in (await self.shop.listed(what, limit=100))["data"]}
            assert listed == {row.id: [getattr(row, name) for name in members] for row in rows}, what
        earned = sum(row.amount for row in await self.shop.platform_fees())
        assert earned == sum(fee.amount - fee.amount_refunded for fee in fees)


TestMoney = MoneyMachine.TestCase
TestMoney.settings = settings(max_examples=examples(5), stateful_step_count=25, deadline=None)
