"""The shared parts of the document: what many operations point to is written once, and what none points to is left out."""

from collections.abc import Iterator
from typing import TypeAlias

from transports.openapi.schemas import Json

Kind: TypeAlias = str
KINDS = ("schemas", "responses", "parameters", "headers")


class Components:
    """Named parts by kind."""

    def __init__(self, schemas: dict[str, Json]) -> None:
        self.parts: dict[Kind, dict[str, Json]] = {kind: {} for kind in KINDS}
        self.parts["schemas"] = schemas

    @property
    def schemas(self) -> dict[str, Json]:
        """The schemas."""
        return self.parts["schemas"]

    def put(self, kind: Kind, name: str, value: Json) -> Json:
        """A reference to a part, which is kept under its name. One name means one thing."""
        if self.parts[kind].setdefault(name, value) != value:
            raise TypeError(f"components/{kind}: two different parts are called {name}")
        return {"$ref": f"#/components/{kind}/{name}"}

    def used(self, paths: Json) -> Json:
        """The parts that the paths reach, sorted by name."""
        reached: set[str] = set()
        waiting = list(references(paths))
        while waiting:
            found = waiting.pop()
            if found not in reached:
                reached.add(found)
                kind, name = found.split("/")[2:]
                waiting += references(self.parts[kind][name])
        kept = {kind: {n: parts[n] for n in sorted(parts) if f"#/components/{kind}/{n}" in reached} for kind, parts in self.parts.items()}
        return {kind: parts for kind, parts in kept.items() if parts}


def references(value: object) -> Iterator[str]:
    """Every $ref below a value."""
    if isinstance(value, dict):
        for name, inner in value.items():  # pyright: ignore[reportUnknownVariableType]  # JSON
            if name == "$ref" and isinstance(inner, str):
                yield inner
            else:
                yield from references(inner)  # pyright: ignore[reportUnknownArgumentType]  # JSON
    elif isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]  # JSON
            yield from references(inner)  # pyright: ignore[reportUnknownArgumentType]  # JSON
