"""The chore that divides history by months on PostgreSQL, and makes room for what comes."""

from collections.abc import Callable

from registry.clock import Clock
from registry.errors import StoreUnavailable
from storage.engine.partitions import History, add_partition, gather_statistics, is_partitioned
from storage.engine.sql import runs_in_thread
from storage.engine.store import Store
from storage.events import EVENT_HISTORY
from storage.histories import (
    HISTORIES,
    all_write_partitions,
    check_first_rows,
    copy_event_digests,
    drop_first_check,
    end_of_first,
    may_change_history,
    switch_to_partitions,
)
from transports.worker.chores import Chore

PARTITION_LOOK_SECONDS, PARTITION_LIMIT_SECONDS = 60.0, 900.0
DIGEST_BATCH = 5000
PARTITION_REST_SECONDS = 86_400.0
"""Before a table is looked at again that could not be divided."""


class Partitions:
    """One replica at a time looks every minute; there is something to do twice after an upgrade, and then once a month."""

    def __init__(self, store: Store, clock: Clock, report: Callable[[str], None]) -> None:
        self._store, self._clock, self._report = store, clock, report
        self._rests: dict[str, float] = {}

    def chore(self) -> Chore:
        return Chore("partitions", PARTITION_LOOK_SECONDS, self.run, PARTITION_LIMIT_SECONDS)

    async def run(self) -> None:
        """Each table by itself; what a table waits for keeps no other."""
        if self._store.dialect_name != "postgresql":
            return
        may_divide = await self._store.write(all_write_partitions, now=self._clock.now())
        for history in HISTORIES:
            try:
                if await self._store.read(is_partitioned, history=history) or (may_divide and await self._divide(history)):
                    await self._make_room(history)
            except StoreUnavailable as error:  # nobody is kept waiting for longer; a dump may use the table for hours
                self._report(f"the partitions of {history.name} could not be changed and are tried again in a minute: {error}")

    async def _make_room(self, history: History) -> None:
        made = 0
        while await self._store.write(add_partition, history=history, now=self._clock.now()):
            made += 1
        if made:
            await self._store.write(runs_in_thread(gather_statistics), history=history)

    async def _divide(self, history: History) -> bool:
        """Gives the table of `history` partitions; False where rows are in the way."""
        if self._rests.get(history.name, 0.0) > self._clock.now():
            return False
        if not await self._store.read(may_change_history, history=history):
            return self._rest(history, "the worker's user of the database is not its owner")
        if history is EVENT_HISTORY:
            while await self._store.write(copy_event_digests, most=DIGEST_BATCH):
                pass
        end = await self._store.write(end_of_first, history=history, now=self._clock.now())
        if await self._store.write(runs_in_thread(check_first_rows), history=history, end=end):
            await self._store.write(switch_to_partitions, history=history, end=end)
            return True
        await self._store.write(drop_first_check, history=history)
        return self._rest(history, f"it has rows from after {end}, of a clock that was wrong")

    def _rest(self, history: History, reason: str) -> bool:
        self._rests[history.name] = self._clock.now() + PARTITION_REST_SECONDS
        self._report(f"{history.name} is not partitioned: {reason}")
        return False
