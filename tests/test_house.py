"""The house rules that a linter does not know."""

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeGuard

import pytest

from tools.house import House, Module, defined, glued, read_house, statements

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("registry", "operations", "transports", "storage", "clients", "simulators")
CATCHERS = {  # the pipeline's caller, the group-commit writer, the worker loop
    "registry/answer.py",
    "storage/engine/group_commit.py",
    "transports/worker/chores.py",
    "transports/worker/worker.py",
}
HOSTS = ("pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", str(ROOT) + "/")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImplemented" + r"Error)\b")
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


@cache
def files() -> list[Path]:
    """Every file that is, or is about to be, under version control; without git, every file of the code folders."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return sorted(path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file())
    return sorted(path for folder in (*ROOMS, "tests", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py"))


def sources(*folders: str) -> list[Path]:
    return [path for path in files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


@cache
def house() -> House:
    """The product as tools/house.py reads it."""
    return read_house(ROOT)


class Outline(NamedTuple):
    """What the rules ask of any file: its imports (module, name), its top-level names, and its docstrings with their lines."""

    imports: list[tuple[str, str]]
    names: set[str]
    docstrings: list[tuple[int, str]]


@cache
def product() -> dict[str, Module]:
    """The files of the product by their paths, as tools/house.py reads them."""
    return {module.path: module for module in house().modules.values()}


@cache
def outline(path: Path) -> Outline:
    """Of a test the tree itself is not kept: a thousand of them are a gigabyte."""
    known = product().get(name(path))
    body = known.tree.body if known else ast.parse(path.read_text()).body
    found = Outline([], {each.name for each in defined(body)}, [])
    for node in known.statements if known else statements(body):
        if isinstance(node, ast.ImportFrom):
            found.imports.extend((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.docstrings.append((node.lineno, node.value.value))
    return found


def in_rooms(*rooms: str) -> list[Module]:
    return [module for module in house().modules.values() if module.layer in rooms]


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def lines(path: Path) -> int:
    return path.read_text().count("\n")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_is_longer_than_600_lines() -> None:
    assert {name(path): lines(path) for path in sources(*ROOMS, "tests") if lines(path) > 600} == {}


@pytest.mark.long
def test_no_function_is_longer_than_60_lines() -> None:
    found = {f"{module.path}:{node.name}": length(node) for module in in_rooms(*ROOMS) for node in module.functions}
    assert {where: count for where, count in found.items() if count > 60} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_half_of_the_functions_of_a_room_have_at_most_10_lines(room: str) -> None:
    found = [length(node) for module in in_rooms(room) for node in module.functions]
    assert found, f"{room} holds no function"
    assert median(found) <= 10


def test_nothing_in_the_rooms_is_marked_unfinished() -> None:
    assert [name(path) for path in sources(*ROOMS) if UNFINISHED.search(path.read_text())] == []


def test_an_init_file_holds_at_most_a_docstring() -> None:
    inits = [path for path in sources(*ROOMS, "tests", "examples", "benchmarks") if path.name == "__init__.py"]
    trees = {name(path): ast.parse(path.read_text()) for path in inits}
    assert [path for path, tree in trees.items() if len(tree.body) > (ast.get_docstring(tree) is not None)] == []


def test_every_folder_of_python_files_is_a_package() -> None:
    folders = {path.parent for path in sources(*ROOMS, "tests")}
    assert sorted(name(folder) for folder in folders if not (folder / "__init__.py").is_file()) == []


def test_a_file_is_named_after_its_noun() -> None:
    assert [name(path) for path in sources(*ROOMS, "tests") if path.stem in VAGUE] == []


def catches(handler: ast.ExceptHandler) -> set[str]:
    """The names a handler catches; a bare one catches BaseException."""
    if handler.type is None:
        return {"BaseException"}
    return {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}


def raises_again(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler))


def test_only_three_places_catch_every_exception() -> None:
    found = {
        module.path
        for module in in_rooms(*ROOMS)
        for node in module.statements
        if isinstance(node, ast.ExceptHandler) and catches(node) & {"Exception", "BaseException"} and not raises_again(node)
    }
    assert found - CATCHERS == set()


def test_nothing_is_raised_in_an_except_star() -> None:
    """Before Python 3.11.4 it is put in a group of its own there (gh-103590): who waits for the error does not get it."""
    stars = [(module, node) for module in in_rooms(*ROOMS) for node in module.statements if isinstance(node, ast.TryStar)]
    inside = [(module.path, each) for module, star in stars for handler in star.handlers for each in ast.walk(handler)]
    assert stars != [] and [path for path, each in inside if isinstance(each, ast.Raise)] == []


def test_any_stands_only_in_the_registry() -> None:
    suspects = [module for module in in_rooms(*ROOMS[1:]) if "Any" in module.text]
    assert [module.path for module in suspects if any(is_any(node) for node in ast.walk(module.tree))] == []


def is_any(node: ast.AST) -> bool:
    imported = isinstance(node, ast.ImportFrom) and node.module == "typing" and any(alias.name == "Any" for alias in node.names)
    return imported or (isinstance(node, ast.Attribute) and node.attr == "Any")


def test_no_file_names_a_package_registry_or_a_path_of_this_machine() -> None:
    found: list[str] = []
    for path in files():
        if path.stat().st_size < 2_000_000 and any(host.encode() in path.read_bytes() for host in HOSTS):
            found.append(name(path))
    assert found == []


def pins(file: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.\[\]-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE))


@pytest.mark.parametrize("larger", ["requirements-dev.txt", "requirements-bench.txt"])
def test_the_larger_sets_hold_the_very_pins_of_the_service(larger: str) -> None:
    service = pins("requirements.txt")
    assert service
    assert service.items() <= pins(larger).items()


def test_the_project_names_what_requirements_in_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[=>~]=", line)[0] for line in [*project["dependencies"], *project["optional-dependencies"]["postgres"]]}
    assert declared == pins("requirements.in").keys()


@pytest.mark.parametrize("room", ROOMS)
def test_a_public_name_is_defined_once_in_its_layer(room: str) -> None:
    assert house().doubles(private=False).get(room) == {}


def test_a_private_name_is_rarely_defined_twice_in_its_layer() -> None:
    assert house().share_of_doubles(private=True) <= 2


@pytest.mark.long
def test_a_name_that_other_tests_import_is_defined_once_in_the_tests() -> None:
    places, imported = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path in sources("tests"):
        module = name(path).removesuffix(".py").replace("/", ".")
        for source, word in outline(path).imports:
            imported[word].add(source)
        for word in outline(path).names:
            places[word].add(module)
    assert {word: sorted(found) for word, where in places.items() if len(found := where & imported[word]) > 1} == {}


def is_operation(node: ast.AST) -> TypeGuard[ast.AsyncFunctionDef]:
    """A declared operation: its name is its published id."""
    calls = [each.func for each in getattr(node, "decorator_list", []) if isinstance(each, ast.Call)]
    return any(isinstance(each, ast.Name) and each.id == "operation" for each in calls)


def test_no_name_is_another_one_with_a_number_or_its_module_glued_on() -> None:
    ids = {f"{module.path}: {node.name}" for module in house().modules.values() for node in module.tree.body if is_operation(node)}
    assert sorted(set(glued(house())) - ids) == []


def test_a_small_file_with_one_importer_in_its_folder_is_part_of_that_file() -> None:
    importers = defaultdict[str, set[str]](set)
    for module in house().modules.values():
        for each in house().own_imports(module):
            importers[each].add(module.name)
    found = [
        f"{module.path} ({module.lines} lines): {user}"
        for module in house().modules.values()
        if module.lines < 60 and not module.path.endswith("__init__.py") and len(importers[module.name]) == 1
        for user in importers[module.name]
        if user.rpartition(".")[0] == module.name.rpartition(".")[0]
    ]
    assert found == []


def test_nothing_inside_a_layer_imports_in_a_circle_at_any_depth() -> None:
    assert house().knots == []


def test_the_engine_of_the_storage_knows_no_aggregate() -> None:
    engine = [module for module in house().modules.values() if module.name.startswith("storage.engine")]
    found = {each for module in engine for each in house().own_imports(module) if each.startswith("storage.")}
    assert engine and sorted(each for each in found if not each.startswith("storage.engine")) == []


SLOW = {
    "aiohttp": 496,
    "aiosmtplib": 65,
    "alembic": 677,
    "babel": 32,
    "cryptography": 182,
    "httpx": 494,
    "httpx2": 231,
    "httpx_aiohttp": 4,  # after the two that it joins
    "jinja2": 162,
    "jwt": 210,
    "markdown_it": 91,
    "mcp": 1979,
    "openai": 2112,
    "prometheus_client": 146,
    "psycopg": 464,
    "rich": 175,
    "segno": 104,
    "simulators.processor.turns": 130,
    "sqlalchemy": 295,
    "sqlmodel": 740,
    "starlette": 174,
    "stripe": 881,
    "typer": 125,
    "typst": 7,  # and 78 MB of a library to read from a cold disk
    "uvicorn": 267,
    "uvloop": 70,
}
"""Packages that take long to import, with the milliseconds of processor time that it takes after pydantic, anyio and orjson are there:
`serve`, `--version` and the completion of a shell wait for none that they do not need. Below 20 ms an import belongs to the top."""
SEAM = "simulators"
"""The product starts without them, so nothing imports them before it has been told to."""


def imports_of(node: ast.AST) -> Iterator[str]:
    """The modules that an import statement names, and for `from a import b` both a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (each for alias in node.names for each in (f"{node.module}.{alias.name}", node.module))


def is_slow(module: str) -> bool:
    """A package of SLOW, or the one module of ours that imports one at its top."""
    own = house().modules.get(module)
    if module in SLOW:
        return True
    if own is None:
        return module.partition(".")[0] in SLOW
    body = [each for node in own.tree.body for each in (node.body if isinstance(node, ast.With) else [node])]
    return any(each.partition(".")[0] in SLOW for node in body for each in imports_of(node))


def test_an_import_inside_a_function_is_of_a_slow_package_or_of_the_module_that_imports_it() -> None:
    found = {
        f"{module.path}:{function.name} {next(imports_of(node))}"
        for module in house().modules.values()
        for function in module.functions
        for node in statements(function.body)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not any(is_slow(each) or (each.startswith(f"{SEAM}.") and module.layer == "transports") for each in imports_of(node))
    }
    assert sorted(found) == []


KINDS = "md|py|tsv|patch|toml|yaml"
FOLDERS = "tests|docs|benchmarks|examples"
REFERENCE = re.compile(rf"(?<![\w./{{*~-])([\w-]+(?:/[\w.-]+)*\.(?:{KINDS})|(?:{FOLDERS})/[\w/.-]*\w)\b(?!\*)")


def comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.long
def test_comments_and_docstrings_point_to_files_that_exist() -> None:
    """Docstrings of fields and constants too. Only a file with such a word behind some `#` is read token by token, which is slow."""
    known = {name(path) for path in files()}
    ends = {"/".join(parts[at:]) for each in known for parts in [each.split("/")] for at in range(len(parts))}
    folders = {"/".join(parts[:at]) for each in known for parts in [each.split("/")] for at in range(1, len(parts))}

    def missing(text: str) -> list[str]:
        return [each for each in REFERENCE.findall(text) if each not in ends and each not in folders and f"{each}.py" not in known]

    found: list[str] = []
    for path in sources(*ROOMS, "tests", "tools", "benchmarks", "examples"):
        text = path.read_text()
        suspect = any(missing(line[line.index("#") :]) for line in text.splitlines() if "#" in line)
        said = [*outline(path).docstrings, *(comments(text) if suspect else [])]
        found += [f"{name(path)}:{line} {each}" for line, each_text in said for each in missing(each_text)]
    assert found == []


PORTS = {"registry/ports.py", "registry/clock.py", "registry/ids.py", "registry/rate_limits.py", "registry/shared_limits.py"}


def is_port(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef) and any(isinstance(each, ast.Name) and each.id == "Protocol" for each in node.bases)


def test_the_docstring_of_a_port_names_its_parameters() -> None:
    """In back quotes, in the docstring of the method or of its class."""
    modules = [each for each in house().modules.values() if each.path in PORTS or each.path.endswith(("/port.py", "operations/deps.py"))]
    ports = [(module.path, node) for module in modules for node in module.tree.body if is_port(node)]
    found: list[str] = []
    for path, port in ports:
        for method in (each for each in ast.walk(port) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)):
            text = f"{ast.get_docstring(port)} {ast.get_docstring(method)}"
            names = [each.arg for each in (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)]
            found += [f"{path}: {port.name}.{method.name} {each}" for each in names if each != "self" and f"`{each}`" not in text]
    assert found == []
