"""The HTTP door: an ASGI application that turns requests into calls and replies into answers. It decides nothing about a call."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar, cast

from anyio import to_thread

from registry.answer import answer_call, refusal_reply
from registry.authentication import find_misplaced_credential
from registry.call import Call, Reply, no_body
from registry.catalogue import AnyOperation
from registry.errors import BadRequest, Internal, NotFound, Refusal
from registry.operation import Auth, EventStream, StreamedAnswer
from registry.pipeline import Pipeline
from transports.http.asgi import (
    STATE_CALL,
    STATE_CORRELATION,
    STATE_LARGE_ANSWERS,
    STATE_OVERLOADED,
    STATE_REQUEST_ID,
    STATE_SEND_WHOLE,
    App,
    CallSummary,
    Headers,
    HttpScope,
    Message,
    Receive,
    Scope,
    Send,
    SendWhole,
)
from transports.http.body import JSON_BODY, PUSHED_BODY, read_json_body
from transports.http.compression import (
    GZIP_HEADER,
    SMALLEST_COMPRESSED,
    gzip_encoder,
    gzip_in_thread,
    is_compressible,
    may_be_compressed,
    set_coded_length,
    takes_gzip,
    vary_by_coding,
)
from transports.http.concurrency import (
    EVENT_STREAMS_OF_ALL,
    EVENT_STREAMS_OF_ONE,
    LARGE_ANSWER_BYTES,
    STREAM_BYTES,
    AnswerReader,
    LargeAnswers,
    RequestTurns,
    StreamSlots,
    reader_of,
    too_many_streams,
)
from transports.http.cors import cors_headers, preflight_headers
from transports.http.forwarded import NO_CORRELATION, Correlation, network_of
from transports.http.request import HttpRules, RequestHead, read_head, reads_pages
from transports.http.response import (
    BODY_PIECE_BYTES,
    REQUEST_ID_HEADER,
    header_list,
    next_link,
    send_events,
    send_long,
    send_reply,
    send_stream,
)
from transports.http.router import MatchedRoute, OperationRouter
from transports.logs import RequestLine

RefusalView = Callable[[HttpScope, Refusal, str], Reply | None]


@dataclass(frozen=True, slots=True)
class InnerApplication:
    """An application and its paths. A prefix `/docs` means `/docs` itself and everything below `/docs/`."""

    app: App
    paths: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    shown: RefusalView | None = None
    """A refusal, also one of the door itself, as the application shows it; nothing where JSON is right."""
    operation_refused: RefusalView | None = None
    """The same for what operations refuse, whose callers are programs but for a few links that are opened in browsers."""
    shared: Callable[[str], bool] = lambda path: False
    """Whether pages of listed origins may read what the application answers at a path: protocols and documents, never pages."""

    def refused(self, scope: HttpScope, refusal: Refusal, request_id: str) -> Reply:
        """The reply of a request that got no further."""
        shown = None if self.shown is None else self.shown(scope, refusal, request_id)
        return refusal_reply(refusal, request_id) if shown is None else shown

    def of_operation(self, scope: HttpScope, reply: Reply, request_id: str) -> Reply:
        """The reply of an operation; a refusal is shown as a page where the application has one."""
        shown = (
            None if reply.refusal is None or self.operation_refused is None else self.operation_refused(scope, reply.refusal, request_id)
        )
        return reply if shown is None else shown

    def shares(self, path: str) -> bool:
        """Whether pages of listed origins may read the answers at `path`; other paths are operations', which they may."""
        return self.template(path) is None or self.shared(path)

    def template(self, path: str) -> str | None:
        """The name of a path in logs, or None when it is not one of ours: what follows a prefix may be a secret."""
        if path in self.paths:
            return path
        for prefix in self.prefixes:
            if path == prefix or path.startswith(prefix + "/"):
                return prefix
        return None


D = TypeVar("D")
RequestLog: TypeAlias = Callable[[RequestLine], None]
FaultReport: TypeAlias = Callable[[str, str, BaseException], None]
ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE)
LOGGED_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
SIGNED_AUTH = (Auth.SIGNATURE, Auth.BRIDGE)  # their handlers read headers


NO_READER = AnswerReader("", "")


@dataclass(slots=True, eq=False)
class DoorRequest:
    """What is known of one request so far, for its log line and for a fault."""

    request_id: str
    started: float
    head_only: bool
    path: str = "-"
    operation: str = ""
    organisation: str = ""
    key: str = ""
    surface: str = "http"
    status: int = 0
    code: str = ""
    reader: AnswerReader = NO_READER
    held: int = 0
    counted: ExitStack | None = None
    """Holds the place of a large answer until the request has ended."""


class HttpDoor:
    """Serves every operation of the catalogue; hands other paths to `inner`; writes one log line per request."""

    def __init__(
        self,
        pipeline: Pipeline[D],
        *,
        rules: HttpRules,
        log: RequestLog,
        fault: FaultReport,
        inner: InnerApplication | None = None,
    ) -> None:
        self._router = OperationRouter(pipeline.catalogue.operations.values())
        self._pipeline, self._rules, self._inner = pipeline, rules, inner
        self._clock, self._ids = pipeline.clock, pipeline.ids
        self._log, self._fault = log, fault
        self._passing, self._telling = StreamSlots(), StreamSlots(EVENT_STREAMS_OF_ONE, EVENT_STREAMS_OF_ALL)
        self.turns = RequestTurns(self._clock.monotonic)
        self.large = LargeAnswers()
        self._compressed: dict[str, bool] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; lifespan messages are for the inner application."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        request = cast(HttpScope, scope)
        visit = DoorRequest(self._ids.new("req_"), self._clock.monotonic(), request["method"] == "HEAD")
        request.setdefault("state", {})[STATE_REQUEST_ID] = visit.request_id
        if not self.turns.begin_at_once() and request.get("raw_path") not in self._rules.probed:
            await self.turns.wait(network_of((request.get("client") or ("", 0))[0]), credential_of(request["headers"]))
        try:
            await self._serve(request, receive, send, visit)
        except Exception as error:
            self._fault(visit.request_id, visit.operation, error)
            if not visit.status:
                await self._finish(request, receive, send, visit, refusal_reply(Internal(), visit.request_id), private=True)
            else:  # the inner application, in the middle of an answer
                self._write_line(request, visit)
            raise  # the server decides what becomes of the connection
        finally:
            if visit.counted is not None:
                visit.counted.close()

    async def _serve(self, request: HttpScope, receive: Receive, send: Send, visit: DoorRequest) -> None:
        """Find the operation and call it, or hand the request on."""
        found: MatchedRoute | None = None
        private = True
        try:
            crowded = request.get("state", {}).get(STATE_OVERLOADED)
            if crowded is not None and request.get("raw_path") not in self._rules.probed:
                raise cast(Refusal, crowded)
            head = read_head(request, self._rules)
            if request["method"] == "OPTIONS" and await self._answer_preflight(request, send, visit):
                return
            found = self._router.find(request["method"], head.raw_path)
            if found is None:
                if ENCODED_SLASH.search(head.raw_path):  # behind the table paths are compared once they are decoded
                    request["path"] = head.raw_path.decode("latin-1")
                template = None if self._inner is None else self._inner.template(request["path"])
                if self._inner is None or template is None:
                    raise NotFound("There is nothing at this path", hint=f"The paths are listed in {self._pipeline.site.docs_url}")
                visit.path = template
                await self._pass_on(self._inner, request, receive, send, visit)
                return
            private = found.route.private
            visit.path, visit.operation = found.route.operation.path, found.route.operation.id
            call = make_call(found, head, request, receive, visit.request_id)
        except Refusal as refusal:
            said = refusal_reply if self._inner is None else partial(self._inner.refused, request)
            await self._finish(request, receive, send, visit, said(refusal, visit.request_id), private=private)
            return
        reply = await answer_call(self._pipeline, call, self._report)
        if reply.refusal is not None and self._inner is not None:
            reply = self._inner.of_operation(request, reply, visit.request_id)
        if call.identified is not None:
            visit.organisation, visit.key = call.identified.organisation, call.identified.key_id
        long = reply.stream is not None or len(reply.body) >= SMALLEST_COMPRESSED
        # Before anything is counted: the first question about an operation is waited for.
        coded = long and reply.status == 200 and is_compressible(reply.media_type) and await self._may_compress(call.operation)
        if reply.stream is not None and not self._lane(reply.stream).has_room(visit.organisation):
            await reply.stream.pieces.aclose()
            full = too_many_streams(self._lane(reply.stream), self._clock.now(), self._pipeline.site.upgrade_url)
            reply = refusal_reply(full, visit.request_id)
        if (reply.stream is not None or len(reply.body) > LARGE_ANSWER_BYTES) and not visit.head_only:
            reply = await self._begin_large(call, reply, visit)
        await self._finish(
            request, receive, send, visit, reply, private=private, raw_path=head.raw_path, compressed=coded and reply.status == 200
        )

    async def _may_compress(self, operation: AnyOperation) -> bool:
        """The answer of `may_be_compressed`, found in a thread when it is first asked about an operation."""
        known = self._compressed.get(operation.id)
        if known is None:
            known = self._compressed[operation.id] = await to_thread.run_sync(may_be_compressed, operation)
        return known

    async def _begin_large(self, call: Call, reply: Reply, visit: DoorRequest) -> Reply:
        """A large answer, or its refusal. What has changed something is never refused afterwards: it waits for its turn."""
        reader = visit.reader = reader_of(call)
        held = len(reply.body) if reply.stream is None else STREAM_BYTES if reply.stream.size > LARGE_ANSWER_BYTES else 0
        refusal = self.large.refusal(reader, held, self._clock.now(), self._pipeline.site.upgrade_url) if held else None
        if refusal is not None and call.operation.read_only:
            if reply.stream is not None:
                await reply.stream.pieces.aclose()
            return refusal_reply(refusal, visit.request_id)
        if refusal is not None:
            await self.large.turn(reader)
        if held:  # in the same step as the question, or several would be told that there is room
            visit.held, visit.counted = held, ExitStack()
            visit.counted.enter_context(self.large.one_more(reader, held))
        return reply

    async def _finish(
        self,
        request: HttpScope,
        receive: Receive,
        send: Send,
        visit: DoorRequest,
        reply: Reply,
        *,
        private: bool,
        raw_path: bytes = b"",
        compressed: bool = False,
    ) -> None:
        """Render, send, and write the log line. `compressed`: where the client takes it."""
        headers = header_list(reply, visit.request_id, private)
        if reply.next_cursor is not None:
            headers.append(next_link(request["method"], raw_path, request["query_string"], reply.next_cursor, self._pipeline.site.path))
        if self._rules.cross_origins:
            headers += self._cors(request, headers)
        if compressed:
            vary_by_coding(headers)
            compressed = takes_gzip(request["headers"])
        if compressed and reply.stream is None:
            reply.body = await gzip_in_thread(reply.body)
            set_coded_length(headers, len(reply.body))
        elif compressed:
            headers.append(GZIP_HEADER)
        visit.status = reply.status
        if reply.refusal is not None:
            visit.code = reply.refusal.error_code
        if reply.stream is not None and not visit.head_only:
            await self._finish_in_pieces(receive, send, visit, reply.status, headers, reply.stream)
        elif visit.held:
            await send_long(send, reply.status, headers, reply.body)
        else:
            if reply.stream is not None:
                await reply.stream.pieces.aclose()
            body = b"" if visit.head_only else reply.body
            whole = cast("SendWhole | None", request.get("state", {}).get(STATE_SEND_WHOLE)) if reply.stream is None else None
            await (send_reply(send, reply.status, headers, body) if whole is None else whole(reply.status, headers, body))
        self._write_line(request, visit)

    async def _finish_in_pieces(
        self, receive: Receive, send: Send, visit: DoorRequest, status: int, headers: Headers, passed: StreamedAnswer
    ) -> None:
        """An answer as it is made. One whose size nobody knew is counted as a large one from where it is one."""
        with self._lane(passed).one_more(visit.organisation), ExitStack() as counted:
            if isinstance(passed, EventStream):
                await send_events(receive, send, status, headers, passed)
                return

            async def turn() -> None:
                await self.large.turn(visit.reader)
                counted.enter_context(self.large.one_more(visit.reader, STREAM_BYTES))

            coding = gzip_encoder() if GZIP_HEADER in headers else None
            await send_stream(receive, send, status, headers, passed, turn=None if visit.held else turn, encoder=coding)

    async def _answer_preflight(self, request: HttpScope, send: Send, visit: DoorRequest) -> bool:
        """Answer a browser's question whether a page of a listed origin may call; False where it is none."""
        listed = self._rules.cross_origins
        told = preflight_headers(request["headers"], listed) if listed and self._is_shared(request) else None
        if told is None:
            return False
        visit.status = 204
        await send_reply(send, visit.status, [*told, (REQUEST_ID_HEADER, visit.request_id.encode())], b"")
        self._write_line(request, visit)
        return True

    def _is_shared(self, request: HttpScope) -> bool:
        return self._inner is None or self._inner.shares(request["path"])

    def _cors(self, request: HttpScope, answered: Headers) -> Headers:
        """What an answer says of the pages of listed origins that may read it."""
        return cors_headers(request["headers"], answered, self._rules.cross_origins) if self._is_shared(request) else []

    def _lane(self, passed: StreamedAnswer) -> StreamSlots:
        """What answers of this kind are counted by."""
        return self._telling if isinstance(passed, EventStream) else self._passing

    async def _pass_on(self, inner: InnerApplication, request: HttpScope, receive: Receive, send: Send, visit: DoorRequest) -> None:
        """Let the inner application answer; it gets our request id."""
        visit.surface = "inner"
        request.setdefault("state", {})[STATE_LARGE_ANSWERS] = self.large

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = cast(int, message["status"])
                headers = cast(list[tuple[bytes, bytes]], message.get("headers", []))
                shared = self._cors(request, headers) if self._rules.cross_origins else []
                message["headers"] = [*headers, (REQUEST_ID_HEADER, visit.request_id.encode()), *shared]
            elif len(body := cast(bytes, message.get("body", b""))) > LARGE_ANSWER_BYTES:
                for start in range(0, len(body), BODY_PIECE_BYTES):
                    await send({"type": "http.response.body", "body": body[start : start + BODY_PIECE_BYTES], "more_body": True})
                message["body"] = b""
            await send(message)

        await inner.app(cast(Scope, request), receive, tagged)
        called = cast("CallSummary | None", request.get("state", {}).get(STATE_CALL))
        if called is not None:
            visit.surface, visit.operation, visit.organisation, visit.code, visit.key = called
        self._write_line(request, visit)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lifespan is the inner application's; there are no websockets."""
        if scope["type"] == "lifespan" and self._inner is not None:
            await self._inner.app(scope, receive, send)
        elif scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await send({"type": "websocket.close", "code": 1000})

    def _report(self, call: Call, error: BaseException) -> None:
        self._fault(call.request_id, call.operation.id, error)

    def _write_line(self, request: HttpScope, visit: DoorRequest) -> None:
        method = request["method"]
        outside = cast(Correlation, request.get("state", {}).get(STATE_CORRELATION, NO_CORRELATION))
        ms = round((self._clock.monotonic() - visit.started) * 1000, 3)
        self._log(
            RequestLine(
                self._clock.now(),
                visit.request_id,
                method if method in LOGGED_METHODS else "OTHER",
                visit.path,
                visit.operation,
                visit.status,
                ms,
                visit.surface,
                visit.organisation,
                visit.code,
                (request.get("client") or ("", 0))[0],
                visit.key,
                outside.client_request_id,
                outside.trace,
            )
        )


def credential_of(headers: Headers) -> bytes:
    """The credential of a request without spaces around it, not checked yet; empty without one."""
    shown = next((value for name, value in headers if name == b"authorization"), b"")
    return shown.split()[-1] if shown.strip() else b""


def condition_of(headers: Headers) -> str | None:
    """The version that the caller asks for; several lines of the header are one list (RFC 9110 section 5.3)."""
    lines = [value.decode("latin-1") for name, value in headers if name == b"if-match"]
    return ",".join(lines) if lines else None


def make_call(found: MatchedRoute, head: RequestHead, request: HttpScope, receive: Receive, request_id: str) -> Call:
    """The call a request stands for; its body stays unread."""
    route = found.route
    operation = route.operation
    if head.has_body and not route.takes_body:
        raise BadRequest(f"{operation.method} takes no body here", hint="Send the fields in the query string")
    client = request.get("client")
    try:
        query = request["query_string"].decode("ascii")
    except UnicodeDecodeError:
        raise BadRequest("The query string cannot be read", hint="Percent-encode it as UTF-8") from None
    credential, kind = head.credential(), JSON_BODY if operation.proof is None else PUSHED_BODY
    call = Call(
        operation,
        "http",
        request_id,
        credential=credential,
        misplaced=find_misplaced_credential(request["headers"], request["query_string"])
        if credential is None and not operation.public
        else "",
        path=found.path,
        query=query,
        read_body=partial(read_json_body, kind, head, request, receive) if route.takes_body else no_body,
        idempotency_key=head.idempotency_key(),
        confirm_token=head.text(b"x-confirm-token"),
        reason=head.words(b"x-approval-reason"),
        client=client[0] if client else "",
        prefers_page=bool(operation.forms) and reads_pages(request["headers"]),
        if_match_text=condition_of(request["headers"]),
    )
    if operation.resumes:
        call.last_event_id = head.text(b"last-event-id")
    if operation.auth in SIGNED_AUTH:
        call.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request["headers"]}
    return call
