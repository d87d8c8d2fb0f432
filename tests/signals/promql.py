"""The grammar of PromQL as far as our alerts and our dashboard use it: what it reads is well formed, and its series are known."""

import re
from collections.abc import Iterator
from typing import NamedTuple

TOKEN = re.compile(
    r'\s*(?:(?P<duration>\$__rate_interval|\d+[smhd])|(?P<number>\d+(?:\.\d+)?)|(?P<text>"[^"\\]*")|(?P<name>[a-zA-Z_]\w*)'
    r"|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/(){}\[\],=<>]))"
)
FUNCTIONS = {"absent": 1, "rate": 1, "increase": 1, "delta": 1, "changes": 1, "histogram_quantile": 2, "time": 0}
RANGED = {"rate", "increase", "delta", "changes"}
AGGREGATIONS = {"sum": 1, "max": 1, "min": 1, "count": 1, "topk": 2}
LEVELS = (("or",), ("and", "unless"), ("==", "!=", ">=", "<=", "<", ">"), ("+", "-"), ("*", "/"))


class Selector(NamedTuple):
    """A series that is asked for."""

    metric: str
    labels: frozenset[str]
    ranged: bool


class Malformed(ValueError):
    """The text is no expression."""


def tokens(text: str) -> Iterator[tuple[str, str]]:
    place, text = 0, text.rstrip()
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise Malformed(f"{text[place:]!r} begins with no token")
        place = found.end()
        yield found.lastgroup, found[found.lastgroup]


class Expression:
    """One expression; reading it finds its selectors and the labels that it groups by."""

    def __init__(self, text: str) -> None:
        self._tokens = [*tokens(text), ("end", "")]
        self.selectors: list[Selector] = []
        self.grouped = set[str]()
        self._binary(0)
        if self._tokens != [("end", "")]:
            raise Malformed(f"{self._tokens[0][1]!r} comes too late in {text!r}")

    def _next(self, *wanted: str) -> str:
        kind, text = self._tokens[0]
        if wanted and text not in wanted and kind not in wanted:
            raise Malformed(f"{text!r} stands where one of {wanted} should")
        del self._tokens[0]
        return text

    def _at(self, *texts: str) -> bool:
        return self._tokens[0][1] in texts

    def _binary(self, level: int) -> None:
        if level == len(LEVELS):
            self._operand()
            return
        self._binary(level + 1)
        while self._at(*LEVELS[level]):
            self._next()
            if self._at("on", "ignoring"):
                self._next()
                self._labels()
                if self._at("group_left", "group_right"):
                    self._next()
                    if self._at("("):
                        self._labels()
            self._binary(level + 1)

    def _operand(self) -> None:
        if self._at("("):
            self._next()
            self._binary(0)
            self._next(")")
            return
        kind = self._tokens[0][0]
        name = self._next("number", "name")
        if kind == "number":
            return
        if name in AGGREGATIONS:
            self._by()
            self._arguments(AGGREGATIONS[name])
            self._by()
        elif name in FUNCTIONS:
            before = len(self.selectors)
            self._arguments(FUNCTIONS[name])
            if any(each.ranged != (name in RANGED) for each in self.selectors[before:] if name in RANGED):
                raise Malformed(f"{name} takes a range")
        else:
            self._selector(name)

    def _by(self) -> None:
        if self._at("by", "without"):
            self._next()
            self._labels()

    def _labels(self) -> None:
        self._next("(")
        while not self._at(")"):
            self.grouped.add(self._next("name"))
            if not self._at(")"):
                self._next(",")
        self._next(")")

    def _arguments(self, count: int) -> None:
        self._next("(")
        for number in range(count):
            if number:
                self._next(",")
            self._binary(0)
        self._next(")")

    def _selector(self, metric: str) -> None:
        labels = set[str]()
        if self._at("{"):
            self._next()
            while not self._at("}"):
                labels.add(self._next("name"))
                self._next("=", "!=", "=~", "!~")
                self._next("text")
                if not self._at("}"):
                    self._next(",")
            self._next("}")
        ranged = self._at("[")
        if ranged:
            self._next()
            self._next("duration")
            self._next("]")
        self.selectors.append(Selector(metric, frozenset(labels), ranged))
