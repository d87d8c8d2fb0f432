"""The pages of an account's owner: onboarding, the dashboard, and letting the platform in (OAuth 2.0, authorization code)."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

from simulators.processor.balance import account_funds
from simulators.processor.entities import AccountLink as Link
from simulators.processor.entities import ProcessorAccount
from simulators.processor.onboarding import (
    authorize_oauth,
    complete_onboarding,
    find_account_link,
    follow_account_link,
    open_standard_account,
)
from simulators.processor.pages import PageAnswer, PageRedirect, PageRoutes, PageVisit, ProcessorPage, problem_page, web_origin
from simulators.processor.state import ProcessorState

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
    """What is asked for. A link that was used, or is too old, leads to where there are new ones."""
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
    """All is parameters, or nothing; the way back is the same, and the platform asks the processor how the account stands."""
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


def find_onboarding_link(visit: PageVisit) -> Link | ProcessorPage:
    """The link of that name, or the page that says there is none."""
    link = find_account_link(visit.state, visit.name)
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
    """Nobody is led to an address that is not the platform's own.

    Choice: that is any on the host that the events go to; the real processor has them listed beforehand.
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
    """The account, a new one where that is wanted."""
    wanted = visit.form.get("account", "")
    if wanted == NEW_ACCOUNT:
        return open_standard_account(visit.state).id
    return wanted if wanted in {account.id for account in authorizable_accounts(visit.state)} else None


def redirect_to_platform(visit: PageVisit, answer: dict[str, str]) -> PageRedirect:
    """The platform's address, with our answer and what it wanted to hear again."""
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


ACCOUNT_PAGES: PageRoutes = {
    "onboarding": {"GET": show_onboarding_page, "POST": submit_onboarding_page},
    "dashboard": {"GET": show_dashboard},
    "oauth": {"GET": _show_authorize_page, "POST": submit_authorize_page},
}
