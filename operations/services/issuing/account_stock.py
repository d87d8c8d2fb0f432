"""The free eSIMs of an account. A small account is read whole; of a large one what is known is read again only where it may have changed.

It may have changed where the ledger drew an eSIM that is still known as free, where one was given back, and wherever the charging system
counts more free eSIMs than are known. Beside that every look reads the part again whose reading is the longest ago.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from clients.ocs.wire.subscriber import Subscriber
from operations.services.network.account_learning import LOOK_CALLS, learn
from operations.services.network.account_parts import (
    AFFECTED,
    FREE,
    AccountListing,
    AccountPart,
    FirstLines,
    PartsChanged,
    free_lines,
    iccid_of,
    narrowest,
    part_with,
)
from operations.services.network.fleet import Fleet, first_lines, lines_of, lines_under, read_parts
from operations.services.network.reached import Upstream
from registry.errors import OcsError
from storage.issuing.issuance import Holder

COUNTED_FREE = 0
"""The number that the charging system gives to free eSIMs when it counts."""
RELEARN_SECONDS = 60.0
"""How often the whole account is read again at most, while more is counted than is known."""
MOST_ASKED_AGAIN = 8
"""Lines that are asked for once more, of those that rows of the ledger have, while the account is not known yet."""
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
    place, first = upstream.place(account), None
    if not upstream.parts.is_large(place):
        first = await first_lines(upstream, account)
        if not first.cut_off:
            return await of_small(upstream, account, first, find_holders)
        upstream.parts.memory(place)
    listing = await upstream.parts.find(place)
    if listing is not None and listing.complete:
        try:
            return await StockReader(upstream, listing).read(find_holders, given_back)
        except PartsChanged:  # by a replica, at this moment
            return await read_whole(upstream, account, find_holders)
    return await of_unknown(upstream, account, first or await first_lines(upstream, account), find_holders)


async def of_small(upstream: Upstream, account: int, first: FirstLines, find_holders: FindHolders) -> AccountStock:
    """The stock of an account that one answer lists."""
    fleet = Fleet(first.rows, first.strangers)
    held = await find_holders(free_in(fleet))
    if held:
        fleet = await lines_of(upstream, [account])
    return AccountStock(free_in(fleet), held, is_whole(fleet))


async def of_unknown(upstream: Upstream, account: int, first: FirstLines, find_holders: FindHolders) -> AccountStock:
    """What can be seen of the stock of a large account while its parts are being learned; never all of it.

    Choice: an eSIM is drawn rather than the caller kept waiting for fifty calls. Should the answer of one of these first draws be lost, the
    stock proves less, and a person may have to settle it.
    """
    parts = await learn(upstream, account, first, LOOK_CALLS)
    free = list(dict.fromkeys([*free_in(Fleet(first.rows, True)), *free_lines(parts, "esims"), *free_lines(parts, "cards")]))
    held = await find_holders(free)
    doubtful = {holder.held for holder in held}
    answers = await lines_under(upstream, account, sorted(doubtful)[:MOST_ASKED_AGAIN])
    again = {iccid for leaves in answers.values() for rows in leaves.values() for iccid in free_in(Fleet(rows, True))}
    return AccountStock([iccid for iccid in free if iccid not in doubtful or iccid in again], held, False)


async def read_whole(upstream: Upstream, account: int, find_holders: FindHolders) -> AccountStock:
    """The stock of a large account all of whose lines are read."""
    fleet = await lines_of(upstream, [account])
    free, whole = free_in(fleet), is_whole(fleet)
    held = await find_holders(free)
    listing = await upstream.parts.find(upstream.place(account)) if held else None
    if listing is not None and listing.complete:
        free = await StockReader(upstream, listing).free_again(free, held)
    elif held:
        fleet = await lines_of(upstream, [account])
        free, whole = free_in(fleet), is_whole(fleet)
    return AccountStock(free, held, whole)


class StockReader:
    """The stock of an account whose parts are known."""

    def __init__(self, upstream: Upstream, listing: AccountListing) -> None:
        self._upstream, self._listing = upstream, listing
        self._parts: dict[str, AccountPart] = {}

    async def read(self, find_holders: FindHolders, given_back: Iterable[str]) -> AccountStock:
        """What is known, after the parts that may have changed were read again."""
        await self._load()
        held = await find_holders(self._free())
        oldest = min(self._parts.values(), key=lambda part: part.read)
        never = [part for part in self._parts.values() if not part.read]
        doubtful = self._narrow([*(holder.held for holder in held), *given_back])
        await self._read_again(doubtful | {part.prefix: part.prefix for part in (oldest, *never)})
        counted, known = await self._counted(), len(self._esims())
        if counted is None:
            return await read_whole(self._upstream, self._listing.place.account_id, find_holders)
        memory = self._upstream.parts.memory(self._listing.place)
        if counted <= known + memory.surplus:
            return AccountStock(self._free(), held, self._is_clear())
        now = self._upstream.parts.clock.monotonic()
        if memory.stock_read is not None and now - memory.stock_read < RELEARN_SECONDS:
            return AccountStock(self._free(), held, False)
        found = await read_whole(self._upstream, self._listing.place.account_id, find_holders)
        await self._load()
        memory.surplus, memory.stock_read = max(0, counted - len(self._esims())), now
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
        if listing is None:
            raise PartsChanged
        self._listing = listing
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
        try:
            rows = await self._upstream.ocs.reseller.esim_status_per_account(account_id=account)
        except OcsError as refusal:
            if refusal.ocs_code is None:
                raise
            return None
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
