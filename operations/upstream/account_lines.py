"""Reading all lines of accounts: the charging system lists some lines of one, and the rest is read by parts of the ICCID range.

The parts are learned a few calls at a time, so that no request for a page or an eSIM waits for all of them.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import anyio

from clients.ocs.subscribers import Subscriber, SubscriberList
from operations.caches.account_parts import ICCID_SEARCH_DIGITS, AccountListing, AccountPart, FirstLines, account_part_of_rows, iccid_in_use
from operations.upstream.connection import Upstream
from registry.clock import request_is_over
from registry.errors import OcsError, OcsNotFound, Refusal

OCS_INVALID_REQUEST = 2
ICCID_MAX_DIGITS = 22
ACCOUNT_CALL_LIMIT = 200
PARALLEL_PREFIXES = 4


class LineList(NamedTuple):
    """Lines, and whether there may be more that could not be reached."""

    rows: list[Subscriber]
    incomplete: bool


async def read_account_lines(
    upstream: Upstream, accounts: Sequence[int], *, calls: int = ACCOUNT_CALL_LIMIT, partial: bool = False
) -> LineList:
    """Every line of `accounts`, for at most `calls` calls in all. Waits for the network.

    `partial`: when the time of the request is over, what was read by then.
    """
    rows: list[Subscriber] = []
    incomplete = False
    for account in accounts:
        if calls <= 0:
            return LineList(rows, True)
        sweep = AccountSweep(upstream, account, calls)
        try:
            incomplete = await sweep.run() or incomplete
        except OcsError:
            rows += sweep.found.values()
            if partial and rows and request_is_over():
                return LineList(rows, True)
            raise
        rows += sweep.found.values()
        calls = sweep.calls
    return LineList(rows, incomplete)


async def read_first_lines(upstream: Upstream, account: int) -> FirstLines:
    """The account's own list; calls for the same large account share one read. Waits for the network."""
    place = upstream.place(account)
    if upstream.parts.is_large(place):
        return await upstream.parts.memory(place).first_lines.get(lambda: fetch_first_lines(upstream, account))
    return await fetch_first_lines(upstream, account)


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

    def __init__(self, upstream: Upstream, account: int, calls: int, *, keep_rows: bool = True) -> None:
        self._upstream, self._account, self.calls = upstream, account, calls
        self._keep_rows = keep_rows
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
        self._listed |= {row.get("subscriberId", 0): iccid for row in first.rows if (iccid := iccid_in_use(row))}
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

    def _take(self, rows: Iterable[Subscriber]) -> None:
        self.found |= {row.get("subscriberId", 0): row if self._keep_rows else Subscriber() for row in rows}

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
        listed = {row.get("subscriberId", 0) for row in first.rows}
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
