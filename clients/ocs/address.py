"""Where a call goes and how it shows its token."""

from typing import Literal
from urllib.parse import quote, urlsplit

from clients.ocs.settings import OcsSettings

Version = Literal["v1", "v2"]


def address(settings: OcsSettings, token: str, *, version: Version, stats: bool) -> str:
    """The whole URL. It is a secret when the token travels in the query."""
    base = urlsplit(settings.statistics_url if stats and settings.statistics_url else settings.url)
    path = base.path if version == "v1" else _of_version(base.path, version)
    shown = f"token={quote(token, safe='')}" if settings.auth == "query" else ""
    query = "&".join(part for part in (base.query, shown) if part)
    return base._replace(path=path, query=query, fragment="").geturl()


def headers(settings: OcsSettings, token: str) -> dict[str, str]:
    """What every request carries."""
    plain = {"content-type": "application/json", "accept": "application/json"}
    if settings.auth == "query":
        return plain
    scheme = "Bearer" if settings.auth == "bearer" else "Token"
    return {**plain, "authorization": f"{scheme} {token}"}


def can_travel(settings: OcsSettings, token: str) -> bool:
    """Whether a header can hold the token; a query can hold any that UTF-8 can write."""
    if settings.auth == "query":
        return not any("\ud800" <= character <= "\udfff" for character in token)
    return token.isascii() and token.isprintable()


def _of_version(path: str, version: Version) -> str:
    """The other version stands where the last segment is."""
    slash = "/" if path.endswith("/") else ""
    head, _, _ = path.rstrip("/").rpartition("/")
    return f"{head}/{version}{slash}"
