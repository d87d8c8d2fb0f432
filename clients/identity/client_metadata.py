"""Client id metadata documents: a program named by an https address, and what stands at that address."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from clients.authorities import authorities
from clients.failure import OutboundFailed
from clients.http import Outbound, OutboundLimits, Reply
from clients.identity.redirects import BadRedirect, check_redirects
from clients.webhooks.lookups import Lookup, Lookups
from clients.webhooks.url import BadUrl, check_url

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    import aiohttp

    from clients.webhooks.addresses import Network

LARGEST = 10 * 1024
KEPT_LEAST, KEPT_MOST, FAILURE_KEPT = 60.0, 86_400.0, 30.0
MOST_DOCUMENTS = 1000
LONGEST_NAME = 100
LIMITS = OutboundLimits(connections=20, keepalive_seconds=None, connect_seconds=5.0, total_seconds=5.0)
MAX_AGE = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?([0-9]{1,9})\"?\s*(?:,|$)", re.IGNORECASE | re.ASCII)
DOTS = re.compile(r"/(?:\.|%2e){1,2}(?=/|\?|$)", re.IGNORECASE)


class BadDocument(ValueError):
    """There is no usable document. The text names the rule and nothing that stands at the address."""


class ClientDocument(NamedTuple):
    """A program as it describes itself."""

    client_id: str
    name: str
    uri: str | None
    redirect_uris: tuple[str, ...]


class Kept(NamedTuple):
    """What came of a fetch, until then."""

    until: float
    document: ClientDocument | None
    problem: str


class ClientDocuments:
    """Fetches documents from addresses that strangers chose, so only vetted ones are ever connected to; keeps them for a while."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        exempt: Sequence[Network] = (),
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
        ca_file: Path | None = None,
    ) -> None:
        """`exempt` opens networks for local servers; `lookup` replaces DNS, `tls` the trusted authorities.

        `ca_file` names authorities that are trusted beside the public ones.
        """
        self._now, self._exempt, self._lookup, self._tls = now, tuple(exempt), lookup or Lookups(), tls
        self._ca_file = ca_file
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    async def get(self, client_id: str) -> ClientDocument:
        """The document at an address; BadDocument says what is wrong with it."""
        check_client_id(client_id, self._exempt)
        kept = self._kept.get(client_id)
        if kept is None or kept.until <= self._now():
            kept = self._kept[client_id] = await self._fetch(client_id)
            self._kept.move_to_end(client_id)
            if len(self._kept) > MOST_DOCUMENTS:
                self._kept.popitem(last=False)
        if kept.document is None:
            raise BadDocument(kept.problem)
        return kept.document

    async def _fetch(self, client_id: str) -> Kept:
        # One connection for one document: nothing stays open that somebody would have to close.
        outbound = Outbound(LIMITS, connector=self._connector, tls=self._trusted())
        try:
            reply = await outbound.exchange("GET", client_id, headers={"accept": "application/json"}, keep=LARGEST)
            return Kept(self._now() + kept_seconds(reply), read_document(client_id, reply), "")
        except OutboundFailed as failed:
            return Kept(self._now() + FAILURE_KEPT, None, f"the document cannot be fetched ({failed.kind})")
        except BadDocument as bad:
            return Kept(self._now() + FAILURE_KEPT, None, str(bad))
        finally:
            await outbound.aclose()

    def _trusted(self) -> ssl.SSLContext:
        """The authorities that are given, or those of every outside system."""
        return self._tls or authorities(self._ca_file)

    def _connector(self, limits: OutboundLimits, tls: ssl.SSLContext) -> aiohttp.BaseConnector:
        from clients.webhooks.connector import vetted_connector  # these two import aiohttp: start-up budget
        from clients.webhooks.resolver import VettingResolver

        return vetted_connector(limits, tls, self._exempt, VettingResolver(self._exempt, self._lookup))


def is_document(client_id: str) -> bool:
    """Whether a client id is an address."""
    return client_id.startswith("https://")


def check_client_id(client_id: str, exempt: Sequence[Network]) -> None:
    """An https address of a public host, with a path and no dots in it."""
    try:
        check_url(client_id, exempt)
    except BadUrl as bad:
        raise BadDocument(f"client_id: {bad.reason}") from None
    if not is_document(client_id) or urlsplit(client_id).path in ("", "/") or DOTS.search(client_id):
        raise BadDocument("client_id: must be an https address with a path, without . or .. in it")


def kept_seconds(reply: Reply) -> float:
    """What the server says in max-age, between a minute and a day."""
    found = MAX_AGE.search(reply.headers.get("cache-control", ""))
    return min(max(float(found[1]) if found else 0.0, KEPT_LEAST), KEPT_MOST)


def read_document(client_id: str, reply: Reply) -> ClientDocument:
    """The document of a reply: that address's own, of a program without a secret."""
    if reply.status != 200:
        raise BadDocument(f"the document's address answered {reply.status}")
    if reply.truncated:
        raise BadDocument(f"the document is larger than {LARGEST} bytes")
    media_type = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise BadDocument("the document is not application/json")
    try:
        parsed: object = json.loads(reply.body)
    except (ValueError, RecursionError):
        raise BadDocument("the document is not JSON") from None
    document = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
    if document.get("client_id") != client_id:
        raise BadDocument("the document names another client_id than its own address")
    if document.get("client_secret") is not None or document.get("token_endpoint_auth_method", "none") != "none":
        raise BadDocument("the document must describe a public client: token_endpoint_auth_method none, no client_secret")
    try:
        redirect_uris = check_redirects(document.get("redirect_uris"))
    except BadRedirect as bad:
        raise BadDocument(f"the document's redirect_uris: {bad.reason}") from None
    name = shown_name(document.get("client_name")) or str(urlsplit(client_id).hostname)
    return ClientDocument(client_id, name, shown_address(document.get("client_uri")), redirect_uris)


def shown_name(name: object) -> str:
    """A name as people are shown it: one line without characters that hide or turn the text around them."""
    if not isinstance(name, str):
        return ""
    kept = "".join(" " if c in BLANK or unicodedata.category(c) in ("Zl", "Zp", "Cc") else c for c in name if not hidden(c))
    return " ".join(kept.split())[:LONGEST_NAME].strip()


def shown_address(address: object) -> str | None:
    """An https address that may be shown as a link."""
    if not isinstance(address, str):
        return None
    try:
        check_url(address)
    except BadUrl:
        return None
    return address


def hidden(character: str) -> bool:
    """Whether nothing is seen where it stands."""
    return unicodedata.category(character) in HIDDEN


BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol that look like a space
HIDDEN = frozenset({"Cf", "Cs", "Co", "Cn"})  # formats (bidi and zero-width marks among them), surrogates, private use, unassigned
