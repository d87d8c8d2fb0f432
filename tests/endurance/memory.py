"""Memory of the processes while they work, and whether it stays where it is."""

import asyncio
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.endurance_page import MOST_GROWTH, MOST_MB
from benchmarks.processes import memory_mb, resident_mb

EVERY = 2.0
WARM_UP = 0.2
"""Share of the run in which caches, pools and the allocator may grow."""
PARTS = 15
"""Of the whole run, each with its median: whether memory grew step by step or all the time."""


class Sample(NamedTuple):
    """Seconds since the beginning, and megabytes: resident in all, and of these the process's own (anonymous) ones.

    The pages of a database file that SQLite maps are resident, too, and the kernel's to take back.
    """

    at: float
    resident: float
    own: float


class Memory(NamedTuple):
    """One process: medians of the first and the last third after the warm-up, and the line of least squares through all of its own."""

    process: str
    first_mb: float
    last_mb: float
    mb_per_hour: float
    resident_first_mb: float
    resident_last_mb: float
    samples: int
    course_mb: list[float]
    """Medians of its own ones in equal parts of the run, its beginning included."""

    @property
    def flat(self) -> bool:
        """The last third's median is above the first third's by no more than this share or these megabytes, whichever is more."""
        return self.last_mb - self.first_mb <= max(MOST_MB, self.first_mb * MOST_GROWTH)


async def sample(processes: Mapping[str, int], found: dict[str, list[Sample]]) -> None:
    """Note seconds and megabytes of every process until cancelled."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        for name, pid in processes.items():
            found.setdefault(name, []).append(Sample(loop.time() - began, resident_mb(pid), memory_mb(pid, "RssAnon:")))
        await asyncio.sleep(EVERY)


def judged(process: str, samples: Sequence[Sample]) -> Memory:
    warm = samples[-1].at * WARM_UP
    rest = [one for one in samples if one.at >= warm]
    third = max(1, len(rest) // 3)
    parts = (rest[:third], rest[-third:])
    own = [round(median(one.own for one in part), 2) for part in parts]
    resident = [round(median(one.resident for one in part), 2) for part in parts]
    return Memory(process, own[0], own[1], round(slope(rest) * 3600, 2), resident[0], resident[1], len(rest), course(samples))


def course(samples: Sequence[Sample]) -> list[float]:
    """Megabytes of its own in each part of the run that has a sample."""
    parts: dict[int, list[float]] = {}
    for one in samples:
        parts.setdefault(min(PARTS - 1, int(one.at / samples[-1].at * PARTS)) if samples[-1].at else 0, []).append(one.own)
    return [round(median(part), 1) for part in parts.values()]


def slope(samples: Sequence[Sample]) -> float:
    """Megabytes of its own per second, by least squares."""
    count = len(samples)
    x, y = sum(one.at for one in samples) / count, sum(one.own for one in samples) / count
    spread = sum((one.at - x) ** 2 for one in samples)
    return sum((one.at - x) * (one.own - y) for one in samples) / spread if spread else 0.0
