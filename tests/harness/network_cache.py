"""The simulated network of a day, built by the first process of the fork server that asks for it and taken over by the later ones.

To live through its history takes 1.5 s of every server that is asked about it; that the same arguments build the same network is
what tests/sandbox/test_seed.py proves.
"""

import gc
import os
import pickle
from functools import cache
from pathlib import Path
from typing import cast

from simulators.network.seed import build as seeding
from simulators.network.world import World

LONG_HISTORY_DAYS = 30
"""A shorter history is built sooner than it is kept or copied."""


class NetworkCache:
    """The networks in a folder, for a process and those that it forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._build = seeding.build_world
        self._ready = dict[str, World]()

    def use(self) -> None:
        """From here on `build` asks here first."""
        seeding.build_world = self.build

    def take_up(self) -> None:
        """Before a fork: what an earlier one has built is read here, so that no fork reads it."""
        for path in self._folder.glob("*.network"):
            if path.stem not in self._ready:
                self._ready[path.stem] = cast(World, pickle.loads(path.read_bytes()))
                gc.freeze()

    def build(self, seed: int, start: int, *, history_days: int = 90, lines: int = 400) -> World:
        """In a fork, whose copy of what is ready is its own: to be had once."""
        name = f"{seed}-{start}-{history_days}-{lines}"
        made = self._ready.pop(name, None)
        if made is None:
            made = self._build(seed, start, history_days=history_days, lines=lines)
            if history_days > LONG_HISTORY_DAYS:
                self._keep(name, made)
        return made

    def _keep(self, name: str, made: World) -> None:
        """Whole or not at all: several forks may build it at once, and any may be killed."""
        partial = self._folder / f"{name}.{os.getpid()}"
        partial.write_bytes(pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
        partial.rename(self._folder / f"{name}.network")


class NetworkCopies:
    """The networks of one process: each is built once, and every further one with the same arguments is a copy."""

    def __init__(self) -> None:
        self._build = seeding.build_world
        self._pickled = dict[tuple[int, int, int, int], bytes]()

    def build(self, seed: int, start: int, *, history_days: int = 90, lines: int = 400) -> World:
        if history_days <= LONG_HISTORY_DAYS:
            return self._build(seed, start, history_days=history_days, lines=lines)
        arguments = seed, start, history_days, lines
        if arguments not in self._pickled:
            self._pickled[arguments] = pickle.dumps(
                self._build(seed, start, history_days=history_days, lines=lines), pickle.HIGHEST_PROTOCOL
            )
        return cast(World, pickle.loads(self._pickled[arguments]))


@cache
def copy_networks() -> None:
    """From here on, services of this process that simulate a network share what is built."""
    seeding.build_world = NetworkCopies().build
