"""Reading whole fleets: the network lists some lines of an account and has no second page; the rest is read by parts of the ICCID range."""

from collections.abc import Sequence
from typing import NamedTuple

import anyio

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.subscriber import Subscriber, SubscriberList
from operations.services.network.reached import Upstream
from registry.active_request import is_over
from registry.errors import OcsError, Refusal

INVALID_REQUEST = 2
SHORTEST_ICCID, LONGEST_ICCID = 13, 22
CALLS = 200
AT_ONCE = 4


class Fleet(NamedTuple):
    """Lines, and whether there may be more that could not be reached."""

    rows: list[Subscriber]
    incomplete: bool


async def lines_of(upstream: Upstream, accounts: Sequence[int], *, calls: int = CALLS, partial: bool = False) -> Fleet:
    """Every line of these accounts, for at most so many calls in all. `partial`: as many as the time of the request suffices for."""
    rows: list[Subscriber] = []
    incomplete = False
    for account in accounts:
        if calls <= 0:
            return Fleet(rows, True)
        sweep = Sweep(upstream, account, calls)
        try:
            incomplete = await sweep.run() or incomplete
        except OcsError:
            rows += sweep.found.values()
            if partial and rows and is_over():
                return Fleet(rows, True)
            raise
        rows += sweep.found.values()
        calls = sweep.calls
    return Fleet(rows, incomplete)


class Sweep:
    """One account."""

    def __init__(self, upstream: Upstream, account: int, calls: int) -> None:
        self._upstream, self._account, self.calls = upstream, account, calls
        self.found: dict[int, Subscriber] = {}
        self._total: int | None = None
        self._asked: set[str] = set()

    async def run(self) -> bool:
        """Read the account's list and, where that is cut off, its parts; whether lines stay unreachable."""
        self.calls -= 1
        first = await self._first()
        rows = first.get("subscriberList", [])
        for row in rows:
            row.setdefault("accountId", self._account)  # what an account's list shows is the account's, unless it says otherwise
        self.found = {row.get("subscriberId", 0): row for row in rows if row.get("accountId") == self._account}
        told = first.get("nbFound")
        # A list is cut off where it says so, and where it says that more was found than it shows or shows what nobody asked for.
        if not first.get("hasMore") and (told is None or told <= len(rows)):
            return any(row.get("accountId") != self._account for row in rows)
        # Choice: a total that is no more than what was listed is the list's length and tells nothing.
        self._total = told if told is not None and told > len(rows) else None
        await self._read(sorted({prefix for row in rows for prefix in prefixes(row)}))
        return not self._complete()

    async def _first(self) -> SubscriberList:
        """The account's own list. Choice: in managed mode an unknown one is the connection's fault, not the caller's."""
        try:
            return await self._upstream.ocs.subscriber.list_subscriber(self._account)
        except OcsNotFound:
            if not self._upstream.managed:
                raise
            raise self._upstream.account_gone() from None

    async def _read(self, begin: Sequence[str]) -> None:
        """Each part, its tenths where it is cut off too, and beside every part that is inhabited its neighbours."""
        waiting, neighbours = list(begin), list[str]()
        while (waiting or neighbours) and self.calls > 0 and not self._complete():
            if not waiting:
                waiting, neighbours = neighbours, []
            batch, waiting = self._next(waiting)
            for prefix, part in zip(batch, await self._ask(batch), strict=True):
                self._keep(part)
                if part.get("hasMore") and len(prefix) < LONGEST_ICCID:
                    waiting += [f"{prefix}{digit}" for digit in range(10)]
                if part.get("subscriberList") and len(prefix) == SHORTEST_ICCID:
                    neighbours += [str(int(prefix) - 1), str(int(prefix) + 1)]

    def _next(self, waiting: Sequence[str]) -> tuple[list[str], list[str]]:
        """The parts to ask for now, none twice, and those that wait."""
        fresh = [prefix for prefix in dict.fromkeys(waiting) if prefix not in self._asked]
        count = min(AT_ONCE, self.calls)
        batch = fresh[:count]
        self._asked.update(batch)
        self.calls -= len(batch)
        return batch, fresh[count:]

    def _keep(self, part: SubscriberList) -> None:
        """A prefix finds the whole reseller's lines: strangers are dropped."""
        for row in part.get("subscriberList", []):
            if row.get("accountId") == self._account:
                self.found[row.get("subscriberId", 0)] = row

    def _complete(self) -> bool:
        return self._total is not None and len(self.found) >= self._total

    async def _ask(self, batch: Sequence[str]) -> list[SubscriberList]:
        """Several parts at once; the first failure ends them all, never with part of a list."""
        answers: dict[str, SubscriberList] = {}
        failures: list[Refusal] = []

        async def ask(prefix: str) -> None:
            try:
                answers[prefix] = await begins(self._upstream, prefix)
            except Refusal as failure:
                failures.append(failure)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for prefix in batch:
                group.start_soon(ask, prefix)
        if failures:
            raise failures[0]
        return [answers[prefix] for prefix in batch]


def prefixes(row: Subscriber) -> set[str]:
    """The shortest searchable beginnings of a line's ICCIDs."""
    found = (history.get("iccid", "")[:SHORTEST_ICCID] for history in row.get("imsiList", []))
    return {prefix for prefix in found if len(prefix) == SHORTEST_ICCID and prefix.isdigit()}


async def begins(upstream: Upstream, prefix: str) -> SubscriberList:
    """The lines whose ICCID begins so, of all accounts; a beginning too short for this network is one to be extended."""
    try:
        return await upstream.ocs.subscriber.list_subscriber(prefix, by="iccidPrefix")
    except OcsNotFound:
        return {}
    except OcsError as refusal:
        if refusal.ocs_code != INVALID_REQUEST:
            raise
        return {"hasMore": True}
