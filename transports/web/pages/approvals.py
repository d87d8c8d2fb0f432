"""The page where a person decides what programs have asked for: what waits, what of it is lost, who asks, and two buttons."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from operations.changes.approvals import RECENT_SIGN_IN_SECONDS
from operations.people import browser_sessions
from transports.web.pages.calls import call_operation
from transports.web.pages.request import PageProblem, PageRequest, unknown_form

APPROVALS_SHOWN = 50
DECIDED_SHOWN = 20
STATE_WORDS: Mapping[str, str] = {
    "approved": "approved, is being carried out",
    "executed": "approved and carried out",
    "declined": "declined",
    "expired": "expired",
    "void": "could not be done any more",
}


async def show_approvals(visit: PageRequest, problem: PageProblem | None = None) -> Response:
    """What waits, and below what was decided lately; the one that the link names comes first and is marked. Opening it decides nothing."""
    waiting = await call_operation(visit, "list_approvals", {"state": "waiting", "limit": APPROVALS_SHOWN})
    latest = await call_operation(visit, "list_approvals", {"limit": APPROVALS_SHOWN})
    named = visit.query.get("approval") or visit.form.get("id", "")
    rows = sorted(waiting.rows, key=lambda row: row["id"] != named)
    others = [row for row in latest.rows if row["state"] != "waiting"]
    decided = sorted(others, key=lambda row: row["id"] != named)[:DECIDED_SHOWN]
    facts: Mapping[str, object] = {
        "waiting": rows,
        "decided": decided,
        "named": named,
        "missing": bool(named) and all(row["id"] != named for row in (*rows, *decided)),
        "more": bool(waiting.body.get("has_more")),
        "recent": visit.now - visit.who.created <= RECENT_SIGN_IN_SECONDS,
        "state_words": STATE_WORDS,
    }
    return visit.page("approvals.html", facts, problem=problem or waiting.problem or latest.problem)


async def post_approvals(visit: PageRequest) -> Response:
    """Decide one, or sign in again first."""
    id, do = visit.form.get("id", ""), visit.form.get("do")
    if do == "again":
        return await sign_in_again(visit, id)
    if do not in ("approve", "decline"):
        raise unknown_form()
    outcome = await call_operation(visit, "decide_approval", {"id": id, "decision": do, "shown": visit.form.get("shown", "")})
    if outcome.problem is None:
        return visit.redirect("/approvals?" + urlencode({"approval": id}))
    if outcome.problem.code == "sign_in_again":
        return await sign_in_again(visit, id)
    return await show_approvals(visit, outcome.problem)


async def sign_in_again(visit: PageRequest, approval: str) -> Response:
    """Ends this browser's session: whoever goes on proves again who they are, and is led back to what they were to decide."""
    visit.query = {"approval": approval} if approval else {}
    visit.form = {}
    await browser_sessions.sign_out_browser(visit.context.deps, session=visit.who, record=visit.record("sign_out"))
    visit.forget(visit.context.cookies.session)
    return visit.to_sign_in()
