"""The English sentences of the product that a page of the console can show, read off the source: refusals, their hints, rows, gaps.

The handlers of operations, and the pages, lead to every function that they name. A sentence is what a call there gives, with everything
that it may be: the alternatives of a condition, of a table, of a local name, of a parameter at its callers. What is only known when it
runs is the word `PLACE`.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from registry.errors import Refusal

SOURCE_ROOT = Path(__file__).parent.parent.parent
LAYERS = ("operations", "storage", "clients", "registry", "transports.web")
CONSOLE = "transports.web.console"
PLACE = "Nordwind"
MOST_FORMS = 60
"""Of one sentence: more alternatives than these say nothing new."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Named = FunctionNode | ast.ClassDef | ast.Assign | ast.AnnAssign


class Scope(NamedTuple):
    """Where an expression stands."""

    module: str
    functions: tuple[FunctionNode, ...]
    """The functions around it, the innermost last."""


class SourceCall(NamedTuple):
    name: str
    call: ast.Call
    scope: Scope


class SourceRefusal(NamedTuple):
    """A message with the hints that stand beside it, and the function that says it, with its module."""

    place: str
    fields: Sequence[str]
    """What stands before the message when it is told beside its field."""
    messages: Sequence[str]
    hints: Sequence[str]


class SourceModule(NamedTuple):
    """What the names at the top of a module are."""

    names: Mapping[str, Named]
    imports: Mapping[str, tuple[str, str]]


@cache
def source_module(name: str) -> SourceModule:
    """The module, which is read when something leads to it; of one that is not the product's, nothing."""
    path = SOURCE_ROOT / (name.replace(".", "/") + ".py")
    names, imports = dict[str, Named](), dict[str, tuple[str, str]]()
    for node in ast.parse(path.read_text()).body if name.startswith(LAYERS) and path.exists() else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {each.id: node for each in targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports |= {each.asname or each.name: (node.module, each.name) for each in node.names}
    return SourceModule(names, imports)


@dataclass
class EnglishSource:
    """What of the product the handlers of `operations` and the console's own modules lead to. `operations`: their modules and names."""

    operations: Sequence[tuple[str, str]]

    def find(self, module: str, name: str) -> tuple[str, Named] | None:
        """The definition that a name of a module leads to, with its module."""
        for _ in range(3):
            names, imports = source_module(module)
            if name in names:
                return module, names[name]
            if name not in imports:
                return None
            module, name = imports[name]
        return None

    @cached_property
    def reached(self) -> Mapping[tuple[str, str], Named]:
        """What the handlers lead to."""
        found: dict[tuple[str, str], Named] = {}
        pages = [f"{CONSOLE}.{path.stem}" for path in (SOURCE_ROOT / CONSOLE.replace(".", "/")).glob("*.py")]
        todo = [*self.operations, *((page, name) for page in pages for name in source_module(page).names)]
        while todo:
            at = self.find(*todo.pop())
            if at is None or (at[0], name_of(at[1])) in found:
                continue
            module, named = at
            found[module, name_of(named)] = named
            for node in ast.walk(named):
                if isinstance(node, ast.Name):
                    todo.append((module, node.id))
                elif (
                    isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in source_module(module).imports
                ):
                    todo.append((".".join(source_module(module).imports[node.value.id]), node.attr))
        return found

    @cached_property
    def calls(self) -> Mapping[str, Sequence[SourceCall]]:
        """Every call that is reached, by the name of what is called."""
        found: dict[str, list[SourceCall]] = defaultdict(list[SourceCall])
        for (module, _), named in self.reached.items():
            for call, functions in nodes_in(named, ()):
                if not isinstance(call, ast.Call):
                    continue
                name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
                found[name].append(SourceCall(name, call, Scope(module, functions)))
        return found

    def told_refusals(self) -> Iterator[SourceRefusal]:
        for name in sorted({each.__name__ for each in subclasses_of(Refusal)}):
            for _, call, scope in self.calls.get(name, ()):
                given = {each.arg: self.forms(each.value, scope) for each in call.keywords if each.arg in ("hint", "param")}
                messages = self.forms(call.args[0], scope) if call.args else ()
                yield SourceRefusal(name_of_scope(scope), given.get("param", ()), messages, given.get("hint", ()))

    def told(self, name: str, argument: int | str, layer: str = "operations") -> Iterator[str]:
        """What the calls of `name` in a layer give as their argument at a place, or of a name."""
        for _, call, scope in self.calls.get(name, ()):
            if not scope.module.startswith(layer):
                continue
            named = [each.value for each in call.keywords if each.arg == argument]
            for given in call.args[argument : argument + 1] if isinstance(argument, int) else named:
                yield from self.forms(given, scope)

    def told_entries(self, key: str, layers: tuple[str, ...]) -> Iterator[str]:
        """What tables that are written out in the modules below `layers` have under `key`."""
        for (module, _), named in self.reached.items():
            for node, functions in nodes_in(named, ()) if module.startswith(layers) else ():
                for name, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                    if isinstance(name, ast.Constant) and name.value == key:
                        yield from self.forms(value, Scope(module, functions))

    def told_constants(self, ending: str, layers: tuple[str, ...]) -> Iterator[str]:
        """The texts of the modules below `layers` whose names end so."""
        for (module, name), named in self.reached.items():
            if module.startswith(layers) and name.endswith(ending) and isinstance(named, (ast.Assign, ast.AnnAssign)) and named.value:
                yield from self.forms(named.value, Scope(module, ()))

    def told_sentences(self, layers: tuple[str, ...]) -> Iterator[str]:
        """Every whole sentence in the modules below `layers` that is a value: no docstring, and no description of a field or a figure."""
        for (module, name), named in self.reached.items():
            if module.startswith(layers) and not name.endswith("_METHOD"):
                for node in sentences_in(named):
                    yield from (form for form in self.forms(node, Scope(module, ())) if form.endswith("."))

    def forms(self, node: ast.expr, scope: Scope, depth: int = 0) -> list[str]:
        """Every text that an expression may be, `MOST_FORMS` at most."""
        if depth > 8:
            return [PLACE]
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else [PLACE]
        if isinstance(node, ast.JoinedStr):
            return joined([self.forms(each, scope, depth + 1) for each in node.values])
        if isinstance(node, ast.FormattedValue):
            return self.forms(node.value, scope, depth + 1) if node.conversion == -1 else [PLACE]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return joined([self.forms(node.left, scope, depth + 1), self.forms(node.right, scope, depth + 1)])
        if isinstance(node, ast.IfExp):
            texts = [each for each in (node.body, node.orelse) if not (isinstance(each, ast.Constant) and each.value is None)]
            return [form for each in texts for form in self.forms(each, scope, depth + 1)] or [PLACE]
        if isinstance(node, ast.BoolOp):
            return [form for each in node.values for form in self.forms(each, scope, depth + 1)]
        if isinstance(node, ast.Subscript):
            return self._entries(node.value, scope, depth)
        if isinstance(node, ast.Call):
            return self._returned(node, scope, depth)
        return self._named(node.id, scope, depth) if isinstance(node, ast.Name) else [PLACE]

    def _entries(self, table: ast.expr, scope: Scope, depth: int) -> list[str]:
        """The values of a table of texts."""
        found = self.find(scope.module, table.id) if isinstance(table, ast.Name) else None
        value = found[1].value if found is not None and isinstance(found[1], (ast.Assign, ast.AnnAssign)) else None
        if found is None or not isinstance(value, ast.Dict):
            return [PLACE]
        return [form for each in value.values for form in self.forms(each, Scope(found[0], ()), depth + 1)]

    def _returned(self, call: ast.Call, scope: Scope, depth: int) -> list[str]:
        """What a function of ours returns; a method that takes a stop or a prefix away leaves the text."""
        if isinstance(call.func, ast.Attribute):
            otherwise = [form for each in call.args[1:] for form in self.forms(each, scope, depth + 1)]
            return [*self._entries(call.func.value, scope, depth), *otherwise] if call.func.attr == "get" else [PLACE]
        found = self.find(scope.module, call.func.id) if isinstance(call.func, ast.Name) else None
        if found is None or not isinstance(found[1], (ast.FunctionDef, ast.AsyncFunctionDef)):
            return [PLACE]
        function, inside = found[1], Scope(found[0], (found[1],))
        values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
        return [form for each in values for form in self.forms(each, inside, depth + 2)] or [PLACE]

    def _named(self, name: str, scope: Scope, depth: int) -> list[str]:
        for function in reversed(scope.functions):
            values = list(assigned(function, name))
            if values:
                return [form for each in values for form in self.forms(each, scope, depth + 1)]
            place = place_of_parameter(function, name)
            if place is not None:
                return self._given(function, name, place, depth)
        found = self.find(scope.module, name)
        if found is None or not isinstance(found[1], (ast.Assign, ast.AnnAssign)) or found[1].value is None:
            return [PLACE]
        return self.forms(found[1].value, Scope(found[0], ()), depth + 1)

    def _given(self, function: FunctionNode, name: str, place: int, depth: int) -> list[str]:
        """What callers give a parameter."""
        found: list[str] = []
        for _, call, scope in self.calls.get(function.name, ()):
            given = [each.value for each in call.keywords if each.arg == name] or call.args[place : place + 1]
            found += [form for each in given for form in self.forms(each, scope, depth + 2)]
        return found or [PLACE]


def subclasses_of(refusal: type[Refusal]) -> Iterator[type[Refusal]]:
    yield refusal
    for each in refusal.__subclasses__():
        yield from subclasses_of(each)


def name_of(named: Named) -> str:
    if isinstance(named, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return named.name
    target = named.targets[0] if isinstance(named, ast.Assign) else named.target
    return target.id if isinstance(target, ast.Name) else ""


def name_of_scope(scope: Scope) -> str:
    return ".".join((scope.module, *(each.name for each in scope.functions[-1:])))


def nodes_in(node: ast.AST, functions: tuple[FunctionNode, ...]) -> Iterator[tuple[ast.AST, tuple[FunctionNode, ...]]]:
    """Every node below, from the first to the last, with the functions around it."""
    todo = [(node, functions)]
    while todo:
        node, functions = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions = (*functions, node)
        yield node, functions
        todo += [(child, functions) for child in reversed([*ast.iter_child_nodes(node)])]


def sentences_in(node: ast.AST) -> Iterator[ast.expr]:
    """Texts that end a sentence, outside docstrings, declarations of fields and examples."""
    if isinstance(node, ast.Expr) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Field", "operation", "Example")):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, (ast.Call, ast.Await)):
            yield from sentences_in(value)
        return
    last = node.values[-1] if isinstance(node, ast.JoinedStr) else node
    if isinstance(node, (ast.JoinedStr, ast.Constant)):
        if isinstance(last, ast.Constant) and isinstance(last.value, str) and last.value.endswith("."):
            yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from sentences_in(child)


def joined(parts: Sequence[Sequence[str]]) -> list[str]:
    return ["".join(each) for each in islice(product(*parts), MOST_FORMS)]


def assigned(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    """What a local name may be, also as one of several that are assigned together."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from values_for(target, node.value, name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name and node.value:
            yield node.value


def values_for(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Name):
        if target.id == name:
            yield value
    elif isinstance(target, ast.Tuple):
        if isinstance(value, ast.IfExp):
            yield from values_for(target, value.body, name)
            yield from values_for(target, value.orelse, name)
        elif isinstance(value, ast.Tuple):
            for part, given in zip(target.elts, value.elts, strict=False):
                yield from values_for(part, given, name)
        elif name in {each.id for each in target.elts if isinstance(each, ast.Name)}:
            yield ast.Constant(value=None)


def place_of_parameter(function: FunctionNode, name: str) -> int | None:
    """Where callers give it, not counting the object of a method; None where it is no parameter."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] == ["self"] else names
    if name in names:
        return names.index(name)
    return MOST_FORMS if name in {each.arg for each in function.args.kwonlyargs} else None
