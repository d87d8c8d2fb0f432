"""Snapshots of the stocks of accounts, shared by the draws of a few seconds, and which ICCIDs were named or given back a moment ago."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import anyio

from operations.caches.account_parts import AccountParts
from registry.clock import Clock
from registry.errors import Refusal
from registry.ids import Ids
from storage.engine.store import Store
from storage.issuance import IssuanceHolder, NewIssuance, holders_of_iccids
from storage.stock_snapshots import StockSnapshot, insert_stock_snapshot, make_stock_snapshot

FindIccidHolders = Callable[[Sequence[str]], Awaitable[list[IssuanceHolder]]]
ReadStock = Callable[[FindIccidHolders, Sequence[str]], Awaitable["AccountStock"]]
"""Reads the stock of an account now. It is given who had ICCIDs before, and the ICCIDs that this process gave back a moment ago."""


class AccountStock(NamedTuple):
    """ICCIDs in stock, and whether every line was read and understood. `held`: rows of the ledger that had some of them before."""

    free: list[str]
    held: list[IssuanceHolder]
    whole: bool


SNAPSHOT_FRESH_SECONDS = 5.0
NAMED_ICCID_SECONDS = 60.0
RETURNED_ICCID_SECONDS = 60.0
FREE_COUNT_SECONDS, FREE_COUNTS_LIMIT = 86_400.0, 4096


class FreshSnapshot(NamedTuple):
    """A snapshot, and until when it may be shared, in seconds of the monotonic clock."""

    until: float
    look: StockSnapshot


class NamedIccid(NamedTuple):
    """Whose answer named an ICCID, and until when that is remembered."""

    until: float
    caller: tuple[str, str]


class SnapshotReading:
    """A snapshot that is being taken, and its outcome: None where the task that took it was cancelled."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.said: StockSnapshot | Refusal | None = None


class StockSnapshots:
    """Looks at stocks. Choice: a look serves the draws of the next five seconds, since it reads the account's list.

    What other calls draw meanwhile is in the ledger, so a shared look proves as much as a new one. For the same reason calls that ask
    while a look is being taken wait for it: it only has to be taken before they draw.
    """

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store, self._clock, self._ids = store, clock, ids
        self.parts = AccountParts(store, clock)
        """Where the lines of large accounts are, for all that read accounts."""
        self._kept: dict[int, FreshSnapshot] = {}
        self._named: dict[str, NamedIccid] = {}
        self._readings: dict[tuple[int, str, bool], SnapshotReading] = {}
        self._free: OrderedDict[int, tuple[float, int]] = OrderedDict()
        """By account, when a look was taken (monotonic seconds) and how many were free; the oldest first."""
        self._given_back: dict[str, float] = {}

    async def look(self, account_id: int, identity: str, managed: bool, read: ReadStock) -> StockSnapshot:
        """A snapshot of `account_id` that is a few seconds old at most, taken by `read` where there is none. Waits for the network.

        Calls that ask at once share one, or the Refusal in its place where `identity` and `managed` say that they have one credential.
        """
        place = (account_id, identity, managed)
        while (fresh := self._fresh(account_id)) is None:
            reading = self._readings.get(place)
            if reading is None:
                return await self._take(place, read)
            await reading.over.wait()
            if isinstance(reading.said, Refusal):
                raise reading.said
            if reading.said is not None:
                return reading.said
        return fresh

    async def _take(self, place: tuple[int, str, bool], read: ReadStock) -> StockSnapshot:
        """Takes the snapshot that other calls wait for; they go on however it ends."""
        reading = self._readings[place] = SnapshotReading()
        try:
            look = reading.said = await self._read(place[0], read)
            if self._readings.get(place) is reading:
                self._keep(look)
            return look
        except Refusal as refusal:
            reading.said = refusal
            raise
        finally:
            if self._readings.get(place) is reading:
                del self._readings[place]
            reading.over.set()

    def _keep(self, look: StockSnapshot) -> None:
        """Share `look` from now on, however long it took; drop the snapshots that are not shared any more."""
        now = self._clock.monotonic()
        self._kept = {account: kept for account, kept in self._kept.items() if kept.until > now}
        self._kept[look.account_id] = FreshSnapshot(now + SNAPSHOT_FRESH_SECONDS, look)

    def _fresh(self, account_id: int) -> StockSnapshot | None:
        """The snapshot that may be shared now; it is stored."""
        kept = self._kept.get(account_id)
        return kept.look if kept is not None and kept.until > self._clock.monotonic() else None

    async def _read(self, account_id: int, read: ReadStock) -> StockSnapshot:
        taken = self._clock.now()

        async def find_holders(iccids: Sequence[str]) -> list[IssuanceHolder]:
            return await self._store.read(holders_of_iccids, iccids=iccids)

        stock = await read(find_holders, self._just_given_back())
        free = frozenset(stock.free)
        self._note_free(account_id, len(free))
        returned = [holder for holder in stock.held if holder.held in free]
        id = self._ids.new("stk_")
        look = make_stock_snapshot(id=id, account_id=account_id, taken=taken, complete=stock.whole, iccids=stock.free, returned=returned)
        await self._store.write(insert_stock_snapshot, look=look)
        return look

    def free_counts(self) -> list[int]:
        """How many eSIMs were free at the last look at each account, as far as one was taken in the last day."""
        since = self._clock.monotonic() - FREE_COUNT_SECONDS
        return [count for taken, count in self._free.values() if taken >= since]

    def _note_free(self, account_id: int, count: int) -> None:
        self._free[account_id] = (self._clock.monotonic(), count)
        self._free.move_to_end(account_id)
        if len(self._free) > FREE_COUNTS_LIMIT:
            self._free.popitem(last=False)

    def is_first_to_name(self, iccid: str, row: NewIssuance) -> bool:
        """Whether no other call's answer named this ICCID a moment ago: a connection may give one answer twice."""
        now, caller = self._clock.monotonic(), (row.organisation, row.key)
        while self._named and next(iter(self._named.values())).until <= now:
            del self._named[next(iter(self._named))]
        first = self._named.setdefault(iccid, NamedIccid(now + NAMED_ICCID_SECONDS, caller))
        return first.caller == caller

    def forget(self, iccid: str) -> None:
        """The eSIM was given back: the next answer may name it again, and looks are out of date, also those that are being taken."""
        self._named.pop(iccid, None)
        self._given_back[iccid] = self._clock.monotonic() + RETURNED_ICCID_SECONDS
        self._kept.clear()
        self._readings.clear()

    def _just_given_back(self) -> list[str]:
        """The ICCIDs that this process gave back a moment ago: looks at large accounts ask for them again."""
        now = self._clock.monotonic()
        self._given_back = {iccid: until for iccid, until in self._given_back.items() if until > now}
        return list(self._given_back)
