"""The simulated network with accounts whose stock does not run out: what is drawn leaves the account, and a new eSIM comes in.

The world, the wire and the draw are the sandbox's own. It only finds the next free eSIM without searching, so that its cost does
not grow while it is measured. `data/network.json` says how many free eSIMs each account has.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import orjson

from clients.sandbox.ocs.app import make_app
from clients.sandbox.ocs.entities import ImsiRow, Line, NumberRow, StatusRow, Token
from clients.sandbox.ocs.sandbox import Sandbox
from clients.sandbox.ocs.seed.build import build
from clients.sandbox.ocs.seed.fleet import new_line
from clients.sandbox.ocs.seed.identity import SERIALS, iccid, imsi, own_number
from clients.sandbox.ocs.seed.plan import Plan
from clients.sandbox.ocs.state import World

App = Callable[[Any, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]
PATTERN, RESELLER, TOKEN = 8101, 7001, "measured"
MOST_ROWS = 200_000


@dataclass
class Endless(World):
    """A world with accounts that are filled up."""

    shelves: dict[int, deque[Line]] = field(default_factory=dict[int, "deque[Line]"])
    drawn: Counter[int] = field(default_factory=Counter[int])

    def lines_of(self, account_id: int) -> Iterable[Line]:
        """An account's lines, lowest id first; the drawn ones, which stand in front, are replaced before somebody looks."""
        shelf = self.shelves.get(account_id)
        if shelf is None:
            return super().lines_of(account_id)
        while shelf[0].sim.status != "FREE":
            gone = shelf.popleft()
            for package in gone.packages:
                del self.packages[package.id]
            del self.lines[gone.id]
            self.drawn[account_id] += 1
            self.deliver(shelf, gone)
        return iter(shelf)

    def deliver(self, shelf: deque[Line], like: Line) -> None:
        """One more eSIM."""
        made = another(self, like)
        self.lines[made.id] = made
        shelf.append(made)


def another(world: World, like: Line) -> Line:
    """A free eSIM of the same kind with numbers of its own."""
    number, start = world.next_id("line"), like.imsis[0].start
    serial, prefix = number - SERIALS, world.sponsors[like.sim.sponsor_id].prefix
    sim = replace(
        like.sim, id=world.next_id("sim"), status="FREE", affected_at=None, activation_code=f"K2-7HQ2MXA-{serial:012X}", provider=[]
    )
    return replace(
        like,
        id=number,
        sim=sim,
        imsis=[ImsiRow(world.next_id("row"), imsi(prefix, serial), iccid(prefix, serial), start)],
        numbers=[NumberRow(world.next_id("row"), own_number(number), start)],
        statuses=[StatusRow(world.next_id("row"), "PENDING", start)],
        activated_at=None,
        packages=[],
        series=[],
        cdrs=[],
        events=[],
    )


def stocked(stock: Mapping[int, int], start: int) -> Endless:
    """A small network, and beside its own accounts the ones that are drawn from."""
    small = build(1, start, history_days=0, lines=12)
    world = Endless(**{each.name: getattr(small, each.name) for each in fields(small)})
    world.row_cap = MOST_ROWS
    world.tokens[TOKEN] = Token(TOKEN, RESELLER)
    for account, free in stock.items():
        world.accounts[account] = replace(world.accounts[PATTERN], id=account, name=f"Account {account}")
        first = replace(new_line(world, world.accounts[PATTERN], Plan(False), start, start), account_id=account)
        world.lines[first.id] = first
        shelf = world.shelves[account] = deque([first])
        for _ in range(free - 1):
            world.deliver(shelf, first)
    return world


def make(data: Path) -> App:
    """The network as an application; `/drawn` counts what each account has given."""
    stock = {int(account): free for account, free in json.loads((data / "network.json").read_text()).items()}
    world = stocked(stock, int(time.time()))
    wire = make_app(Sandbox(world, wall=time.time))

    async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] != "http" or scope["path"] not in ("/health", "/drawn"):
            await wire(scope, receive, send)
            return
        for account in world.shelves:
            world.lines_of(account)
        body = orjson.dumps({str(account): count for account, count in world.drawn.items()})
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    return app
