"""What every page of ours is, for whomever: closed to scripts and to other sites, kept by nobody, and readable without a mouse."""

import base64
import hashlib
import re

from tests.pages.browser import Seen

NEVER_TAGS = {"script", "iframe", "object", "embed", "link", "base", "audio", "video", "source"}
NEVER_ATTRIBUTES = {"style", "srcdoc", "srcset", "formaction"}
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
}


def style_of(seen: Seen) -> str:
    """The page's only style sheet, which stands in its head."""
    [style] = re.findall(r"<style>(.*?)</style>", seen.page.html, re.DOTALL)
    return style


def check_closed_page(name: str, seen: Seen, *, posts_to: str = "") -> None:
    """Its headers, its tags, and a label for each field; forms lead here and to `posts_to`."""
    headers, page = seen.answer.headers, seen.page
    digest = base64.b64encode(hashlib.sha256(style_of(seen).encode()).digest()).decode()
    assert headers["content-security-policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        f"form-action 'self'{posts_to}; frame-ancestors 'none'"
    ), name
    assert {header: headers[header] for header in HEADERS} == HEADERS, name
    assert int(headers["content-length"]) == len(seen.answer.content)
    tags = [tag.name for tag in page.tags]
    assert not NEVER_TAGS & set(tags), name
    assert tags.count("h1") == tags.count("main") == tags.count("title") == 1, name
    labels = [tag.attributes["for"] for tag in page.tags if tag.name == "label"]
    ids = [tag.attributes["id"] for tag in page.tags if "id" in tag.attributes]
    assert len(ids) == len(set(ids)), name
    for tag in page.tags:
        given = tag.attributes
        assert not any(key.startswith("on") or key in NEVER_ATTRIBUTES for key in given), (name, tag)
        if tag.name in ("select", "textarea") or (tag.name == "input" and given["type"] != "hidden"):
            assert labels.count(given["id"]) == 1, (name, tag)
        references = [*given.get("aria-describedby", "").split(), *given.get("aria-labelledby", "").split()]
        assert set(references) <= set(ids), (name, tag)
