"""The HTTP door: an ASGI application that turns requests into calls and replies into answers. It decides nothing about a call."""

from collections.abc import Callable
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
from transports.http.asgi import HttpScope, Message, Receive, Scope, Send
from transports.http.body import Body
from transports.http.connection import ANSWER, CALLED, OVERLOADED, REQUEST, Answer, Called, Overloaded
from transports.http.inner import Inner
from transports.http.passing import CHATS_OF_ALL, CHATS_OF_ONE, Passing, no_room
from transports.http.request import Head, read_head
from transports.http.response import REQUEST_ID, header_list, next_link, refusal_reply, send_events, send_passed, send_reply
from transports.http.router import Found, Router
from transports.http.rules import HttpRules
from transports.http.turns import Turns
from transports.logs import RequestLine

D = TypeVar("D")
Log: TypeAlias = Callable[[RequestLine], None]
Fault: TypeAlias = Callable[[str, str, BaseException], None]
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
SIGNED = (Auth.SIGNATURE, Auth.BRIDGE)  # their handlers read headers


class Visit:
    """What is known of one request so far, for its log line and for a fault."""

    __slots__ = ("code", "head_only", "operation", "organisation", "path", "request_id", "started", "status", "surface")

    def __init__(self, request_id: str, started: float, head_only: bool) -> None:
        self.request_id, self.started, self.head_only = request_id, started, head_only
        self.path, self.operation, self.organisation, self.surface = "-", "", "", "http"
        self.status, self.code = 0, ""


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
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; lifespan messages are for the inner application."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        request = cast(HttpScope, scope)
        visit = Visit(self._ids.new("req_"), self._clock.monotonic(), request["method"] == "HEAD")
        request.setdefault("state", {})[REQUEST] = visit.request_id
        await self._turns.wait(sender(request))
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

    async def _serve(self, request: HttpScope, receive: Receive, send: Send, visit: Visit) -> None:
        """Find the operation and call it, or hand the request on."""
        found: Found | None = None
        private = True
        try:
            if OVERLOADED in request.get("state", ()):
                raise Overloaded
            head = read_head(request, self._rules)
            found = self._router.find(request["method"], head.raw_path)
            if found is None:
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
            visit.organisation = call.identified.organisation
        if reply.passed is not None and not self._lane(reply.passed).has_room(visit.organisation):
            await reply.passed.pieces.aclose()
            full = no_room(self._lane(reply.passed), self._clock.now(), self._pipeline.site.upgrade_url)
            reply = refusal_reply(full, visit.request_id)
        await self._finish(request, receive, send, visit, reply, private=private, raw_path=head.raw_path)

    async def _finish(
        self, request: HttpScope, receive: Receive, send: Send, visit: Visit, reply: Reply, *, private: bool, raw_path: bytes = b""
    ) -> None:
        """Render, send, and write the log line."""
        headers = header_list(reply, visit.request_id, private)
        if reply.next_cursor is not None:
            headers.append(next_link(request["method"], raw_path, request["query_string"], reply.next_cursor))
        visit.status = reply.status
        if reply.refusal is not None:
            visit.code = reply.refusal.error_code
        if reply.passed is None:
            body = b"" if visit.head_only else reply.body
            whole = cast("Answer | None", request.get("state", {}).get(ANSWER))
            await (send_reply(send, reply.status, headers, body) if whole is None else whole(reply.status, headers, body))
        elif visit.head_only:
            await reply.passed.pieces.aclose()
            await send_reply(send, reply.status, headers, b"")
        else:
            with self._lane(reply.passed).one_more(visit.organisation):
                if isinstance(reply.passed, Events):
                    await send_events(receive, send, reply.status, headers, reply.passed)
                else:
                    await send_passed(receive, send, reply.status, headers, reply.passed)
        self._write_line(request, visit)

    def _lane(self, passed: Passed) -> Passing:
        """What answers of this kind are counted by."""
        return self._telling if isinstance(passed, Events) else self._passing

    async def _pass_on(self, inner: Inner, request: HttpScope, receive: Receive, send: Send, visit: Visit) -> None:
        """Let the inner application answer; it gets our request id."""
        visit.surface = "inner"

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = cast(int, message["status"])
                headers = cast(list[tuple[bytes, bytes]], message.get("headers", []))
                message["headers"] = [*headers, (REQUEST_ID, visit.request_id.encode())]
            await send(message)

        await inner.app(cast(Scope, request), receive, tagged)
        called = cast("Called | None", request.get("state", {}).get(CALLED))
        if called is not None:
            visit.surface, visit.operation, visit.organisation, visit.code = called
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
            )
        )


def sender(request: HttpScope) -> str:
    """Whose turn a request takes: its credential's, since many clients may stand behind one address, or else its address's."""
    credential = next((value for name, value in request["headers"] if name == b"authorization"), b"")
    return credential.decode("latin-1") if credential else (request.get("client") or ("", 0))[0]


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
        idempotency_key=head.idempotency_key(operation.once),
        confirm_token=head.text(b"x-confirm-token"),
        client=client[0] if client else "",
    )
    if operation.auth in SIGNED:
        call.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request["headers"]}
    return call
