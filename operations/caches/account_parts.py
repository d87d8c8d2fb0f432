"""The parts of large accounts: which lines are where, so that a page or a look at the stock reads those lines and no others.

The charging system lists the first lines of an account and has no second page; what is cut off is found by the beginning of an ICCID.
Which beginnings an account has is learned once, kept in the store, and corrected by every answer. A part tells where to ask, never what
to answer: rows come from the charging system each time.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import anyio
import orjson

from clients.ocs.subscribers import Subscriber
from registry.clock import REQUEST_SECONDS, Clock, seconds_left
from registry.errors import OcsUnavailable
from storage.account_parts import (
    AccountPlace,
    ListingRow,
    PartMembers,
    PartRow,
    check_parts,
    drop_parts,
    find_parts,
    members_of_parts,
    store_all_parts,
    store_parts,
)
from storage.engine.store import Store

SharedResult = TypeVar("SharedResult")


@asynccontextmanager
async def account_turn(lock: anyio.Lock) -> AsyncGenerator[None]:
    """Holds `lock`. Raises OcsUnavailable where the time of the request ends first."""
    try:
        with anyio.fail_after(seconds_left(REQUEST_SECONDS)):
            await lock.acquire()
    except TimeoutError:
        raise OcsUnavailable(
            "Too many calls wait for the lines of this account, so this one was not sent; nothing was done.",
            hint="Call again, with fewer calls at once",
            retry_after=1,
        ) from None
    try:
        yield
    finally:
        lock.release()


class SharedRead(Generic[SharedResult]):
    """A read that all who wait for it share. It begins after each of them has asked, so that it shows what they did before."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._begun = 0
        self._waiting = 0
        self._last: tuple[int, SharedResult] | None = None

    async def get(self, load: Callable[[], Awaitable[SharedResult]]) -> SharedResult:
        """The result of a `load` that began after this call. Its failure goes only to the caller that ran it."""
        wanted = self._begun + 1
        self._waiting += 1
        try:
            async with account_turn(self._lock):
                if self._last is None or self._last[0] < wanted:
                    self._begun += 1
                    number, self._last = self._begun, None  # turns come in the order of asking: nobody is left who may have the last one
                    self._last = (number, await load())
                return self._last[1]
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._last = None


SIM_FREE, SIM_AFFECTED = "FREE", "AFFECTED"
PARTS_TRUSTED_SECONDS = 30.0
"""How long the parts are taken for all lines of the account; then the charging system's own count is asked for."""
PARTS_RELEARN_SECONDS = 3600.0
"""How long, where it counts as many: as many may have come as have gone. Then every part is read again."""
PARTS_UNCOUNTED_SECONDS = 600.0
"""The same where the charging system does not count."""
LARGE_ACCOUNT_LIMIT = 500
LONG_LIST_LINES = 500
"""Lines of one answer from which on those who ask at once share it: decoded, five hundred lines are 2.5 MB."""
LONG_LIST_LIMIT = 500
ACCOUNTS_WITH_MEMBERS_LIMIT = 10
"""Accounts whose lines are kept in memory as well: those that were read last."""
ICCID_SEARCH_DIGITS = 13
"""Digits of an ICCID that the charging system searches for at least."""


@dataclass(frozen=True, slots=True)
class AccountPart:
    """Lines of an account with an ICCID that begins with `prefix`, by subscriber id. Times are Unix seconds.

    `esims` and `cards` are the lines in stock, with the ICCID in use; `unclear` those whose SIM says neither FREE nor AFFECTED, or that
    have no ICCID in use.
    """

    prefix: str
    read: float
    changed: float
    iccids: Mapping[int, str]
    esims: Mapping[int, str] = field(default_factory=dict[int, str])
    cards: Mapping[int, str] = field(default_factory=dict[int, str])
    unclear: frozenset[int] = frozenset()

    def with_rows(self, prefix: str, rows: Iterable[Subscriber], now: float) -> "AccountPart":
        """The part after the lines under `prefix`, which begins with the part's own, were read: these rows and no others."""
        outside = {id: iccid for id, iccid in self.iccids.items() if not iccid.startswith(prefix)}
        found = account_part_of_rows(prefix, rows, now)
        read = now if prefix == self.prefix else self.read
        return AccountPart(
            self.prefix,
            read,
            max(now, self.changed + 0.001),
            outside | dict(found.iccids),
            {id: iccid for id, iccid in self.esims.items() if id in outside} | dict(found.esims),
            {id: iccid for id, iccid in self.cards.items() if id in outside} | dict(found.cards),
            frozenset(id for id in self.unclear if id in outside) | found.unclear,
        )

    def same_as(self, other: "AccountPart") -> bool:
        """Whether both say the same of the lines, whenever they were read."""
        return (self.iccids, self.esims, self.cards, self.unclear) == (other.iccids, other.esims, other.cards, other.unclear)


def account_part_of_rows(prefix: str, rows: Iterable[Subscriber], now: float) -> AccountPart:
    iccids, esims, cards, unclear = dict[int, str](), dict[int, str](), dict[int, str](), set[int]()
    for row in rows:
        id, current, sim = row.get("subscriberId", 0), iccid_in_use(row), row.get("sim", {})
        iccids[id] = iccid_with_prefix(row, prefix)
        status = sim.get("status")
        if current is None or status not in (SIM_FREE, SIM_AFFECTED):
            unclear.add(id)
        elif status == SIM_FREE:
            (esims if sim.get("esim", True) else cards)[id] = current
    return AccountPart(prefix, now, now, iccids, esims, cards, frozenset(unclear))


def pack_account_part(part: AccountPart) -> PartMembers:
    members = orjson.dumps([list(each.items()) for each in (part.iccids, part.esims, part.cards)] + [sorted(part.unclear)]).decode()
    ids = part.iccids or (0,)
    return PartMembers(part.prefix, min(ids), max(ids), len(part.iccids), part.read, part.changed, members)


def unpack_account_part(row: PartMembers) -> AccountPart:
    iccids, esims, cards, unclear = orjson.loads(row.members)
    return AccountPart(row.prefix, row.read, row.changed, dict(iccids), dict(esims), dict(cards), frozenset(unclear))


class AccountListing(NamedTuple):
    """What is known of an account: how many lines, whether the parts hold all, when that was read and checked, and the parts."""

    place: AccountPlace
    lines: int
    complete: bool
    read: float
    checked: float
    parts: Sequence[PartRow]

    def is_due(self, now: float) -> bool:
        """Whether the charging system's own count has to be asked for before the parts are believed."""
        return not 0 <= now - self.checked < PARTS_TRUSTED_SECONDS


class FirstLines(NamedTuple):
    """What the account's own list shows: some lines, and whether there are more."""

    rows: list[Subscriber]
    """Lines of the account."""
    cut_off: bool
    total: int | None
    """How many lines the account has, where the list says it."""
    strangers: bool
    """Whether lines of other accounts stood among them."""


@dataclass(slots=True)
class AccountMemory:
    """What this process knows of a large account beside the store: the members of its parts, and who learns them now."""

    members: dict[str, AccountPart] = field(default_factory=dict[str, AccountPart])
    learning: anyio.Lock = field(default_factory=anyio.Lock)
    first_lines: SharedRead[FirstLines] = field(default_factory=SharedRead[FirstLines])
    listing: AccountListing | None = None
    """As this process last wrote it to the store."""
    sweep: object = None
    """A sweep that was begun and goes on when the account is read next."""
    in_order: bool = True
    """Whether the account's own list has been sorted by subscriber id in every answer so far."""
    horizon: int | None = None
    """The last line that the account's own list shows, where that is in order."""
    surplus: int = 0
    """How many free eSIMs the charging system counted beyond those of its list when all lines were last read."""
    stock_read: float | None = None
    """When all lines were last read because more eSIMs were counted than known, by the monotonic clock."""


class AccountPartsChanged(Exception):
    """A part that was to be read is not there any more: another reader has split it, or read the whole account again."""


class AccountParts:
    """The parts of all large accounts that this process reads. An account that one answer lists is not here."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self.clock = store, clock
        self._accounts: OrderedDict[AccountPlace, AccountMemory] = OrderedDict()
        self._long: OrderedDict[AccountPlace, SharedRead[FirstLines]] = OrderedDict()
        """Accounts whose last list was long, though whole."""

    def is_large(self, place: AccountPlace) -> bool:
        """Whether an answer for the account was cut off, as far as this process knows."""
        return place in self._accounts

    def memory(self, place: AccountPlace) -> AccountMemory:
        """What is known beside the store; from now on the account is a large one."""
        found = self._accounts.get(place)
        if found is None:
            found = self._accounts[place] = AccountMemory()
            if len(self._accounts) > LARGE_ACCOUNT_LIMIT:
                self._accounts.popitem(last=False)
        self._accounts.move_to_end(place)
        for older in islice(reversed(self._accounts.values()), ACCOUNTS_WITH_MEMBERS_LIMIT, ACCOUNTS_WITH_MEMBERS_LIMIT + 1):
            older.members = {}
        return found

    def shared_list(self, place: AccountPlace) -> SharedRead[FirstLines] | None:
        """The read of the account's own list that calls at the same time share; None where the list is short, as far as is known."""
        return self.memory(place).first_lines if self.is_large(place) else self._long.get(place)

    def note_list(self, place: AccountPlace, lines: int) -> None:
        """Remember how long the account's own list was."""
        if lines < LONG_LIST_LINES:
            self._long.pop(place, None)
            return
        self._long.setdefault(place, SharedRead[FirstLines]())
        self._long.move_to_end(place)
        if len(self._long) > LONG_LIST_LIMIT:
            self._long.popitem(last=False)

    async def find(self, place: AccountPlace) -> AccountListing | None:
        """What the store knows of the account."""
        found = await self._store.read(find_parts, place=place)
        row = found.listing
        return None if row is None else AccountListing(place, row.lines, bool(row.complete), row.read, row.checked, found.parts)

    async def members(self, place: AccountPlace, rows: Sequence[PartRow]) -> list[AccountPart]:
        """The parts of `rows` with their lines, from this process or the store. Raises AccountPartsChanged where one is gone."""
        known = self.memory(place).members
        missing = [row.prefix for row in rows if row.prefix not in known or known[row.prefix].changed != row.changed]
        if missing:
            found = await self._store.read(members_of_parts, place=place, prefixes=missing)
            known |= {row.prefix: unpack_account_part(row) for row in found}
            if len(found) < len(missing):
                raise AccountPartsChanged
        return [known[row.prefix] for row in rows]

    async def keep_all(self, place: AccountPlace, parts: Sequence[AccountPart], now: float) -> AccountListing:
        """Stores the parts of an account that was just read whole; `now` is Unix seconds. Waits for the database."""
        lines = len({id for part in parts for id in part.iccids})
        row = ListingRow(lines, 1, now, now)
        rows = [pack_account_part(part) for part in parts]
        await self._store.write(store_all_parts, place=place, listing=row, parts=rows)
        memory = self.memory(place)
        memory.members, memory.sweep = {part.prefix: part for part in parts}, None
        memory.listing = AccountListing(place, lines, True, now, now, sort_parts(PartRow(*each[:-1]) for each in rows))
        return memory.listing

    async def keep(self, listing: AccountListing, before: Sequence[AccountPart], after: Sequence[AccountPart]) -> None:
        """Stores `after`, parts as they were just read, in place of `before`; there may be more of them where one was split."""
        memory = self.memory(listing.place)
        for part in before:
            memory.members.pop(part.prefix, None)
        memory.members |= {part.prefix: part for part in after}
        old, new = {id for part in before for id in part.iccids}, {id for part in after for id in part.iccids}
        lines, gone, rows = (
            listing.lines + len(new) - len(old),
            {part.prefix for part in before},
            [pack_account_part(part) for part in after],
        )
        others = [row for row in (memory.listing or listing).parts if row.prefix not in gone]
        memory.listing = listing._replace(lines=lines, parts=sort_parts([*others, *(PartRow(*each[:-1]) for each in rows)]))
        await self._store.write(store_parts, place=listing.place, lines=lines, gone=sorted(gone), parts=rows)

    async def check(self, listing: AccountListing, now: float) -> None:
        """Notes that at `now`, Unix seconds, the charging system counts as many lines as the parts hold. Waits for the database."""
        self.memory(listing.place).listing = listing._replace(checked=now)
        await self._store.write(check_parts, place=listing.place, checked=now)

    async def lines_moved(self, place: AccountPlace) -> None:
        """Lines have come or gone, or may have: the next who reads the account asks for its count first."""
        if place in self._accounts:
            memory = self._accounts[place]
            memory.listing = None if memory.listing is None else memory.listing._replace(checked=0.0)
        await self._store.write(check_parts, place=place, checked=0.0)

    async def drop(self, place: AccountPlace) -> None:
        """Forgets the parts of an account that one answer lists now. Waits for the database."""
        self._accounts.pop(place, None)
        await self._store.write(drop_parts, place=place)


def sort_parts(rows: Iterable[PartRow]) -> list[PartRow]:
    """Parts by their lowest subscriber id, as the store answers them."""
    return sorted(rows, key=lambda row: (row.lowest, row.prefix))


def find_part_prefix(prefixes: Sequence[str], iccid: str) -> str | None:
    """The one of `prefixes` that `iccid` begins with; None where none is. They are sorted, and none begins with another."""
    place = bisect_right(prefixes, iccid)
    return prefixes[place - 1] if place and iccid.startswith(prefixes[place - 1]) else None


def free_iccids(parts: Sequence[AccountPart], kind: str) -> list[str]:
    """The ICCIDs in stock (`kind` is esims or cards). Each counts where it is found now, not where a former ICCID of its line is."""
    prefixes = sorted(part.prefix for part in parts)
    found: dict[str, None] = {}
    for part in parts:
        lines = part.esims if kind == "esims" else part.cards
        for iccid in lines.values():
            if iccid.startswith(part.prefix) or find_part_prefix(prefixes, iccid) is None:
                found[iccid] = None
    return list(found)


def narrowest_prefix(part: str, iccids: Sequence[str]) -> str:
    """The longest common beginning of `iccids`, which all lie in `part`; `part` where the charging system finds that too short."""
    first, last = min(iccids), max(iccids)
    same = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    common = first[:same]
    return common if len(common) >= max(ICCID_SEARCH_DIGITS, len(part)) else part


HistoryEntry = TypeVar("HistoryEntry", bound=Mapping[str, object])


def entry_in_use(rows: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """The newest row without an end; None where there is none."""
    found = open_entries(rows)
    return found[0] if len(found) == 1 else max(found, key=entry_start, default=None)


def open_entries(rows: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    return [row for row in rows if row.get("endDate") is None]


def entry_start(row: Mapping[str, object]) -> tuple[str, int]:
    """The sort key of a history's rows: when a row began, then its id."""
    number = row.get("id")
    return str(row.get("startDate") or ""), number if isinstance(number, int) else 0


def iccid_in_use(row: Subscriber) -> str | None:
    """The newest ICCID without an end; None where there is none."""
    history = entry_in_use(row.get("imsiList", ()))
    return None if history is None else history.get("iccid")


def iccid_with_prefix(row: Subscriber, prefix: str) -> str:
    """The ICCID by which a line is found under a prefix: the one in use, else a former one; the prefix itself where it has none."""
    current = iccid_in_use(row)
    if current is not None and current.startswith(prefix):
        return current
    return next((iccid for past in row.get("imsiList", ()) if (iccid := past.get("iccid", "")).startswith(prefix)), prefix)
