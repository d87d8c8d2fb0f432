"""Reading all lines of accounts: the charging system lists some lines of one, and the rest is read by parts of the ICCID range.

The parts are learned a few calls at a time, so that no request for a page or an eSIM waits for all of them.

A page of an account's lines, lowest subscriber id first, takes few calls: reading stops when the page is full. A small account is one
answer of the charging system. Of a large one the parts are known, and only the lines of the page are asked for. Before they are known the
account's own list is the page, where it is sorted and long enough, and a few calls more learn the parts; else the account is read whole.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import anyio

from clients.ocs.subscribers import Subscriber, SubscriberFields, SubscriberList
from operations.caches.account_parts import (
    ICCID_SEARCH_DIGITS,
    PARTS_RELEARN_SECONDS,
    PARTS_UNCOUNTED_SECONDS,
    AccountListing,
    AccountPart,
    AccountPartsChanged,
    FirstLines,
    account_part_of_rows,
    account_turn,
    iccid_in_use,
    narrowest_prefix,
)
from operations.upstream.connection import Upstream
from registry.errors import OcsError, OcsNotFound, Refusal

OCS_INVALID_REQUEST = 2
ICCID_MAX_DIGITS = 22
ACCOUNT_CALL_LIMIT = 200
PARALLEL_PREFIXES = 4


def subscriber_number(row: SubscriberFields) -> int:
    return row.get("subscriberId", 0)


class LineList(NamedTuple):
    """Lines, and whether there may be more that could not be reached."""

    rows: list[Subscriber]
    incomplete: bool


async def read_account_lines(upstream: Upstream, accounts: Sequence[int]) -> LineList:
    """Every line of `accounts`, for at most ACCOUNT_CALL_LIMIT calls in all. Waits for the network."""
    rows: list[Subscriber] = []
    calls, incomplete = ACCOUNT_CALL_LIMIT, False
    for account in accounts:
        if calls <= 0:
            return LineList(rows, True)
        sweep = AccountSweep(upstream, account, calls)
        incomplete = await sweep.run() or incomplete
        rows += sweep.found.values()
        calls = sweep.calls
    return LineList(rows, incomplete)


async def read_first_lines(upstream: Upstream, account: int) -> FirstLines:
    """The account's own list; calls for the same account share one read where it is long. Waits for the network."""
    shared = upstream.parts.shared_list(upstream.place(account))
    if shared is None:
        return await fetch_first_lines(upstream, account)
    return await shared.get(lambda: fetch_first_lines(upstream, account))


async def fetch_first_lines(upstream: Upstream, account: int) -> FirstLines:
    """The account's own list. Raises AccountGone where it is not there. Waits for the network.

    Choice: in managed mode an unknown account is the connection's fault, not the caller's.
    """
    try:
        first = await upstream.ocs.subscriber.list_subscriber(account)
    except OcsNotFound:
        if not upstream.managed:
            raise
        raise upstream.account_gone() from None
    listed = first.get("subscriberList", [])
    upstream.parts.note_list(upstream.place(account), len(listed))
    for row in listed:
        row.setdefault("accountId", account)  # what an account's list shows is the account's, unless it says otherwise
    own = [row for row in listed if row.get("accountId") == account]
    told = first.get("nbFound")
    # A list is cut off where it says so, and where it counts more lines than it shows.
    cut_off = bool(first.get("hasMore")) or (told is not None and told > len(listed))
    # Choice: a total that is no more than what was listed is the list's length and tells nothing.
    return FirstLines(own, cut_off, told if told is not None and told > len(listed) else None, len(own) < len(listed))


class AccountSweep:
    """One account. `keep_rows=False` learns where its lines are and keeps none of them."""

    def __init__(
        self,
        upstream: Upstream,
        account: int,
        calls: int,
        *,
        keep_rows: bool = True,
        rows: Callable[[Sequence[Subscriber]], None] | None = None,
    ) -> None:
        """`rows` is given the account's lines as they are found, one that is found twice too."""
        self._upstream, self._account, self.calls = upstream, account, calls
        self._keep_rows, self._rows = keep_rows, rows
        self.found: dict[int, Subscriber] = {}
        self._listed: dict[int, str] = {}
        """The ICCIDs of the lines that the account's own list shows."""
        self._parts: dict[str, AccountPart] = {}
        self._total: int | None = None
        self._asked: set[str] = set()
        self._waiting: list[str] = []
        self._neighbours: list[str] = []

    async def run(self) -> bool:
        """Read the account's list and, where that is cut off, its parts; whether lines stay unreachable."""
        self.calls -= 1
        first = await read_first_lines(self._upstream, self._account)
        place = self._upstream.place(self._account)
        if not first.cut_off:
            self._take(first.rows)
            return first.strangers
        parts = self._upstream.parts
        parts.memory(place)
        listing = await parts.find(place)
        self.begin(first, [part.prefix for part in listing.parts] if listing else [])
        await self.go_on(self.calls)
        await self.keep_parts()
        return not self.complete

    def begin(self, first: FirstLines, known: Sequence[str]) -> None:
        """What the account's own list shows, and the prefixes that its parts had before."""
        self._take(first.rows)
        self._total = first.total
        self._listed |= {subscriber_number(row): iccid for row in first.rows if (iccid := iccid_in_use(row))}
        self._waiting += [*known, *sorted({prefix for row in first.rows for prefix in iccid_prefixes(row)})]

    @property
    def parts(self) -> list[AccountPart]:
        """The parts that have been read whole."""
        return list(self._parts.values())

    @property
    def over(self) -> bool:
        """Whether there is nothing left to ask for."""
        return self.complete or not (self._waiting or self._neighbours)

    @property
    def complete(self) -> bool:
        """Whether as many lines were found as the charging system counts; never where it does not count."""
        return self._total is not None and len(self.found) >= self._total

    async def go_on(self, calls: int) -> None:
        """Makes `calls` calls: for each part, for its tenths where it is cut off, and for the neighbours of each part that has lines."""
        self.calls = calls
        while self.calls > 0 and not self.over:
            if not self._waiting:
                self._waiting, self._neighbours = self._neighbours, []
            batch = self._next()
            try:
                answers = await search_iccid_prefixes(self._upstream, batch)
            except BaseException:  # the next call asks for them again
                self._asked.difference_update(batch)
                self._waiting = [*batch, *self._waiting]
                raise
            for prefix, part in zip(batch, answers, strict=True):
                self._keep(prefix, part)
                if part.get("hasMore") and len(prefix) < ICCID_MAX_DIGITS:
                    self._waiting += [f"{prefix}{digit}" for digit in range(10)]
                if part.get("subscriberList") and len(prefix) == ICCID_SEARCH_DIGITS:
                    self._neighbours += [str(int(prefix) - 1), str(int(prefix) + 1)]

    def _next(self) -> list[str]:
        """The next parts to ask for, at most PARALLEL_PREFIXES; none is asked for twice."""
        fresh = [prefix for prefix in dict.fromkeys(self._waiting) if prefix not in self._asked]
        count = min(PARALLEL_PREFIXES, self.calls)
        batch, self._waiting = fresh[:count], fresh[count:]
        self._asked.update(batch)
        self.calls -= len(batch)
        return batch

    def _keep(self, prefix: str, part: SubscriberList) -> None:
        """A prefix finds the whole reseller's lines: strangers are dropped."""
        rows = [row for row in part.get("subscriberList", []) if row.get("accountId") == self._account]
        self._take(rows)
        if rows and not part.get("hasMore"):
            self._parts[prefix] = account_part_of_rows(prefix, rows, self._upstream.parts.clock.now())

    def _take(self, rows: Sequence[Subscriber]) -> None:
        if self._rows is not None:
            self._rows(rows)
        self.found |= {subscriber_number(row): row if self._keep_rows else Subscriber() for row in rows}

    async def keep_parts(self) -> AccountListing | None:
        """Remembers where the lines are. None, and nothing remembered, unless all were found and each has an ICCID to be found by."""
        if self._total is not None and not self.complete:
            return None
        parts = self._with_listed()
        if parts is None or not self.over or not self.found:
            return None
        return await self._upstream.parts.keep_all(self._upstream.place(self._account), parts, self._upstream.parts.clock.now())

    def _with_listed(self) -> list[AccountPart] | None:
        """The parts that were read, and for each line that only the account's own list showed a part that was not asked for."""
        inside = {id for part in self._parts.values() for id in part.iccids}
        waiting, more = sorted({*self._waiting, *self._neighbours} - self._asked), dict[str, dict[int, str]]()
        for id in self.found.keys() - inside:
            iccid = self._listed.get(id, "")
            prefix = next((prefix for prefix in waiting if iccid.startswith(prefix)), None)
            if prefix is None:
                return None
            more.setdefault(prefix, {})[id] = iccid
        # Never read as a part: what is in stock there is found out when the stock is looked at.
        return [*self._parts.values(), *(AccountPart(prefix, 0.0, 0.0, iccids) for prefix, iccids in more.items())]


async def search_iccid_prefixes(upstream: Upstream, batch: Sequence[str]) -> list[SubscriberList]:
    """The lines under several prefixes at once, of all accounts; the first failure ends them all, never with part of a list."""
    answers: dict[str, SubscriberList] = {}
    failures: list[Refusal] = []

    async def ask(prefix: str) -> None:
        try:
            answers[prefix] = await search_iccid_prefix(upstream, prefix)
        except Refusal as failure:
            failures.append(failure)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for prefix in batch:
            group.start_soon(ask, prefix)
    if failures:
        raise failures[0]
    return [answers[prefix] for prefix in batch]


async def lines_by_prefix(upstream: Upstream, account: int, roots: Sequence[str]) -> dict[str, dict[str, list[Subscriber]]]:
    """An account's lines under each of `roots`: by root, then by the prefix that listed them (the root or longer ones). OcsError."""
    waiting, asked = [(root, root) for root in roots], 0
    found = {root: dict[str, list[Subscriber]]() for root in roots}
    while waiting:
        batch, waiting = waiting[:PARALLEL_PREFIXES], waiting[PARALLEL_PREFIXES:]
        asked += len(batch)
        if asked > ACCOUNT_CALL_LIMIT:
            raise OcsError("The charging system lists so few lines at once that this account cannot be read in parts")
        for (root, prefix), answer in zip(batch, await search_iccid_prefixes(upstream, [prefix for _, prefix in batch]), strict=True):
            if answer.get("hasMore") and len(prefix) < ICCID_MAX_DIGITS:
                waiting += [(root, f"{prefix}{digit}") for digit in range(10)]
            else:
                found[root][prefix] = [row for row in answer.get("subscriberList", []) if row.get("accountId") == account]
    return found


async def read_account_parts(
    upstream: Upstream, listing: AccountListing, wanted: Sequence[tuple[AccountPart, str]], *, keep_stock: bool
) -> list[Subscriber]:
    """The lines under prefixes, each of them inside its part; what is known of the parts is corrected.

    `keep_stock`: also where only the stock is another than before, or was read again; pages leave that to looks at the stock.
    """
    answers = await lines_by_prefix(upstream, listing.place.account_id, [prefix for _, prefix in wanted])
    now, rows = upstream.parts.clock.now(), list[Subscriber]()
    before, after = list[AccountPart](), list[AccountPart]()
    for part, prefix in wanted:
        leaves = answers[prefix]
        own = [row for leaf in leaves.values() for row in leaf]
        rows += own
        if prefix == part.prefix and len(leaves) > 1:
            read = [account_part_of_rows(leaf, found, now) for leaf, found in leaves.items() if found]
        else:
            read = [part.with_rows(prefix, own, now)]
        if keep_stock or len(read) != 1 or read[0].iccids.keys() != part.iccids.keys():
            before.append(part)
            after += [each for each in read if each.iccids]
    if before:
        await upstream.parts.keep(listing, before, after)
    return rows


def iccid_prefixes(row: Subscriber) -> set[str]:
    """The shortest beginnings of the line's ICCIDs, former ones too, that the charging system searches for."""
    found = (history.get("iccid", "")[:ICCID_SEARCH_DIGITS] for history in row.get("imsiList", []))
    return {prefix for prefix in found if len(prefix) == ICCID_SEARCH_DIGITS and prefix.isdigit()}


async def search_iccid_prefix(upstream: Upstream, prefix: str) -> SubscriberList:
    """The lines whose ICCID begins with `prefix`, of all accounts; `hasMore` alone where this network finds `prefix` too short."""
    try:
        return await upstream.ocs.subscriber.list_subscriber(prefix, by="iccidPrefix")
    except OcsNotFound:
        return {}
    except OcsError as refusal:
        if refusal.ocs_code != OCS_INVALID_REQUEST:
            raise
        return {"hasMore": True}


PAGE_LEARNING_CALLS = 10
"""Calls that a page makes to learn the parts: with the account's own list and one more, 12 in all."""
STOCK_LEARNING_CALLS = 5
"""Calls that a look at the stock makes to learn the parts; few, since a buyer waits for an eSIM."""
_ACCOUNT_LINES_LOG = logging.getLogger(__name__)


async def learn_account_parts(upstream: Upstream, account: int, first: FirstLines, calls: int = PAGE_LEARNING_CALLS) -> list[AccountPart]:
    """Ask for some parts of the account and remember them, one caller at a time; the next one goes on. Returns the parts found so far.

    What fails here does not fail the caller, who has what the account's own list (`first`) shows.
    """
    parts, place = upstream.parts, upstream.place(account)
    memory = parts.memory(place)
    try:
        memory.learning.acquire_nowait()
    except anyio.WouldBlock:
        return []
    try:
        sweep = memory.sweep if isinstance(memory.sweep, AccountSweep) else AccountSweep(upstream, account, 0, keep_rows=False)
        memory.sweep = sweep
        listing = await parts.find(place)
        sweep.begin(first, [part.prefix for part in listing.parts] if listing else [])
        await sweep.go_on(calls)
        listed = {subscriber_number(row) for row in first.rows}
        memory.in_order = memory.in_order and not any(id < max(listed, default=0) and id not in listed for id in sweep.found)
        if sweep.over:
            memory.sweep = None
            await sweep.keep_parts()
        return sweep.parts
    except Refusal as refusal:
        _ACCOUNT_LINES_LOG.info("The parts of an account could not be learned: %s", refusal.error_code)
        return []
    finally:
        memory.learning.release()


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
                if listing is not None:
                    await self._parts.drop(self._place)
                return self._of_rows(first.rows, first.strangers)
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

    def _of_rows(self, rows: Iterable[Subscriber], incomplete: bool) -> LinePage:
        fitting = sorted((row for row in rows if self._fits is None or self._fits(row)), key=subscriber_number)
        behind = [row for row in fitting if subscriber_number(row) > self._after]
        return LinePage(behind[: self._count], len(behind) > self._count, len(fitting), incomplete)

    async def _checked(self, first: FirstLines, listing: AccountListing | None) -> AccountListing | None:
        """`listing`, unless the charging system counts other lines now, or the listing is too old; None then."""
        seconds = PARTS_UNCOUNTED_SECONDS if first.total is None else PARTS_RELEARN_SECONDS
        if listing is None or not listing.complete or first.total not in (None, listing.lines):
            return None
        if not 0 <= self._now() - listing.read < seconds:
            return None
        await self._parts.check(listing, self._now())
        return listing

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
