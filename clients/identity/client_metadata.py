"""Client id metadata documents: a program named by an https address, and what stands at that address."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from clients.http import HttpReply, OutboundFailed, OutboundLimits
from clients.identity.redirect_uris import DOT_SEGMENTS, BadRedirect, check_redirects
from clients.webhooks.name_lookup import ThreadedLookups
from clients.webhooks.receiver_url import BadReceiverUrl, check_receiver_url
from clients.webhooks.vetted_outbound import vetted_outbound
from registry.characters import is_blank_character, is_hidden_character

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from clients.webhooks.addresses import IpNetwork, NameLookup

DOCUMENT_BYTES_LIMIT = 10 * 1024
DOCUMENT_SECONDS_MINIMUM, DOCUMENT_SECONDS_MAXIMUM, DOCUMENT_FAILURE_SECONDS = 60.0, 86_400.0, 30.0
DOCUMENTS_LIMIT = 1000
PROGRAM_NAME_LIMIT = 100
DOCUMENT_OUTBOUND_LIMITS = OutboundLimits(connections=20, keepalive_seconds=None, connect_seconds=5.0, total_seconds=5.0)
MAX_AGE = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?([0-9]{1,9})\"?\s*(?:,|$)", re.IGNORECASE | re.ASCII)


class BadClientDocument(ValueError):
    """There is no usable document. The text names the rule and nothing that stands at the address."""


class ClientDocument(NamedTuple):
    """A program as it describes itself."""

    client_id: str
    name: str
    uri: str | None
    redirect_uris: tuple[str, ...]


class CachedDocument(NamedTuple):
    until: float
    document: ClientDocument | None
    problem: str


class ClientDocuments:
    """Fetches documents from addresses that strangers chose, so only vetted ones are ever connected to; keeps them for a while."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        exempt: Sequence[IpNetwork] = (),
        lookup: NameLookup | None = None,
        tls: ssl.SSLContext | None = None,
        ca_file: Path | None = None,
    ) -> None:
        """`exempt` opens networks for local servers; `lookup` replaces DNS, `tls` the trusted authorities.

        `ca_file` names authorities that are trusted beside the public ones.
        """
        self._now, self._exempt = now, tuple(exempt)
        self._outbound = partial(
            vetted_outbound, DOCUMENT_OUTBOUND_LIMITS, self._exempt, lookup=lookup or ThreadedLookups(), tls=tls, ca_file=ca_file
        )
        self._kept: OrderedDict[str, CachedDocument] = OrderedDict()

    async def get(self, client_id: str) -> ClientDocument:
        """The document at the address `client_id`, fetched or from the cache; BadClientDocument says what is wrong with it."""
        check_client_id(client_id, self._exempt)
        kept = self._kept.get(client_id)
        if kept is None or kept.until <= self._now():
            kept = self._kept[client_id] = await self._fetch(client_id)
            self._kept.move_to_end(client_id)
            if len(self._kept) > DOCUMENTS_LIMIT:
                self._kept.popitem(last=False)
        if kept.document is None:
            raise BadClientDocument(kept.problem)
        return kept.document

    async def _fetch(self, client_id: str) -> CachedDocument:
        # One connection for one document, so that nothing stays open.
        outbound = self._outbound()
        try:
            reply = await outbound.exchange("GET", client_id, headers={"accept": "application/json"}, keep=DOCUMENT_BYTES_LIMIT)
            return CachedDocument(self._now() + document_seconds(reply), read_document(client_id, reply), "")
        except OutboundFailed as failed:
            return CachedDocument(self._now() + DOCUMENT_FAILURE_SECONDS, None, f"the document cannot be fetched ({failed.kind})")
        except BadClientDocument as bad:
            return CachedDocument(self._now() + DOCUMENT_FAILURE_SECONDS, None, str(bad))
        finally:
            await outbound.aclose()


def is_document_address(client_id: str) -> bool:
    return client_id.startswith("https://")


def check_client_id(client_id: str, exempt: Sequence[IpNetwork]) -> None:
    """An https address of a public host, with a path and no dots in it."""
    try:
        check_receiver_url(client_id, exempt)
    except BadReceiverUrl as bad:
        raise BadClientDocument(f"client_id: {bad.reason}") from None
    if not is_document_address(client_id) or urlsplit(client_id).path in ("", "/") or DOT_SEGMENTS.search(client_id):
        raise BadClientDocument("client_id: must be an https address with a path, without . or .. in it")


def document_seconds(reply: HttpReply) -> float:
    """What the server says in max-age, between a minute and a day."""
    found = MAX_AGE.search(reply.headers.get("cache-control", ""))
    return min(max(float(found[1]) if found else 0.0, DOCUMENT_SECONDS_MINIMUM), DOCUMENT_SECONDS_MAXIMUM)


def read_document(client_id: str, reply: HttpReply) -> ClientDocument:
    """The document of a reply: that address's own, of a program without a secret."""
    if reply.status != 200:
        raise BadClientDocument(f"the document's address answered {reply.status}")
    if reply.truncated:
        raise BadClientDocument(f"the document is larger than {DOCUMENT_BYTES_LIMIT} bytes")
    media_type = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise BadClientDocument("the document is not application/json")
    try:
        parsed: object = json.loads(reply.body)
    except (ValueError, RecursionError):
        raise BadClientDocument("the document is not JSON") from None
    document = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
    if document.get("client_id") != client_id:
        raise BadClientDocument("the document names another client_id than its own address")
    if document.get("client_secret") is not None or document.get("token_endpoint_auth_method", "none") != "none":
        raise BadClientDocument("the document must describe a public client: token_endpoint_auth_method none, no client_secret")
    try:
        redirect_uris = check_redirects(document.get("redirect_uris"))
    except BadRedirect as bad:
        raise BadClientDocument(f"the document's redirect_uris: {bad.reason}") from None
    name = displayed_name(document.get("client_name")) or str(urlsplit(client_id).hostname)
    return ClientDocument(client_id, name, displayed_address(document.get("client_uri")), redirect_uris)


def displayed_name(name: object) -> str:
    """A name as people are shown it: one line without characters that hide or turn the text around them."""
    if not isinstance(name, str):
        return ""
    kept = "".join(" " if is_blank_character(c) else c for c in name if not is_hidden_character(c))
    return " ".join(kept.split())[:PROGRAM_NAME_LIMIT].strip()


def displayed_address(address: object) -> str | None:
    """An https address that may be shown as a link."""
    if not isinstance(address, str):
        return None
    try:
        check_receiver_url(address)
    except BadReceiverUrl:
        return None
    return address
