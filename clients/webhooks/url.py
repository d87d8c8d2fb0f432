"""Which URLs may be registered as a webhook receiver."""

import re
from collections.abc import Sequence
from functools import lru_cache

from clients.webhooks.addresses import Network
from clients.webhooks.host import BadHost, canonical_host, check_host, is_loopback, is_private
from clients.webhooks.private_receivers import PrivateReceivers

LONGEST_URL = 2048
WEB_PORTS = (80, 443)
HOSTS_REMEMBERED = 4096
FIRST_FREE_PORT = 1024
_SHAPE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>.*)", re.ASCII)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\"^`{|}\ud800-\udfff]")


class BadUrl(ValueError):
    """The URL cannot receive deliveries. `reason` never repeats path or query: they may hold secrets."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"url: {reason}")
        self.reason = reason


def check_url(url: str, exempt: Sequence[Network] = (), private: PrivateReceivers | None = None) -> None:
    """Accept an absolute https URL of a public host; plain http only for a host the operator exempted.

    `private`: what else is accepted, in the operator's own network. Choice: over TLS as everywhere; SERVICE_CA_FILE names the
    operator's own authority.
    """
    _check_text(url)
    shape = _SHAPE.fullmatch(url)
    if shape is None or not shape["authority"]:
        raise BadUrl("not an absolute URL. Give one such as https://hooks.example.com/esim.")
    if not shape["rest"].isascii():
        raise BadUrl("the path or query has characters outside ASCII. Percent-encode them.")
    if "#" in shape["rest"]:
        raise BadUrl("a fragment (#...) is never sent to a server. Leave it out.")
    host, port = _split(shape["authority"])
    try:
        local = False if private is not None and is_private(host, private) else check_host(host, exempt)
    except BadHost as error:
        raise BadUrl(error.reason) from None
    _check_scheme(shape["scheme"].lower(), local=local)
    _check_port(port, local=local)


def _check_text(url: str) -> None:
    if len(url) > LONGEST_URL:
        raise BadUrl(f"{len(url)} characters long, the limit is {LONGEST_URL}.")
    if _UNSAFE.search(url):
        raise BadUrl("has a space, control character, backslash or another character that must be percent-encoded.")


def _split(authority: str) -> tuple[str, str | None]:
    if "@" in authority:
        raise BadUrl("has a user name or password before the host. Deliveries are signed; leave them out.")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not parts["host"] or "%" in authority:
        raise BadUrl(f"{authority!r} is not a host with an optional port, such as hooks.example.com:8443.")
    return parts["host"], parts["port"]


def _check_scheme(scheme: str, *, local: bool) -> None:
    if scheme == "https" or (scheme == "http" and local):
        return
    raise BadUrl(f"scheme {scheme!r} is not accepted, deliveries go out over TLS. Use https://.")


def _check_port(port: str | None, *, local: bool) -> None:
    if port is None:
        return
    number = int(port)
    # Choice: low ports other than the web's own belong to other protocols (mail, file sharing), so they are refused.
    low = number < FIRST_FREE_PORT and number not in WEB_PORTS and not local
    if low or not 0 < number <= 65535:
        raise BadUrl(f"port {number} is not accepted. Use 443, 80 or a port from {FIRST_FREE_PORT} to 65535.")


@lru_cache(maxsize=HOSTS_REMEMBERED)
def bounded_host(url: str) -> str | None:
    """The host whose rate a delivery counts against, spelled in one way; nothing for this machine, which only an operator can open."""
    shape = _SHAPE.fullmatch(url)
    authority = None if shape is None else _AUTHORITY.fullmatch(shape["authority"])
    if authority is None or not authority["host"]:
        return None
    return None if is_loopback(authority["host"]) else canonical_host(authority["host"])
