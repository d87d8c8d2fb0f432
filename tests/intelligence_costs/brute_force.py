"""The cheapest packages by trying every set there is, and whether a set covers by pushing the need through it. The search is not used."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import NamedTuple

from operations.intelligence.offers.plans import PackageOption


class Problem(NamedTuple):
    """What may be bought, and what is needed: by kind, and in it by place."""

    options: tuple[PackageOption, ...]
    needs: tuple[tuple[int, ...], ...]


def covers(problem: Problem, chosen: Sequence[PackageOption]) -> bool:
    """Whether the need can be divided among the packages: all of it flows."""
    return all(flows(chosen, kind, amounts) for kind, amounts in enumerate(problem.needs))


def flows(chosen: Sequence[PackageOption], kind: int, amounts: Sequence[int]) -> bool:
    """Ford and Fulkerson with exact fractions: from packages, each with what it holds, to places, each with what is needed there."""
    held = [Fraction(option.volumes[kind]) for option in chosen]
    open_ = [
        [Fraction(amount, option.turns) if place in option.places else Fraction(0) for place, amount in enumerate(amounts)]
        for option in chosen
    ]
    taken = [[Fraction(0)] * len(amounts) for _ in chosen]
    left = [Fraction(amount) for amount in amounts]
    for place in range(len(amounts)):
        while left[place] > 0:
            path = path_to(place, held, open_, taken)
            if path is None:
                return False
            source, steps = path
            most = min([left[place], held[source], *(room for *_, room in steps)])
            held[source] -= most
            left[place] -= most
            for package, to, forward, _ in steps:
                sign = 1 if forward else -1
                open_[package][to] -= sign * most
                taken[package][to] += sign * most
    return True


Step = tuple[int, int, bool, Fraction]


def path_to(place: int, held: list[Fraction], open_: list[list[Fraction]], taken: list[list[Fraction]]) -> tuple[int, list[Step]] | None:
    """A way from a package that has something left to a place; what is taken from a package elsewhere may be given back."""
    waiting: list[tuple[int, list[Step]]] = [(place, [])]
    seen = {place}
    while waiting:
        to, steps = waiting.pop(0)
        for package in range(len(held)):
            if open_[package][to] <= 0:
                continue
            here: list[Step] = [(package, to, True, open_[package][to]), *steps]
            if held[package] > 0:
                return package, here
            for other, amount in enumerate(taken[package]):
                if amount > 0 and other not in seen:
                    seen.add(other)
                    waiting.append((other, [(package, other, False, amount), *here]))
    return None


def sets(problem: Problem, most: int) -> Iterator[tuple[PackageOption, ...]]:
    """Every set of so many packages at most."""
    for count in range(most + 1):
        yield from combinations_with_replacement(problem.options, count)


def two_cheapest(problem: Problem, most: int) -> list[int]:
    """The prices of the two cheapest sets that cover and in which no package is superfluous."""
    found: list[int] = []
    for chosen in sets(problem, most):
        price = sum(option.price for option in chosen)
        if (len(found) < 2 or price < found[1]) and covers(problem, chosen) and needed(problem, chosen):
            found = sorted([*found, price])[:2]
    return found


def needed(problem: Problem, chosen: Sequence[PackageOption]) -> bool:
    """Whether without any one of its packages it covers no more."""
    kinds = Counter(option.id for option in chosen)
    return not any(covers(problem, without(chosen, id)) for id in kinds)


def without(chosen: Sequence[PackageOption], id: int) -> list[PackageOption]:
    """The set without one of these packages."""
    place = next(place for place, option in enumerate(chosen) if option.id == id)
    return [*chosen[:place], *chosen[place + 1 :]]
