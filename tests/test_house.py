"""The house rules that a linter does not know."""

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from statistics import median

import pytest

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
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def lines(path: Path) -> int:
    return path.read_text().count("\n")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_source_file_is_longer_than_600_lines() -> None:
    assert {name(path): lines(path) for path in sources(*ROOMS) if lines(path) > 600} == {}


def test_no_test_file_is_longer_than_600_lines() -> None:
    assert {name(path): lines(path) for path in sources("tests") if lines(path) > 600} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    found = {f"{name(path)}:{node.name}": length(node) for path in sources(*ROOMS) for node in functions(path)}
    assert {where: count for where, count in found.items() if count > 60} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_half_of_the_functions_of_a_room_have_at_most_10_lines(room: str) -> None:
    written = [path for path in sources(room) if path.name != "__init__.py"]
    assert written, f"{room} holds no source file"
    assert median([length(node) for path in written for node in functions(path)] or [0]) <= 10


def test_nothing_in_the_rooms_is_marked_unfinished() -> None:
    assert [name(path) for path in sources(*ROOMS) if UNFINISHED.search(path.read_text())] == []


def test_an_init_file_holds_at_most_a_docstring() -> None:
    inits = [path for path in sources(*ROOMS, "tests", "examples", "benchmarks") if path.name == "__init__.py"]
    assert [name(path) for path in inits if len(tree(path).body) > (ast.get_docstring(tree(path)) is not None)] == []


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
        name(path)
        for path in sources(*ROOMS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and catches(node) & {"Exception", "BaseException"} and not raises_again(node)
    }
    assert found - CATCHERS == set()


def test_any_stands_only_in_the_registry() -> None:
    rooms = [room for room in ROOMS if room != "registry"]
    found = {name(path) for path in sources(*rooms) for node in ast.walk(tree(path)) if is_any(node)}
    assert found == set()


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
