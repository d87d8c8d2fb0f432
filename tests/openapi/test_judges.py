"""Linters and generators from outside: nothing to remark, and code that compiles."""

import json
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from tests.harness.processes import ROOT, running
from tests.openapi.lamps import LAMPS
from tests.openapi.tools import generator, node
from tests.openapi.written import write_openapi

STRICT = ["--noEmit", "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"]
# What comes with the compiler is not checked again: that takes longer than all that is ours.
LIBRARY = ["--lib", "es2022,dom,dom.iterable", "--skipLibCheck"]


@pytest.mark.node
def test_spectral_has_nothing_to_remark(document_file: Path, tmp_path: Path) -> None:
    (tmp_path / "ruleset.yaml").write_text('extends: ["spectral:oas"]\n')
    done = node("spectral", "lint", "-r", "ruleset.yaml", "-F", "hint", document_file, cwd=tmp_path)
    assert (done.returncode, "No results with a severity of 'hint' or higher found!" in done.stdout) == (0, True), done.stdout


@pytest.mark.node
def test_redocly_has_nothing_to_remark(document_file: Path, tmp_path: Path) -> None:
    # Two paths of the specification are alike: issue-from-inventory/{key} and {iccid}/packages. The literal segment wins.
    (tmp_path / "redocly.yaml").write_text("extends: [recommended-strict]\nrules:\n  no-ambiguous-paths: off\n")
    done = node("redocly", "lint", "--config", "redocly.yaml", "--format", "json", document_file, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert '"totals": {\n    "errors": 0,\n    "warnings": 0,' in done.stdout, done.stdout


@pytest.mark.node
def test_openapi_typescript_makes_types_that_compile(document_file: Path, tmp_path: Path) -> None:
    made = node("openapi-typescript", document_file, "-o", "schema.ts", cwd=tmp_path)
    assert made.returncode == 0, made.stdout
    compiled = node("tsc", *STRICT, *LIBRARY, "schema.ts", cwd=tmp_path)
    assert (compiled.returncode, compiled.stdout) == (0, "")


@pytest.mark.node
def test_hey_api_makes_a_client_that_compiles(service_file: Path, tmp_path: Path) -> None:
    made = node("openapi-ts", "-i", service_file, "-o", "client", cwd=tmp_path)
    assert made.returncode == 0, made.stdout
    compiled = node("tsc", *STRICT, *LIBRARY, "client/index.ts", "client/client.gen.ts", cwd=tmp_path)
    assert (compiled.returncode, compiled.stdout) == (0, "")


@pytest.fixture(scope="module", params=["service", "lamps"])
def python_client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the generated client, and what the generator said."""
    folder = tmp_path_factory.mktemp("client")
    write_openapi(CATALOGUE if request.param == "service" else LAMPS, folder / "openapi.json")
    config = ROOT / "docs" / "openapi-python-client.yaml"
    words = ["--path", "openapi.json", "--output-path", "client", "--config", config, "--fail-on-warning"]
    done = generator("openapi-python-client", "generate", *words, cwd=folder)
    return folder, f"{done.stdout.strip()} ({done.returncode})"


@pytest.mark.generator
def test_openapi_python_client_makes_a_client_without_a_warning(python_client: tuple[Path, str]) -> None:
    assert python_client[1] == "Generating client (0)"


@pytest.mark.generator
@pytest.mark.parametrize("python_client", ["service"], indirect=True)
def test_the_generated_python_client_issues_an_esim(python_client: tuple[Path, str], tmp_path: Path) -> None:
    folder = python_client[0]
    with running(tmp_path / "data") as server:
        assert server.api_key is not None
        script = (folder / "client" / "issue.py", Path(__file__).with_name("issue.py"))
        script[0].write_text(script[1].read_text())
        done = generator("python", script[0], server.base_url, server.api_key, cwd=folder)
    assert json.loads(done.stdout) == {"status": "succeeded", "same": True, "lpa": "LPA:1$", "missing": "not_found"}, done.stdout
