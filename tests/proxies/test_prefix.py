"""Below a path of somebody else's site: what stands before our own paths is in every link that says no host."""

from dataclasses import replace

import pytest

from operations.catalogue import CATALOGUE
from tests.world import SITE
from transports.http.response import next_link
from transports.reference.entries import build_reference
from transports.reference.pages import HtmlReference


@pytest.mark.long
def test_pages_of_the_reference_lead_to_each_other_below_the_path() -> None:
    site = replace(SITE, base_url="https://www.example/reseller/")
    pages = HtmlReference(build_reference(CATALOGUE, site))
    for text in (pages.index(), pages.missing(), pages.toolset(pages.reference.chapters[0])):
        assert 'href="/reseller/docs' in text and 'href="/docs' not in text and 'href="/openapi' not in text


def test_the_next_page_of_a_list_is_below_the_path() -> None:
    told = next_link("GET", b"/v1/notes", b"limit=1", "n_1", "/reseller")
    assert told == (b"link", b'</reseller/v1/notes?limit=1&starting_after=n_1>; rel="next"')
    assert SITE.path == ""
