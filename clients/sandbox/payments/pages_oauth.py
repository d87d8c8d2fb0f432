"""Where the owner of a Standard account lets the platform in (OAuth 2.0, authorization code)."""

from urllib.parse import urlencode, urlsplit

from clients.sandbox.payments.acts import authorize_oauth, open_standard_account
from clients.sandbox.payments.entities import Account
from clients.sandbox.payments.pages_layout import Away, Page, Shown, origin_of, problem
from clients.sandbox.payments.pages_visit import Visit
from clients.sandbox.payments.state import State

DENIED = {"error": "access_denied", "error_description": "The user denied your request"}
NEW = "new"


def show_authorize(visit: Visit) -> Shown:
    """Who asks, and for what."""
    return refused(visit) or page(visit)


def act_on_authorize(visit: Visit) -> Shown:
    """Back to the platform, with a code or without."""
    wrong = refused(visit)
    if wrong is not None:
        return wrong
    if visit.do == "deny":
        return back(visit, DENIED)
    account = chosen(visit)
    if visit.do != "allow" or account is None:
        return page(visit, "Choose an account, then allow or deny.", 400)
    return back(visit, {"scope": "read_write", "code": authorize_oauth(visit.state, account)})


def refused(visit: Visit) -> Page | None:
    """Nobody is led to an address that is not the platform's own.

    Choice: that is any on the host that the events go to; the real processor has them listed beforehand.
    """
    query = visit.query
    target = query.get("redirect_uri", "")
    if visit.name != "authorize":
        return problem("There is nothing here", "Check the address.", 404)
    if query.get("client_id") != visit.state.client_id or query.get("response_type") != "code":
        return problem("This platform is not known", "client_id or response_type is not the platform's.", 400)
    origin, known = origin_of(target), urlsplit(visit.service_url).netloc
    if not origin or (known and urlsplit(target).netloc != known):
        return problem("This platform is not known", "redirect_uri is not an address of the platform's.", 400)
    return None


def page(visit: Visit, wrong: str = "", status: int = 200) -> Page:
    """The question."""
    target = visit.query["redirect_uri"]
    facts = {
        "client_id": visit.state.client_id,
        "goes_to": urlsplit(target).netloc,
        "accounts": choices(visit.state),
        "problem": wrong,
    }
    return Page("authorize.html", facts, status, leads_to=(target,))


def choices(state: State) -> list[Account]:
    """Accounts that the platform is not let into yet."""
    return [account for account in state.accounts.values() if account.kind == "standard" and not account.attached]


def chosen(visit: Visit) -> str | None:
    """The account, a new one where that is wanted."""
    wanted = visit.form.get("account", "")
    if wanted == NEW:
        return open_standard_account(visit.state).id
    return wanted if wanted in {account.id for account in choices(visit.state)} else None


def back(visit: Visit, answer: dict[str, str]) -> Away:
    """The platform's address, with our answer and what it wanted to hear again."""
    target, state = visit.query["redirect_uri"], visit.query.get("state")
    told = answer if state is None else {**answer, "state": state}
    return Away(f"{target}{'&' if urlsplit(target).query else '?'}{urlencode(told)}")
