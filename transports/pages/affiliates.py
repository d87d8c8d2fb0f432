"""The affiliate programme: joining it, the link to hand out, and what it brought."""

from collections.abc import Mapping

from transports.pages.answers import Answer, Page, Redirect
from transports.pages.asking import ask, given
from transports.pages.problem import Problem
from transports.pages.visit import Visit


async def show(visit: Visit) -> Page:
    """How the organisation stands, and the months that earned something."""
    return await page(visit)


async def page(visit: Visit, problem: Problem | None = None) -> Page:
    """`problem`: why joining was refused."""
    assert visit.organisation
    standing = await ask(visit, "affiliates_me_get", {})
    if standing.problem is not None:
        return Page("error.html", {"problem": standing.problem}, status=standing.problem.status)
    listed = await ask(visit, "affiliates_me_commissions_list", {"limit": 50} | given(visit.query, "starting_after"))
    problem = problem or listed.problem
    facts: Mapping[str, object] = {
        "standing": standing.body,
        "commissions": listed.rows,
        "more": bool(listed.body.get("has_more")),
        "problem": problem,
    }
    return Page("affiliates.html", facts, status=200 if problem is None else problem.status)


async def act(visit: Visit) -> Answer:
    """Join; there is nothing else to do here."""
    assert visit.organisation
    outcome = await ask(visit, "affiliates_me_create", {})
    return Redirect("/affiliates") if outcome.problem is None else await page(visit, outcome.problem)
