"""Where a program may have its answer sent to: exact addresses, of schemes that run nothing."""

import re
from typing import cast
from urllib.parse import urlsplit

from pydantic import AnyUrl, TypeAdapter

REDIRECT_LENGTH_LIMIT = 2048
REDIRECTS_LIMIT = 10
LOOPBACK_HOSTS = ("127.0.0.1", "[::1]", "localhost")
# Schemes with a dot that programs did not register for themselves; all others that a browser runs or opens by itself have none.
DENIED_SCHEMES = frozenset({"vnd.ms.radio"})
ANY_URL = TypeAdapter(AnyUrl)
_REDIRECT_SHAPE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.+)", re.ASCII)
_OWN_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+", re.ASCII)
_WEB_ADDRESS = re.compile(
    r"//(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::(?P<port>[0-9]{1,5}))?(?P<rest>(?:[/?].*)?)", re.ASCII
)
_SAFE_CHARACTERS = re.compile(r"(?:[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+", re.ASCII)
DOT_SEGMENTS = re.compile(r"/(?:\.|%2e){1,2}(?=/|\?|$)", re.IGNORECASE)


class BadRedirect(ValueError):
    """The address is not one to register. `reason` names the rule and never repeats the address."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_redirects(uris: object) -> tuple[str, ...]:
    """A list of 1 to 10 addresses that may be registered, as they were written."""
    members = cast("list[object]", uris) if isinstance(uris, list) else []
    written = tuple(uri for uri in members if isinstance(uri, str))
    if not 1 <= len(written) <= REDIRECTS_LIMIT or len(written) != len(members):
        raise BadRedirect(f"redirect_uris must be a list of 1 to {REDIRECTS_LIMIT} texts")
    for uri in written:
        check_redirect(uri)
    return written


def check_redirect(uri: str) -> None:
    """https anywhere, http to this machine, or a scheme of the program's own."""
    shape = _REDIRECT_SHAPE.fullmatch(uri)
    if len(uri) > REDIRECT_LENGTH_LIMIT or shape is None or not _SAFE_CHARACTERS.fullmatch(uri):
        raise BadRedirect(
            f"each must be an absolute address of at most {REDIRECT_LENGTH_LIMIT} characters, percent-encoded and without a fragment"
        )
    scheme = shape["scheme"].lower()
    if scheme not in ("http", "https"):
        check_own_scheme(scheme)
    if DOT_SEGMENTS.search(uri):
        raise BadRedirect("an address must not have . or .. in its path")
    if scheme in ("http", "https"):
        check_web_address(shape["rest"], local=scheme == "http")
    elif "@" in shape["rest"]:
        raise BadRedirect("an address must not have a user name")
    check_host_reading(uri, web=scheme in ("http", "https"))


def check_own_scheme(scheme: str) -> None:
    """A scheme of the program's own is a name of its maker's, written backwards: nobody else can claim it then (RFC 8252 section 7.1), and
    what browsers run or open by themselves, such as javascript or mailto, has no dot."""
    if scheme in DENIED_SCHEMES or _OWN_SCHEME.fullmatch(scheme) is None:
        raise BadRedirect(
            f"the scheme {scheme} is not accepted; use https, http to 127.0.0.1, or a scheme of your own with a dot in it: "
            "a domain of yours written backwards, such as com.example.app"
        )


def is_redirect_accepted(uri: str) -> bool:
    """Whether an address may be registered today; one that was registered earlier was held to the rules of then."""
    try:
        check_redirect(uri)
    except BadRedirect:
        return False
    return True


def is_loopback_redirect(uri: str) -> bool:
    """Whether an address is on the computer of the browser that goes there."""
    return loopback_address(uri) is not None


def check_web_address(rest: str, *, local: bool) -> None:
    """What stands behind http: or https:."""
    found = _WEB_ADDRESS.fullmatch(rest)
    if found is None or int(found["port"] or 1) not in range(1, 65536):
        raise BadRedirect("a web address needs a host and may have a port, but no user name")
    if local and found["host"].lower() not in LOOPBACK_HOSTS:
        raise BadRedirect("plain http goes to 127.0.0.1, [::1] or localhost alone; use https")


def check_host_reading(uri: str, *, web: bool) -> None:
    """Two who read an address must find the same host in it: people are shown the one, and browsers go to the other."""
    try:
        host, read = urlsplit(uri).hostname, ANY_URL.validate_python(uri).host
    except ValueError:
        raise BadRedirect("an address must have a host and a port that browsers can read, if it has any") from None
    if web and host != (read or "").strip("[]"):
        raise BadRedirect("the host must be written as browsers write it, an IP address in its usual form")


def same_redirect(registered: str, presented: str) -> bool:
    """Character for character; on this machine with any port, which the system chooses at each start (RFC 8252 section 7.3)."""
    return registered == presented or (
        (ours := loopback_address(registered)) is not None
        and _SAFE_CHARACTERS.fullmatch(presented) is not None
        and ours == loopback_address(presented)
    )


def loopback_address(uri: str) -> tuple[str, str] | None:
    """Host and path of an http address of this machine."""
    found = _WEB_ADDRESS.fullmatch(uri.removeprefix("http:")) if uri.startswith("http:") else None
    if found is None or found["host"] not in LOOPBACK_HOSTS or int(found["port"] or 1) not in range(1, 65536):
        return None
    return found["host"], found["rest"]
