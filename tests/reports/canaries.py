"""Canaries in every text of a simulated network, and the digits that its people and SIM cards are known by."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import count
from typing import Any, cast

from simulators.network.seed.scenario import build_scenario as with_trouble
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.copies import Original
from tests.world import NOON, no_sleep

BIRD = "Zqcanary"
TEXTS = frozenset({"name", "display_name", "template_name", "email", "phone", "company", "description", "batch_id", "provider", "country"})
"""Fields that hold what somebody typed."""
DIGITS = frozenset(
    {"iccid", "imsi", "number", "own_number", "imei", "eid", "activation_code", "pin1", "pin2", "puk1", "puk2", "session", "other_party"}
)
"""Fields that hold what somebody is known by."""
SUBSCRIBER = re.compile(r"(?<![\d.,])910\d{3}(?![\d.,])")
"""The numbers by which the charging system knows its lines, which begin with 910001."""
SHORT = 8
"""Fewer digits than these can be a figure by chance."""


@cache
def troubled() -> Original[Network]:
    """A network in which every composite finds something."""
    return Original(with_trouble(3, int(NOON), history_days=60, lines=140).world)


def sandbox() -> SimulatedNetwork:
    """A copy of it that a test may change."""
    return SimulatedNetwork(lambda: troubled().copy(), wall=lambda: NOON, following=True, sleep=no_sleep)


class Planter:
    """Goes through a network once. Each text becomes a word that none of ours is, in letters that ours have."""

    def __init__(self) -> None:
        self.numbers: set[str] = set()
        self.birds = count(1)
        self._seen: set[int] = set()

    def plant(self, thing: Any) -> Any:
        """The same with canaries; records that cannot change are made anew."""
        if isinstance(thing, dict):
            found = cast("dict[Any, Any]", thing)
            for key in list(found):
                found[key] = self.plant(found[key])
            return found
        if isinstance(thing, list):
            rows = cast("list[Any]", thing)
            rows[:] = [self.plant(each) for each in rows]
            return rows
        if isinstance(thing, tuple):
            return self._tuple(cast("tuple[Any, ...]", thing))
        return self._record(thing) if is_dataclass(thing) and not isinstance(thing, type) else thing

    def _tuple(self, thing: tuple[Any, ...]) -> Any:
        if not hasattr(thing, "_fields"):
            return tuple(self.plant(each) for each in thing)
        record = cast(Any, thing)
        return record._replace(**{name: self._field(name, getattr(record, name)) for name in record._fields})

    def _record(self, thing: Any) -> Any:
        if id(thing) in self._seen:
            return thing
        self._seen.add(id(thing))
        for each in fields(thing):
            setattr(thing, each.name, self._field(each.name, getattr(thing, each.name)))
        return thing

    def _field(self, name: str, value: Any) -> Any:
        if name in TEXTS and (value is None or isinstance(value, str)):
            return self._bird(name)
        if name == "contact" and isinstance(value, dict):
            return {key: self._bird(key) for key in cast("dict[str, str]", value)}
        if name in DIGITS and isinstance(value, str) and len(value) >= SHORT:
            self.numbers.add(value)
            return value
        return self.plant(value)

    def _bird(self, name: str) -> str:
        number = next(self.birds)
        return f"{BIRD}{number}@{BIRD}.example" if name == "email" else f"{BIRD} {number}"


def plant(network: Network) -> set[str]:
    """Plant all; the numbers that nobody may see."""
    planter = Planter()
    for each in fields(network):
        if each.name not in ("tokens", "counters", "pushes"):
            setattr(network, each.name, planter.plant(getattr(network, each.name)))
    return planter.numbers


def sung(told: str, numbers: set[str]) -> Iterator[str]:
    if BIRD.lower() in told.lower():
        at = told.lower().index(BIRD.lower())
        yield told[max(0, at - 60) : at + 60]
    yield from (number for number in numbers if number in told)
    yield from re.findall(SUBSCRIBER, told)
