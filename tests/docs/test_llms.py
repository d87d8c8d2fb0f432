"""llms.txt, in the source tree and of a server, is what the catalogue gives."""

import re

import httpx
import pytest

from operations.catalogue import CATALOGUE
from tests.harness.processes import ROOT, Running
from transports.reference.llms import LLMS_GUIDES, llms_text

LINK = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): .+$", re.MULTILINE)


def test_the_committed_file_is_that_of_the_catalogue() -> None:
    """`reseller llms > llms.txt` writes it anew."""
    assert (ROOT / "llms.txt").read_text() == llms_text(CATALOGUE)


def test_it_has_the_parts_of_the_convention_and_every_operation() -> None:
    text = llms_text(CATALOGUE)
    lines = text.splitlines()
    assert lines[0].startswith("# ") and lines[2].startswith("> ") and text.count("\n# ") == 0
    assert [line for line in lines if line.startswith("###")] == []
    names = [name for name, _ in LINK.findall(text)]
    assert set(CATALOGUE.operations) <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.long
def test_a_server_shows_its_own_addresses_to_everybody(server: Running) -> None:
    with httpx.Client(base_url=server.base_url, timeout=60) as http:
        answer = http.get("/llms.txt")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        links = [address for _, address in LINK.findall(answer.text)]
        assert server.mcp_url in links and len(links) > len(CATALOGUE.operations)
        assert [address for address in links if not address.startswith(f"{server.base_url}/")] == []
        assert [path for _, path, _ in LLMS_GUIDES if f"\n- {path}: " not in answer.text or not (ROOT / path).is_file()] == []
        for address in (links[1], links[3], links[-1]):
            assert http.get(address).status_code == 200
        assert http.get("/llms.txt", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
        assert http.post("/llms.txt").status_code == 405
