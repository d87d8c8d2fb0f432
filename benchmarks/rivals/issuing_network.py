"""The simulated network with accounts whose stock does not run out: what is drawn leaves the account, and a new eSIM comes in.

The world, the wire and the draw are the sandbox's own. It only finds the next free eSIM without searching, so that its cost does
not grow while it is measured. `data/network.json` says how many free eSIMs each account has.
"""

import json
import time
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import orjson

from simulators.network.entities import ImsiRow, Line, NetworkToken, NumberRow, StatusRow
from simulators.network.seed.build import build_world
from simulators.network.seed.fleet import LINE_ID_BASE, LinePlan, internal_number, make_iccid, make_imsi, make_line
from simulators.network.simulated_network import SimulatedNetwork, make_network_app
from simulators.network.world import ALL_IDENTIFIERS, CURRENT_IDENTIFIERS, LineIndex, World

App = Callable[[Any, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]
PATTERN, RESELLER, TOKEN = 8101, 7001, "measured"
MOST_ROWS = 200_000


@dataclass
class Endless(World):
    """A world with accounts that are filled up."""

    shelves: dict[int, deque[Line]] = field(default_factory=dict[int, "deque[Line]"])
    drawn: Counter[int] = field(default_factory=Counter[int])

    def __post_init__(self) -> None:
        self.lookup = self.shelf_lookup = ShelfLookup(self)

    def restocked(self, account_id: int) -> deque[Line] | None:
        """The lines of an account that is filled up: the drawn ones, which stand in front, are replaced before somebody looks."""
        shelf = self.shelves.get(account_id)
        while shelf and shelf[0].sim.status != "FREE":
            gone = shelf.popleft()
            for package in gone.packages:
                del self.packages[package.id]
            del self.lines[gone.id]
            self.drawn[account_id] += 1
            self.deliver(shelf, gone)
            self.shelf_lookup.replaced(gone, shelf[-1])
        return shelf

    def deliver(self, shelf: deque[Line], like: Line) -> None:
        """One more eSIM."""
        made = another(self, like)
        self.lines[made.id] = made
        shelf.append(made)

    def forget(self) -> None:
        """Look everything up anew, but what is drawn: that is the front of its account's lines."""
        super().forget()
        self.lookup = self.shelf_lookup = ShelfLookup(self)


class ShelfLookup(LineIndex):
    """Look-ups of a world whose lines come and go: the named ones are kept, a free one is the first of its account."""

    def __init__(self, world: Endless) -> None:
        super().__init__()
        self._world = world

    def first_free(self, lines: Mapping[int, Line], account: int) -> Line | None:
        """The account's line with the lowest id whose SIM is free."""
        shelf = self._world.restocked(account)
        return super().first_free(lines, account) if shelf is None else shelf[0]

    def of_account(self, lines: Mapping[int, Line], account: int) -> Sequence[Line]:
        """An account's lines, lowest id first."""
        shelf = self._world.restocked(account)
        return super().of_account(lines, account) if shelf is None else list(shelf)

    def replaced(self, gone: Line, made: Line) -> None:
        """A line that was drawn has made room for a free one of the same account and kind."""
        for kind, named in self.named.items():
            for value in CURRENT_IDENTIFIERS[kind](gone):
                named.pop(value, None)
            named.update((value, made.id) for value in CURRENT_IDENTIFIERS[kind](made))
        for kind, rows in self.sorted.items():
            for value in ALL_IDENTIFIERS[kind](gone):
                del rows[bisect_left(rows, (value, gone.id))]
            for value in ALL_IDENTIFIERS[kind](made):
                insort(rows, (value, made.id))
        if made.account_id in self.sims:
            self.sims[made.account_id][gone.sim.sponsor_id, gone.sim.status] -= 1
            self.sims[made.account_id][made.sim.sponsor_id, made.sim.status] += 1


def another(world: World, like: Line) -> Line:
    """A free eSIM of the same kind with numbers of its own."""
    number, start = world.next_id("line"), like.imsis[0].start
    serial, prefix = number - LINE_ID_BASE, world.sponsors[like.sim.sponsor_id].prefix
    sim = replace(
        like.sim, id=world.next_id("sim"), status="FREE", affected_at=None, activation_code=f"K2-7HQ2MXA-{serial:012X}", provider=[]
    )
    return replace(
        like,
        id=number,
        sim=sim,
        imsis=[ImsiRow(world.next_id("row"), make_imsi(prefix, serial), make_iccid(prefix, serial), start)],
        numbers=[NumberRow(world.next_id("row"), internal_number(number), start)],
        statuses=[StatusRow(world.next_id("row"), "PENDING", start)],
        activated_at=None,
        packages=[],
        series=[],
        cdrs=[],
        events=[],
    )


def stocked(stock: Mapping[int, int], start: int) -> Endless:
    """A small network, and beside its own accounts the ones that are drawn from."""
    small = build_world(1, start, history_days=0, lines=12)
    world = Endless(**{each.name: getattr(small, each.name) for each in fields(small)})
    world.row_cap = MOST_ROWS
    world.tokens[TOKEN] = NetworkToken(TOKEN, RESELLER)
    for account, free in stock.items():
        world.accounts[account] = replace(world.accounts[PATTERN], id=account, name=f"Account {account}")
        first = replace(make_line(world, world.accounts[PATTERN], LinePlan(False), start, start), account_id=account)
        world.lines[first.id] = first
        shelf = world.shelves[account] = deque([first])
        for _ in range(free - 1):
            world.deliver(shelf, first)
    return world


def make(data: Path) -> App:
    """The network as an application; `/drawn` counts what each account has given."""
    stock = {int(account): free for account, free in json.loads((data / "network.json").read_text()).items()}
    world = stocked(stock, int(time.time()))
    wire = make_network_app(SimulatedNetwork(world, wall=time.time))

    async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] != "http" or scope["path"] not in ("/health", "/drawn"):
            await wire(scope, receive, send)
            return
        for account in world.shelves:
            world.restocked(account)
        body = orjson.dumps({str(account): count for account, count in world.drawn.items()})
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    return app
