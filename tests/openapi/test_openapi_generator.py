"""Clients that openapi-generator makes of the document, in the languages that are asked for most: they compile."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from tests.openapi.lamps import LAMPS
from tests.openapi.test_judges import LIBRARY, STRICT
from tests.openapi.tools import node, openapi_generator, verdict
from tests.openapi.written import write_openapi
from tests.world import SITE
from transports.openapi.document import build_openapi

pytestmark = pytest.mark.long

LANGUAGES = {"service": ("python", "go"), "lamps": ("python", "go"), "small": ("typescript-fetch",)}
"""By document. TypeScript of the service's is what two other generators make (test_judges.py)."""
PARTS = dict.fromkeys(("apiTests", "modelTests", "apiDocs", "modelDocs"), "false")


@pytest.fixture(scope="module", params=["service", "lamps"])
def clients(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the clients, with the document: the service's, or a small one."""
    folder = tmp_path_factory.mktemp("clients") / str(request.param)
    write_openapi(CATALOGUE if request.param == "service" else LAMPS, folder / "openapi.json")
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with the small document alone."""
    write_openapi(LAMPS, tmp_path / "small" / "openapi.json")
    return tmp_path / "small"


def generate(folder: Path) -> None:
    """A folder for each language; one Java makes them all, since its start costs more than a small client."""
    languages = LANGUAGES[folder.name]
    if (folder / languages[0]).exists():
        return
    for language in languages:
        asked = {"generatorName": language, "inputSpec": str(folder / "openapi.json"), "outputDir": str(folder / language)}
        (folder / f"{language}.json").write_text(json.dumps(asked | {"globalProperties": PARTS}))
    made = openapi_generator("openapi-generator-cli", "batch", "--fail-fast", *(f"{name}.json" for name in languages), cwd=folder)
    assert (made.returncode, "[SUCCESS]" in made.stdout) == (0, True), made.stdout


@contextmanager
def generated(folder: Path, language: str) -> Generator[Path | None]:
    """The client in this language, where it has still to be looked at."""
    with verdict(f"openapi-generator {language}", folder / "openapi.json", Path(__file__)) as open_yet:
        if open_yet:
            generate(folder)
        yield folder / language if open_yet else None


@pytest.mark.generator
def test_the_python_client_is_imported_whole(clients: Path) -> None:
    words = ("-W", "error", "-c", "import compileall, openapi_client; assert compileall.compile_dir('openapi_client', quiet=1)")
    with generated(clients, "python") as client:
        if client is not None:
            done = openapi_generator("python", *words, cwd=client)
            assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.generator
@pytest.mark.node
def test_the_typescript_client_compiles(small: Path) -> None:
    with generated(small, "typescript-fetch") as client:
        if client is not None:
            done = node("tsc", *STRICT, *LIBRARY, "index.ts", cwd=client)
            assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.generator
def test_the_go_client_compiles(clients: Path) -> None:
    """`go vet` looks at every type, and saves the half minute in which `go build` makes machine code that nobody runs."""
    with generated(clients, "go") as client:
        if client is not None:
            done = openapi_generator("go", "vet", "./...", cwd=client)
            assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return build_openapi(CATALOGUE, SITE)


def schemas(value: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema with a type, and where it is."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield path, value
        for name, inner in value.items():
            yield from schemas(inner, f"{path}/{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from schemas(inner, f"{path}[{number}]")


def test_null_is_never_all_that_a_value_may_be(document: dict[str, Any]) -> None:
    assert [path for path, schema in schemas(document) if schema["type"] == "null" and not path.endswith("]")] == []


def test_no_schema_is_called_as_what_makes_another_one(document: dict[str, Any]) -> None:
    names = set(document["components"]["schemas"])
    assert {name for name in names if name.removeprefix("New") in names - {name}} == set()
    assert {"IntentRequest", "Intent", "NewProduct"} <= names


def test_a_whole_number_has_64_bits_unless_its_bounds_need_fewer(document: dict[str, Any]) -> None:
    numbers = [(path, schema) for path, schema in schemas(document["components"]["schemas"]) if schema["type"] == "integer"]
    narrow = [path for path, s in numbers if s.get("format") != "int64" and s.get("maximum", s.get("const", 2**31)) >= 2**31]
    assert len(numbers) > 500 and narrow == []
