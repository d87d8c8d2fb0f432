"""Which operation a request means: one dictionary for plain paths, a trie over segments for the others.

The last of many operations costs what the first does: a look-up per segment, whatever the table holds.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from registry.binding import PATH_SEGMENT
from registry.catalogue import AnyOperation
from registry.errors import BadRequest, MethodNotAllowed

BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
MIXED_SEGMENT = re.compile(r"([^{}]+)\{\w+\}")  # qr.{format}
NO_PARAMETERS: Mapping[str, str] = {}


class OperationRoute(NamedTuple):
    """An operation, the names of its path parameters in order, and what the door asks of every request for it."""

    operation: AnyOperation
    names: tuple[str, ...]
    takes_body: bool
    private: bool


class MatchedRoute(NamedTuple):
    route: OperationRoute
    path: Mapping[str, str]


@dataclass(slots=True, eq=False)
class RouteNode:
    children: dict[str, "RouteNode"] = field(default_factory=dict[str, "RouteNode"])
    mixed: dict[str, "RouteNode"] = field(default_factory=dict[str, "RouteNode"])
    """By what a segment begins with, before its parameter."""
    param: "RouteNode | None" = None
    routes: dict[str, OperationRoute] = field(default_factory=dict[str, OperationRoute])

    def below(self, segment: str) -> "RouteNode":
        """The place one segment deeper, made when it is not there; names of parameters do not matter for the shape."""
        mixed = MIXED_SEGMENT.fullmatch(segment)
        if mixed is not None:
            return self.mixed.setdefault(mixed.group(1), RouteNode())
        if not PATH_SEGMENT.fullmatch(segment):
            return self.children.setdefault(segment, RouteNode())
        if self.param is None:
            self.param = RouteNode()
        return self.param


class OperationRouter:
    """The table of a catalogue. Declared duplicates were refused by the catalogue already."""

    def __init__(self, operations: Iterable[AnyOperation]) -> None:
        self._plain: dict[bytes, dict[str, MatchedRoute]] = {}
        self._root = RouteNode()
        for operation in operations:
            self._add(operation)

    def find(self, method: str, raw_path: bytes) -> MatchedRoute | None:
        """The operation of a request; None when the table does not have the path, MethodNotAllowed when it has it otherwise."""
        plain = self._plain.get(raw_path)
        if plain is not None:
            found = plain.get(method)
            if found is not None:
                return found
        segments = path_segments(raw_path)
        values: list[str] = []
        place = walk_routes(self._root, segments, 0, values)
        if place is None:
            return None
        route = place.routes.get(method)
        if route is not None:
            return MatchedRoute(route, dict(zip(route.names, values, strict=True)))
        # An operation that is there to say that its method is not offered is none to use.
        allowed = ", ".join(sorted(name for name, other in place.routes.items() if MethodNotAllowed not in other.operation.raises))
        raise MethodNotAllowed("The path exists, but not with this method", allow=allowed, hint=f"Use one of {allowed}")

    def _add(self, operation: AnyOperation) -> None:
        takes_body = operation.method not in ("GET", "DELETE")
        names: tuple[str, ...] = tuple(PATH_SEGMENT.findall(operation.path))
        everybody = operation.public and operation.read_only and not operation.enumeration_guarded  # a public write answers one person
        route = OperationRoute(operation, names, takes_body, not everybody)
        node = self._root
        for segment in operation.path.split("/")[1:]:
            node = node.below(segment)
        methods = (operation.method, "HEAD") if operation.method == "GET" else (operation.method,)
        for method in methods:
            node.routes[method] = route
            if not names:
                self._plain.setdefault(operation.path.encode(), {})[method] = MatchedRoute(route, NO_PARAMETERS)


def walk_routes(node: RouteNode, segments: list[str], index: int, values: list[str]) -> RouteNode | None:
    """The place that `segments` from `index` on lead to: by literals first, then by parameters. None: there is none."""
    if index == len(segments):
        return node if node.routes else None
    segment = segments[index]
    child = node.children.get(segment)
    if child is not None:
        place = walk_routes(child, segments, index + 1, values)
        if place is not None:
            return place
    for prefix, below in node.mixed.items():
        if segment.startswith(prefix) and segment != prefix:
            place = walk_with_value(segment[len(prefix) :], below, segments, index, values)
            if place is not None:
                return place
    if node.param is None or not segment:
        return None
    return walk_with_value(segment, node.param, segments, index, values)


def walk_with_value(value: str, node: RouteNode, segments: list[str], index: int, values: list[str]) -> RouteNode | None:
    """Walk on with a parameter's value, and forget the value when that leads nowhere."""
    values.append(value)
    place = walk_routes(node, segments, index + 1, values)
    if place is None:
        values.pop()
    return place


def path_segments(raw_path: bytes) -> list[str]:
    """The segments, each percent-decoded once and after the split, so that an encoded slash stays inside its segment."""
    try:
        if b"%" not in raw_path:
            return raw_path.decode("ascii").split("/")[1:]
        if BAD_ESCAPE.search(raw_path):
            raise BadRequest("The path holds a % that is not followed by two hexadecimal digits", hint="Write % as %25")
        segments = [unquote_to_bytes(segment).decode("utf-8") for segment in raw_path.split(b"/")[1:]]
    except UnicodeDecodeError:
        raise BadRequest("The path is not UTF-8 once it is decoded", hint="Percent-encode its parts as UTF-8") from None
    if any("\x00" in segment for segment in segments):
        raise BadRequest("The path holds a NUL character", hint="Remove %00")
    return segments
