"""The chore that divides history by months on PostgreSQL, and makes room for what comes."""

from collections.abc import Callable

from registry.clock import Clock
from registry.errors import StoreUnavailable
from storage.long import Long
from storage.partition_switch import check_rows, copy_digests, drop_check, end_of_first, is_ours, may_change, switch
from storage.partitions import EVENT, HISTORIES, History, add_partition, gather_statistics, is_partitioned
from storage.store import Store
from transports.chores import Chore

EVERY_SECONDS, LIMIT_SECONDS = 60.0, 900.0
AT_ONCE = 5000
REST_SECONDS = 86_400.0
"""Before a table is looked at again that could not be divided."""


class Partitions:
    """One replica at a time looks every minute; there is something to do twice after an upgrade, and then once a month."""

    def __init__(self, store: Store, clock: Clock, report: Callable[[str], None]) -> None:
        self._store, self._clock, self._report = store, clock, report
        self._rests: dict[str, float] = {}

    def chore(self) -> Chore:
        """Done by the worker."""
        return Chore("partitions", EVERY_SECONDS, self.run, LIMIT_SECONDS)

    async def run(self) -> None:
        """Each table by itself; what a table waits for keeps no other."""
        if self._store.dialect_name != "postgresql":
            return
        may_divide = await self._store.write(is_ours, now=self._clock.now())
        for history in HISTORIES:
            try:
                if await self._store.read(is_partitioned, history=history) or (may_divide and await self._divide(history)):
                    await self._make_room(history)
            except StoreUnavailable as error:  # nobody is kept waiting for longer; a dump may use the table for hours
                self._report(f"the partitions of {history.name} could not be changed and are tried again in a minute: {error}")

    async def _make_room(self, history: History) -> None:
        """Months ahead, each in its own transaction."""
        made = 0
        while await self._store.write(add_partition, history=history, now=self._clock.now()):
            made += 1
        if made:
            await self._store.write(Long(gather_statistics), history=history)

    async def _divide(self, history: History) -> bool:
        """Give a table partitions; False where it has rows that are in the way."""
        if self._rests.get(history.name, 0.0) > self._clock.now():
            return False
        if not await self._store.read(may_change, history=history):
            return self._rest(history, "the worker's user of the database is not its owner")
        if history is EVENT:
            while await self._store.write(copy_digests, most=AT_ONCE):
                pass
        end = await self._store.write(end_of_first, history=history, now=self._clock.now())
        if await self._store.write(Long(check_rows), history=history, end=end):
            await self._store.write(switch, history=history, end=end)
            return True
        await self._store.write(drop_check, history=history)
        return self._rest(history, f"it has rows from after {end}, of a clock that was wrong")

    def _rest(self, history: History, reason: str) -> bool:
        """The table stays whole for a day."""
        self._rests[history.name] = self._clock.now() + REST_SECONDS
        self._report(f"{history.name} is not partitioned: {reason}")
        return False
