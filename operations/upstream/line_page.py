"""A page of an account's lines, lowest subscriber id first, for as few calls as it takes: reading stops when the page is full.

A small account is one answer of the charging system. Of a large one the parts are known (see `account_parts`), and only the lines of the
page are asked for. Before they are known the account's own list is the page, where it is sorted and long enough, and a few calls more
learn the parts; else the account is read whole, once.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from clients.ocs.subscribers import Subscriber
from operations.caches.account_parts import (
    PARTS_RELEARN_SECONDS,
    PARTS_UNCOUNTED_SECONDS,
    AccountListing,
    AccountPartsChanged,
    FirstLines,
    account_turn,
    narrowest_prefix,
)
from operations.upstream.account_lines import (
    ACCOUNT_CALL_LIMIT,
    PARALLEL_PREFIXES,
    AccountSweep,
    learn_account_parts,
    read_account_lines,
    read_account_parts,
    read_first_lines,
)
from operations.upstream.connection import Upstream
from operations.upstream.lines import subscriber_number

FILTERED_PARTS_AT_ONCE = 3
"""How many parts are read in one go where not every line fits."""
LINE_PAGE_TRIES = 3
LineFilter = Callable[[Subscriber], bool]


class LinePage(NamedTuple):
    """Lines by subscriber id, and whether there may be more behind them."""

    rows: list[Subscriber]
    more: bool
    total: int | None
    """How many lines there are in all pages, where that is known."""
    incomplete: bool
    """Whether the charging system has lines of the account that it does not show."""


class PartMember(NamedTuple):
    """A line as a part of the account knows it."""

    id: int
    iccid: str
    part: str


async def read_line_page(upstream: Upstream, account: int, *, after: int, count: int, fits: LineFilter | None = None) -> LinePage:
    """The first `count` lines behind the subscriber id `after` that fit; without `fits` every line does."""
    return await LinePageReader(upstream, account, after, count, fits).read()


class LinePageReader:
    """One page of one account."""

    def __init__(self, upstream: Upstream, account: int, after: int, count: int, fits: LineFilter | None) -> None:
        self._upstream, self._account = upstream, account
        self._after, self._count, self._fits = after, count, fits
        self._parts, self._place = upstream.parts, upstream.place(account)
        self._rows: dict[int, Subscriber] = {}
        """Lines that were read for this page, by subscriber id."""

    async def read(self) -> LinePage:
        """The page. Where others change the parts all the time it is made from the whole account."""
        for _ in range(LINE_PAGE_TRIES):
            try:
                return await self._read()
            except AccountPartsChanged:
                continue
        fleet = await read_account_lines(self._upstream, [self._account])
        return self._of_rows(fleet.rows, fleet.incomplete)

    async def _read(self) -> LinePage:
        listing = await self._known() if self._parts.is_large(self._place) else None
        if listing is None or not listing.complete or listing.is_due(self._now()):
            first = await read_first_lines(self._upstream, self._account)
            if not first.cut_off:
                return await self._of_small(first, known=listing is not None)
            self._parts.memory(self._place)
            listing = await self._checked(first, listing or await self._parts.find(self._place))
            page = await self._of_first(first, listing)
            if page is not None:
                return page
            if listing is None:
                return await self._of_all(first)
        return await self._of_parts(listing)

    async def _known(self) -> AccountListing | None:
        """What is known of the account. A page that the account's own list cannot show waits for the page that learns the parts now."""
        memory = self._parts.memory(self._place)
        listing = await self._parts.find(self._place)
        if (listing is None or not listing.complete) and memory.horizon is not None and self._after >= memory.horizon:
            async with account_turn(memory.learning):
                pass
            listing = await self._parts.find(self._place)
        return listing

    def _now(self) -> float:
        return self._parts.clock.now()

    async def _of_small(self, first: FirstLines, *, known: bool) -> LinePage:
        """The page of an account that one answer lists."""
        if known:
            await self._parts.drop(self._place)
        return self._of_rows(first.rows, first.strangers)

    def _of_rows(self, rows: Iterable[Subscriber], incomplete: bool) -> LinePage:
        fitting = sorted((row for row in rows if self._fits is None or self._fits(row)), key=subscriber_number)
        behind = [row for row in fitting if subscriber_number(row) > self._after]
        return LinePage(behind[: self._count], len(behind) > self._count, len(fitting), incomplete)

    async def _checked(self, first: FirstLines, listing: AccountListing | None) -> AccountListing | None:
        """`listing`, unless the charging system counts other lines now, or the listing is too old; None then."""
        if listing is None or not listing.complete:
            return None
        if not self._holds(first, listing):
            return None
        await self._parts.check(listing, self._now())
        return listing

    def _holds(self, first: FirstLines, listing: AccountListing) -> bool:
        seconds = PARTS_UNCOUNTED_SECONDS if first.total is None else PARTS_RELEARN_SECONDS
        return first.total in (None, listing.lines) and 0 <= self._now() - listing.read < seconds

    async def _of_first(self, first: FirstLines, listing: AccountListing | None) -> LinePage | None:
        """The page from the account's own list, where that has the lowest ids and enough of them.

        Choice: a list in the order of its ids is taken for the beginning of that order until a line is found that speaks against it.
        """
        memory, ids = self._parts.memory(self._place), [subscriber_number(row) for row in first.rows]
        if not memory.in_order or not ids or any(a >= b for a, b in pairwise(ids)):
            return None
        fitting = [row for row in first.rows if subscriber_number(row) > self._after and (self._fits is None or self._fits(row))]
        memory.horizon = ids[-1]
        if len(fitting) < self._count:
            return None
        if listing is None:
            await learn_account_parts(self._upstream, self._account, first)
            listing = await self._parts.find(self._place)
        if not memory.in_order or (listing is not None and listing.complete and not await self._begins_with(listing, ids)):
            return None
        total = first.total if self._fits is None else None
        return LinePage(fitting[: self._count], True, total, False)

    async def _begins_with(self, listing: AccountListing, ids: Sequence[int]) -> bool:
        """Whether `ids` holds every known line whose number is lower than the last of `ids`."""
        rows = [row for row in listing.parts if row.lowest < ids[-1]]
        known = {id for part in await self._parts.members(self._place, rows) for id in part.iccids if id < ids[-1]}
        return known <= set(ids)

    async def _of_all(self, first: FirstLines) -> LinePage:
        """The page of an account whose parts are not known. One page at a time learns them, and the others use what it learned."""
        async with account_turn(self._parts.memory(self._place).learning):
            listing = await self._parts.find(self._place)
            if listing is None or not listing.complete or listing.is_due(self._now()):
                listing = await self._learn_rest(first)
            if listing is None:
                fleet = await read_account_lines(self._upstream, [self._account])
                return self._of_rows(fleet.rows, fleet.incomplete)
        return await self._of_parts(listing)

    async def _learn_rest(self, first: FirstLines) -> AccountListing | None:
        """Goes on learning the parts; None where too many calls would be needed. After a failure the next page goes on from here."""
        memory = self._parts.memory(self._place)
        sweep = memory.sweep if isinstance(memory.sweep, AccountSweep) else AccountSweep(self._upstream, self._account, 0, keep_rows=False)
        if memory.sweep is None:
            listing = await self._parts.find(self._place)
            sweep.begin(first, [part.prefix for part in listing.parts] if listing else [])
        memory.sweep = sweep
        await sweep.go_on(ACCOUNT_CALL_LIMIT)
        if not sweep.over:
            return None
        memory.sweep = None
        return await sweep.keep_parts()

    async def _of_parts(self, listing: AccountListing) -> LinePage:
        page, last = list[Subscriber](), self._after
        while len(page) < self._count:
            wanted = await self._next(listing, last, self._size(listing, last, len(page)))
            if not wanted:
                return LinePage(page, False, listing.lines if self._fits is None else None, False)
            await self._fetch(listing, wanted)
            end = wanted[-1].id
            fresh = [self._rows[id] for id in sorted(self._rows) if last < id <= end]
            page += [row for row in fresh if self._fits is None or self._fits(row)]
            last = end
        more = len(page) > self._count or bool(await self._next(listing, last, 1))
        return LinePage(page[: self._count], more, listing.lines if self._fits is None else None, False)

    def _size(self, listing: AccountListing, last: int, found: int) -> int:
        """How many lines to look at next: as many as the page lacks, or those of some parts where many may not fit."""
        if self._fits is None:
            return self._count - found
        return max(1, sum(row.lines for row in [row for row in listing.parts if row.highest > last][:FILTERED_PARTS_AT_ONCE]))

    async def _next(self, listing: AccountListing, last: int, count: int) -> list[PartMember]:
        """The next `count` lines behind the number `last`, as the parts know them."""
        found, rest = dict[int, PartMember](), [row for row in listing.parts if row.highest > last]
        while rest:
            if len(found) >= count and sorted(found)[count - 1] < rest[0].lowest:
                break
            batch, rest = rest[:PARALLEL_PREFIXES], rest[PARALLEL_PREFIXES:]
            for part in await self._parts.members(self._place, batch):
                for id, iccid in part.iccids.items():
                    if id > last:
                        found.setdefault(id, PartMember(id, iccid, part.prefix))
        return [found[id] for id in sorted(found)[:count]]

    async def _fetch(self, listing: AccountListing, wanted: Sequence[PartMember]) -> None:
        """Reads the lines `wanted`: of each part the narrowest range that holds them, for a filtered page the whole part."""
        of_parts: dict[str, list[str]] = {}
        for member in wanted:
            if member.id not in self._rows:
                of_parts.setdefault(member.part, []).append(member.iccid)
        prefixes = {part: part if self._fits is not None else narrowest_prefix(part, iccids) for part, iccids in of_parts.items()}
        known = await self._parts.members(self._place, [row for row in listing.parts if row.prefix in prefixes])
        parts = {part.prefix: part for part in known}
        wanted_parts = [(parts[part], prefix) for part, prefix in prefixes.items() if part in parts]
        for row in await read_account_parts(self._upstream, listing, wanted_parts, keep_stock=False):
            self._rows[subscriber_number(row)] = row
        if any(member.id not in self._rows for member in wanted):
            await self._parts.lines_moved(self._place)  # one has gone: another may have come, so that the count is as before
