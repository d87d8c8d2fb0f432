"""The free eSIMs of an account as they are just before something is drawn: what reconciliation compares with later."""

from typing import NamedTuple

import anyio

from clients.ocs.wire.subscriber import Subscriber
from operations.services.fleet import lines_of
from operations.services.reached import Upstream
from registry.clock import Clock
from registry.ids import Ids
from storage.stock import Look, keep_look, look_of
from storage.store import Store

FRESH_SECONDS = 5.0
FREE = "FREE"


class Kept(NamedTuple):
    """A look, and until when it may be shared."""

    until: float
    look: Look


class StockRoom:
    """Looks at stocks. Choice: a look serves the draws of the next five seconds, since it reads the account's whole list.

    What others of ours draw meanwhile is told by the ledger, so a shared look proves as much as one of one's own.
    """

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store, self._clock, self._ids = store, clock, ids
        self._kept: dict[int, Kept] = {}
        self._turns: dict[int, anyio.Lock] = {}

    async def look(self, upstream: Upstream, account_id: int) -> Look:
        """A look that is a few seconds old at most; those who ask at once share one."""
        async with self._turns.setdefault(account_id, anyio.Lock()):
            kept = self._kept.get(account_id)
            if kept is not None and kept.until > self._clock.monotonic():
                return kept.look
            until, taken = self._clock.monotonic() + FRESH_SECONDS, self._clock.now()
            fleet = await lines_of(upstream, [account_id])
            iccids = [iccid for row in fleet.rows if is_free(row) and (iccid := iccid_of(row))]
            look = look_of(id=self._ids.new("stk_"), account_id=account_id, taken=taken, complete=not fleet.incomplete, iccids=iccids)
            await self._store.write(keep_look, look=look)
            self._kept[account_id] = Kept(until, look)
            return look


def is_free(row: Subscriber) -> bool:
    """Whether the SIM is in stock."""
    return row.get("sim", {}).get("status") == FREE


def iccid_of(row: Subscriber) -> str | None:
    """The ICCID in use: the one without an end."""
    current = [entry for entry in row.get("imsiList", []) if entry.get("endDate") is None]
    return current[-1].get("iccid") if current else None
