"""News of the logs of events: who waits for an organisation's next event is woken soon after it has its place."""

from collections import Counter

import anyio

from storage.engine.store import Store
from storage.event_log import positions_of

WATCH_SECONDS = 0.2


class EventWatch:
    """The readers of one process that wait. However many wait, the database is asked once in each interval."""

    def __init__(self, store: Store, every: float = WATCH_SECONDS) -> None:
        self._store, self._every = store, every
        self._waiting = Counter[str]()
        self._positions = dict[str, int]()
        self._looked = float("-inf")
        self._looking = anyio.Lock()

    async def news(self, organisation: str, position: int, seconds: float) -> bool:
        """Wait until the organisation's log goes beyond `position`, at most so many seconds; whether it does."""
        end = anyio.current_time() + seconds
        self._waiting[organisation] += 1
        try:
            while True:
                await self._look()
                if self._positions.get(organisation, 0) > position:
                    return True
                left = end - anyio.current_time()
                if left <= 0:
                    return False
                await anyio.sleep(min(left, self._every))
        finally:
            self._waiting[organisation] -= 1
            self._waiting += Counter[str]()

    async def _look(self) -> None:
        async with self._looking:
            if anyio.current_time() - self._looked < self._every:
                return
            found = await self._store.read(positions_of, organisations=sorted(self._waiting))
            self._positions = {each.organisation: each.position for each in found}
            self._looked = anyio.current_time()
