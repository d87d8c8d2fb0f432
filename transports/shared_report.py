"""A share link that leads to no report, as somebody before a browser sees it; programs get the refusal's JSON."""

from collections.abc import Mapping

from operations.intelligence.reports.page import dead_link, headers
from registry.call import Reply
from registry.errors import Refusal
from transports.http.asgi import HttpScope
from transports.identity.reader import reads_pages

FORMATS: Mapping[bytes, bool] = {b"format=html": True, b"format=json": False}
SHARED_PATH = "/v1/intelligence/share/"


def dead_link_page(request: HttpScope, refusal: Refusal, request_id: str) -> Reply | None:
    """One page for every miss, so that nothing is learned from it."""
    del request_id
    if refusal.status != 404 or not request["path"].startswith(SHARED_PATH) or not is_page(request):
        return None
    return Reply(404, dead_link(), "text/html; charset=utf-8", headers(), refusal=refusal)


def is_page(request: HttpScope) -> bool:
    """Whether a report behind the link would have been a page, too."""
    asked = [FORMATS[part] for part in request["query_string"].split(b"&") if part in FORMATS]
    return asked[0] if asked else reads_pages(request["headers"])
