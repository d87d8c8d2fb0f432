"""`python -m tools.house [CHECKOUT ...]`: how large and how tangled the code of a checkout is; this one's unless others are named.

Counted is all Python under version control outside tests, benchmarks, examples and tools. A layer is a top-level folder of it.
What makes a figure smaller and the code no better is counted all the same: see the last rows of the table, and tests/tools.
"""

import argparse
import ast
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeGuard

ROOT = Path(__file__).resolve().parent.parent
NOT_PRODUCT = {"tests", "test", "testing", "benchmarks", "examples", "tools", "docs", "docs_src", "scripts", "newsfragments"}
VERSIONS = "migrations/versions/"
"""Alembic needs `upgrade` and `downgrade` in each of them."""
LONGEST_LINE = 140
PART = 60
"""Lines that a part of a file has at least to be told as a noun of its own."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Graph = Mapping[str, Collection[str]]


class Definition(NamedTuple):
    """A name that a module defines at its top level. `kind`: class, function or constant."""

    name: str
    kind: str


class Import(NamedTuple):
    """`name` from `module`, or the module itself where it is empty."""

    module: str
    name: str


@dataclass(frozen=True)
class Module:
    """A file of the product. `path` is relative to its checkout; `name` is what others import it by."""

    path: str
    name: str
    text: str
    tree: ast.Module = field(repr=False)

    @property
    def layer(self) -> str:
        """The top-level package that it is in."""
        return self.name.partition(".")[0]

    @property
    def lines(self) -> int:
        """Lines of the file."""
        return self.text.count("\n")

    @cached_property
    def statements(self) -> list[ast.AST]:
        """All statements, at any depth."""
        return list(statements(self.tree.body))

    @cached_property
    def functions(self) -> list[Function]:
        """All functions and methods."""
        return [node for node in self.statements if isinstance(node, FUNCTIONS)]

    @cached_property
    def loads(self) -> set[ast.Call]:
        """The calls that import a module by its name."""
        if "import_module" not in self.text and "__import__" not in self.text:
            return set()
        return {node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and loads_module(node)}

    @cached_property
    def definitions(self) -> set[Definition]:
        """Its top-level names, those in `if` and `try` too; none of a migration, no dunders.

        A class without any state is a folder of functions, so its methods count as functions.
        """
        if VERSIONS in self.path:
            return set()
        found = [*defined(self.tree.body), *(each for node in self.tree.body if is_stateless(node) for each in methods_of(node))]
        return {each for each in found if not (each.name.startswith("__") and each.name.endswith("__"))}

    @cached_property
    def imports(self) -> list[Import]:
        """Whatever it imports, wherever the statement stands; relative names made absolute."""
        found: list[Import] = []
        package = self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]
        for node in (*self.statements, *self.loads):
            if isinstance(node, ast.Import):
                found += [Import(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parts = package.split(".")
                    base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
                found += [Import(base, alias.name) for alias in node.names]
            elif isinstance(node, ast.Call):
                found += [
                    Import(each.value, "") for each in node.args[:1] if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ]
        return found

    @cached_property
    def parts(self) -> list[list[str]]:
        """Its top-level classes and functions in groups that name each other, each with names of at least PART lines in all."""
        nodes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
        names = {each.name for each in defined(self.tree.body)}
        graph = defaultdict[str, set[str]](set)
        for name, node in [
            *nodes.items(),
            *((each.name, at) for at in self.tree.body if at not in nodes.values() for each in defined([at])),
        ]:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and inner.id in names and inner.id != name:
                    graph[name].add(inner.id)
                    graph[inner.id].add(name)
        groups = circles({name: graph[name] for name in names})
        sizes = {name: (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in nodes.items()}
        return [group for group in groups if sum(sizes.get(name, 0) for name in group) >= PART]


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a body at any depth, and their `except` and `case` parts. Expressions are left out: none holds a statement."""
    for node in body:
        yield node
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            inner: list[ast.AST] = getattr(node, part, [])
            if inner:
                yield from statements(inner)


def defined(body: Iterable[ast.stmt]) -> Iterator[Definition]:
    """What the statements of a module's top level define."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield Definition(node.name, "class")
        elif isinstance(node, FUNCTIONS):
            yield Definition(node.name, "function")
        elif isinstance(node, ast.Assign):
            yield from (Definition(each.id, "constant") for target in node.targets for each in ast.walk(target) if is_stored(each))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield Definition(node.target.id, "constant")
        elif isinstance(node, ast.If):
            yield from defined([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from defined([*node.body, *(each for handler in node.handlers for each in handler.body), *node.orelse])


def is_stateless(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    """Whether it is a class without fields, bases and decorators, none of whose methods uses `self`."""
    if not isinstance(node, ast.ClassDef) or node.bases or node.keywords or node.decorator_list:
        return False
    body = [each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    return bool(body) and all(isinstance(each, FUNCTIONS) and not uses_self(each) for each in body)


def uses_self(method: Function) -> bool:
    """Whether a method that is not static or of its class names its first parameter."""
    marks = {each.id for each in method.decorator_list if isinstance(each, ast.Name)}
    names = [each.arg for each in method.args.args[:1]]
    return not marks & {"staticmethod", "classmethod"} and any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(method))


def methods_of(node: ast.ClassDef) -> Iterator[Definition]:
    """The methods of a class as functions."""
    yield from (Definition(each.name, "function") for each in node.body if isinstance(each, FUNCTIONS))


def loads_module(node: ast.Call) -> bool:
    """Whether it is a call of importlib.import_module or __import__."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    return name in ("import_module", "__import__")


def is_stored(node: ast.AST) -> bool:
    """Whether it is a name that is assigned to."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


class House:
    """The product code of one checkout."""

    def __init__(self, root: Path, modules: Iterable[Module]) -> None:
        self.root = root
        self.modules = {module.name: module for module in modules}

    @cached_property
    def layers(self) -> dict[str, list[Module]]:
        """The modules of each layer."""
        found = defaultdict[str, list[Module]](list)
        for module in self.modules.values():
            found[module.layer].append(module)
        return found

    def own_imports(self, module: Module) -> set[str]:
        """The modules of this checkout that a module imports."""
        found: set[str] = set()
        for each in module.imports:
            whole = f"{each.module}.{each.name}" if each.name else each.module
            for name in (whole, each.module):
                if name in self.modules:
                    found.add(name)
                    break
        return found - {module.name}

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """For each `module.name` the modules that import this name from it, or that name it through the module."""
        found = defaultdict[str, set[str]](set)
        for module in self.modules.values():
            through: dict[str, str] = {}
            for each in module.imports:
                whole = f"{each.module}.{each.name}" if each.name else each.module
                if whole in self.modules:
                    through[whole.rpartition(".")[2]] = whole
                elif each.module in self.modules:
                    found[whole].add(module.name)
            if through:
                for node in ast.walk(module.tree):
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in through:
                        found[f"{through[node.value.id]}.{node.attr}"].add(module.name)
        return found

    def doubles(self, *, private: bool, kinds: Collection[str] = ("class", "function", "constant")) -> dict[str, dict[str, list[str]]]:
        """The names that several modules of a layer define, by layer: each with the modules."""
        return {
            layer: {name: where for name, where in self.places(layer, private, kinds).items() if len(where) > 1} for layer in self.layers
        }

    def places(self, layer: str, private: bool, kinds: Collection[str]) -> dict[str, list[str]]:
        """Each name of a layer with the modules that define it. A name with an underscore that others import counts as public."""
        found = defaultdict[str, list[str]](list)
        for module in self.layers[layer]:
            for each in sorted(module.definitions):
                hidden = each.name.startswith("_") and not self.importers.get(f"{module.name}.{each.name}")
                if each.kind in kinds and hidden is private:
                    found[each.name].append(module.path)
        return found

    def share_of_doubles(self, *, private: bool, kinds: Collection[str] = ("class", "function", "constant")) -> float:
        """Of a hundred definitions, how many have a name that another module of their layer defines, too."""
        places = [where for layer in self.layers for where in self.places(layer, private, kinds).values()]
        return percent(sum(len(where) for where in places if len(where) > 1), sum(map(len, places)))

    @cached_property
    def knots(self) -> list[list[str]]:
        """Folders and files of one folder that import each other in a circle, at any depth; the largest first."""
        edges = [(module.name, name) for module in self.modules.values() for name in self.own_imports(module)]
        folders = {".".join(parts[:depth]) for name in self.modules for parts in [name.split(".")] for depth in range(1, len(parts))}
        found: list[list[str]] = []
        for folder in sorted(folders):
            graph = defaultdict[str, set[str]](set)
            inside = f"{folder}."
            for source, target in edges:
                if source.startswith(inside) and target.startswith(inside):
                    one, other = child(folder, source), child(folder, target)
                    if one != other:
                        graph[one].add(other)
                        graph[other].update(())
            found += [knot for knot in circles(graph) if len(knot) > 1]
        return sorted(found, key=lambda knot: (-len(knot), knot))

    @cached_property
    def lazy(self) -> list[str]:
        """The functions that have an import in them."""
        return [
            f"{module.path}:{function.name}"
            for module in self.modules.values()
            for function in module.functions
            if any(isinstance(node, ast.Import | ast.ImportFrom) for node in statements(function.body))
            or (module.loads and any(is_own_load(self, node) for node in ast.walk(function)))
        ]

    @cached_property
    def used_by_one(self) -> list[tuple[Module, str, str]]:
        """Top-level functions that exactly one other module imports: where each stands, its name, and who imports it."""
        found: list[tuple[Module, str, str]] = []
        for module in self.modules.values():
            for each in sorted(module.definitions):
                users = self.importers.get(f"{module.name}.{each.name}", set()) - {module.name}
                if each.kind == "function" and len(users) == 1:
                    found.append((module, each.name, *users))
        return found


def is_own_load(house: House, node: ast.AST) -> bool:
    """Whether it is a call that imports a module of the checkout by its name."""
    return (
        isinstance(node, ast.Call)
        and loads_module(node)
        and any(isinstance(a, ast.Constant) and a.value in house.modules for a in node.args)
    )


def child(folder: str, name: str) -> str:
    """The child of a folder that a module is, or is in."""
    return f"{folder}.{name[len(folder) + 1 :].partition('.')[0]}"


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected parts of a graph (Tarjan), without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        open_.append(root)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    open_.append(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in open_:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    place = open_.index(node)
                    found.append(sorted(open_[place:]))
                    del open_[place:]
    return found


def glued(house: House) -> list[str]:
    """Public names that are another name of their layer with a number or the name of their module glued on."""
    found: list[str] = []
    for layer, modules in house.layers.items():
        known = set(house.places(layer, False, ("class", "function", "constant")))
        for module in modules:
            stem = module.name.rpartition(".")[2]
            for each in sorted(module.definitions):
                bare = re.sub(r"_?\d+$", "", each.name)
                bare = bare.removesuffix(f"_{stem}").removeprefix(f"{stem}_")
                if bare != each.name and bare in known:
                    found.append(f"{module.path}: {each.name}")
    return found


def other_files(root: Path) -> list[str]:
    """The files of the product that are not Python: templates, styles, data."""
    layers = {path.partition("/")[0] for path in tracked(root) if path.endswith(".py") and "/" in path} - NOT_PRODUCT
    kinds = (".json", ".html", ".css", ".js", ".sql", ".toml", ".yaml", ".tsv", ".csv", ".txt", ".typ")
    return [path for path in tracked(root) if path.partition("/")[0] in layers and path.endswith(kinds)]


def percent(some: float, all_: float) -> float:
    """A share of a hundred, with one decimal."""
    return round(100 * some / all_, 1) if all_ else 0.0


def tracked(root: Path) -> list[str]:
    """The files under version control, or about to be; without git those that are there."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [name for name in listed.stdout.splitlines() if (root / name).is_file()]
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def read_house(root: Path) -> House:
    """The product code under a folder. A `src` folder is no part of a module's name."""
    modules: list[Module] = []
    for path in tracked(root):
        parts = path.split("/")
        if parts[0] == "src":
            parts = parts[1:]
        if path.endswith(".py") and len(parts) > 1 and not NOT_PRODUCT & set(parts[:-1]):
            text = (root / path).read_text(encoding="utf-8")
            name = ".".join(parts)[: -len(".py")].removesuffix(".__init__")
            modules.append(Module(path, name, text, ast.parse(text)))
    return House(root, modules)


def test_lines(root: Path) -> int:
    """Lines of tests, with the snapshots and other texts that they are held against."""
    kinds = (".py", ".json", ".tsv", ".txt", ".md", ".yaml", ".html", ".csv")
    found = [path for path in tracked(root) if path.partition("/")[0] in ("tests", "test") and path.endswith(kinds)]
    return sum((root / path).read_bytes().count(b"\n") for path in found)


def documented(house: House) -> tuple[float, float]:
    """Of the functions with a docstring: how many have one that names a parameter (of those with parameters), and what is raised."""
    with_parameters = naming = raising = all_ = 0
    for module in house.modules.values():
        for function in module.functions:
            text = ast.get_docstring(function)
            if text is None:
                continue
            all_ += 1
            raising += bool(re.search(r"\b[Rr]aises?\b", text))
            names = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
            names = [each for each in names if each not in ("self", "cls")]
            with_parameters += bool(names)
            naming += any(re.search(rf"`{re.escape(each)}`|:param {re.escape(each)}:", text) for each in names)
    return percent(naming, with_parameters), percent(raising, all_)


def figures(house: House) -> dict[str, str]:
    """What is measured, in words, with its value."""
    written = [module for module in house.modules.values() if module.path.rpartition("/")[2] != "__init__.py" or module.lines > 5]
    total = sum(module.lines for module in house.modules.values())
    functions = sum(each.kind == "function" for module in house.modules.values() for each in module.definitions)
    imported = sum(len(house.own_imports(module)) for module in house.modules.values())
    naming, raising = documented(house)
    public = house.doubles(private=False)
    return {
        "files": str(len(written)),
        "lines of a file, median": str(int(median([module.lines for module in written] or [0]))),
        "product lines": str(total),
        "test lines, snapshots with them": str(test_lines(house.root)),
        "public names that several files of a layer define": str(sum(map(len, public.values()))),
        "definitions with such a name, %": str(house.share_of_doubles(private=False)),
        "the same of classes and functions alone, %": str(house.share_of_doubles(private=False, kinds=("class", "function"))),
        "private definitions with such a name, %": str(house.share_of_doubles(private=True)),
        "import knots": str(len(house.knots)),
        "members of the largest knot": str(max(map(len, house.knots), default=0)),
        "functions with an import in them": str(len(house.lazy)),
        "own modules imported by a file, mean": f"{imported / max(1, len(written)):.1f}",
        "own modules imported per 100 lines": f"{100 * imported / max(1, total):.1f}",
        "functions that one other file alone imports, %": str(percent(len(house.used_by_one), functions)),
        "documented functions that name a parameter, %": str(naming),
        "documented functions that say what is raised, %": str(raising),
        "names with a number or their module's name glued on": str(len(glued(house))),
        "files of two parts that share nothing": str(sum(len(module.parts) > 1 for module in house.modules.values())),
        f"lines of more than {LONGEST_LINE} characters": str(sum(wide(module) for module in house.modules.values())),
        "lines of the product that are not Python": str(
            sum((house.root / path).read_bytes().count(b"\n") for path in other_files(house.root))
        ),
        "lines that coverage leaves out": str(sum(module.text.count("pragma: no cover") for module in house.modules.values())),
    }


def wide(module: Module) -> int:
    """How many lines of a module are too long."""
    return sum(len(line) > LONGEST_LINE for line in module.text.splitlines())


def details(house: House) -> Iterator[str]:
    """What stands behind the figures that are to be 0."""
    for layer, names in house.doubles(private=False).items():
        for name, where in sorted(names.items()):
            yield f"{layer}: {name} in {', '.join(where)}"
    for knot in house.knots:
        yield f"knot: {' '.join(knot)}"
    yield from (f"glued: {each}" for each in glued(house))
    for module in house.modules.values():
        if len(module.parts) > 1:
            yield f"parts: {module.path}: {' | '.join(' '.join(part[:3]) for part in module.parts)}"
    counted = Counter(entry.partition(":")[0] for entry in house.lazy)
    yield from (f"imports in functions: {path} {count}" for path, count in counted.most_common())


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT], help="folders; this repository unless named")
    parser.add_argument("--names", action="store_true", help="list what is to be none: double names, knots, imports in functions")
    given = parser.parse_args(arguments)
    houses = [read_house(Path(each).resolve()) for each in given.checkouts]
    columns = [figures(house) for house in houses]
    print("| | " + " | ".join(house.root.name for house in houses) + " |")
    print("|---|" + "---|" * len(houses))
    for row in columns[0]:
        print(f"| {row} | " + " | ".join(column[row] for column in columns) + " |")
    if given.names:
        for house in houses:
            print("\n".join(details(house)))


if __name__ == "__main__":
    main()
