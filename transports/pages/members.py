"""The people of an organisation: who is in it, asking somebody in, and putting somebody out."""

from collections.abc import Mapping

from registry.errors import BadRequest
from transports.pages.answers import Answer, Page, Redirect
from transports.pages.asking import ask, given
from transports.pages.problem import Problem
from transports.pages.visit import Visit


async def show(visit: Visit) -> Page:
    """The members; admins see the forms, too."""
    return await page(visit)


async def page(visit: Visit, problem: Problem | None = None) -> Page:
    """The list, with what was typed when it was refused."""
    assert visit.organisation
    cursor = visit.query.get("after")
    listed = await ask(visit, "list_members", {"limit": 100} | ({} if cursor is None else {"starting_after": cursor}))
    problem = problem or listed.problem
    facts: Mapping[str, object] = {
        "members": listed.rows,
        "more": bool(listed.body.get("has_more")),
        "typed": visit.form if problem is not None else {},
        "problem": problem,
    }
    return Page("members.html", facts, status=200 if problem is None else problem.status)


async def act(visit: Visit) -> Answer:
    """Ask somebody in, or end a membership or an invitation."""
    match visit.form.get("do"):
        case "invite":
            outcome = await ask(visit, "invite_member", given(visit.form, "email", "role"))
        case "remove":
            outcome = await ask(visit, "remove_member", given(visit.form, "id"))
        case _:
            raise BadRequest("The form does not say what to do", hint="Use the buttons of this page")
    return Redirect("/members") if outcome.problem is None else await page(visit, outcome.problem)
