"""Cookies as they come and as they are set: never readable for scripts, and bound to this host wherever the address is https."""

from collections.abc import Mapping

from transports.http.asgi import Headers


class Cookies:
    """Names and flags. The prefix __Host- makes browsers refuse a cookie that another host or an unencrypted page has set."""

    def __init__(self, *, secure: bool) -> None:
        prefix = "__Host-" if secure else ""
        self._flags = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")
        self.session, self.visitor, self.known = f"{prefix}session", f"{prefix}visitor", f"{prefix}known"
        self.slip = f"{prefix}code-"
        """What the names of slips begin with."""

    def given(self, name: str, value: str, seconds: int) -> str:
        """A Set-Cookie header that gives one."""
        return f"{name}={value}; Max-Age={seconds}{self._flags}"

    def taken(self, name: str) -> str:
        """A Set-Cookie header that takes one away."""
        return self.given(name, "", 0)


MOST_COOKIES = 100
"""That are looked at; a browser keeps few for one site, and ours are among the first."""


def presented(headers: Headers) -> Mapping[str, str]:
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
