"""The cheapest packages that cover a need: an exact search, which proves what it finds by what it rules out.

A set of packages (a template may occur several times) covers the need when the need can be divided among them so that of each package no
more is taken than it holds of a kind, only at places where it works, and of no place more than its share of the time. Whether it can is a
question of flow, and a flow exists when no cut forbids it: for every kind and every choice of places, the packages together must be
able to take what is needed there. So each choice of places is a row, and what a package takes of a row does not depend on the other
packages. The search branches over the packages that may serve the row that costs most, and drops a branch once even its cheapest end
would cost no less than the two sets that are known.
"""

from collections.abc import Iterable, Sequence
from itertools import compress
from math import lcm
from typing import NamedTuple

COVER_PLACE_LIMIT = 10
"""A row for each choice of places: 1,023 of ten."""
COVER_PACKAGE_LIMIT = 60
"""Choice: in a set; nobody puts more on a line in a month."""
COVER_STEP_LIMIT = 20_000
"""Choice: a second or so. A search that was ended says that it proves nothing."""


class PackageOption(NamedTuple):
    """A package that may be bought, as often as is needed."""

    id: int
    price: int
    """Micro-euros."""
    turns: int
    """How many of it, one after another, reach over the time; of each place's need one takes a share of 1/turns at most."""
    volumes: tuple[int, ...]
    """What it holds, by kind."""
    places: frozenset[int]


class PackageChoice(NamedTuple):
    """A set of packages: its price, and how many of which."""

    price: int
    counts: tuple[tuple[int, int], ...]
    """Option ids, in order, with how many of each."""

    @property
    def order(self) -> tuple[int, int, tuple[tuple[int, int], ...]]:
        """Cheapest first, then fewest."""
        return self.price, sum(count for _, count in self.counts), self.counts


class CoverResult(NamedTuple):
    """The cheapest set in which no package is superfluous, and the next one. `proven`: nothing cheaper was left out."""

    best: PackageChoice | None
    next: PackageChoice | None
    proven: bool


class CoverRow(NamedTuple):
    """What the packages must take of one kind at some places together, and what one of each option takes of it."""

    need: int
    takes: tuple[int, ...]


def cheapest_cover(options: Sequence[PackageOption], needs: Sequence[Sequence[int]]) -> CoverResult:
    """Of these options, what covers the needs: by kind, and in it by place."""
    kept = undominated_options(options)
    return CoverSearch(kept, cover_rows(kept, needs)).run()


def undominated_options(options: Iterable[PackageOption]) -> list[PackageOption]:
    """Without what two others beat in every respect. Neither the cheapest set nor the next needs it: either of the two may stand in."""
    kept: list[PackageOption] = []
    for option in sorted(options, key=lambda one: (one.price, one.turns, [-volume for volume in one.volumes], -len(one.places), one.id)):
        if sum(is_better_option(other, option) for other in kept) < 2:
            kept.append(option)
    return kept


def is_better_option(one: PackageOption, other: PackageOption) -> bool:
    """Whether it costs no more, holds no less, works wherever the other does, and lasts as long."""
    holds = all(mine >= theirs for mine, theirs in zip(one.volumes, other.volumes, strict=True))
    return holds and one.price <= other.price and one.turns <= other.turns and one.places >= other.places


def cover_rows(options: Sequence[PackageOption], needs: Sequence[Sequence[int]]) -> list[CoverRow]:
    """A row for each kind and each choice of places; in whole numbers, since shares have one denominator."""
    whole = lcm(*(option.turns for option in options))
    made: dict[CoverRow, None] = {}
    for kind, amounts in enumerate(needs):
        places = [place for place, amount in enumerate(amounts) if amount]
        for chosen in place_subsets(places):
            takes = tuple(option_share(option, kind, amounts, chosen, whole) for option in options)
            made[CoverRow(whole * sum(amounts[place] for place in chosen), takes)] = None
    return list(made)


def place_subsets(places: Sequence[int]) -> Iterable[list[int]]:
    """Every choice of places but none."""
    for bits in range(1, 1 << len(places)):
        yield list(compress(places, (bits >> index & 1 for index in range(len(places)))))


def option_share(option: PackageOption, kind: int, amounts: Sequence[int], chosen: Iterable[int], whole: int) -> int:
    """What one package takes of the need at these places: its share of it, up to what it holds."""
    there = sum(amounts[place] for place in chosen if place in option.places)
    return min(option.volumes[kind] * whole, there * (whole // option.turns))


class CoverSearch:
    """One search under way."""

    def __init__(self, options: Sequence[PackageOption], rows: Sequence[CoverRow], nodes: int = COVER_STEP_LIMIT) -> None:
        self._options, self._rows, self._most = options, rows, nodes
        self._prices = [option.price for option in options]
        self._best: list[PackageChoice] = []
        self._nodes = 0
        self._chosen: list[int] = []

    def run(self) -> CoverResult:
        """Until everything was looked at or ruled out."""
        self._go(list(range(len(self._options))), [row.need for row in self._rows], 0)
        best, second = [*self._best, None, None][:2]
        return CoverResult(best, second, self._nodes <= self._most)

    def _go(self, allowed: Sequence[int], left: Sequence[int], price: int) -> None:
        """Every set that has the chosen packages and others of the allowed ones."""
        self._nodes += 1
        if self._nodes > self._most:
            return
        hardest = self._hardest(allowed, left)
        if hardest is None:
            return
        row, bound = hardest
        if row < 0:
            self._note(left, price)
        elif len(self._chosen) < COVER_PACKAGE_LIMIT and not self._too_dear(price + bound):
            self._branch(row, allowed, left, price)

    def _branch(self, row: int, allowed: Sequence[int], left: Sequence[int], price: int) -> None:
        """One of these must be in the set: with the first; without the first but with the second; and so on. So no set is met twice."""
        takes, rest = self._rows[row].takes, list(allowed)
        serving = sorted((option for option in allowed if takes[option]), key=lambda option: (self._cost(option, takes, left[row]), option))
        for option in serving:
            self._chosen.append(option)
            self._go(rest, [need - one.takes[option] for need, one in zip(left, self._rows, strict=True)], price + self._prices[option])
            self._chosen.pop()
            rest.remove(option)

    def _hardest(self, allowed: Sequence[int], left: Sequence[int]) -> tuple[int, int] | None:
        """The row that costs most to serve, and how much at least; -1 when all are served, nothing when one cannot be."""
        hardest, most = -1, 0
        for number, need in enumerate(left):
            if need > 0:
                takes = self._rows[number].takes
                least = min((self._cost(option, takes, need) for option in allowed if takes[option]), default=None)
                if least is None:
                    return None
                if hardest < 0 or least > most:
                    hardest, most = number, least
        return hardest, most

    def _cost(self, option: int, takes: Sequence[int], need: int) -> int:
        """What serving a row by this option alone costs at least: a whole package, and no less than its part of as many as are needed."""
        price, share = self._prices[option], takes[option]
        return price if share >= need else -(-price * need // share)

    def _too_dear(self, price: int) -> bool:
        """Whether two sets are known that cost no more."""
        return len(self._best) == 2 and price >= self._best[1].price

    def _note(self, left: Sequence[int], price: int) -> None:
        """A set that covers; one with a superfluous package is not kept, as it is found without it elsewhere."""
        counts = {option: self._chosen.count(option) for option in self._chosen}
        for option in counts:
            if all(need + row.takes[option] <= 0 for need, row in zip(left, self._rows, strict=True)):
                return
        made = PackageChoice(price, tuple(sorted((self._options[option].id, count) for option, count in counts.items())))
        self._best = sorted([*self._best, made], key=lambda one: one.order)[:2]
