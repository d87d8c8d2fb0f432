"""The page of what programs have asked for: what waits for a person, what of it is lost, who asks, two buttons; and what was decided."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.approvals import decided_rows, is_missing, named_first
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute

WAITING_A_PAGE = 50


async def show_waiting(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What do programs ask me to allow, what would it do, and what became of what was decided?"""
    after = visit.query.get("after", "")
    found = await visit.read_together(
        waiting=PageRead("list_approvals", {"state": "waiting", "limit": WAITING_A_PAGE}),
        latest=PageRead("list_approvals", {"limit": WAITING_A_PAGE, **({"starting_after": after} if after else {})}),
    )
    waiting, latest = found["waiting"], found["latest"]
    named = visit.query.get("approval") or visit.form.get("id", "")
    rows, decided = (visit.promised(each) for each in (named_first(waiting.rows, named), decided_rows(latest.rows, named)))
    more = latest.rows and latest.body.get("has_more")
    facts: Mapping[str, object] = {
        "waiting": [] if after else rows,
        "decided": decided,
        "named": named,
        "missing": is_missing(named, (*rows, *decided)),
        "more": bool(waiting.body.get("has_more")),
        "recent": visit.signed_in_lately,
        "after": after,
        "next_page": f"?{urlencode({'after': str(latest.rows[-1]['id'])})}" if more else "",
    }
    return visit.draw("approvals.html", facts, problem=problem or waiting.problem or latest.problem)


async def post_decision(visit: ConsoleRequest) -> Response:
    """Decides one, by the digest of what was shown; or has the person sign in again first."""
    id, do = visit.form.get("id", ""), visit.form.get("do")
    if do == "again":
        return await decide_after_sign_in(visit, id)
    if do not in ("approve", "decline"):
        raise unknown_form()
    outcome = await visit.press("decide_approval", {"id": id, "decision": do, "shown": visit.form.get("shown", "")})
    if outcome.problem is None:
        return visit.go(f"/approvals?{urlencode({'approval': id})}")
    if outcome.problem.code == "sign_in_again":
        return await decide_after_sign_in(visit, id)
    return await show_waiting(visit, outcome.problem)


async def decide_after_sign_in(visit: ConsoleRequest, approval: str) -> Response:
    """Has the person prove again who they are, and leads them back to what they were to decide."""
    return await visit.sign_in_again(f"{CONSOLE_PATH}/approvals" + (f"?{urlencode({'approval': approval})}" if approval else ""))


APPROVAL_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/approvals": PageRoute(show_waiting, post_decision)}
