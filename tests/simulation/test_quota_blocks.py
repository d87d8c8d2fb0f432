"""Quota blocks of several processes that crash, drain and cross midnight: never over-granted, at most one block lost each."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from registry.clock import DAY_SECONDS
from registry.policy import quota_period
from registry.ports import QuotaPeriod
from storage.quota import QuotaBlocks, charge_quota, read_quota_used
from tests.harness.machine_runner import MachineStore
from tests.length import examples

pytestmark = pytest.mark.long

LIMIT, BLOCK, ORGANISATION = 70, 5, "org_1"
REPLICAS = st.sampled_from([0, 1, 2])


@dataclass
class Day:
    """What happened in one UTC day."""

    granted: int = 0
    stranded: int = 0
    crashes: int = 0
    full: bool = False
    held: list[int] = field(default_factory=lambda: [0, 0, 0])


class QuotaBlockMachine(RuleBasedStateMachine):
    """Three processes take calls for one organisation."""

    def __init__(self) -> None:
        super().__init__()
        self.seat = MachineStore()
        self.blocks = [QuotaBlocks(self.seat.store, BLOCK) for _ in range(3)]
        self.day = Day()

    def teardown(self) -> None:
        self.seat.close()

    @property
    def period(self) -> QuotaPeriod:
        return quota_period(self.seat.clock.now())

    def used(self) -> int:
        return self.seat.run(self.seat.store.read(read_quota_used, organisation=ORGANISATION, period=self.period.name))

    def unspent(self) -> int:
        return sum(each.unspent(ORGANISATION, self.period) for each in self.blocks)

    @rule(replica=REPLICAS, calls=st.integers(1, 12))
    def read(self, replica: int, calls: int) -> None:
        for _ in range(calls):
            usage = self.seat.run(self.blocks[replica].take(ORGANISATION, LIMIT, self.period, self.seat.clock.now()))
            if usage is None:
                assert self.day.full or self.used() == LIMIT
            else:
                assert 0 < usage.used <= LIMIT == usage.limit
                self.day.granted += 1
                self.day.held[replica] += 1

    @rule()
    def write(self) -> None:
        """A call that is charged in its own transaction."""
        taken = self.seat.run(self.seat.store.write(charge_quota, organisation=ORGANISATION, period=self.period.name, cost=1, limit=LIMIT))
        assert taken is not None or self.used() == LIMIT
        self.day.granted += taken is not None

    @precondition(lambda self: any(self.day.held))
    @rule(replica=REPLICAS)
    def refuse(self, replica: int) -> None:
        """A call that was charged and then refused before it reached anything."""
        if self.day.held[replica]:
            self.blocks[replica].give_back(ORGANISATION, self.period)
            self.day.held[replica] -= 1
            self.day.granted -= 1

    @rule(replica=REPLICAS)
    def crash(self, replica: int) -> None:
        """A process ends without a word."""
        lost = self.blocks[replica].unspent(ORGANISATION, self.period)
        self.day.stranded += lost
        self.day.crashes += 1
        self.day.held[replica] = 0
        self.blocks[replica] = QuotaBlocks(self.seat.store, BLOCK)

    @rule(replica=REPLICAS)
    def shut_down(self, replica: int) -> None:
        self.seat.run(self.blocks[replica].drain())
        self.day.held[replica] = 0
        self.blocks[replica] = QuotaBlocks(self.seat.store, BLOCK)

    @precondition(lambda self: self.day.granted > LIMIT // 2)
    @rule()
    def midnight(self) -> None:
        """A new day, a new count."""
        self.seat.clock.advance(DAY_SECONDS)
        self.day = Day()
        assert self.used() == 0

    @invariant()
    def never_over_granted(self) -> None:
        used = self.used()
        self.day.full = self.day.full or used == LIMIT
        assert used <= LIMIT
        assert self.day.granted + self.unspent() + self.day.stranded == used


class StrandingMachine(QuotaBlockMachine):
    """Without refusals, a crash strands at most one block."""

    @precondition(lambda self: False)
    @rule(replica=REPLICAS)
    def refuse(self, replica: int) -> None:
        del replica

    @invariant()
    def at_most_one_block_each(self) -> None:
        assert self.day.stranded <= BLOCK * self.day.crashes
        assert all(each.unspent(ORGANISATION, self.period) <= BLOCK for each in self.blocks)


CALM = settings(max_examples=examples(12), stateful_step_count=50, deadline=None)
"""`python3 ./run fuzz` plays the first one longer."""
TestQuotaBlocks = QuotaBlockMachine.TestCase
TestQuotaBlocks.settings = CALM
TestStrandedBlocks = StrandingMachine.TestCase
TestStrandedBlocks.settings = CALM
