"""The free eSIMs of an account. A small account is read whole; of a large one what is known is read again only where it may have changed.

It may have changed where the ledger drew an eSIM that is still known as free, where one was given back, and wherever the charging system
counts more free eSIMs than are known. Beside that every look reads the part again whose reading is the longest ago.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from clients.ocs.wire.subscriber import Subscriber
from operations.services.network.account_parts import (
    AFFECTED,
    FREE,
    AccountListing,
    AccountPart,
    free_lines,
    iccid_of,
    narrowest,
    part_with,
)
from operations.services.network.fleet import Fleet, lines_of, read_parts
from operations.services.network.reached import Upstream
from storage.issuing.issuance import Holder

COUNTED_FREE = 0
"""The number that the charging system gives to free eSIMs when it counts."""
RELEARN_SECONDS = 60.0
"""How often the whole account is read again at most, while more is counted than is known."""
FindHolders = Callable[[Sequence[str]], Awaitable[list[Holder]]]


class AccountStock(NamedTuple):
    """ICCIDs in stock, and whether every line was read and understood. `held`: rows of the ledger that had some of them before."""

    free: list[str]
    held: list[Holder]
    whole: bool


async def read_stock(upstream: Upstream, account: int, find_holders: FindHolders, given_back: Iterable[str]) -> AccountStock:
    """The stock now. Where the ledger thinks that somebody has one of them it is read again: what is free then was given back.

    `given_back`: ICCIDs that this process gave back, which may not be known as free yet.
    """
    place = upstream.place(account)
    if upstream.parts.is_large(place):
        listing = await upstream.parts.find(place)
        if listing is not None and listing.complete:
            return await StockReader(upstream, listing).read(find_holders, given_back)
    return await read_whole(upstream, account, find_holders)


async def read_whole(upstream: Upstream, account: int, find_holders: FindHolders) -> AccountStock:
    """The stock of an account all of whose lines are read."""
    fleet = await lines_of(upstream, [account])
    free, whole = free_in(fleet), is_whole(fleet)
    held = await find_holders(free)
    if not held:
        return AccountStock(free, held, whole)
    listing = await upstream.parts.find(upstream.place(account)) if upstream.parts.is_large(upstream.place(account)) else None
    if listing is not None and listing.complete:
        return AccountStock(await StockReader(upstream, listing).free_again(free, held), held, whole)
    fleet = await lines_of(upstream, [account])
    return AccountStock(free_in(fleet), held, is_whole(fleet))


class StockReader:
    """The stock of an account whose parts are known."""

    def __init__(self, upstream: Upstream, listing: AccountListing) -> None:
        self._upstream, self._listing = upstream, listing
        self._parts: dict[str, AccountPart] = {}

    async def read(self, find_holders: FindHolders, given_back: Iterable[str]) -> AccountStock:
        """What is known, after the parts that may have changed were read again."""
        await self._load()
        held = await find_holders(self._free())
        doubtful = {part.prefix: part.prefix for part in self._parts.values() if not part.read}
        doubtful |= self._narrow([*(holder.held for holder in held), *given_back])
        oldest = min(self._parts.values(), key=lambda part: part.read)
        await self._read_again({oldest.prefix: oldest.prefix} | doubtful)
        counted, known = await self._counted(), len(self._esims())
        memory = self._upstream.parts.memory(self._listing.place)
        if counted is not None and counted <= known + memory.surplus:
            return AccountStock(self._free(), held, self._is_clear())
        now = self._upstream.parts.clock.monotonic()
        if memory.stock_read is not None and now - memory.stock_read < RELEARN_SECONDS:
            return AccountStock(self._free(), held, False)
        found = await read_whole(self._upstream, self._listing.place.account_id, find_holders)
        await self._load()
        memory.surplus, memory.stock_read = max(0, (counted or 0) - len(self._esims())), now
        return found

    async def free_again(self, free: Sequence[str], held: Sequence[Holder]) -> list[str]:
        """The free ICCIDs after those were read again that rows of the ledger have."""
        await self._load()
        await self._read_again(self._narrow([holder.held for holder in held]))
        now_free, doubtful = set(self._free()), {holder.held for holder in held}
        return [iccid for iccid in free if iccid not in doubtful or iccid in now_free]

    async def _load(self) -> None:
        place = self._listing.place
        listing = await self._upstream.parts.find(place)
        self._listing = listing or self._listing
        self._parts = {part.prefix: part for part in await self._upstream.parts.members(place, self._listing.parts)}

    def _esims(self) -> list[str]:
        return free_lines(list(self._parts.values()), "esims")

    def _free(self) -> list[str]:
        return self._esims() + free_lines(list(self._parts.values()), "cards")

    def _narrow(self, iccids: Iterable[str]) -> dict[str, str]:
        """What to read of each part so that all of these ICCIDs are read again."""
        prefixes, found = sorted(self._parts), dict[str, list[str]]()
        for iccid in iccids:
            prefix = part_with(prefixes, iccid)
            if prefix is not None:
                found.setdefault(prefix, []).append(iccid)
        return {prefix: narrowest(prefix, under) for prefix, under in found.items()}

    async def _read_again(self, wanted: dict[str, str]) -> None:
        """Read prefixes inside parts."""
        parts = [(self._parts[part], prefix) for part, prefix in wanted.items()]
        if parts:
            await read_parts(self._upstream, self._listing, parts, keep_stock=True)
            await self._load()

    async def _counted(self) -> int | None:
        """How many free eSIMs the charging system counts; None: it does not tell of this account."""
        account = self._listing.place.account_id
        rows = await self._upstream.ocs.reseller.esim_status_per_account(account_id=account)
        counts = [row.get("sponsor", []) for row in rows if row.get("id") == account]
        statuses = [status for sponsors in counts for sponsor in sponsors for status in sponsor.get("esim", {}).get("status", [])]
        return sum(status.get("count", 0) for status in statuses if status.get("statusNum") == COUNTED_FREE) if counts else None

    def _is_clear(self) -> bool:
        """Whether each line is one that we understand."""
        return bool(self._parts) and not any(part.unclear for part in self._parts.values())


def is_whole(fleet: Fleet) -> bool:
    """Whether every line was read, and each is one that we understand.

    Choice: an account whose list is empty proves nothing, since a fault empties lists, too; and a line without a state of its SIM that
    we know, or without an ICCID of its own, may be the one that was drawn.
    """
    iccids = {iccid_of(row) for row in fleet.rows}
    readable = all(row.get("sim", {}).get("status") in (FREE, AFFECTED) for row in fleet.rows)
    return not fleet.incomplete and bool(fleet.rows) and readable and not iccids & {None, ""} and len(iccids) == len(fleet.rows)


def free_in(fleet: Fleet) -> list[str]:
    """The ICCIDs in stock."""
    return [iccid for row in fleet.rows if is_free(row) and (iccid := iccid_of(row))]


def is_free(row: Subscriber) -> bool:
    """Whether the SIM is in stock."""
    return row.get("sim", {}).get("status") == FREE
