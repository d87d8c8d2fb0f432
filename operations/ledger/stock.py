"""The free eSIMs of an account. A small account is read whole; of a large one what is known is read again only where it may have changed.

It may have changed where the ledger drew an eSIM that is still known as free, where one was given back, and wherever the charging system
counts more free eSIMs than are known. Beside that every look reads the part again whose reading is the longest ago.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import anyio

from clients.ocs.wire.subscriber import Subscriber
from operations.upstream.account_lines import (
    STOCK_LEARNING_CALLS,
    LineList,
    learn_account_parts,
    lines_by_prefix,
    read_account_lines,
    read_account_parts,
    read_first_lines,
)
from operations.upstream.account_parts import (
    SIM_AFFECTED,
    SIM_FREE,
    AccountListing,
    AccountPart,
    AccountParts,
    AccountPartsChanged,
    FirstLines,
    find_part_prefix,
    free_iccids,
    narrowest_prefix,
)
from operations.upstream.connection import Upstream
from operations.upstream.line_rows import iccid_in_use
from registry.clock import Clock
from registry.errors import OcsError, Refusal
from registry.ids import Ids
from storage.engine.store import Store
from storage.issuance import IssuanceHolder, NewIssuance, holders_of_iccids
from storage.stock_snapshots import StockSnapshot, insert_stock_snapshot, make_stock_snapshot

STOCK_FREE_STATUS = 0
"""The number that the charging system gives to free eSIMs when it counts."""
STOCK_REREAD_SECONDS = 60.0
"""How often the whole account is read again at most, while more is counted than is known."""
DOUBTFUL_ICCIDS_LIMIT = 8
"""Lines that are asked for once more, of those that rows of the ledger have, while the account is not known yet."""
FindIccidHolders = Callable[[Sequence[str]], Awaitable[list[IssuanceHolder]]]


class AccountStock(NamedTuple):
    """ICCIDs in stock, and whether every line was read and understood. `held`: rows of the ledger that had some of them before."""

    free: list[str]
    held: list[IssuanceHolder]
    whole: bool


async def read_account_stock(upstream: Upstream, account: int, find_holders: FindIccidHolders, given_back: Iterable[str]) -> AccountStock:
    """The stock now. Where the ledger thinks that somebody has one of them it is read again: what is free then was given back.

    `given_back`: ICCIDs that this process gave back, which may not be known as free yet.
    """
    place, first = upstream.place(account), None
    if not upstream.parts.is_large(place):
        first = await read_first_lines(upstream, account)
        if not first.cut_off:
            return await stock_of_small_account(upstream, account, first, find_holders)
        upstream.parts.memory(place)
    listing = await upstream.parts.find(place)
    if listing is not None and listing.complete:
        try:
            return await StockReader(upstream, listing).read(find_holders, given_back)
        except AccountPartsChanged:  # by a replica, at this moment
            return await read_stock_line_by_line(upstream, account, find_holders)
    return await stock_of_unlearned_account(upstream, account, first or await read_first_lines(upstream, account), find_holders)


async def stock_of_small_account(upstream: Upstream, account: int, first: FirstLines, find_holders: FindIccidHolders) -> AccountStock:
    """The stock of an account that one answer lists."""
    fleet = LineList(first.rows, first.strangers)
    held = await find_holders(iccids_in_stock(fleet))
    if held:
        fleet = await read_account_lines(upstream, [account])
    return AccountStock(iccids_in_stock(fleet), held, is_fully_read(fleet))


async def stock_of_unlearned_account(upstream: Upstream, account: int, first: FirstLines, find_holders: FindIccidHolders) -> AccountStock:
    """What can be seen of the stock of a large account while its parts are being learned; never all of it.

    Choice: an eSIM is drawn rather than the caller kept waiting for fifty calls. Should the answer of one of these first draws be lost, the
    stock proves less, and a person may have to settle it.
    """
    parts = await learn_account_parts(upstream, account, first, STOCK_LEARNING_CALLS)
    free = list(dict.fromkeys([*iccids_in_stock(LineList(first.rows, True)), *free_iccids(parts, "esims"), *free_iccids(parts, "cards")]))
    held = await find_holders(free)
    doubtful = {holder.held for holder in held}
    answers = await lines_by_prefix(upstream, account, sorted(doubtful)[:DOUBTFUL_ICCIDS_LIMIT])
    again = {iccid for leaves in answers.values() for rows in leaves.values() for iccid in iccids_in_stock(LineList(rows, True))}
    return AccountStock([iccid for iccid in free if iccid not in doubtful or iccid in again], held, False)


async def read_stock_line_by_line(upstream: Upstream, account: int, find_holders: FindIccidHolders) -> AccountStock:
    """The stock of a large account all of whose lines are read."""
    fleet = await read_account_lines(upstream, [account])
    free, whole = iccids_in_stock(fleet), is_fully_read(fleet)
    held = await find_holders(free)
    listing = await upstream.parts.find(upstream.place(account)) if held else None
    if listing is not None and listing.complete:
        free = await StockReader(upstream, listing).free_again(free, held)
    elif held:
        fleet = await read_account_lines(upstream, [account])
        free, whole = iccids_in_stock(fleet), is_fully_read(fleet)
    return AccountStock(free, held, whole)


class StockReader:
    """The stock of an account whose parts are known."""

    def __init__(self, upstream: Upstream, listing: AccountListing) -> None:
        self._upstream, self._listing = upstream, listing
        self._parts: dict[str, AccountPart] = {}

    async def read(self, find_holders: FindIccidHolders, given_back: Iterable[str]) -> AccountStock:
        """What is known, after the parts that may have changed were read again."""
        await self._load()
        held = await find_holders(self._free())
        oldest = min(self._parts.values(), key=lambda part: part.read)
        never = [part for part in self._parts.values() if not part.read]
        doubtful = self._narrow([*(holder.held for holder in held), *given_back])
        await self._read_again(doubtful | {part.prefix: part.prefix for part in (oldest, *never)})
        counted, known = await self._counted(), len(self._esims())
        if counted is None:
            return await read_stock_line_by_line(self._upstream, self._listing.place.account_id, find_holders)
        memory = self._upstream.parts.memory(self._listing.place)
        if counted <= known + memory.surplus:
            return AccountStock(self._free(), held, self._is_clear())
        now = self._upstream.parts.clock.monotonic()
        if memory.stock_read is not None and now - memory.stock_read < STOCK_REREAD_SECONDS:
            return AccountStock(self._free(), held, False)
        found = await read_stock_line_by_line(self._upstream, self._listing.place.account_id, find_holders)
        await self._load()
        memory.surplus, memory.stock_read = max(0, counted - len(self._esims())), now
        return found

    async def free_again(self, free: Sequence[str], held: Sequence[IssuanceHolder]) -> list[str]:
        """The free ICCIDs after those were read again that rows of the ledger have."""
        await self._load()
        await self._read_again(self._narrow([holder.held for holder in held]))
        now_free, doubtful = set(self._free()), {holder.held for holder in held}
        return [iccid for iccid in free if iccid not in doubtful or iccid in now_free]

    async def _load(self) -> None:
        place = self._listing.place
        listing = await self._upstream.parts.find(place)
        if listing is None:
            raise AccountPartsChanged
        self._listing = listing
        self._parts = {part.prefix: part for part in await self._upstream.parts.members(place, self._listing.parts)}

    def _esims(self) -> list[str]:
        return free_iccids(list(self._parts.values()), "esims")

    def _free(self) -> list[str]:
        return self._esims() + free_iccids(list(self._parts.values()), "cards")

    def _narrow(self, iccids: Iterable[str]) -> dict[str, str]:
        """What to read of each part so that all of these ICCIDs are read again."""
        prefixes, found = sorted(self._parts), dict[str, list[str]]()
        for iccid in iccids:
            prefix = find_part_prefix(prefixes, iccid)
            if prefix is not None:
                found.setdefault(prefix, []).append(iccid)
        return {prefix: narrowest_prefix(prefix, under) for prefix, under in found.items()}

    async def _read_again(self, wanted: dict[str, str]) -> None:
        """Read prefixes inside parts."""
        parts = [(self._parts[part], prefix) for part, prefix in wanted.items()]
        if parts:
            await read_account_parts(self._upstream, self._listing, parts, keep_stock=True)
            await self._load()

    async def _counted(self) -> int | None:
        """How many free eSIMs the charging system counts; None: it does not tell of this account."""
        account = self._listing.place.account_id
        try:
            rows = await self._upstream.ocs.reseller.esim_status_per_account(account_id=account)
        except OcsError as refusal:
            if refusal.ocs_code is None:
                raise
            return None
        counts = [row.get("sponsor", []) for row in rows if row.get("id") == account]
        statuses = [status for sponsors in counts for sponsor in sponsors for status in sponsor.get("esim", {}).get("status", [])]
        return sum(status.get("count", 0) for status in statuses if status.get("statusNum") == STOCK_FREE_STATUS) if counts else None

    def _is_clear(self) -> bool:
        """Whether each line is one that we understand."""
        return bool(self._parts) and not any(part.unclear for part in self._parts.values())


def is_fully_read(fleet: LineList) -> bool:
    """Whether every line was read, and each is one that we understand.

    Choice: an account whose list is empty proves nothing, since a fault empties lists, too; and a line without a state of its SIM that
    we know, or without an ICCID of its own, may be the one that was drawn.
    """
    iccids = {iccid_in_use(row) for row in fleet.rows}
    readable = all(row.get("sim", {}).get("status") in (SIM_FREE, SIM_AFFECTED) for row in fleet.rows)
    return not fleet.incomplete and bool(fleet.rows) and readable and not iccids & {None, ""} and len(iccids) == len(fleet.rows)


def iccids_in_stock(fleet: LineList) -> list[str]:
    """The ICCIDs in stock."""
    return [iccid for row in fleet.rows if is_sim_in_stock(row) and (iccid := iccid_in_use(row))]


def is_sim_in_stock(row: Subscriber) -> bool:
    """Whether the SIM is in stock."""
    return row.get("sim", {}).get("status") == SIM_FREE


SNAPSHOT_FRESH_SECONDS = 5.0
NAMED_ICCID_SECONDS = 60.0
RETURNED_ICCID_SECONDS = 60.0
FREE_COUNT_SECONDS, FREE_COUNTS_LIMIT = 86_400.0, 4096


class FreshSnapshot(NamedTuple):
    """A look, and until when it may be shared."""

    until: float
    look: StockSnapshot


class NamedIccid(NamedTuple):
    """Whose answer named an ICCID, and until when that is remembered."""

    until: float
    caller: tuple[str, str]


class SnapshotReading:
    """A look that is being taken, and what came of it: nothing, when whoever took it was stopped."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.said: StockSnapshot | Refusal | None = None


class StockSnapshots:
    """Looks at stocks. Choice: a look serves the draws of the next five seconds, since it reads the account's list.

    What others of ours draw meanwhile is told by the ledger, so a shared look proves as much as one of one's own. For the same
    reason those who ask while a look is being taken wait for that one: it only has to be taken before they draw.
    """

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store, self._clock, self._ids = store, clock, ids
        self.parts = AccountParts(store, clock)
        """Where the lines of large accounts are, for whoever reads accounts."""
        self._kept: dict[int, FreshSnapshot] = {}
        self._named: dict[str, NamedIccid] = {}
        self._readings: dict[tuple[int, str, bool], SnapshotReading] = {}
        self._free: OrderedDict[int, tuple[float, int]] = OrderedDict()
        """By account, when a look was taken (monotonic seconds) and how many were free; the oldest first."""
        self._given_back: dict[str, float] = {}

    async def look(self, upstream: Upstream, account_id: int) -> StockSnapshot:
        """A look that is a few seconds old at most; those who ask at once share one, or the refusal in its place."""
        place = (account_id, upstream.identity, upstream.managed)  # a refusal is for whoever has the same credential
        while (fresh := self._fresh(account_id)) is None:
            reading = self._readings.get(place)
            if reading is None:
                return await self._take(upstream, place)
            await reading.over.wait()
            if isinstance(reading.said, Refusal):
                raise reading.said
            if reading.said is not None:
                return reading.said
        return fresh

    async def _take(self, upstream: Upstream, place: tuple[int, str, bool]) -> StockSnapshot:
        """Take the look that all wait for. However it ends, nobody waits any longer."""
        reading = self._readings[place] = SnapshotReading()
        try:
            look = reading.said = await self._read(upstream, place[0])
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
        """From now on it is shared, however long it took; looks that are not shared any more are dropped."""
        now = self._clock.monotonic()
        self._kept = {account: kept for account, kept in self._kept.items() if kept.until > now}
        self._kept[look.account_id] = FreshSnapshot(now + SNAPSHOT_FRESH_SECONDS, look)

    def _fresh(self, account_id: int) -> StockSnapshot | None:
        """The look that may be shared now. It is kept only once it is in the store."""
        kept = self._kept.get(account_id)
        return kept.look if kept is not None and kept.until > self._clock.monotonic() else None

    async def _read(self, upstream: Upstream, account_id: int) -> StockSnapshot:
        """Look, and store it."""
        taken = self._clock.now()

        async def find_holders(iccids: Sequence[str]) -> list[IssuanceHolder]:
            return await self._store.read(holders_of_iccids, iccids=iccids)

        stock = await read_account_stock(upstream, account_id, find_holders, self._just_given_back())
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
