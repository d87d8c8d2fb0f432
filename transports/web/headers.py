"""The headers and cookies of pages for people, those of the shops as well."""

from collections.abc import Mapping

from operations.web_pages import page_policy
from transports.http.asgi import Headers

PAGE_MEDIA_TYPE = "text/html; charset=utf-8"
# Choice: same-origin where other public pages have no-referrer. With that a browser sends a form with `Origin: null`, which is refused;
# the links that lead elsewhere say noreferrer, and no other site is told more by this.
REFERRER_POLICY = b"same-origin"


def page_headers(style: str, *, posts_to: str, more: Mapping[str, str]) -> Headers:
    """Nothing but our own style sheet is taken; forms go to us and, where one leads on, to `posts_to`."""
    forms = f"'self' {posts_to}" if posts_to else "'self'"
    return [
        (b"content-type", PAGE_MEDIA_TYPE.encode()),
        (b"content-security-policy", page_policy(style, forms=forms).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", REFERRER_POLICY),
        (b"cache-control", b"no-store"),
        (b"x-robots-tag", b"noindex"),
        *((name.lower().encode(), value.encode("latin-1")) for name, value in more.items()),
    ]


DOOR_HEADERS = (b"content-type", b"x-content-type-options", b"cache-control")
"""Headers that the HTTP door gives every answer of its own."""


class PageCookies:
    """Names and flags. The prefix __Host- makes browsers refuse a cookie that another host or an unencrypted page has set."""

    def __init__(self, *, secure: bool) -> None:
        prefix = "__Host-" if secure else ""
        self._flags = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")
        self.session, self.visitor, self.known = f"{prefix}session", f"{prefix}visitor", f"{prefix}known"
        self.login_state = f"{prefix}code-"
        """What the names of the cookies of open logins begin with."""

    def given(self, name: str, value: str, seconds: int) -> str:
        """A Set-Cookie header that gives one."""
        return f"{name}={value}; Max-Age={seconds}{self._flags}"

    def taken(self, name: str) -> str:
        """A Set-Cookie header that takes one away."""
        return self.given(name, "", 0)


MOST_COOKIES = 100
"""That are looked at; a browser keeps few for one site, and ours are among the first."""


def read_cookies(headers: Headers) -> Mapping[str, str]:
    """The cookies of a request. One that comes twice counts as not sent: nobody can say which of the two is ours."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for name, value in headers:
        if name != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";", MOST_COOKIES):
            key, equals, text = pair.strip().partition("=")
            if equals and key in found:
                twice.add(key)
            found[key] = text
    return {key: text for key, text in found.items() if key not in twice}
