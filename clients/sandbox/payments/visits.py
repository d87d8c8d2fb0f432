"""Pages for one person each: the way into onboarding and into an account's dashboard."""

from clients.sandbox.payments.entities import Visit
from clients.sandbox.payments.state import State

ONBOARDING_SECONDS = 300
LOGIN_SECONDS = 300


def open_visit(state: State, account: str, *, kind: str, return_url: str = "", refresh_url: str = "") -> Visit:
    """A page whose address nobody can guess in the real world."""
    seconds = LOGIN_SECONDS if kind == "login" else ONBOARDING_SECONDS
    visit = Visit(state.new_id("visit_"), state.now(), account, state.now() + seconds, kind, return_url, refresh_url)
    state.visits[visit.id] = visit
    return visit


def follow_visit(state: State, token: str, *, kind: str = "account_onboarding") -> Visit | None:
    """The person opens the page, for the first time and in time; None otherwise. `find_visit` says where to send others."""
    visit = state.visits.get(token)
    if visit is None or visit.used or visit.expires_at <= state.now() or (visit.kind == "login") != (kind == "login"):
        return None
    visit.used = True
    return visit


def find_visit(state: State, token: str) -> Visit | None:
    """A visit whatever its age: its `refresh_url` is where a person with an old link goes."""
    return state.visits.get(token)
