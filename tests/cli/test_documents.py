"""`reseller openapi`, `reseller asyncapi` and `reseller reference`: the descriptions of the service as files.

The block of CONTRIBUTING that writes what is committed is run by tests/docs.
"""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.reseller import printed
from tests.harness.processes import ROOT, running


@pytest.mark.long
def test_the_pages_are_written_where_it_is_said_and_are_those_that_are_committed(tmp_path: Path) -> None:
    committed = {path.name: path.read_text() for path in (ROOT / "docs" / "reference").iterdir()}
    assert sorted(printed("reference", "pages", cwd=tmp_path).splitlines()) == sorted(f"pages/{name}" for name in committed)
    assert {path.name: path.read_text() for path in (tmp_path / "pages").iterdir()} == committed


@pytest.mark.long
def test_the_document_and_the_pages_of_a_server_are_at_the_addresses_it_prints(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server, httpx.Client(base_url=server.base_url) as http:
        document = json.loads(printed("openapi", "--base-url", server.base_url, cwd=tmp_path))
        assert http.get("/openapi.json").json() == document
        events = json.loads(printed("asyncapi", "--base-url", server.base_url, cwd=tmp_path))
        assert http.get("/asyncapi.json").json() == events
        pages = http.get("/docs", follow_redirects=True)
        assert (pages.status_code, pages.headers["content-type"].partition(";")[0]) == (200, "text/html")
