"""Places for calls under way with one token. Where several organisations share it, the one that holds the fewest comes next."""

from collections import deque
from collections.abc import Callable

import anyio

from registry.place_count import PlaceCount


class Places:
    """A count of places, and a queue for each owner: whoever asks a lot waits for himself, not others for him."""

    def __init__(self, count: int | PlaceCount) -> None:
        """`count`: so many in this process, or this process's part of what several share."""
        self._count = PlaceCount(count) if isinstance(count, int) else count
        self._count.more = self._hand_on
        self._queued = 0
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[anyio.Event]] = {}

    def try_take(self, owner: str) -> bool:
        """A place if one is free, at no cost: waiting would cost a turn of the loop."""
        if not self._count.take():
            return False
        self._hold(owner)
        return True

    async def take(self, owner: str) -> Callable[[], None]:
        """A place, however long it takes; what is returned gives it back."""
        if not self.try_take(owner):
            await self._wait(owner)
        return lambda: self.give_back(owner)

    async def _wait(self, owner: str) -> None:
        called = anyio.Event()
        queue = self._waiting.setdefault(owner, deque())
        queue.append(called)
        self._queued += 1
        self._count.want(self._queued)
        try:
            await called.wait()
        except BaseException:
            if called.is_set():  # called and cancelled at once
                self.give_back(owner)
            else:
                self._leave(owner, called)
            raise

    def give_back(self, owner: str) -> None:
        """The place is free for the next."""
        self._count.give_back()
        held = self._held.pop(owner) - 1
        if held:
            self._held[owner] = held
        self._hand_on()

    def _hand_on(self) -> None:
        """Places that are free, to those who wait."""
        while self._waiting and self._count.take():
            # Equals take turns: whoever was called goes to the end of the line of owners.
            following = min(self._waiting, key=lambda waiting: self._held.get(waiting, 0))
            queue = self._waiting.pop(following)
            called = queue.popleft()
            if queue:
                self._waiting[following] = queue
            self._hold(following)
            self._leave_queue()
            called.set()

    def _hold(self, owner: str) -> None:
        self._held[owner] = self._held.get(owner, 0) + 1

    def _leave(self, owner: str, called: anyio.Event) -> None:
        queue = self._waiting[owner]
        queue.remove(called)
        if not queue:
            del self._waiting[owner]
        self._leave_queue()

    def _leave_queue(self) -> None:
        self._queued -= 1
        self._count.want(self._queued)
