"""The ASGI application: the HTTP door in front, and behind it what no operation's path reaches; its lifespan is the service's."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import cast
from urllib.parse import urlsplit

import anyio

from operations.demo import Demo
from operations.intelligence.reports.page import dead_link_html, report_headers
from registry.call import Reply
from registry.clock import request_scope
from registry.errors import MethodNotAllowed, Refusal
from transports.demo_life import live_demo
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.http.door import HttpDoor, InnerApplication
from transports.http.forwarded import ForwardedClients
from transports.http.request import HttpRules, reads_pages
from transports.http.response import PRIVATE_JSON, send_reply
from transports.logs import Logs, RequestLine
from transports.mcp.door import MCP_PATH, McpDoor
from transports.oauth.door import IDENTITY_PATH, IdentityDoor
from transports.openapi.asyncapi import ASYNCAPI_PATH, AsyncapiPage
from transports.openapi.page import OPENAPI_PATH, OpenapiPage
from transports.payments import PAYMENT_PAGES_PATH, deliver_payment_events, serve_payment_pages
from transports.readiness import READY_PATH
from transports.reference.llms import LLMS_PATH, LlmsPage
from transports.reference.pages import ReferencePages
from transports.service import Service, mcp_settings
from transports.signals import HttpSignals
from transports.upstream import run_simulated_network
from transports.web.console.door import CONSOLE_ROOT, ConsoleDoor
from transports.web.shop.door import SHOP_PATH, ShopDoor
from transports.worker.chores import keep_running

SHARE_FORMATS: Mapping[bytes, bool] = {b"format=html": True, b"format=json": False}
SHARED_REPORT_PATH = "/v1/intelligence/share/"


def dead_link_page(request: HttpScope, refusal: Refusal, request_id: str) -> Reply | None:
    """One page for every miss, so that nothing is learned from it."""
    del request_id
    if refusal.status != 404 or not request["path"].startswith(SHARED_REPORT_PATH) or not asks_for_report_page(request):
        return None
    return Reply(404, dead_link_html(), "text/html; charset=utf-8", report_headers(), refusal=refusal)


def asks_for_report_page(request: HttpScope) -> bool:
    """Whether a report behind the link would have been a page, too."""
    asked = [SHARE_FORMATS[part] for part in request["query_string"].split(b"&") if part in SHARE_FORMATS]
    return asked[0] if asked else reads_pages(request["headers"])


LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


class Application:
    def __init__(self, service: Service, logs: Logs, *, started: Callable[[Demo | None], None] | None = None) -> None:
        self.service = service
        self._logs, self._started = logs, started
        settings, site, catalogue = service.settings, service.site, service.pipeline.catalogue
        origin = "/".join(site.base_url.split("/")[:3])
        self._docs_path = site.docs_url.removeprefix(origin).encode()
        listed = frozenset(settings.allowed_origins)
        rules = HttpRules(
            frozenset((*settings.allowed_hosts, urlsplit(site.base_url).hostname or "localhost", *LOOPBACK_HOSTS)),
            origins=listed | {origin},
            cross_origins=listed - {origin},
        )
        self.mcp = McpDoor(service.pipeline, mcp_settings(service, rules.hosts, rules.origins), logs.report)
        self._docs = ReferencePages(catalogue, site)
        self._documents: dict[str, App] = {
            OPENAPI_PATH: OpenapiPage(catalogue, site),
            ASYNCAPI_PATH: AsyncapiPage(catalogue, site),
            LLMS_PATH: LlmsPage(catalogue, site),
        }
        self._identity = IdentityDoor(service, logs.report) if settings.own_identity else None
        self._payments = service.payments.sandbox
        self._shops = ShopDoor(service, logs.report)
        self._console = ConsoleDoor(service, logs.report) if settings.own_identity else None
        prefixes = ["/mcp", "/docs", "/.well-known", SHOP_PATH]
        prefixes += [] if self._identity is None else [IDENTITY_PATH, CONSOLE_ROOT]
        prefixes += [] if self._payments is None else [PAYMENT_PAGES_PATH]
        inner = InnerApplication(
            self._inner,
            paths=frozenset(("/", READY_PATH, *self._documents)),
            prefixes=tuple(prefixes),
            shown=self._shown,
            operation_refused=dead_link_page,
            shared=self._is_shared,
        )
        self.requests, self._answered = HttpSignals(), anyio.Event()
        self.http = HttpDoor(service.pipeline, rules=rules, log=self._note, fault=logs.fault, inner=inner)
        # What the demo does by itself is no request of anybody's: it comes through the same door, and is not in the log of requests.
        self._make_inside = partial(HttpDoor, service.pipeline, rules=rules, log=lambda line: None, fault=logs.fault, inner=inner)
        trusted = settings.trusted_proxies
        self._front: App = ForwardedClients(self.http, trusted) if trusted else self.http

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, or the server's start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._front(scope, receive, send)

    def _note(self, line: RequestLine) -> None:
        self.requests.answered(line)
        self._answered.set()
        self._logs.request(line)

    def _shown(self, request: HttpScope, refusal: Refusal, request_id: str) -> Reply | None:
        """A refusal as a page, for somebody with a browser; nothing for programs."""
        if self._console is not None and self._console.serves(request["path"]):
            return self._console.refused(request, refusal, request_id)
        door = self._shops if self._shops.serves(request["path"]) else self._identity
        return None if door is None else door.refused(request, refusal, request_id)

    def _is_shared(self, path: str) -> bool:
        """Whether pages of the listed origins may read the answers at a path that no operation has."""
        protocol = self._identity is not None and self._identity.speaks(path)
        return protocol or path in (OPENAPI_PATH, ASYNCAPI_PATH, MCP_PATH) or path.startswith((MCP_PATH + "/", "/.well-known/"))

    async def _inner(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pages and protocols by path; pages are public, so they are counted by address."""
        request = cast(HttpScope, scope)
        path = request["path"]
        if path == MCP_PATH:
            await self.mcp(scope, receive, send)
            return
        if path == READY_PATH:  # asked every second or so by whoever sends us work, so counted by nobody
            await self._tell_readiness(request, send)
            return
        with request_scope(self.service.clock):
            await self._page(path, scope, receive, send)

    async def _page(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """A page, with all the calls that it makes."""
        request = cast(HttpScope, scope)
        if self._console is not None and self._console.serves(path):  # whoever is signed in is counted there, and by person
            await self._console(scope, receive, send)
            return
        await self.service.pipeline.rate_limiter.address((request.get("client") or ("", 0))[0])
        if path == "/":  # for whoever opens the printed address in a browser
            await send_reply(send, 307, [(b"location", self._docs_path), (b"content-length", b"0")], b"")
            return
        if self._shops.serves(path):
            await self._shops(scope, receive, send)
            return
        if self._identity is not None and self._identity.serves(path):
            await self._identity(scope, receive, send)
            return
        if self._payments is not None and path.startswith(PAYMENT_PAGES_PATH):
            await serve_payment_pages(self._payments, scope, receive, send)
            return
        app: App = self._documents.get(path, self._docs)
        if path.startswith((MCP_PATH, "/.well-known")):
            app = self.mcp
        await app(scope, receive, send)

    async def _tell_readiness(self, request: HttpScope, send: Send) -> None:
        """Whether this process should be sent work; from what it knows already, so that the answer waits for nothing."""
        if request["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed(f"{READY_PATH} takes GET and HEAD", allow="GET, HEAD")
        status, body = self.service.readiness.answer()
        headers = [*PRIVATE_JSON, (b"content-length", b"%d" % len(body))]
        await send_reply(send, status, headers, b"" if request["method"] == "HEAD" else body)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Start, serve until told to stop, then finish what is under way."""
        await receive()
        service = self.service
        demo = await service.start(seed=True)
        await service.begin_network(self._forgotten_operations())
        service.keep_room()
        await service.readiness.look()
        async with anyio.create_task_group() as tasks:
            for name, run in self._kept():
                tasks.start_soon(keep_running, name, run, service.report)
            works = service.settings.worker if service.settings.worker is not None else service.settings.embedded
            done = anyio.Event()
            if works:
                tasks.start_soon(self._work, done)
            if demo is not None and demo.api_key is not None and service.settings.with_demo_life:
                tasks.start_soon(self._live_demo, demo.api_key)
            if self._started is not None:
                self._started(demo)
            async with self.mcp.running():
                await send({"type": "lifespan.startup.complete"})
                await receive()
            if works:
                service.worker.stop()
                await done.wait()
            tasks.cancel_scope.cancel()
        await service.stop()
        self._logs.flush()
        await send({"type": "lifespan.shutdown.complete"})

    def _kept(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """What runs beside the calls, the worker apart."""
        service = self.service
        yield "the writing of buffered rows", service.write_buffers
        yield "the look at the database", service.readiness.watch
        yield "the postman", service.mailer.run
        if service.upstream.simulation is not None:
            yield "the simulated network", partial(run_simulated_network, service.upstream.simulation, self.http)
        if self._payments is not None:
            yield "the simulated payment processor", partial(deliver_payment_events, self._payments, self.http)

    def _forgotten_operations(self) -> list[str]:
        """Ids of operations whose effect a simulated network forgets when it restarts: all writes but issuance and what undoes one."""
        known = self.service.pipeline.catalogue.operations.values()
        kept = tuple(operation.path for operation in known if operation.once is not None and operation.once.forever)
        return [o.id for o in known if o.upstream and not o.read_only and not o.path.startswith(kept)]

    async def _live_demo(self, key: str) -> None:
        """Makes the first start of a demo livelier, once the first request has its answer: no start waits for it."""
        await self._answered.wait()
        await live_demo(self.service, self._make_inside(), key)

    async def _work(self, done: anyio.Event) -> None:
        try:
            await keep_running("the worker", self.service.worker.run, self.service.report)
        finally:
            done.set()
