"""The calls of one token to the charging system: time limit, places, retries of reads, and what a failure means."""

import json
import logging
from asyncio import timeout
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote, urlsplit

import anyio
import orjson

from clients.http import HttpReply, Outbound, OutboundFailed
from clients.ocs import outcome
from clients.ocs.json_array import (
    ANSWER_BYTES_LIMIT,
    LONG_ANSWER_BYTES,
    FitRow,
    JsonArrayStream,
    begin_array,
    open_long_answer,
    open_short_answer,
)
from clients.ocs.outcome import OcsAnswer, OcsCall, OcsFault, WireVersion, answer_status, open_answer
from clients.ocs.places import Places, TokenPlaces, WaitTooLong
from clients.ocs.wire_schema import Json, ParseAnswer, UnreadableAnswer
from clients.outside_system import PROBE_SECONDS, UNANSWERED_KINDS, CallProgress, OutsideSystem, seconds_for_call
from registry.clock import ACTIVE_REQUEST, ActiveRequest, Clock
from registry.errors import BadRequest, OcsError

TOKEN_MASK = b"***"
SHORTEST_MASKED_TOKEN = 12
"""A shorter token may be a number or a word of an answer by chance."""

HTML_CHARACTERS_IN_JSON = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&='"})


class TokenRedaction:
    """Masks one token in each spelling that a server may use: plain, inside a JSON string, inside an address."""

    def __init__(self, token: str) -> None:
        plain = json.dumps(token, ensure_ascii=False)[1:-1]
        found = (token, plain, plain.replace("/", "\\/"), plain.translate(HTML_CHARACTERS_IN_JSON), quote(token, safe="", errors="replace"))
        spellings = dict.fromkeys(text.encode("utf-8", "replace") for text in found)
        self._secrets = (
            tuple(sorted(spellings, key=len, reverse=True)) if len(token.encode("utf-8", "replace")) >= SHORTEST_MASKED_TOKEN else ()
        )

    def whole(self, body: bytes) -> bytes:
        """`body` with the token masked."""
        for secret in self._secrets:
            body = body.replace(secret, TOKEN_MASK)
        return body

    async def parts(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """The chunks of an answer with the token masked. What may be the beginning of the token waits for the next chunk."""
        held = b""
        async for chunk in chunks:
            data = self.whole(held + chunk if held else chunk)
            begun = self._begun(data)
            held = data[len(data) - begun :] if begun else b""
            data = data[: len(data) - begun] if begun else data
            if data:
                yield data
        if held:
            yield held

    def _begun(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of the token."""
        longest = 0
        for secret in self._secrets:
            lengths = range(min(len(secret) - 1, len(data)), longest, -1)
            longest = next((length for length in lengths if data.endswith(secret[:length])), longest)
        return longest


SubscriberIdentifier = Literal["subscriberId", "imsi", "iccid", "msisdn", "activationCode"]
SubscriberSearchKey = Literal["imsiPrefix", "iccidPrefix", "msisdnPrefix", "accountId", "activationCode"]
WireParams = dict[str, object]
WirePayload = Mapping[str, object] | int
"""What stands under the method's name: some methods take a bare id."""


def given_members(**members: object) -> WireParams:
    """The members that have a value: the wire omits the others."""
    return {name: value for name, value in members.items() if value is not None}


def flat_subscriber(subscriber_id: int) -> WireParams:
    """Parameters with the identifier of a line among them."""
    return {"subscriberId": subscriber_id}


def nested_subscriber(subscriber_id: int, **members: object) -> WireParams:
    """Parameters with the identifier of a line in an object of its own, and `members` that have a value."""
    return {"subscriber": {"subscriberId": subscriber_id}, **given_members(**members)}


OcsAnswerT = TypeVar("OcsAnswerT")
OcsAttempt = Callable[["CallProgress"], Awaitable[OcsAnswer[OcsAnswerT] | OcsFault]]
OCS_LOG = logging.getLogger(__name__)
PROBE_CALL = OcsCall("getResellerInfo", b'{"getResellerInfo":{}}', False, "getResellerInfo", "v1", False)


@dataclass(frozen=True, slots=True)
class OcsSettings:
    """The address of the server, the variants of its wire, and time limits. Tokens are not settings: each call's owner has one."""

    url: str
    """The main address, ending in its version segment: there is no default, since every provider has its own."""
    statistics_url: str = ""
    """The address of the two usage statistics; empty: the main address."""
    auth: Literal["query", "bearer", "token-header"] = "query"
    concurrency: int = 8
    """Calls under way at once, per token."""
    total_seconds: float = 20.0
    """From the wait for a free place to the last byte, retry included. For streams: to the first byte, and between two chunks."""
    zone_method: str = "changeNetworkProfileOfLocationZone"
    """The wire name of the one undocumented method."""
    zone_key: str = "locationZoneId"
    profile_key: str = "networkProfileId"
    legacy_expiry: bool = False
    """Whether the server still wants the parameter names of before December 2025 when an expiry is changed."""
    ca_file: Path | None = None
    """Authorities that are trusted beside the public ones."""
    backoff_seconds: float = 0.5
    """How long a read waits before it asks again after the traffic limit."""


class OcsLink:
    """Calls the wire with one token. A read whose answer fails is sent once more; a write never."""

    def __init__(
        self,
        outbound: Outbound,
        settings: OcsSettings,
        token: str,
        clock: Clock,
        *,
        places: TokenPlaces | None = None,
        owner: str = "",
        system: OutsideSystem | None = None,
        long_answers: anyio.Lock | None = None,
    ) -> None:
        """`places` are shared by the owners of the token, `system` and `long_answers` by all links; without them the link has its own.

        `long_answers` is held while one is decoded: what another one takes meanwhile, five times its length, is asked for afterwards.
        """
        self._outbound = outbound
        self.settings = settings
        self._clock = clock
        self._usable = can_send_token(settings, token)
        self._headers = request_headers(settings, token)
        self._token = token
        self._mask = TokenRedaction(token)
        self._urls: dict[tuple[WireVersion, bool], str] = {}
        self._places, self._owner = places or TokenPlaces(Places(settings.concurrency), clock), owner
        self._system = system or OutsideSystem("charging_system", clock)
        self._long_answers = long_answers or anyio.Lock()

    def __repr__(self) -> str:
        return "OcsLink(token hidden)"

    async def read(
        self,
        method: str,
        payload: WirePayload,
        parse: ParseAnswer[OcsAnswerT],
        *,
        key: str | None = None,
        version: WireVersion = "v1",
        stats: bool = False,
        fit: FitRow | None = None,
    ) -> OcsAnswerT:
        """Sends `method` with `payload`, waits, and returns what `parse` makes of the member `key` (default: `method`) of the answer.

        An answer that `parse` cannot read counts as a failed one. `stats`: at the address of the statistics. `fit`: for the lines of an
        answer that lists hundreds; other tasks get a turn while they are read. Raises OcsError.
        """
        ocs_call = self._new_call(method, payload, write=False, key=key, version=version, stats=stats)
        return await self._complete(ocs_call, partial(self._once, ocs_call, parse, fit=fit))

    async def write(
        self, method: str, payload: WirePayload, parse: ParseAnswer[OcsAnswerT], *, key: str | None = None, version: WireVersion = "v1"
    ) -> OcsAnswerT:
        """As `read`, for a method that changes something: sent once. An answer that `parse` cannot read leaves the outcome unknown."""
        ocs_call = self._new_call(method, payload, write=True, key=key, version=version, stats=False)
        return await self._complete(ocs_call, partial(self._once, ocs_call, parse))

    async def stream(
        self, method: str, payload: WirePayload, *, key: tuple[str, ...], version: WireVersion = "v1", stats: bool = False
    ) -> JsonArrayStream:
        """Reads a big array at the path `key` of members. Raises OcsError for failures before its first byte."""
        ocs_call = self._new_call(method, payload, write=False, key=key[0], version=version, stats=stats)
        return await self._complete(ocs_call, partial(self._begin, ocs_call, key))

    def _new_call(self, method: str, payload: WirePayload, *, write: bool, key: str | None, version: WireVersion, stats: bool) -> OcsCall:
        body = _encode_request(method, payload)
        if body is None:
            raise BadRequest("A number has more than 64 bits, or a text holds half a surrogate pair: the charging system takes neither.")
        return OcsCall(method, body, write, key or method, version, stats)

    async def _complete(self, ocs_call: OcsCall, attempt: OcsAttempt[OcsAnswerT]) -> OcsAnswerT:
        """Makes all attempts within the time limit; the wait for a place counts."""
        if not self._usable:
            raise OcsError("The token holds characters that no request can carry. Connect the account again.", before_execution=True)
        request, system = ACTIVE_REQUEST.get(), self._system
        refused = system.enter(request, self._owner)
        if refused is not None:
            raise outcome.ocs_unavailable(refused, system.retry_after(self._owner))
        try:
            found = await self._in_time(ocs_call, attempt, request)
        finally:
            system.leave(request, self._owner)
        if isinstance(found, OcsFault):
            error, found = found.error, None
            try:
                raise error
            finally:
                del error  # its traceback holds this frame: each would keep the other until the collector comes
        return found.value

    async def _in_time(
        self, ocs_call: OcsCall, attempt: OcsAttempt[OcsAnswerT], request: ActiveRequest | None
    ) -> OcsAnswer[OcsAnswerT] | OcsFault:
        """Keeps the time limit of a call, and of the request that it is made for."""
        total = self.settings.total_seconds
        seconds = seconds_for_call(request, total, write=ocs_call.write)
        if seconds is None:
            return OcsFault(outcome.ocs_too_late())
        progress, started = CallProgress(), self._clock.monotonic()
        found: OcsAnswer[OcsAnswerT] | OcsFault | None = None
        with suppress(TimeoutError):
            async with timeout(seconds):  # a third of the cost of a cancel scope, once per call
                found = await self._placed(ocs_call, attempt, progress, seconds)
        now = self._clock.monotonic()
        overdue = found is None
        if found is None:
            found = outcome.ocs_overdue(ocs_call) if progress.sent is not None else self._never_sent(cut=seconds < total)
            if progress.sent is not None and (seconds == total or now - progress.sent >= PROBE_SECONDS):
                progress.failed = True
        if progress.failed is not None:
            self._system.ended(self._owner, failed=progress.failed)
        kind = "ok" if isinstance(found, OcsAnswer) else progress.outcome(overdue=overdue)
        self._system.observe(ocs_call.method, kind, began=started, placed=progress.placed)
        said = "done" if isinstance(found, OcsAnswer) else found.error.error_code
        OCS_LOG.debug("%s: %s after %.3f s", ocs_call.method, said, now - started)
        return found

    def _never_sent(self, *, cut: bool) -> OcsFault:
        """The fault of a call whose time ended before a place was free. `cut`: its request had less time left than a call may take."""
        return (
            OcsFault(outcome.ocs_too_late()) if cut else outcome.ocs_never_started(self.settings.concurrency, self.settings.total_seconds)
        )

    async def _placed(
        self, ocs_call: OcsCall, attempt: OcsAttempt[OcsAnswerT], progress: CallProgress, seconds: float
    ) -> OcsAnswer[OcsAnswerT] | OcsFault:
        """Gives the place back when an answer has begun: a slow reader must not keep other calls waiting."""
        try:
            give_back = await self._places.take(self._owner, seconds)
        except WaitTooLong as wait:
            return OcsFault(outcome.ocs_unavailable(self._system.refuse("crowded"), wait.retry_after))
        progress.placed = self._clock.monotonic()
        try:
            system = self._system
            if system.breaker.is_open and not await system.may_send(self._owner, self._is_answered):
                return OcsFault(outcome.ocs_unavailable("open", system.retry_after(self._owner)))
            return await self._attempts(ocs_call, attempt, progress)
        finally:
            give_back()

    async def _is_answered(self) -> bool:
        """Sends the cheapest call, which changes nothing. Any answer counts."""
        try:
            await self._outbound.exchange(
                "POST", self._url(PROBE_CALL), headers=self._headers, content=PROBE_CALL.body, keep=ANSWER_BYTES_LIMIT
            )
        except OutboundFailed as failed:
            return failed.kind not in UNANSWERED_KINDS
        return True

    async def _attempts(
        self, ocs_call: OcsCall, attempt: OcsAttempt[OcsAnswerT], progress: CallProgress
    ) -> OcsAnswer[OcsAnswerT] | OcsFault:
        found = await attempt(progress)
        if ocs_call.write or isinstance(found, OcsAnswer) or not found.again:
            return found
        if found.pause:
            await anyio.sleep(self.settings.backoff_seconds)
        return await attempt(progress)

    async def _once(
        self, ocs_call: OcsCall, parse: ParseAnswer[OcsAnswerT], progress: CallProgress, *, fit: FitRow | None = None
    ) -> OcsAnswer[OcsAnswerT] | OcsFault:
        progress.sent = self._clock.monotonic()
        try:
            url = self._url(ocs_call)
            reply = await self._outbound.exchange("POST", url, headers=self._headers, content=ocs_call.body, keep=ANSWER_BYTES_LIMIT)
        except OutboundFailed as failed:
            progress.failed = failed.kind in UNANSWERED_KINDS
            return outcome.ocs_not_reached(ocs_call, failed.kind)
        progress.failed = False
        return await self._understood(ocs_call, parse, reply, fit)

    async def _understood(
        self, ocs_call: OcsCall, parse: ParseAnswer[OcsAnswerT], reply: HttpReply, fit: FitRow | None
    ) -> OcsAnswer[OcsAnswerT] | OcsFault:
        if reply.status != 200:
            return outcome.ocs_wrong_status(ocs_call, reply.status)
        try:
            body = self._mask.whole(reply.body)
            document = open_answer(body) if fit is None else await self._opened_list(body, fit)
            code, payload = answer_status(document), document.get(ocs_call.key)
            return self._refused(ocs_call, code, payload) if code else OcsAnswer(parse(payload))
        except UnreadableAnswer as why:
            OCS_LOG.warning("The answer to %s is unreadable: %s", ocs_call.method, why)
            return outcome.ocs_unreadable(ocs_call)

    async def _opened_list(self, body: bytes, fit: FitRow) -> dict[str, Json]:
        """The decoded answer with its lines."""
        if len(body) <= LONG_ANSWER_BYTES:
            return await open_short_answer(body, fit)
        async with self._long_answers:
            return await open_long_answer(body, fit)

    def _refused(self, ocs_call: OcsCall, code: int, payload: Json) -> OcsFault:
        settings = self.settings
        return outcome.ocs_refused(ocs_call, code, payload, backoff_seconds=settings.backoff_seconds, zone_method=settings.zone_method)

    async def _begin(self, ocs_call: OcsCall, key: tuple[str, ...], progress: CallProgress) -> OcsAnswer[JsonArrayStream] | OcsFault:
        progress.sent = self._clock.monotonic()
        try:
            async with AsyncExitStack() as held:
                streamed = self._outbound.stream("POST", self._url(ocs_call), headers=self._headers, content=ocs_call.body)
                reply = await held.enter_async_context(streamed)
                progress.failed = False
                if reply.status != 200:
                    return outcome.ocs_wrong_status(ocs_call, reply.status)
                chunks = await held.enter_async_context(aclosing(self._mask.parts(reply.chunks)))
                code, passed = await begin_array(chunks, key)
                if code:
                    return self._refused(ocs_call, code, None)
                passed.hold(held.pop_all())
                return OcsAnswer(passed)
        except OutboundFailed as failed:
            progress.failed = failed.kind in UNANSWERED_KINDS
            return outcome.ocs_not_reached(ocs_call, failed.kind)
        except UnreadableAnswer as why:
            OCS_LOG.warning("The answer to %s is unreadable: %s", ocs_call.method, why)
            return outcome.ocs_unreadable(ocs_call)

    def _url(self, ocs_call: OcsCall) -> str:
        key = ocs_call.version, ocs_call.stats
        found = self._urls.get(key)
        if found is None:
            found = self._urls[key] = request_url(self.settings, self._token, version=ocs_call.version, stats=ocs_call.stats)
        return found


class OcsCalls:
    """Calls about one noun; all nouns share a link."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link


def _encode_request(method: str, payload: WirePayload) -> bytes | None:
    try:
        return orjson.dumps({method: payload})
    except orjson.JSONEncodeError:
        return None


def request_url(settings: OcsSettings, token: str, *, version: WireVersion, stats: bool) -> str:
    """The URL of a call, which is a secret where the token travels in the query."""
    base = urlsplit(settings.statistics_url if stats and settings.statistics_url else settings.url)
    path = base.path if version == "v1" else _path_of_version(base.path, version)
    shown = f"token={quote(token, safe='')}" if settings.auth == "query" else ""
    query = "&".join(part for part in (base.query, shown) if part)
    return base._replace(path=path, query=query, fragment="").geturl()


def request_headers(settings: OcsSettings, token: str) -> dict[str, str]:
    plain = {"content-type": "application/json", "accept": "application/json"}
    if settings.auth == "query":
        return plain
    scheme = "Bearer" if settings.auth == "bearer" else "Token"
    return {**plain, "authorization": f"{scheme} {token}"}


def can_send_token(settings: OcsSettings, token: str) -> bool:
    """Whether a header can hold `token`; a query can hold any token that UTF-8 can write."""
    if settings.auth == "query":
        return not any("\ud800" <= character <= "\udfff" for character in token)
    return token.isascii() and token.isprintable()


def _path_of_version(path: str, version: WireVersion) -> str:
    slash = "/" if path.endswith("/") else ""
    head, _, _ = path.rstrip("/").rpartition("/")
    return f"{head}/{version}{slash}"
