"""The HTTP door: an ASGI application that turns requests into calls and replies into answers. It decides nothing about a call."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeAlias, TypeVar, cast

from registry.answer import answer
from registry.call import Call, Reply, no_body
from registry.catalogue import Catalogue
from registry.credential import misplaced
from registry.errors import BadRequest, Internal, NotFound, Refusal
from registry.model import Events, Passed
from registry.operation import Auth
from registry.pipeline import Pipeline
from transports.http.asgi import Headers, HttpScope, Message, Receive, Scope, Send
from transports.http.body import Body
from transports.http.compression import (
    GZIP,
    SMALLEST,
    encoder,
    gzipped_beside,
    is_text,
    may_be_compressed,
    replace_length,
    takes_gzip,
    varied,
)
from transports.http.connection import ANSWER, CALLED, CORRELATION, LARGE_ANSWERS, OVERLOADED, REQUEST, Answer, Called
from transports.http.correlation import NOBODY, Correlation
from transports.http.cors import cors_headers, preflight
from transports.http.inner import Inner
from transports.http.large_answers import LARGE_ANSWER, STREAM_BYTES, LargeAnswers, Reader, reader_of
from transports.http.network import network_of
from transports.http.passing import CHATS_OF_ALL, CHATS_OF_ONE, Passing, no_room
from transports.http.request import Head, read_head
from transports.http.response import (
    PIECE,
    REQUEST_ID,
    header_list,
    next_link,
    refusal_reply,
    send_events,
    send_long,
    send_passed,
    send_reply,
)
from transports.http.router import Found, Router
from transports.http.rules import HttpRules
from transports.http.turns import Turns
from transports.identity.reader import reads_pages
from transports.logs import RequestLine

D = TypeVar("D")
Log: TypeAlias = Callable[[RequestLine], None]
Fault: TypeAlias = Callable[[str, str, BaseException], None]
ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
SIGNED = (Auth.SIGNATURE, Auth.BRIDGE)  # their handlers read headers


class Visit:
    """What is known of one request so far, for its log line and for a fault."""

    __slots__ = (
        "code",
        "counted",
        "head_only",
        "held",
        "key",
        "operation",
        "organisation",
        "path",
        "reader",
        "request_id",
        "started",
        "status",
        "surface",
    )

    def __init__(self, request_id: str, started: float, head_only: bool) -> None:
        self.request_id, self.started, self.head_only = request_id, started, head_only
        self.path, self.operation, self.organisation, self.key, self.surface = "-", "", "", "", "http"
        self.status, self.code = 0, ""
        self.reader, self.held = Reader("", ""), 0
        self.counted: ExitStack | None = None
        """Holds the place of a large answer until the request has ended."""


class HttpDoor:
    """Serves every operation of a catalogue; hands other paths to `inner`; writes one log line per request."""

    def __init__(
        self, catalogue: Catalogue, pipeline: Pipeline[D], *, rules: HttpRules, log: Log, fault: Fault, inner: Inner | None = None
    ) -> None:
        self._router = Router(catalogue.operations.values())
        self._pipeline, self._rules, self._inner = pipeline, rules, inner
        self._clock, self._ids = pipeline.clock, pipeline.ids
        self._log, self._fault = log, fault
        self._passing, self._telling = Passing(), Passing(CHATS_OF_ONE, CHATS_OF_ALL)
        self.turns = Turns(self._clock.monotonic)
        self.large = LargeAnswers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; lifespan messages are for the inner application."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        request = cast(HttpScope, scope)
        visit = Visit(self._ids.new("req_"), self._clock.monotonic(), request["method"] == "HEAD")
        request.setdefault("state", {})[REQUEST] = visit.request_id
        if not self.turns.begin_at_once() and request.get("raw_path") not in self._rules.probed:
            await self.turns.wait(network_of((request.get("client") or ("", 0))[0]), credential_of(request["headers"]))
        try:
            await self._serve(request, receive, send, visit)
        except Exception as error:
            self._fault(visit.request_id, visit.operation, error)
            if not visit.status:
                fault = Internal("Internal error; quote the request id when you report it")
                await self._finish(request, receive, send, visit, refusal_reply(fault, visit.request_id), private=True)
            else:  # the inner application, in the middle of an answer
                self._write_line(request, visit)
            raise  # the server decides what becomes of the connection
        finally:
            if visit.counted is not None:
                visit.counted.close()

    async def _serve(self, request: HttpScope, receive: Receive, send: Send, visit: Visit) -> None:
        """Find the operation and call it, or hand the request on."""
        found: Found | None = None
        private = True
        try:
            crowded = request.get("state", {}).get(OVERLOADED)
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
        reply = await answer(self._pipeline, call, self._report)
        if reply.refusal is not None and self._inner is not None:
            reply = self._inner.of_operation(request, reply, visit.request_id)
        if call.identified is not None:
            visit.organisation, visit.key = call.identified.organisation, call.identified.key_id
        if reply.passed is not None and not self._lane(reply.passed).has_room(visit.organisation):
            await reply.passed.pieces.aclose()
            full = no_room(self._lane(reply.passed), self._clock.now(), self._pipeline.site.upgrade_url)
            reply = refusal_reply(full, visit.request_id)
        if (reply.passed is not None or len(reply.body) > LARGE_ANSWER) and not visit.head_only:
            reply = await self._begin_large(call, reply, visit)
        small = reply.passed is None and len(reply.body) < SMALLEST
        compressed = not small and reply.status == 200 and is_text(reply.media_type) and may_be_compressed(call.operation)
        await self._finish(request, receive, send, visit, reply, private=private, raw_path=head.raw_path, compressed=compressed)

    async def _begin_large(self, call: Call, reply: Reply, visit: Visit) -> Reply:
        """A large answer, or its refusal. What has changed something is never refused afterwards: it waits for its turn."""
        reader = visit.reader = reader_of(call)
        held = len(reply.body) if reply.passed is None else STREAM_BYTES if reply.passed.size > LARGE_ANSWER else 0
        refusal = self.large.refusal(reader, held, self._clock.now(), self._pipeline.site.upgrade_url) if held else None
        if refusal is not None and call.operation.read_only:
            if reply.passed is not None:
                await reply.passed.pieces.aclose()
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
        visit: Visit,
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
        headers += self._cors(request, headers)
        if compressed:
            varied(headers)
            compressed = takes_gzip(request["headers"])
        if compressed and reply.passed is None:
            reply.body = await gzipped_beside(reply.body)
            replace_length(headers, len(reply.body))
        elif compressed:
            headers.append(GZIP)
        visit.status = reply.status
        if reply.refusal is not None:
            visit.code = reply.refusal.error_code
        if reply.passed is not None and not visit.head_only:
            await self._finish_in_pieces(receive, send, visit, reply.status, headers, reply.passed)
        elif visit.held:
            await send_long(send, reply.status, headers, reply.body)
        else:
            if reply.passed is not None:
                await reply.passed.pieces.aclose()
            body = b"" if visit.head_only else reply.body
            whole = cast("Answer | None", request.get("state", {}).get(ANSWER)) if reply.passed is None else None
            await (send_reply(send, reply.status, headers, body) if whole is None else whole(reply.status, headers, body))
        self._write_line(request, visit)

    async def _finish_in_pieces(self, receive: Receive, send: Send, visit: Visit, status: int, headers: Headers, passed: Passed) -> None:
        """An answer as it is made. One whose size nobody knew is counted as a large one from where it is one."""
        with self._lane(passed).one_more(visit.organisation), ExitStack() as counted:
            if isinstance(passed, Events):
                await send_events(receive, send, status, headers, passed)
                return

            async def turn() -> None:
                await self.large.turn(visit.reader)
                counted.enter_context(self.large.one_more(visit.reader, STREAM_BYTES))

            coding = encoder() if GZIP in headers else None
            await send_passed(receive, send, status, headers, passed, turn=None if visit.held else turn, encoder=coding)

    async def _answer_preflight(self, request: HttpScope, send: Send, visit: Visit) -> bool:
        """Answer a browser's question whether a page of a listed origin may call; False where it is none."""
        listed = self._rules.cross_origins
        told = preflight(request["headers"], listed) if listed and self._is_shared(request) else None
        if told is None:
            return False
        visit.status = 204
        await send_reply(send, visit.status, [*told, (REQUEST_ID, visit.request_id.encode())], b"")
        self._write_line(request, visit)
        return True

    def _is_shared(self, request: HttpScope) -> bool:
        return self._inner is None or self._inner.shares(request["path"])

    def _cors(self, request: HttpScope, answered: Headers) -> Headers:
        """What an answer says of the pages that may read it; nothing where no origin is listed."""
        listed = self._rules.cross_origins
        return cors_headers(request["headers"], answered, listed) if listed and self._is_shared(request) else []

    def _lane(self, passed: Passed) -> Passing:
        """What answers of this kind are counted by."""
        return self._telling if isinstance(passed, Events) else self._passing

    async def _pass_on(self, inner: Inner, request: HttpScope, receive: Receive, send: Send, visit: Visit) -> None:
        """Let the inner application answer; it gets our request id."""
        visit.surface = "inner"
        request.setdefault("state", {})[LARGE_ANSWERS] = self.large

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = cast(int, message["status"])
                headers = cast(list[tuple[bytes, bytes]], message.get("headers", []))
                message["headers"] = [*headers, (REQUEST_ID, visit.request_id.encode()), *self._cors(request, headers)]
            elif len(body := cast(bytes, message.get("body", b""))) > LARGE_ANSWER:
                for start in range(0, len(body), PIECE):
                    await send({"type": "http.response.body", "body": body[start : start + PIECE], "more_body": True})
                message["body"] = b""
            await send(message)

        await inner.app(cast(Scope, request), receive, tagged)
        called = cast("Called | None", request.get("state", {}).get(CALLED))
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

    def _write_line(self, request: HttpScope, visit: Visit) -> None:
        method = request["method"]
        outside = cast(Correlation, request.get("state", {}).get(CORRELATION, NOBODY))
        ms = round((self._clock.monotonic() - visit.started) * 1000, 3)
        self._log(
            RequestLine(
                self._clock.now(),
                visit.request_id,
                method if method in METHODS else "OTHER",
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
    """The credential that a request shows, whatever spaces stand around it; empty without one. Nobody has looked yet whether it is good."""
    shown = next((value for name, value in headers if name == b"authorization"), b"")
    return shown.split()[-1] if shown.strip() else b""


def make_call(found: Found, head: Head, request: HttpScope, receive: Receive, request_id: str) -> Call:
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
    credential = head.credential()
    call = Call(
        operation,
        "http",
        request_id,
        credential=credential,
        misplaced=misplaced(request["headers"], request["query_string"]) if credential is None and not operation.public else "",
        path=found.path,
        query=query,
        read_body=Body(head, receive, request, any_type=operation.proof is not None).read if route.takes_body else no_body,
        idempotency_key=head.idempotency_key(),
        confirm_token=head.text(b"x-confirm-token"),
        client=client[0] if client else "",
        prefers_page=bool(operation.forms) and reads_pages(request["headers"]),
    )
    if operation.auth in SIGNED:
        call.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request["headers"]}
    return call
