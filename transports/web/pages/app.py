"""The pages behind /auth: one request in, one page or one redirect out. Whatever is refused is a page, too."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from registry.call import Call, Reply
from registry.errors import MethodNotAllowed, NotFound, Refusal
from transports.http.asgi import STATE_REQUEST_ID, Headers, HttpScope, Receive, Scope, Send
from transports.http.body import form_fields, read_form
from transports.http.response import send_reply
from transports.web.forms import check_sender
from transports.web.headers import DOOR_HEADERS, PAGE_MEDIA_TYPE, REFERRER_POLICY, read_cookies
from transports.web.pages import account, api_keys, consent, onboarding, organisation, payments, sign_in, sign_up
from transports.web.pages.calls import problem_of
from transports.web.pages.layout import PageLayout
from transports.web.pages.request import HOME_PAGE, HtmlPage, PageAnswer, PageContext, PageRedirect, PageRequest, make_page_context

if TYPE_CHECKING:
    from transports.service import Service


PageHandler = Callable[[PageRequest], Awaitable[PageAnswer]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page: how it is shown, what its forms do, and whether one must be signed in."""

    show: PageHandler | None
    act: PageHandler | None = None
    private: bool = True

    @property
    def methods(self) -> str:
        """What the path takes, as Allow says it."""
        return ", ".join((*(("GET", "HEAD") if self.show else ()), *(("POST",) if self.act else ())))


PAGE_ROUTES: Mapping[str, PageRoute] = {
    "": PageRoute(sign_in.show_home, private=False),
    "/sign-up": PageRoute(sign_up.show_sign_up, sign_up.start_sign_up, private=False),
    "/sign-up/code": PageRoute(sign_up.show_sign_up_code, sign_up.complete_sign_up, private=False),
    "/sign-in": PageRoute(sign_in.show_sign_in, sign_in.start_sign_in, private=False),
    "/sign-in/code": PageRoute(sign_in.show_sign_in_code, sign_in.complete_sign_in, private=False),
    "/sign-out": PageRoute(None, sign_in.sign_out_here),
    "/sign-out/everywhere": PageRoute(None, sign_in.sign_out_everywhere),
    "/account": PageRoute(account.show_account, account.post_account),
    "/invitations": PageRoute(account.show_invitations),
    "/onboarding": PageRoute(onboarding.show_onboarding, onboarding.post_onboarding),
    "/api-keys": PageRoute(api_keys.show_api_keys, api_keys.post_api_keys),
    "/members": PageRoute(organisation.show_members, organisation.post_members),
    "/affiliates": PageRoute(organisation.show_affiliates, organisation.post_affiliates),
    "/payments": PageRoute(payments.show_payments, payments.post_payments),
    "/audit": PageRoute(organisation.show_audit),
    "/session-token": PageRoute(api_keys.show_session_token, api_keys.post_session_token),
    "/upgrade": PageRoute(account.show_tiers, private=False),
    "/consent": PageRoute(consent.show_consent, consent.post_consent),
}


PAGES_ROOT = "/auth"


class PagesApp:
    """Every page, by path."""

    def __init__(self, context: PageContext) -> None:
        self._context, self._layout = context, PageLayout()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request = cast(HttpScope, scope)
        visit = self._open(request)
        try:
            answer = await self._answer(visit, request, receive)
        except Refusal as refusal:
            answer = refusal_page(refusal)
        await self._send(visit, answer, send, head_only=request["method"] == "HEAD")

    def refused(self, request: HttpScope, refusal: Refusal, request_id: str) -> Reply:
        """The page for what was refused before any page was asked; who sits before the browser is not looked up for it."""
        page = HtmlPage("error.html", {"problem": problem_of(refusal)}, status=refusal.status)
        headers = {name.decode(): value.decode("latin-1") for name, value in self._layout.headers(page) if name not in DOOR_HEADERS}
        body = self._layout.render(self._open(request), page)
        return Reply(refusal.status, body, PAGE_MEDIA_TYPE, {**headers, **refusal.headers}, refusal=refusal)

    def _open(self, request: HttpScope) -> PageRequest:
        clock = self._context.pipeline.clock
        return PageRequest(
            context=self._context,
            path=request["path"].removeprefix(PAGES_ROOT).rstrip("/"),
            query={},
            cookies=read_cookies(request["headers"]),
            client=(request.get("client") or ("", 0))[0],
            request_id=str(request.get("state", {}).get(STATE_REQUEST_ID, "")),
            now=clock.now(),
            started=clock.monotonic(),
        )

    async def _answer(self, visit: PageRequest, request: HttpScope, receive: Receive) -> PageAnswer:
        """Find the page, find out who asks, and let the page answer."""
        route = PAGE_ROUTES.get(visit.path)
        await visit.recognise()
        if route is None:
            raise NotFound("There is no such page", hint="Check the address, or start from your account")
        visit.query = form_fields(request["query_string"].decode("latin-1"))
        if request["method"] == "POST" and route.act is not None:
            check_sender(request["headers"], self._context.origin)
            visit.form = await read_form(request, receive)
            return await answer_form(visit, route)
        if request["method"] not in ("GET", "HEAD") or route.show is None:
            raise MethodNotAllowed("This page cannot be used in this way", allow=route.methods, hint="Start from your account")
        return visit.to_sign_in() if route.private and visit.session is None else await route.show(visit)

    async def _send(self, visit: PageRequest, answer: PageAnswer, send: Send, *, head_only: bool) -> None:
        if isinstance(answer, PageRedirect):
            status, body = 303, b""
            target = answer.target if answer.away else f"{self._context.root}{PAGES_ROOT}{answer.target}"
            headers: Headers = [
                (b"location", target.encode("ascii")),
                (b"cache-control", b"no-store"),
                (b"referrer-policy", REFERRER_POLICY),
            ]
        else:
            status, body = answer.status, self._layout.render(visit, answer)
            headers = self._layout.headers(answer)
        headers.append((b"content-length", b"%d" % len(body)))
        headers += [(b"set-cookie", cookie.encode("ascii")) for cookie in visit.setting.values()]
        await send_reply(send, status, headers, b"" if head_only else body)


async def answer_form(visit: PageRequest, route: PageRoute) -> PageAnswer:
    """What a form asks for. One that somebody sends who is not signed in any more does nothing, so it needs no token either."""
    assert route.act is not None
    if route.private and visit.session is None:
        return visit.to_sign_in()
    if visit.session is not None and visit.path.startswith("/sign-in"):
        return PageRedirect(HOME_PAGE)  # the other window was faster
    visit.check_form()
    return await route.act(visit)


def refusal_page(refusal: Refusal) -> HtmlPage:
    """The page that says why not."""
    kept = {name: value for name, value in refusal.headers.items() if name in ("Allow", "Retry-After")}
    return HtmlPage("error.html", {"problem": problem_of(refusal)}, status=refusal.status, headers=kept)


def make_pages(service: "Service", report: Callable[[Call, BaseException], None]) -> PagesApp:
    """Every page of the built-in identity provider. Forms are taken from our own origin alone."""
    return PagesApp(make_page_context(service, report))
