"""The free eSIMs of an account. A small account is read whole; of a large one what is known is read again only where it may have changed.

It may have changed where the ledger drew an eSIM that is still known as free, where one was given back, and wherever the charging system
counts more free eSIMs than are known. Beside that every look reads the part again whose reading is the longest ago.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import anyio

from clients.ocs.subscribers import Subscriber
from operations.caches.account_parts import (
    SIM_AFFECTED,
    SIM_FREE,
    AccountListing,
    AccountPart,
    AccountPartsChanged,
    FirstLines,
    find_part_prefix,
    free_iccids,
    iccid_in_use,
    narrowest_prefix,
)
from operations.caches.stock import AccountStock, FindIccidHolders
from operations.deps import Deps
from operations.upstream.account_lines import (
    STOCK_LEARNING_CALLS,
    LineList,
    learn_account_parts,
    lines_by_prefix,
    read_account_lines,
    read_account_parts,
    read_first_lines,
)
from operations.upstream.connection import Upstream
from registry.errors import OcsError
from storage.issuance import IssuanceHolder
from storage.stock_snapshots import StockSnapshot

STOCK_FREE_STATUS = 0
"""The number that the charging system gives to free eSIMs when it counts."""
STOCK_REREAD_SECONDS = 60.0
"""How often the whole account is read again at most, while more is counted than is known."""
LINES_A_TURN = 250
DOUBTFUL_ICCIDS_LIMIT = 8
"""Lines that are asked for once more, of those that rows of the ledger have, while the account is not known yet."""


async def look_at_stock(deps: Deps, upstream: Upstream, account_id: int) -> StockSnapshot:
    """The stock of `account_id` as it was some seconds ago at most, stored. Waits for the network; raises the Refusal of a read."""
    return await deps.stock.look(account_id, upstream.identity, upstream.managed, partial(read_account_stock, upstream, account_id))


async def read_account_stock(upstream: Upstream, account: int, find_holders: FindIccidHolders, given_back: Iterable[str]) -> AccountStock:
    """The stock now. Where the ledger thinks that somebody has one of them it is read again: what is free then was given back.

    `given_back`: ICCIDs that this process gave back, which may not be known as free yet.
    """
    place, first = upstream.place(account), None
    if not upstream.parts.is_large(place):
        first = await read_first_lines(upstream, account)
        if not first.cut_off:
            stock = await find_stock(LineList(first.rows, first.strangers))
            first = None  # thousands of lines, which may be read once more
            held = await find_holders(stock.free)
            if held:
                stock = await find_stock(await read_account_lines(upstream, [account]))
            return AccountStock(stock.free, held, stock.whole)
        upstream.parts.memory(place)
    listing = await upstream.parts.find(place)
    if listing is not None and listing.complete:
        try:
            return await StockReader(upstream, listing).read(find_holders, given_back)
        except AccountPartsChanged:  # by a replica, at this moment
            return await read_stock_line_by_line(upstream, account, find_holders)
    return await stock_of_unlearned_account(upstream, account, first or await read_first_lines(upstream, account), find_holders)


async def stock_of_unlearned_account(upstream: Upstream, account: int, first: FirstLines, find_holders: FindIccidHolders) -> AccountStock:
    """What can be seen of the stock of a large account while its parts are being learned; never all of it.

    Choice: an eSIM is drawn rather than the caller kept waiting for fifty calls. Should the answer of one of these first draws be lost, the
    stock proves less, and a person may have to settle it.
    """
    parts = await learn_account_parts(upstream, account, first, STOCK_LEARNING_CALLS)
    free = list(dict.fromkeys([*iccids_in_stock(first.rows), *free_iccids(parts, "esims"), *free_iccids(parts, "cards")]))
    held = await find_holders(free)
    doubtful = {holder.held for holder in held}
    answers = await lines_by_prefix(upstream, account, sorted(doubtful)[:DOUBTFUL_ICCIDS_LIMIT])
    again = {iccid for leaves in answers.values() for rows in leaves.values() for iccid in iccids_in_stock(rows)}
    return AccountStock([iccid for iccid in free if iccid not in doubtful or iccid in again], held, False)


async def read_stock_line_by_line(upstream: Upstream, account: int, find_holders: FindIccidHolders) -> AccountStock:
    free, whole = await find_stock(await read_account_lines(upstream, [account]))
    held = await find_holders(free)
    listing = await upstream.parts.find(upstream.place(account)) if held else None
    if listing is not None and listing.complete:
        free = await StockReader(upstream, listing).free_again(free, held)
    elif held:
        free, whole = await find_stock(await read_account_lines(upstream, [account]))
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
        return bool(self._parts) and not any(part.unclear for part in self._parts.values())


class LineStock(NamedTuple):
    """ICCIDs in stock among some lines, and whether these are every line of an account, each one that we understand."""

    free: list[str]
    whole: bool


async def find_stock(fleet: LineList) -> LineStock:
    """The stock among the lines, some at a time: there may be thousands, and other tasks wait for the event loop.

    Choice: an account whose list is empty proves nothing, since a fault empties lists, too; and a line without a state of its SIM that
    we know, or without an ICCID of its own, may be the one that was drawn.
    """
    free, iccids, readable = list[str](), set[str](), bool(fleet.rows)
    for start in range(0, len(fleet.rows), LINES_A_TURN):
        for row in fleet.rows[start : start + LINES_A_TURN]:
            iccid, status = iccid_in_use(row), row.get("sim", {}).get("status")
            if iccid:
                iccids.add(iccid)
                if is_sim_in_stock(row):
                    free.append(iccid)
            readable = readable and status in (SIM_FREE, SIM_AFFECTED)
        await anyio.lowlevel.checkpoint()
    return LineStock(free, readable and not fleet.incomplete and len(iccids) == len(fleet.rows))


def iccids_in_stock(rows: Iterable[Subscriber]) -> list[str]:
    return [iccid for row in rows if is_sim_in_stock(row) and (iccid := iccid_in_use(row))]


def is_sim_in_stock(row: Subscriber) -> bool:
    """Whether the SIM of the line `row` is in stock."""
    return row.get("sim", {}).get("status") == SIM_FREE
