"""The daily quota: the limit stands in the statement, so it is never oversold; calls that write nothing are leased in blocks.

Calls of the language model are counted in the same table under a name of their own: reserved before the call, and never given back.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa
from sqlmodel import Field

from registry.call import QuotaUsage
from registry.ports import QuotaPeriod
from storage.engine.sql import BigInt, Connection, Query, TableDescription, changes_rows, value_or, writes
from storage.engine.store import Store


class QuotaTable(TableDescription, table=True):
    """Calls charged or leased per organisation and UTC day."""

    organisation: str = Field(primary_key=True)
    period: str = Field(primary_key=True)
    used: BigInt


QUOTA = QuotaTable.table

LARGEST_QUOTA_BLOCK = 1000

CHARGE_QUOTA = Query(
    int,
    lambda dialect: (
        dialect.insert(QUOTA)
        .values(organisation=sa.bindparam("organisation"), period=sa.bindparam("period"), used=sa.bindparam("cost"))
        .on_conflict_do_update(
            index_elements=["organisation", "period"],
            set_={"used": QUOTA.c.used + sa.bindparam("cost")},
            where=QUOTA.c.used <= sa.bindparam("most"),
        )
        .returning(QUOTA.c.used)
    ),
)

# What mails, limited keys and calls of the model are counted under; what organisations used is kept.
SWEPT_COUNTERS = ("mail", "key_", "ai:")


def charge_quota(connection: Connection, *, organisation: str, period: str, cost: int, limit: int) -> int | None:
    """Charge `cost` calls; returns the new total, or None when it would pass `limit`. `period`: a UTC day."""
    if cost > limit:
        return None
    return connection.first(CHARGE_QUOTA, organisation=organisation, period=period, cost=cost, most=limit - cost)


def charge_quota_block(connection: Connection, *, organisation: str, period: str, block: int, limit: int) -> tuple[int, int] | None:
    """Charge as large a block as fits, halving it: (size, total), or None when nothing fits."""
    while block >= 1:
        used = charge_quota(connection, organisation=organisation, period=period, cost=block, limit=limit)
        if used is not None:
            return block, used
        block //= 2
    return None


@writes
def refund_quota(*, organisation: str, period: str, cost: int) -> sa.Executable:
    """Take back a charge whose call never reached the upstream."""
    return sa.update(QUOTA).where(QUOTA.c.organisation == organisation, QUOTA.c.period == period).values(used=QUOTA.c.used - cost)


@changes_rows
def sweep_quota_counts(*, before: str) -> sa.Executable:
    """Forget on which days before this one how many mails were sent, and how often limited keys were used."""
    return sa.delete(QUOTA).where(
        QUOTA.c.period < before,
        sa.or_(*(sa.func.substr(QUOTA.c.organisation, 1, len(kind)) == kind for kind in SWEPT_COUNTERS)),
    )


@value_or(0)
def read_quota_used(*, organisation: str, period: str) -> sa.Executable:
    """Calls charged or leased so far in a period."""
    return sa.select(QUOTA.c.used).where(QUOTA.c.organisation == organisation, QUOTA.c.period == period)


EXHAUSTED_SECONDS = 10.0
"""So long a limit that was found reached is not looked at again; meanwhile a replica that ends may give back what it had leased."""


@dataclass(slots=True)
class QuotaBlock:
    """Calls leased and not yet used; `used` is the organisation's total as last seen, `exhausted` the highest limit found reached."""

    period: str
    left: int = 0
    used: int = 0
    exhausted: int = 0
    found_at: float = 0.0
    """When it was found reached, Unix seconds."""

    def is_exhausted(self, limit: int, now: float) -> bool:
        """Whether asking for more would find what was found a moment ago."""
        return self.exhausted >= limit and now - self.found_at < EXHAUSTED_SECONDS


class QuotaBlocks:
    """The pipeline's Quota: a replica leases a block at a time. A crash strands at most one block and never over-grants."""

    def __init__(self, store: Store, block: int) -> None:
        self._store = store
        self._size = block
        self._blocks: dict[str, QuotaBlock] = {}
        self._leasing: dict[str, asyncio.Task[None]] = {}

    async def take(self, organisation: str, limit: int, period: QuotaPeriod, now: float) -> QuotaUsage | None:
        """One call's worth."""
        block = self._block(organisation, period)
        while block.left == 0 and not block.is_exhausted(limit, now):
            await self._shared_lease(block, organisation, limit, period, now)
            block = self._block(organisation, period)
        # Keys may share a count and not the limit: what one of them leased is not all the other's.
        if block.left == 0 or block.used - block.left >= limit:
            return None
        block.left -= 1
        return QuotaUsage(limit, block.used - block.left, period.reset)

    def give_back(self, organisation: str, period: QuotaPeriod) -> None:
        """A call that was charged and then refused before it reached the upstream."""
        block = self._blocks.get(organisation)
        if block is not None and block.period == period.name:
            block.left += 1

    def seen(self, organisation: str, period: QuotaPeriod, used: int) -> None:
        """An exact charge of this process told the organisation's total."""
        block = self._blocks.get(organisation)
        if block is not None and block.period == period.name:
            block.used = used

    def unspent(self, organisation: str, period: QuotaPeriod) -> int:
        """Leased here and not used: part of the stored total, not of what was called."""
        block = self._blocks.get(organisation)
        return block.left if block is not None and block.period == period.name else 0

    async def drain(self) -> None:
        """Give unused calls back; at shutdown."""
        blocks, self._blocks = self._blocks, {}
        for organisation, block in blocks.items():
            if block.left:
                await self._store.write(refund_quota, organisation=organisation, period=block.period, cost=block.left)

    async def _shared_lease(self, block: QuotaBlock, organisation: str, limit: int, period: QuotaPeriod, now: float) -> None:
        """Everybody who finds the block empty waits for one lease; it goes on for the others when one of them hangs up."""
        task = self._leasing.get(organisation)
        if task is None or task.done():  # one that is over and not yet forgotten makes nobody wait: they would ask for ever
            task = self._leasing[organisation] = asyncio.create_task(self._lease(block, organisation, limit, period, now))
            task.add_done_callback(partial(self._leased, organisation))
        await asyncio.shield(task)

    def _leased(self, organisation: str, task: asyncio.Task[None]) -> None:
        if self._leasing.get(organisation) is task:
            del self._leasing[organisation]
        if not task.cancelled():
            task.exception()  # told to whoever waited; nobody may be left to hear it

    async def _lease(self, block: QuotaBlock, organisation: str, limit: int, period: QuotaPeriod, now: float) -> None:
        # A thousandth of a large quota, so that a lease is rare; near the limit single calls, so that no replica sits on the last ones.
        size = max(self._size, min(LARGEST_QUOTA_BLOCK, limit // 1000))
        near = block.used > limit - 10 * size
        granted = await self._store.write(
            charge_quota_block, organisation=organisation, period=period.name, block=1 if near else size, limit=limit
        )
        if granted is None:
            block.exhausted, block.found_at, block.used = limit, now, max(block.used, limit)
        else:
            size, block.used = granted
            block.left += size
            block.exhausted = min(block.exhausted, limit - 1)

    def _block(self, organisation: str, period: QuotaPeriod) -> QuotaBlock:
        block = self._blocks.get(organisation)
        if block is None or block.period != period.name:
            block = self._blocks[organisation] = QuotaBlock(period.name)
        return block


def ai_quota_name(owner: str) -> str:
    """The name under which calls of the language model are counted for `owner`; retention knows it by its beginning."""
    return f"ai:{owner}"


def charge_ai_call(connection: Connection, *, owner: str, period: str, limit: int) -> int | None:
    """Charge one call of the language model; returns the new total, or None when it would pass `limit`."""
    return charge_quota(connection, organisation=ai_quota_name(owner), period=period, cost=1, limit=limit)


def count_ai_calls(connection: Connection, *, owner: str, period: str) -> int:
    """How many calls of the language model were charged in `period`."""
    return read_quota_used(connection, organisation=ai_quota_name(owner), period=period)
