"""The pages behind /auth: one request in, one page or one redirect out."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from registry.errors import NotFound, Refusal
from transports.http.body import form_fields
from transports.web.pages import account, api_keys, approvals, consent, onboarding, organisation, payments, sign_in, sign_up
from transports.web.pages.request import HOME_PAGE, PageContext, PageRequest, problem_of
from transports.web.site import PageHandler, PageRoute, PageSite, visit_facts

PAGE_ROUTES: Mapping[str, PageRoute[PageRequest]] = {
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
    "/approvals": PageRoute(approvals.show_approvals, approvals.post_approvals),
    "/members": PageRoute(organisation.show_members, organisation.post_members),
    "/affiliates": PageRoute(organisation.show_affiliates, organisation.post_affiliates),
    "/payments": PageRoute(payments.show_payments, payments.post_payments),
    "/audit": PageRoute(organisation.show_audit),
    "/session-token": PageRoute(api_keys.show_session_token, api_keys.post_session_token),
    "/upgrade": PageRoute(account.show_tiers, private=False),
    "/consent": PageRoute(consent.show_consent, consent.post_consent),
    "/unsubscribe/{token}": PageRoute(account.show_unsubscribe, account.post_unsubscribe, private=False, anywhere=True),
}


PAGES_ROOT = "/auth"


class PagesApp(PageSite[PageRequest]):
    """Every page of the built-in identity provider. Forms are taken from our own origin alone."""

    start_hint = "Start from your account"

    def __init__(self, context: PageContext) -> None:
        super().__init__(context.origin, {f"{PAGES_ROOT}{path}": route for path, route in PAGE_ROUTES.items()})
        self._context = context

    def path(self, path: str) -> str:
        return path.rstrip("/")

    def visit(self, request: Request) -> PageRequest:
        clock = self._context.pipeline.clock
        cookies, client, request_id = visit_facts(request)
        return PageRequest(
            request=request,
            context=self._context,
            path=request.scope["path"].removeprefix(PAGES_ROOT).rstrip("/"),
            cookies=cookies,
            client=client,
            request_id=request_id,
            now=clock.now(),
            started=clock.monotonic(),
        )

    async def prepare(self, visit: PageRequest, route: PageRoute[PageRequest] | None) -> PageRoute[PageRequest]:
        await visit.recognise()
        if route is None:
            raise NotFound("There is no such page", hint="Check the address, or start from your account")
        visit.query = form_fields(visit.request.scope["query_string"].decode("latin-1"))
        return route

    async def show(self, visit: PageRequest, route: PageRoute[PageRequest], handler: PageHandler[PageRequest]) -> Response:
        return visit.to_sign_in() if route.private and visit.session is None else await handler(visit)

    async def act(self, visit: PageRequest, route: PageRoute[PageRequest], handler: PageHandler[PageRequest]) -> Response:
        """Does what a form asks for. A form of a reader who is no longer signed in leads to sign-in, and its token is not checked."""
        if route.private and visit.session is None:
            return visit.to_sign_in()
        if visit.session is not None and visit.path.startswith("/sign-in"):
            return visit.redirect(HOME_PAGE)  # the other window was faster
        visit.check_form()
        return await handler(visit)

    def refusal_page(self, visit: PageRequest, refusal: Refusal, headers: Mapping[str, str]) -> Response:
        return visit.page("error.html", {}, problem=problem_of(refusal), headers=headers)
