"""The whole service as data: toolsets gathered from modules, duplicates refused at start, selections for every door."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

from registry.errors import BadRequest
from registry.operation import Operation, Scope

AnyOperation = Operation[Any, Any]


HTTP_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True)
class Toolset:
    """One part of the service, and where its operations are written: a package, whose files are listed, or single modules."""

    name: str
    summary: str
    places: tuple[ModuleType, ...]

    def operations(self) -> list[AnyOperation]:
        """The declared operations, ordered by path and method, so that moving a declaration changes no document.

        Raises TypeError where a file of the toolset declares none: it is in the wrong folder, or its declaration was forgotten.
        """
        found: list[AnyOperation] = []
        for module in (module for place in dict.fromkeys(self.places) for module in modules_in(place)):
            declared: list[Any] = [each for each in vars(module).values() if isinstance(each, Operation)]
            own = [each for each in declared if each.module == module.__name__]
            if not own:
                raise TypeError(f"{module.__file__} declares no operation: the toolset {self.name} has files with declarations only")
            found += own
        return sorted(found, key=lambda operation: (operation.path, HTTP_METHODS.index(operation.method)))


def modules_in(place: ModuleType) -> list[ModuleType]:
    """`place` itself, or the files directly in it where it is a package, sorted by name."""
    if not hasattr(place, "__path__"):
        return [place]
    names = sorted(each.name for each in pkgutil.iter_modules(place.__path__) if not each.ispkg)
    return [importlib.import_module(f"{place.__name__}.{name}") for name in names]


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """What one MCP caller asked to see."""

    names: tuple[str, ...] = ()
    read_only: bool = False


USUAL_TOOLS = ToolSelection()
"""What a caller sees who asks for nothing."""
NO_CORE_TOOLS: tuple[str, ...] = ()
CACHED_SELECTIONS = 256


class Catalogue:
    """Every operation by id, in order."""

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        *,
        core: Iterable[str] = NO_CORE_TOOLS,
        usual: Iterable[str] = NO_CORE_TOOLS,
        about_oneself: Iterable[str] = NO_CORE_TOOLS,
        beside: Sequence[Toolset] = (),
    ) -> None:
        """`core`: the operations of the preset. `usual`: single operations that are shown to whoever names no toolset, and that no
        restriction to toolsets leaves out. `about_oneself`: no such restriction leaves them out either, and they see to it themselves
        that such a credential is told of itself alone. `beside`: operations for which one door alone has methods of its own; they are
        in no list, in no document and at no address, and their toolset is that of the same name."""
        self.toolsets = tuple(toolsets)
        self.operations: dict[str, AnyOperation] = {}
        self.toolset_of: dict[str, str] = {}
        self.core, self.usual, self.about_oneself = tuple(core), frozenset(usual), frozenset(about_oneself)
        tools: list[str] = []
        shapes: dict[tuple[str, str], str] = {}
        for toolset in toolsets:
            operations = toolset.operations()
            tools += [toolset.name] * any(o.tool for o in operations)
            for operation in operations:
                shape = (operation.method, re.sub(r"\{\w+\}", "{}", operation.path))
                taken = operation.id if operation.id in self.operations else shapes.get(shape)
                if taken is not None:
                    raise TypeError(f"{operation.id}: {operation.method} {operation.path} is declared already, as {taken}")
                shapes[shape] = operation.id
                self.operations[operation.id] = operation
                self.toolset_of[operation.id] = toolset.name
        self.beside: dict[str, AnyOperation] = {each.id: each for toolset in beside for each in toolset.operations()}
        self._beside_of = {each.id: toolset.name for toolset in beside for each in toolset.operations()}
        missing = [name for name in (*self.core, *sorted(self.usual | self.about_oneself)) if name not in self.operations]
        if missing:
            raise TypeError(f"the preset core, or what is usual, names {missing}, which nobody declares")
        operators = frozenset(o.id for o in self.operations.values() if o.operator)
        self.presets: Mapping[str, frozenset[str]] = {
            "core": frozenset(self.core),
            "operator": operators,
            "all": frozenset(self.operations),
        }
        """Selections that cut across toolsets."""
        self._names = (*tools, *self.presets)
        self.operations_in = lru_cache(maxsize=CACHED_SELECTIONS)(self._operations_in)
        """Every operation of some toolsets and presets, tools or not; a name that is not known any more holds none."""

    def names(self) -> list[str]:
        """What a caller may ask for."""
        return list(self._names)

    def chosen(
        self, selection: ToolSelection = USUAL_TOOLS, default: Sequence[str] = ("connectivity", "operator", "fleet")
    ) -> frozenset[str]:
        """The ids of the tools a selection holds, whoever asks."""
        known = self.names()
        unknown = [name for name in selection.names if name not in known]
        if unknown:
            raise BadRequest(
                f"toolsets: got {', '.join(n[:40] for n in unknown)}; known are {', '.join(known)}",
                param="toolsets",
                hint="Separate several by commas",
            )
        wanted = set(selection.names or default)
        presets = self.presets
        inside = (frozenset[str]() if selection.names else self.usual).union(*(presets[name] for name in wanted if name in presets))
        return frozenset(
            o.id
            for o in self.operations.values()
            if o.tool and (o.id in inside or self.toolset_of[o.id] in wanted) and (o.read_only or not selection.read_only)
        )

    def _operations_in(self, names: tuple[str, ...]) -> frozenset[str]:
        presets = self.presets
        return self.usual.union(
            self.about_oneself,
            (o.id for o in self.operations.values() if self.toolset_of[o.id] in names),
            (id for id, toolset in self._beside_of.items() if toolset in names or "all" in names),
            *(presets[name] for name in names if name in presets),
        )

    def tools(self, ids: frozenset[str], scopes: int) -> list[AnyOperation]:
        """The visible tools of a caller, in catalogue order: visibility is a courtesy, authorize is the gate."""
        return [o for o in self.operations.values() if o.id in ids and not Scope(o.scope) & ~scopes]
