"""The console: one request in, one page or one redirect out; and its words, a file for each page with every language side by side."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from operations.languages import DEFAULT_LANGUAGE, LanguageTexts, spoken_languages, texts_in
from registry.errors import NotFound, Refusal
from registry.ports import AuditRecord
from transports.http.body import form_fields
from transports.web.console import (
    approvals,
    audit_log,
    changes,
    disputes,
    economics,
    events,
    find,
    fleet,
    insight,
    invoices,
    issue,
    line,
    money,
    organisation,
    payment_account,
    payments,
    payouts,
    schedules,
    settings,
    shop_orders,
    shops,
    today,
    webhooks,
)
from transports.web.console.assets import asset_response
from transports.web.console.csv_download import CsvFile
from transports.web.console.request import ConsoleRequest
from transports.web.pages.request import CONSOLE_ADDRESS, CONSOLE_PATH, PageContext, problem_of
from transports.web.shop.request import preferred_language
from transports.web.site import PageHandler, PageRoute, PageSite, visit_facts

CONSOLE_TEXTS = Path(__file__).parent / "texts"


@cache
def console_texts(language: str) -> LanguageTexts:
    """The texts of `language` with those of the shop, whose formats and countries they share. A key is `page.name`.

    A file without a section of English translates what declarations say.
    """
    chosen = language if language in spoken_languages() else DEFAULT_LANGUAGE
    words = dict(texts_in(chosen).words)
    for file in sorted(CONSOLE_TEXTS.glob("*.toml")):
        sections: Mapping[str, Mapping[str, str]] = tomllib.loads(file.read_text())
        words |= {f"{file.stem}.{name}": text for name, text in sections.get(chosen, {}).items()}
    return LanguageTexts(chosen, words)


LANGUAGE_COOKIE = "console_language"
LANGUAGE_SECONDS = 31_536_000


async def show_asset(visit: ConsoleRequest) -> Response:
    """The style sheet or the script."""
    return asset_response(visit.request, visit.request.path_params["name"])


async def post_language(visit: ConsoleRequest) -> Response:
    """Keeps the chosen language in this browser, and shows the page that it was chosen on."""
    chosen = visit.form.get("language", "")
    if chosen in spoken_languages():
        visit.setting[LANGUAGE_COOKIE] = (
            f"{LANGUAGE_COOKIE}={chosen}; Max-Age={LANGUAGE_SECONDS}; Path={CONSOLE_PATH}; HttpOnly; SameSite=Lax"
        )
    wanted = visit.form.get("next", "")
    ways = (each for each in (wanted, wanted.partition("?")[0]) if CONSOLE_ADDRESS.fullmatch(each))
    return visit.redirect(next(ways, CONSOLE_PATH))


CONSOLE_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    **today.TODAY_ROUTES,
    **find.FIND_ROUTES,
    **fleet.FLEET_ROUTES,
    **line.LINE_ROUTES,
    **changes.CHANGE_ROUTES,
    **approvals.APPROVAL_ROUTES,
    **issue.ISSUE_ROUTES,
    **webhooks.WEBHOOKS_ROUTES,
    **events.EVENTS_ROUTES,
    **shop_orders.SHOP_ORDER_ROUTES,
    **shops.OWN_SHOP_ROUTES,
    **money.MONEY_ROUTES,
    **invoices.INVOICE_ROUTES,
    **schedules.SCHEDULE_ROUTES,
    **insight.INSIGHT_ROUTES,
    **organisation.ORGANISATION_ROUTES,
    **audit_log.AUDIT_ROUTES,
    **settings.SETTINGS_ROUTES,
    **payments.PAYMENT_ROUTES,
    **disputes.DISPUTE_ROUTES,
    **payouts.PAYOUT_ROUTES,
    **payment_account.PAYMENT_ACCOUNT_ROUTES,
    **economics.ECONOMICS_ROUTES,
    "/language": PageRoute(None, post_language),
    "/assets/{name}": PageRoute(show_asset, private=False),
}


class ConsoleApp(PageSite[ConsoleRequest]):
    """Every page of the console. Forms are taken from our own origin alone; a page asks nothing before somebody is signed in."""

    start_hint = "Start from the page Today"

    def __init__(self, context: PageContext) -> None:
        super().__init__(context.origin, {f"{CONSOLE_PATH}{path}": route for path, route in CONSOLE_ROUTES.items()})
        self._context = context

    def path(self, path: str) -> str:
        return path.rstrip("/")

    def visit(self, request: Request) -> ConsoleRequest:
        clock = self._context.pipeline.clock
        cookies, client, request_id = visit_facts(request)
        chosen = cookies.get(LANGUAGE_COOKIE, "")
        language = chosen if chosen in spoken_languages() else preferred_language(request.scope["headers"], spoken_languages())
        return ConsoleRequest(
            request=request,
            context=self._context,
            path=request.scope["path"].removeprefix(CONSOLE_PATH).rstrip("/"),
            cookies=cookies,
            client=client,
            request_id=request_id,
            now=clock.now(),
            started=clock.monotonic(),
            texts=console_texts(language),
        )

    async def prepare(self, visit: ConsoleRequest, route: PageRoute[ConsoleRequest] | None) -> PageRoute[ConsoleRequest]:
        limiter = self._context.pipeline.rate_limiter
        if route is not None and not route.private:
            return route
        await visit.recognise()
        if visit.session is None:
            await limiter.address(visit.client)
        else:  # forms, too: what they look up before they press anything costs nothing else
            await limiter.page(visit.who.person)
        if route is None:
            raise NotFound("There is no such page", hint="Check the address, or start from the page Today")
        visit.query = form_fields(visit.request.scope["query_string"].decode("latin-1"))
        return route

    async def show(self, visit: ConsoleRequest, route: PageRoute[ConsoleRequest], handler: PageHandler[ConsoleRequest]) -> Response:
        """The page, for a member of an organisation; its one audit row names the page."""
        if not route.private:
            return await handler(visit)
        if visit.session is None:
            return visit.to_sign_in()
        if not visit.acting.organisation:
            return visit.draw("nobody.html", {})
        response = await handler(visit)
        self._context.pipeline.journal.record(page_record(visit, response))
        return response

    async def act(self, visit: ConsoleRequest, route: PageRoute[ConsoleRequest], handler: PageHandler[ConsoleRequest]) -> Response:
        """Does what a form asks for. A form of a reader who is no longer signed in leads to sign-in, and its token is not checked."""
        del route
        if visit.session is None:
            return visit.to_sign_in()
        visit.check_form()
        return await handler(visit)

    def refusal_page(self, visit: ConsoleRequest, refusal: Refusal, headers: Mapping[str, str]) -> Response:
        return visit.draw("refused.html", {}, problem=visit.said_problem(problem_of(refusal)), headers=headers)


def page_record(visit: ConsoleRequest, response: Response) -> AuditRecord:
    """The audit row of a page: which one, never what was looked for. A list that was taken away as a file is named as one."""
    outcome = "ok" if response.status_code < 400 else "refused"
    steps = [step for step in visit.path.split("/") if step.isalpha()]
    page = ".".join(("console", *steps, *(["csv"] if isinstance(response, CsvFile) else [])))
    return visit.record(page)(visit.acting.organisation)._replace(outcome=outcome, status=response.status_code)
