"""The page where a person decides what programs have asked for: what waits, what of it is lost, who asks, and two buttons."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from transports.web.pages.calls import call_operation
from transports.web.pages.request import PageProblem, PageRequest, unknown_form

ApprovalRow = Mapping[str, object]
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
    rows, decided = named_first(waiting.rows, named), decided_rows(latest.rows, named)[:DECIDED_SHOWN]
    facts: Mapping[str, object] = {
        "waiting": rows,
        "decided": decided,
        "named": named,
        "missing": is_missing(named, (*rows, *decided)),
        "more": bool(waiting.body.get("has_more")),
        "recent": visit.signed_in_lately,
        "state_words": STATE_WORDS,
    }
    return visit.page("approvals.html", facts, problem=problem or waiting.problem or latest.problem)


def named_first(rows: Sequence[ApprovalRow], named: str) -> list[ApprovalRow]:
    """Requests as they are listed, but that which the link names before the others."""
    return sorted(rows, key=lambda row: row["id"] != named)


def decided_rows(rows: Sequence[ApprovalRow], named: str) -> list[ApprovalRow]:
    """Those that wait for nobody any more, that which the link names first."""
    return named_first([row for row in rows if row["state"] != "waiting"], named)


def is_missing(named: str, shown: Sequence[ApprovalRow]) -> bool:
    """Whether the link names a request that is not shown."""
    return bool(named) and all(row["id"] != named for row in shown)


async def post_approvals(visit: PageRequest) -> Response:
    """Decide one, or sign in again first."""
    id, do = visit.form.get("id", ""), visit.form.get("do")
    if do == "again":
        return await sign_in_for(visit, id)
    if do not in ("approve", "decline"):
        raise unknown_form()
    outcome = await call_operation(visit, "decide_approval", {"id": id, "decision": do, "shown": visit.form.get("shown", "")})
    if outcome.problem is None:
        return visit.redirect("/approvals?" + urlencode({"approval": id}))
    if outcome.problem.code == "sign_in_again":
        return await sign_in_for(visit, id)
    return await show_approvals(visit, outcome.problem)


async def sign_in_for(visit: PageRequest, approval: str) -> Response:
    """Has the person prove again who they are, and leads them back to what they were to decide."""
    return await visit.sign_in_again("/auth/approvals" + (f"?{urlencode({'approval': approval})}" if approval else ""))
