"""What people see of the simulated processor: no script, nothing loaded from elsewhere, and a banner that says what this is.

One request in, one page or one redirect out.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from simulators.processor.balance import account_funds
from simulators.processor.call import ProcessorRefusal
from simulators.processor.cards import CARD_CHOICES, USUAL_CARD, find_named_card
from simulators.processor.checkout import complete_checkout, enter_promotion, find_checkout_session, session_total
from simulators.processor.invoices import find_invoice_by_slug, invoice_lines, invoice_remaining, pay_invoice_by_card
from simulators.processor.onboarding import authorize_oauth, complete_onboarding, follow_account_link, open_standard_account
from simulators.processor.state import AccountLink, CheckoutSession, Invoice, ProcessorAccount, ProcessorState
from simulators.server import AsgiMessage, AsgiReceive, AsgiSend, WireAnswer, WireRequest, read_request_body, send_answer, wire_request

if TYPE_CHECKING:
    from jinja2 import Environment


FORM_BODY_LIMIT = 64 * 1024
FORM_FIELD_LIMIT = 20
ADDRESS_CHARACTERS = "%/:=&?~#+!$,;'@()*[]"
"""What stays as it is in an address; a line break in it must not end the header."""
WEB_ORIGIN = re.compile(r"https?://[A-Za-z0-9._\-\[\]:]+")
PAGE_TEMPLATES = Path(__file__).parent / "templates"

# Currencies without a smaller unit, as the real processor counts them.
WHOLE_CURRENCIES = frozenset(("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf"))
# Choice: same-origin, for with no-referrer a browser sends forms with `Origin: null`.
COMMON_PAGE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
}


@dataclass(frozen=True, slots=True)
class ProcessorPage:
    """A template and its facts. `leads_to`: addresses that its form may lead to."""

    template: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    status: int = 200
    leads_to: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class PageRedirect:
    """303 See Other, to an address."""

    target: str


PageAnswer = ProcessorPage | PageRedirect


def problem_page(title: str, text: str, status: int) -> ProcessorPage:
    return ProcessorPage("problem.html", {"title": title, "text": text}, status)


def render_page(page: ProcessorPage, here: str) -> bytes:
    """The page's bytes. `here` is its own address, where its form goes."""
    style, _ = _style_sheet()
    return page_environment().get_template(page.template).render(style=style, here=here, **page.facts).encode()


def page_headers(page: ProcessorPage) -> dict[str, str]:
    origins = sorted({origin for address in page.leads_to if address and (origin := web_origin(address))})
    allowed = " ".join(("'self'", *origins))
    policy = (
        f"default-src 'none'; style-src 'sha256-{_style_sheet()[1]}'; img-src data:; base-uri 'none'; "
        f"form-action {allowed}; frame-ancestors 'none'"
    )
    return {"content-type": "text/html; charset=utf-8", "content-security-policy": policy, **COMMON_PAGE_HEADERS}


def web_origin(address: str) -> str:
    """Scheme, host and port; "" where there are none that a header can name."""
    try:
        parts = urlsplit(address)
        netloc = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:  # UnicodeError is one
        return ""
    return f"{parts.scheme}://{netloc}" if WEB_ORIGIN.fullmatch(f"{parts.scheme}://{netloc}") else ""


@cache
def _style_sheet() -> tuple[str, str]:
    text = (PAGE_TEMPLATES / "style.css").read_text()
    return text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def page_environment() -> Environment:
    """The templates, each compiled when it is first asked for."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # start-up budget

    made = Environment(
        loader=FileSystemLoader(PAGE_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Callable[..., str]] = {"moment": page_moment, "day": page_day, "money": page_money}
    made.filters.update(filters)
    return made


def page_moment(value: float) -> str:
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y, %H:%M UTC")


def page_day(value: float) -> str:
    return datetime.fromtimestamp(int(value), UTC).strftime("%-d %b %Y")


def page_money(amount: int, currency: str) -> str:
    """An amount of minor units with its decimal point and currency."""
    places = 0 if currency.lower() in WHOLE_CURRENCIES else 2
    whole, rest = divmod(abs(amount), 10**places)
    return f"{'-' if amount < 0 else ''}{whole:,}{f'.{rest:0{places}}' if places else ''} {currency.upper()}"


class PageVisit(NamedTuple):
    """`name` is the last part of the address; `service_url` an address of the service's."""

    state: ProcessorState
    name: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    service_url: str

    @property
    def do(self) -> str:
        """The button that was pressed."""
        return self.form.get("do", "")


PageHandler: TypeAlias = Callable[[PageVisit], PageAnswer]


class ProcessorPages:
    """Answers every page by its path. Each address holds a name that nobody can guess; there is no other protection."""

    def __init__(self, processor: PagesProcessor) -> None:
        self._processor = processor

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        """One request; `path` is what follows the pages' address."""
        try:
            body = await read_request_body(receive, FORM_BODY_LIMIT)
        except ConnectionAbortedError:
            return
        request = wire_request(scope, body or b"")
        shown: PageAnswer = problem_page("That was too much", "A form of this size was not sent by our pages.", 413)
        if body is not None:
            shown = await self._answer(request)
        if isinstance(shown, PageRedirect):
            answer = WireAnswer(303, b"", {"location": quote(shown.target, safe=ADDRESS_CHARACTERS), **COMMON_PAGE_HEADERS})
        else:
            answer = WireAnswer(shown.status, render_page(shown, self._here(request)), page_headers(shown))
        await send_answer(send, answer, head_only=request.method == "HEAD")

    def _here(self, request: WireRequest) -> str:
        return f"{urlsplit(self._processor.pages_url).path}{request.path}{'?' if request.query else ''}{request.query}"

    async def _answer(self, request: WireRequest) -> PageAnswer:
        method = request.method.replace("HEAD", "GET")
        kind, _, name = request.path.strip("/").partition("/")
        acts = PROCESSOR_PAGES.get(kind)
        if acts is None or not name or "/" in name:
            return problem_page("There is nothing here", "Check the address.", 404)
        act = acts.get(method)
        if act is None:
            return problem_page("That is not possible here", "Open the address in a browser.", 405)
        if method == "POST" and not self._is_ours(request.headers):
            return problem_page("This form was not taken", "It was not sent from a page of ours. Load the page again.", 403)
        query, form = read_page_fields(request.query.encode("latin-1")), read_page_fields(request.body)
        if query is None or form is None:
            return problem_page("This cannot be read", "Load the page again and send it once more.", 400)
        async with self._processor.turn(writes=method == "POST" or kind == "dashboard") as state:
            return act(PageVisit(state, name, query, form, self._processor.webhook_url))

    def _is_ours(self, headers: Mapping[str, str]) -> bool:
        """Whether a form was sent from a page of ours, as far as the browser says."""
        origin = headers.get("origin")
        return origin is None or origin == web_origin(self._processor.pages_url)


def read_page_fields(text: bytes) -> dict[str, str] | None:
    """Each field once; None where it cannot be read in one way."""
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELD_LIMIT)
    except ValueError:
        return None
    return {name: value.strip() for name, value in pairs} if len(dict(pairs)) == len(pairs) else None


class PagesProcessor(Protocol):
    """The processor, as its pages know it."""

    pages_url: str
    webhook_url: str

    def turn(self, *, writes: bool) -> AbstractAsyncContextManager[ProcessorState]:
        """The state, for nobody else at the same time."""
        ...


REQUIREMENT_TEXTS = {
    "business_profile.url": "the address of your web site",
    "business_type": "whether you are a company or one person",
    "external_account": "the bank account that payouts go to",
    "tos_acceptance.date": "your consent to the terms of service",
    "company.verification.document": "a document about your company",
}
OAUTH_DENIED = {"error": "access_denied", "error_description": "The user denied your request"}
NEW_ACCOUNT = "new"
DashboardT = TypeVar("DashboardT")
DASHBOARD_ROWS = 10


def show_onboarding_page(visit: PageVisit) -> PageAnswer:
    """Shows what is asked for. A used or expired link redirects to its refresh address."""
    link = find_onboarding_link(visit)
    if isinstance(link, ProcessorPage):
        return link
    if link.used or link.expires_at <= visit.state.now():
        return PageRedirect(link.refresh_url)
    account = visit.state.accounts[link.account]
    asked = [REQUIREMENT_TEXTS.get(one, one) for one in account.currently_due if one != "tos_acceptance.ip"]
    return ProcessorPage(
        "onboarding.html",
        {"account": account, "asked": asked, "expires_at": link.expires_at},
        leads_to=(link.return_url, link.refresh_url),
    )


def submit_onboarding_page(visit: PageVisit) -> PageAnswer:
    """Completes the onboarding, or leaves it for later. Both lead back to the platform, which asks the processor about the account."""
    link = find_onboarding_link(visit)
    if isinstance(link, ProcessorPage):
        return link
    if visit.do not in ("complete", "later"):
        return show_onboarding_page(visit)
    if follow_account_link(visit.state, visit.name) is None:
        return PageRedirect(link.refresh_url)
    if visit.do == "complete":
        complete_onboarding(visit.state, link.account)
    return PageRedirect(link.return_url)


def find_onboarding_link(visit: PageVisit) -> AccountLink | ProcessorPage:
    """The link of that name, or the page that says there is none."""
    link = visit.state.visits.get(visit.name)  # whatever its age: its `refresh_url` is where a person with an old link goes
    if link is None or link.kind == "login":
        return problem_page("There is no such link", "Go back to where you came from and ask for a new one.", 404)
    return link


def _show_authorize_page(visit: PageVisit) -> PageAnswer:
    return authorize_problem(visit) or _authorize_page(visit)


def submit_authorize_page(visit: PageVisit) -> PageAnswer:
    """Back to the platform, with a code or without."""
    wrong = authorize_problem(visit)
    if wrong is not None:
        return wrong
    if visit.do == "deny":
        return redirect_to_platform(visit, OAUTH_DENIED)
    account = chosen_account(visit)
    if visit.do != "allow" or account is None:
        return _authorize_page(visit, "Choose an account, then allow or deny.", 400)
    return redirect_to_platform(visit, {"scope": "read_write", "code": authorize_oauth(visit.state, account)})


def authorize_problem(visit: PageVisit) -> ProcessorPage | None:
    """The page that refuses an address that is not the platform's own; None where there is no problem.

    Choice: the platform's own is any address on the host that events go to; with the real processor addresses are registered.
    """
    query = visit.query
    target = query.get("redirect_uri", "")
    if visit.name != "authorize":
        return problem_page("There is nothing here", "Check the address.", 404)
    if query.get("client_id") != visit.state.client_id or query.get("response_type") != "code":
        return problem_page("This platform is not known", "client_id or response_type is not the platform's.", 400)
    origin, known = web_origin(target), urlsplit(visit.service_url).netloc
    if not origin or (known and urlsplit(target).netloc != known):
        return problem_page("This platform is not known", "redirect_uri is not an address of the platform's.", 400)
    return None


def _authorize_page(visit: PageVisit, wrong: str = "", status: int = 200) -> ProcessorPage:
    target = visit.query["redirect_uri"]
    facts = {
        "client_id": visit.state.client_id,
        "goes_to": urlsplit(target).netloc,
        "accounts": authorizable_accounts(visit.state),
        "problem": wrong,
    }
    return ProcessorPage("authorize.html", facts, status, leads_to=(target,))


def authorizable_accounts(state: ProcessorState) -> list[ProcessorAccount]:
    """Accounts that the platform is not let into yet."""
    return [account for account in state.accounts.values() if account.kind == "standard" and not account.attached]


def chosen_account(visit: PageVisit) -> str | None:
    wanted = visit.form.get("account", "")
    if wanted == NEW_ACCOUNT:
        return open_standard_account(visit.state).id
    return wanted if wanted in {account.id for account in authorizable_accounts(visit.state)} else None


def redirect_to_platform(visit: PageVisit, answer: dict[str, str]) -> PageRedirect:
    """A redirect to the platform with `answer` and the `state` that it sent."""
    target, state = visit.query["redirect_uri"], visit.query.get("state")
    parameters = answer if state is None else {**answer, "state": state}
    return PageRedirect(f"{target}{'&' if urlsplit(target).query else '?'}{urlencode(parameters)}")


def show_dashboard(visit: PageVisit) -> PageAnswer:
    """Balance, payments, payouts. The link is good for one look."""
    state = visit.state
    link = follow_account_link(state, visit.name, kind="login")
    if link is None:
        return problem_page("This link is used up", "A link shows the account once, within five minutes. Ask for a new one.", 404)
    book = state.book(link.account)
    return ProcessorPage(
        "dashboard.html",
        {
            "account": state.accounts[link.account],
            "balances": [(currency, *found) for currency, found in account_funds(state, link.account).items()],
            "charges": _newest_rows(book.charges),
            "payouts": _newest_rows(book.payouts),
        },
    )


def _newest_rows(rows: Mapping[str, DashboardT]) -> list[DashboardT]:
    return list(rows.values())[: -DASHBOARD_ROWS - 1 : -1]


EMAIL_ADDRESS = re.compile(r"[^\s@]{1,64}@[^\s@]+\.[^\s@]+")
SESSION_PLACEHOLDER = "{CHECKOUT_SESSION_ID}"
NO_CHECKOUT_PAGE = problem_page("There is no such checkout", "Go back to the shop and begin anew.", 404)
EMPTY_FORM: Mapping[str, str] = {}
NO_INVOICE_PAGE = problem_page("There is no such invoice", "Check the address in the mail that you got.", 404)


def _show_checkout_page(visit: PageVisit) -> PageAnswer:
    found = find_checkout_session(visit.state, visit.name)
    return NO_CHECKOUT_PAGE if found is None else _checkout_page(found[1])


def _submit_checkout_page(visit: PageVisit) -> PageAnswer:
    found = find_checkout_session(visit.state, visit.name)
    if found is None:
        return NO_CHECKOUT_PAGE
    account, session = found
    if visit.do == "back" and session.cancel_url:
        return PageRedirect(session.cancel_url)
    if session.status != "open":
        return _checkout_page(session)
    email = session.email or visit.form.get("email", "")
    card = find_named_card(visit.form.get("card", ""), email=email)
    if not EMAIL_ADDRESS.fullmatch(email) or len(email) > 254:
        return _checkout_page(session, "Type in the e-mail address that the receipt goes to.", visit.form, 400)
    if card is None:
        return _checkout_page(session, "Choose a test card.", visit.form, 400)
    try:
        if visit.form.get("promotion"):
            enter_promotion(visit.state, account, session.id, visit.form["promotion"])
        complete_checkout(visit.state, account, session.id, card)
    except ProcessorRefusal as refusal:
        return _checkout_page(session, refusal.message, visit.form, refusal.status)
    return PageRedirect(session.success_url.replace(SESSION_PLACEHOLDER, session.id))


def _checkout_page(session: CheckoutSession, wrong: str = "", form: Mapping[str, str] = EMPTY_FORM, status: int = 200) -> ProcessorPage:
    if session.status != "open":
        how = "It was paid." if session.status == "complete" else "It took too long."
        return problem_page("This checkout is over", f"{how} Go back to the shop.", 410 if session.status == "expired" else 200)
    facts = {
        "session": session,
        "lines": [(line["description"] or line["name"], line["unit_amount"] * line["quantity"]) for line in session.lines],
        "total": session_total(session),
        "given": {"email": form.get("email", ""), "promotion": form.get("promotion", ""), "card": form.get("card", USUAL_CARD)},
        "cards": CARD_CHOICES,
        "problem": wrong,
    }
    return ProcessorPage("checkout.html", facts, status, leads_to=(session.success_url, session.cancel_url))


def _show_invoice_page(visit: PageVisit) -> PageAnswer:
    found = find_invoice_by_slug(visit.state, visit.name) if visit.name else None
    return NO_INVOICE_PAGE if found is None else invoice_page(visit.state, *found)


def _submit_invoice_page(visit: PageVisit) -> PageAnswer:
    state = visit.state
    found = find_invoice_by_slug(state, visit.name)
    if found is None:
        return NO_INVOICE_PAGE
    account, invoice = found
    name = visit.form.get("card", "")
    card = find_named_card(name, owner=invoice.customer_name, email=invoice.customer_email)
    if card is None:
        return invoice_page(state, account, invoice, "Choose a test card.", status=400)
    try:
        pay_invoice_by_card(state, account, invoice.id, card)
    except ProcessorRefusal as refusal:
        return invoice_page(state, account, invoice, refusal.message, chosen=name, status=refusal.status)
    return PageRedirect(f"{state.pages_url}/invoices/{visit.name}")


def invoice_page(
    state: ProcessorState, account: str, invoice: Invoice, wrong: str = "", *, chosen: str = USUAL_CARD, status: int = 200
) -> ProcessorPage:
    facts = {
        "invoice": invoice,
        "lines": [(item.description or "Item", item.amount) for item in invoice_lines(state, account, invoice)],
        "total": invoice_remaining(state, account, invoice)
        if invoice.status == "open"
        else sum(i.amount for i in invoice_lines(state, account, invoice)),
        "cards": CARD_CHOICES,
        "chosen": chosen,
        "problem": wrong,
    }
    return ProcessorPage("invoice.html", facts, status)


PROCESSOR_PAGES: Mapping[str, Mapping[str, PageHandler]] = {
    "onboarding": {"GET": show_onboarding_page, "POST": submit_onboarding_page},
    "dashboard": {"GET": show_dashboard},
    "oauth": {"GET": _show_authorize_page, "POST": submit_authorize_page},
    "invoices": {"GET": _show_invoice_page, "POST": _submit_invoice_page},
    "checkout": {"GET": _show_checkout_page, "POST": _submit_checkout_page},
}
"""The handlers of a kind of page, by the first part of the address, then by method."""
