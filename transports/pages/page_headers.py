"""What pages for people are sent with, those of the shops as well."""

from collections.abc import Mapping

from operations.services.page_policy import page_policy
from transports.http.asgi import Headers

MEDIA_TYPE = "text/html; charset=utf-8"
# Choice: same-origin where other public pages have no-referrer. With that a browser sends a form with `Origin: null`, which is refused;
# the links that lead elsewhere say noreferrer, and no other site is told more by this.
REFERRER = b"same-origin"


def page_headers(style: str, *, posts_to: str, more: Mapping[str, str]) -> Headers:
    """Nothing but our own style sheet is taken; forms go to us and, where one leads on, to `posts_to`."""
    forms = f"'self' {posts_to}" if posts_to else "'self'"
    return [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-security-policy", page_policy(style, forms=forms).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", REFERRER),
        (b"cache-control", b"no-store"),
        (b"x-robots-tag", b"noindex"),
        *((name.lower().encode(), value.encode("latin-1")) for name, value in more.items()),
    ]
