"""`reseller openapi`, `reseller asyncapi` and `reseller reference`: the descriptions of the service as files."""

import json
from pathlib import Path

import httpx

from operations.catalogue import CATALOGUE
from tests.cli.reseller import printed
from tests.harness.processes import running
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.asyncapi import asyncapi_bytes
from transports.openapi.page import openapi_bytes
from transports.reference.files import markdown_reference


def test_the_documents_are_those_of_the_catalogue(tmp_path: Path) -> None:
    assert printed("openapi", cwd=tmp_path) == openapi_bytes(CATALOGUE, COMMITTED_SITE, pretty=True).decode()
    assert printed("asyncapi", cwd=tmp_path) == asyncapi_bytes(CATALOGUE, COMMITTED_SITE, pretty=True).decode()
    pages = markdown_reference(CATALOGUE, COMMITTED_SITE)
    assert printed("reference", "pages", cwd=tmp_path).splitlines() == [f"pages/{name}" for name in pages]
    assert {path.name: path.read_text() for path in (tmp_path / "pages").iterdir()} == pages


def test_the_document_and_the_pages_of_a_server_are_at_the_addresses_it_prints(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server, httpx.Client(base_url=server.base_url) as http:
        document = json.loads(printed("openapi", "--base-url", server.base_url, cwd=tmp_path))
        assert http.get("/openapi.json").json() == document
        events = json.loads(printed("asyncapi", "--base-url", server.base_url, cwd=tmp_path))
        assert http.get("/asyncapi.json").json() == events
        pages = http.get("/docs", follow_redirects=True)
        assert (pages.status_code, pages.headers["content-type"].partition(";")[0]) == (200, "text/html")
