"""Linters and generators from outside: nothing to remark, and code that compiles."""

import json
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import Catalogue
from tests.harness.processes import ROOT, running
from tests.openapi.tools import generator, node, verdict
from tests.openapi.written import write_openapi

STRICT = ["--noEmit", "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"]
# What comes with the compiler is not checked again: that takes longer than all that is ours.
LIBRARY = ["--lib", "es2022,dom,dom.iterable", "--skipLibCheck"]


HERE, CONFIG = Path(__file__), ROOT / "docs" / "openapi-python-client.yaml"
CONNECTIVITY = Catalogue([toolset for toolset in CATALOGUE.toolsets if toolset.name == "connectivity"])
"""A part of the service, of which a client is made in every run."""


@pytest.mark.long
@pytest.mark.node
def test_spectral_has_nothing_to_remark(document_file: Path, tmp_path: Path) -> None:
    # Examples take it three quarters of its time; test_service.py holds each against its schema.
    (tmp_path / "ruleset.yaml").write_text('extends: ["spectral:oas"]\nrules:\n  oas3-valid-media-example: off\n')
    with verdict("spectral", document_file, HERE) as open_yet:
        if open_yet:
            done = node("spectral", "lint", "-r", "ruleset.yaml", "-F", "hint", document_file, cwd=tmp_path)
            assert (done.returncode, "No results with a severity of 'hint' or higher found!" in done.stdout) == (0, True), done.stdout


@pytest.mark.long
@pytest.mark.node
def test_redocly_has_nothing_to_remark(document_file: Path, tmp_path: Path) -> None:
    # Two paths of the specification are alike: issue-from-inventory/{key} and {iccid}/packages. The literal segment wins.
    (tmp_path / "redocly.yaml").write_text("extends: [recommended-strict]\nrules:\n  no-ambiguous-paths: off\n")
    with verdict("redocly", document_file, HERE) as open_yet:
        if open_yet:
            done = node("redocly", "lint", "--config", "redocly.yaml", "--format", "json", document_file, cwd=tmp_path)
            assert done.returncode == 0, done.stdout
            assert '"totals": {\n    "errors": 0,\n    "warnings": 0,' in done.stdout, done.stdout


@pytest.mark.long
@pytest.mark.node
def test_openapi_typescript_makes_types_that_compile(document_file: Path, tmp_path: Path) -> None:
    with verdict("openapi-typescript", document_file, HERE) as open_yet:
        if open_yet:
            compiles(("openapi-typescript", document_file, "-o", "schema.ts"), "schema.ts", cwd=tmp_path)


@pytest.mark.long
@pytest.mark.node
def test_hey_api_makes_a_client_that_compiles(document_file: Path, tmp_path: Path) -> None:
    with verdict("hey-api", document_file, HERE) as open_yet:
        if open_yet:
            compiles(("openapi-ts", "-i", document_file, "-o", "client"), "client/index.ts", "client/client.gen.ts", cwd=tmp_path)


def compiles(generator: tuple[str | Path, ...], *files: str, cwd: Path) -> None:
    """What the generator makes of a document is TypeScript without an error."""
    made = node(str(generator[0]), *generator[1:], cwd=cwd)
    assert made.returncode == 0, made.stdout
    compiled = node("tsc", *STRICT, *LIBRARY, *files, cwd=cwd)
    assert (compiled.returncode, compiled.stdout) == (0, "")


@pytest.mark.long
@pytest.mark.generator
def test_openapi_python_client_makes_a_client_without_a_warning(tmp_path: Path) -> None:
    write_openapi(CATALOGUE, tmp_path / "openapi.json")
    with verdict("openapi-python-client", tmp_path / "openapi.json", CONFIG, HERE) as open_yet:
        if open_yet:
            assert python_client(tmp_path) == "Generating client (0)"


@pytest.mark.long
@pytest.mark.generator
def test_the_generated_python_client_issues_an_esim(tmp_path: Path) -> None:
    write_openapi(CONNECTIVITY, tmp_path / "openapi.json")
    assert python_client(tmp_path) == "Generating client (0)"
    with running(tmp_path / "data") as server:
        assert server.api_key is not None
        script = tmp_path / "client" / "issue.py"
        script.write_text(HERE.with_name("issue.py").read_text())
        done = generator("python", script, server.base_url, server.api_key, cwd=tmp_path)
    assert json.loads(done.stdout) == {"status": "succeeded", "same": True, "lpa": "LPA:1$", "missing": "not_found"}, done.stdout


def python_client(folder: Path) -> str:
    """What the generator says while it makes a client of the document in the folder."""
    words = ["--path", "openapi.json", "--output-path", "client", "--config", CONFIG, "--fail-on-warning"]
    done = generator("openapi-python-client", "generate", *words, cwd=folder)
    return f"{done.stdout.strip()} ({done.returncode})"
