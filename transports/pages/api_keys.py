"""API keys: which there are, a new one, and the end of one."""

import re
from dataclasses import replace

from registry.errors import BadRequest
from registry.restrictions import EVERY_TOOL
from transports.pages.answers import Answer, Page, Redirect
from transports.pages.asking import ask, given
from transports.pages.problem import Problem
from transports.pages.visit import Visit

LIFETIMES = {"": "never", "604800": "in 7 days", "2592000": "in 30 days", "7776000": "in 90 days", "31536000": "in a year"}

CALLS = re.compile(r"[0-9]{1,9}", re.ASCII)
FIELDS = {"restrictions.calls_per_day": "calls_per_day", "restrictions.toolsets": "toolset"}


async def show(visit: Visit) -> Page:
    """The keys of the organisation, and the form for a new one."""
    return await page(visit)


async def page(visit: Visit, *, made: object = None, problem: Problem | None = None) -> Page:
    """`made`: a new key with its secret, which is on this answer and nowhere else."""
    cursor = visit.query.get("after")
    listed = await ask(visit, "list_api_keys", {"limit": 100} | ({} if cursor is None else {"starting_after": cursor}))
    problem = beside(problem or listed.problem)
    facts = {
        "keys": listed.rows,
        "more": bool(listed.body.get("has_more")),
        "made": made,
        "lifetimes": LIFETIMES,
        "toolsets": [("", "Every operation"), *((name, name) for name in visit.desk.deps.toolsets if name != EVERY_TOOL)],
        "issues": not visit.form.get("read_only") and visit.form.get("toolset", "") in ("", "connectivity"),
        "typed": visit.form if problem is not None else {},
        "problem": problem,
    }
    return Page("api_keys.html", facts, status=200 if problem is None else problem.status)


async def act(visit: Visit) -> Answer:
    """Make one, or end one."""
    match visit.form.get("do"):
        case "create":
            outcome = await ask(visit, "create_api_key", wanted(visit))
            return await page(visit, made=outcome.body if outcome.problem is None else None, problem=outcome.problem)
        case "revoke":
            outcome = await ask(visit, "revoke_api_key", {"id": visit.form.get("id", "")})
            return Redirect("/api-keys") if outcome.problem is None else await page(visit, problem=outcome.problem)
        case _:
            raise BadRequest("The form does not say what to do", hint="Use the buttons of this page")


def wanted(visit: Visit) -> dict[str, object]:
    """The new key as the operation takes it."""
    arguments = given(visit.form, "name", "description")
    seconds = visit.form.get("seconds_until_expiration", "")
    if seconds:
        arguments["seconds_until_expiration"] = int(seconds) if seconds in LIFETIMES else seconds
    restrictions: dict[str, object] = {"read_only": True} if visit.form.get("read_only") == "on" else {}
    calls, toolset = visit.form.get("calls_per_day", ""), visit.form.get("toolset", "")
    if calls:
        restrictions["calls_per_day"] = int(calls) if CALLS.fullmatch(calls) else calls
    if toolset:
        restrictions["toolsets"] = [toolset]
    return arguments | ({"restrictions": restrictions} if restrictions else {})


def beside(problem: Problem | None) -> Problem | None:
    """A problem with a restriction, at the field of the form that asks for it."""
    field = None if problem is None else FIELDS.get(problem.field)
    return problem if problem is None or field is None else replace(problem, field=field)
