"""The MCP door as an ASGI application: /mcp, the check of the credential in front of it, and the metadata that says where to log in."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import anyio.to_thread
import orjson

from operations.deps import Deps
from registry.answer import FaultReport, refusal_reply
from registry.authentication import authenticate_bearer, find_misplaced_credential, has_own_sign_in_pages, key_advice
from registry.call import Call, Reply
from registry.errors import BadRequest, MethodNotAllowed, NotFound, Refusal, Unauthorized
from registry.pipeline import LARGE_BODY, Pipeline
from transports.http.asgi import (
    STATE_CALL,
    STATE_LARGE_ANSWERS,
    STATE_REQUEST_ID,
    CallSummary,
    Headers,
    HttpScope,
    Message,
    Receive,
    Scope,
    Send,
)
from transports.http.concurrency import LARGE_ANSWER_BYTES, LargeAnswers, reader_of
from transports.http.request import HttpRules, read_head
from transports.mcp.message import MessageBody
from transports.mcp.request_caller import CallListener, ReplyAdmission, RequestCaller, read_selection
from transports.mcp.settings import McpSettings

if TYPE_CHECKING:  # the server is imported by the first request: the SDK costs more than a second
    from transports.mcp.server import McpHttpServer


RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"
CREDENTIAL_HINT = "Send Authorization: Bearer <API key or session token>; a session token must be issued for this address (its audience)"


def resource_metadata_url(resource: str) -> str:
    """Where the resource's metadata is: the well-known part goes between host and path (RFC 9728 section 3.1)."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}{RESOURCE_METADATA_PATH}{parts.path}"


def resource_metadata(resource: str, authorization_servers: tuple[str, ...], documentation: str, scopes: tuple[str, ...] = ()) -> bytes:
    """RFC 9728 metadata. Without an identity provider there is no authorization server to name, and API keys alone work."""
    body: dict[str, object] = {
        "resource": resource,
        "bearer_methods_supported": ["header"],
        "resource_name": "Connectivity",
        "resource_documentation": documentation,
    }
    if authorization_servers:
        body["authorization_servers"] = list(authorization_servers)
    if scopes:
        body["scopes_supported"] = list(scopes)
    return orjson.dumps(body)


def bearer_credential(headers: Headers, hint: str) -> str:
    """The bearer credential of a request. `hint`: what whoever sent none is told. Raises BadRequest and Unauthorized."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) > 1:
        raise BadRequest("authorization: the header was sent twice", hint="Send it once")
    scheme, _, secret = values[0].decode("latin-1").partition(" ") if values else ("", "", "")
    # Choice: another scheme counts as nothing presented (RFC 6750 3.1), so the challenge tells which scheme to use.
    if scheme.lower() != "bearer":
        seen = find_misplaced_credential(headers, b"") or "this address needs one"  # the query was read before, and has none
        raise Unauthorized(f"No credential: {seen}", presented=False, hint=hint)
    if not secret.strip():
        raise Unauthorized("The credential is empty", presented=True, hint=hint)
    return secret.strip()


def bearer_challenge(refusal: Unauthorized, resource: str) -> Mapping[str, str]:
    """The refusal's headers, with the way to the metadata (RFC 9728 section 5.1)."""
    return {
        **refusal.headers,
        "WWW-Authenticate": f'{refusal.headers["WWW-Authenticate"]}, resource_metadata="{resource_metadata_url(resource)}"',
    }


DISCONNECT_WATCH_SECONDS = 0.1
"""Seconds after which a call is one that somebody may have given up waiting for."""


async def while_connected(receive: Receive, serving: Awaitable[None]) -> None:
    """Serve until the client hangs up. Watching takes a task, so it begins when a call lasts longer than a moment."""
    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        served.cancel()

    with anyio.CancelScope() as served:
        timer = loop.call_later(DISCONNECT_WATCH_SECONDS, lambda: watching.append(loop.create_task(watch())))
        try:
            await serving
        finally:
            timer.cancel()
            for task in watching:
                task.cancel()


MCP_PATH = "/mcp"
MCP_METADATA_PATH = f"{RESOURCE_METADATA_PATH}{MCP_PATH}"
RESULT_COPIES = 2
"""A result has its answer as text and as structured content."""
RESULT_MEMORY_FACTOR = 8
"""Times its size that an answer takes while a result is made of it: decoded, as text, and as it is written."""
MCP_PATHS = frozenset({MCP_PATH, MCP_METADATA_PATH})
BATCH_REFUSAL = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": "The body is a JSON-RPC batch, which this server does not take: send each message in a request of its own",
        },
    }
)


class McpDoor:
    """Hands authenticated requests to the MCP server, which is made when the first of them arrives."""

    def __init__(self, pipeline: Pipeline[Deps], settings: McpSettings, report: FaultReport) -> None:
        def make() -> "McpHttpServer":
            from transports.mcp.server import make_mcp_http_server  # costs more than a second

            return make_mcp_http_server(pipeline, settings, report)

        self._pipeline, self.make = pipeline, make
        self._rules = HttpRules(frozenset(settings.allowed_hosts), frozenset(settings.allowed_origins))
        self._operations, self._large = pipeline.catalogue.operations, anyio.Lock()
        site = pipeline.site
        self._credential_hint = f"{CREDENTIAL_HINT}. {key_advice(site)}" if has_own_sign_in_pages(site) else CREDENTIAL_HINT
        self._metadata = resource_metadata(site.mcp_url, settings.authorization_servers, site.docs_url, settings.scopes)
        # A proxy that serves us under a path leaves it in well-known addresses, which stand before it.
        self._metadata_paths = frozenset({MCP_METADATA_PATH, urlsplit(resource_metadata_url(site.mcp_url)).path})
        self._server: McpHttpServer | None = None
        self._running = False
        self._wanted, self._ready = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve inside this block. One task enters and leaves the SDK's task group, however many requests want it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hold)
            self._running = True
            try:
                yield
            finally:
                self._running = False
                tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = cast(HttpScope, scope)
        given = http.get("state", {}).get(STATE_REQUEST_ID)
        request_id = given if isinstance(given, str) else self._pipeline.ids.new("req_")
        send = send if given == request_id else announce_request_id(send, request_id)
        try:
            if given != request_id:  # no HTTP door stands in front, which has read the head
                read_head(http, self._rules)
            if http["path"] in self._metadata_paths:
                await self._answer_metadata(http, send)
            else:
                await self._serve(http, scope, receive, send, request_id)
        except Refusal as refusal:
            await self._refuse(send, refusal, request_id)

    async def _serve(self, http: HttpScope, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        if http["path"] != MCP_PATH:
            raise NotFound("There is nothing at this address", hint=f"The MCP server is at {MCP_PATH}")
        if http["method"] != "POST":
            # Choice: no standing GET streams and no sessions to DELETE; both eras allow a server to offer only POST.
            raise MethodNotAllowed("MCP messages are sent with POST", allow="POST", hint="Use POST")
        chosen = read_selection(http["query_string"], http["headers"])
        pipeline, client = self._pipeline, (http.get("client") or ("", 0))[0]
        credential, site = bearer_credential(http["headers"], self._credential_hint), pipeline.site
        # The surface makes the audience of session tokens count.
        caller = await authenticate_bearer(credential, "mcp", pipeline.directory, pipeline.sessions, site, pipeline.clock.now())
        limiter = pipeline.rate_limiter
        await limiter.message(caller)
        await limiter.body(caller, client)
        server = await self._started()
        body = MessageBody(http, receive)
        with ExitStack() as counted:
            requester = RequestCaller(caller, chosen, client, request_id, call_summary_writer(http), self._admitting(http, counted))
            http = {**http, "headers": trim_headers(http["headers"])}
            try:
                message = await self._measured(body)
            except Refusal:
                limiter.refused_body(caller, client, body.size)
                raise
            if body.is_shortened:
                limiter.refused_body(caller, client, body.size)
            else:
                requester = replace(requester, message_size=body.size)
            if isinstance(message, list):
                await send_mcp_json(send, 400, [(b"cache-control", b"no-store")], BATCH_REFUSAL)
                return
            answer = None if server.edge is None else server.edge.take(http, message, requester)
            if answer is None:
                await server.app({**scope, "headers": http["headers"], "user": server.user(requester)}, body.again, send)
            else:
                await while_connected(receive, send_mcp_answer(send, answer))

    def _admitting(self, http: HttpScope, counted: ExitStack) -> ReplyAdmission:
        """Counts a large reply among the large answers of the HTTP door for as long as `counted` is open."""
        large = cast("LargeAnswers | None", http.get("state", {}).get(STATE_LARGE_ANSWERS))

        async def admit(call: Call, reply: Reply) -> Reply:
            if large is None or len(reply.body) * RESULT_COPIES <= LARGE_ANSWER_BYTES:
                return reply
            reader, held = reader_of(call), len(reply.body) * RESULT_MEMORY_FACTOR
            refusal = large.refusal(reader, held, self._pipeline.clock.now(), self._pipeline.site.upgrade_url)
            if refusal is not None and call.operation.read_only:
                return refusal_reply(refusal, call.request_id)
            if refusal is not None:  # what has changed something is not refused afterwards
                await large.turn(reader)
            counted.enter_context(large.one_more(reader, held))
            return reply

        return admit

    async def _measured(self, body: MessageBody) -> object:
        """The message. Of large ones one at a time is looked at, and then it is everybody else's turn."""
        await body.read()
        if body.size <= LARGE_BODY:
            return body.message(self._operations)
        async with self._large:
            message = body.message(self._operations)
            await anyio.lowlevel.checkpoint()
            return message

    async def _started(self) -> "McpHttpServer":
        if not self._running:
            raise RuntimeError("the MCP door is asked outside its running() block")
        self._wanted.set()
        await self._ready.wait()
        assert self._server is not None
        return self._server

    async def _hold(self) -> None:
        """Wait for the first request, make the server in a thread, then hold its task group open until the end."""
        await self._wanted.wait()
        server = self._server = await anyio.to_thread.run_sync(self.make)
        async with server.manager.run():
            self._ready.set()
            await anyio.to_thread.run_sync(self._describe_tools)
            await anyio.sleep_forever()

    def _describe_tools(self) -> None:
        """Make the definitions of all tools, in a thread: the first list of them would hold the loop for a second."""
        from transports.mcp.tools import is_tool, tool_definition  # they bring the SDK, which is there by now

        for operation in self._operations.values():
            if is_tool(operation):
                tool_definition(operation)

    async def _answer_metadata(self, http: HttpScope, send: Send) -> None:
        """RFC 9728 metadata; public."""
        if http["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("The metadata is read with GET", allow="GET, HEAD", hint="Use GET")
        await send_mcp_json(send, 200, [(b"cache-control", b"public, max-age=3600")], self._metadata if http["method"] == "GET" else b"")

    async def _refuse(self, send: Send, refusal: Refusal, request_id: str) -> None:
        """A refusal before JSON-RPC has the body of any other HTTP refusal."""
        own = bearer_challenge(refusal, self._pipeline.site.mcp_url) if isinstance(refusal, Unauthorized) else refusal.headers
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in own.items()]
        await send_mcp_json(send, refusal.status, [*headers, (b"cache-control", b"no-store")], orjson.dumps(refusal.body(request_id)))


def call_summary_writer(http: HttpScope) -> CallListener:
    """Leaves word of the call where the HTTP door finds it for its log line."""
    state = http.setdefault("state", {})

    def tell(call: Call, reply: Reply) -> None:
        organisation, key = ("", "") if call.identified is None else (call.identified.organisation, call.identified.key_id)
        code = "" if reply.refusal is None else reply.refusal.error_code
        state[STATE_CALL] = CallSummary(call.surface, call.operation.id, organisation, code, key)

    return tell


def trim_headers(headers: Headers) -> Headers:
    """Header values without the white space around them, which some HTTP parsers leave in (RFC 9112 section 5.1)."""
    if any(value[:1] in (b" ", b"\t") or value[-1:] in (b" ", b"\t") for _, value in headers):
        return [(name, value.strip(b" \t")) for name, value in headers]
    return headers


def announce_request_id(send: Send, request_id: str) -> Send:
    async def tagged(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = cast(Headers, message.get("headers", []))
            message["headers"] = [*headers, (b"request-id", request_id.encode())]
        await send(message)

    return tagged


async def send_mcp_answer(send: Send, answer: Awaitable[bytes]) -> None:
    await send_mcp_json(send, 200, [], await answer)


async def send_mcp_json(send: Send, status: int, headers: Headers, body: bytes) -> None:
    common = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"x-content-type-options", b"nosniff")]
    await send({"type": "http.response.start", "status": status, "headers": [*common, *headers]})
    await send({"type": "http.response.body", "body": body})
