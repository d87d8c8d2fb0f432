"""The pages of API keys and of session tokens: which keys there are, a new one, the end of one, and a token for an hour."""

import re
from dataclasses import replace

from starlette.responses import Response

from operations.people.session_tokens import new_console_token
from registry.caller import EVERY_TOOL
from transports.web.pages.calls import call_operation, filled_fields
from transports.web.pages.request import PageProblem, PageRequest, unknown_form

KEY_LIFETIMES = {"": "never", "604800": "in 7 days", "2592000": "in 30 days", "7776000": "in 90 days", "31536000": "in a year"}

CALLS_A_DAY = re.compile(r"[0-9]{1,9}", re.ASCII)
RESTRICTION_FIELDS = {"restrictions.calls_per_day": "calls_per_day", "restrictions.toolsets": "toolset"}


async def show_api_keys(visit: PageRequest, *, made: object = None, problem: PageProblem | None = None) -> Response:
    """`made`: a new key with its secret, which is on this answer and nowhere else."""
    cursor = visit.query.get("after")
    listed = await call_operation(visit, "list_api_keys", {"limit": 100} | ({} if cursor is None else {"starting_after": cursor}))
    problem = problem_at_field(problem or listed.problem)
    facts = {
        "keys": listed.rows,
        "more": bool(listed.body.get("has_more")),
        "made": made,
        "lifetimes": KEY_LIFETIMES,
        "toolsets": [("", "Every operation"), *((name, name) for name in visit.context.deps.toolsets if name != EVERY_TOOL)],
        "issues": not visit.form.get("read_only") and visit.form.get("toolset", "") in ("", "connectivity"),
        "typed": visit.form if problem is not None else {},
    }
    return visit.page("api_keys.html", facts, problem=problem)


async def post_api_keys(visit: PageRequest) -> Response:
    match visit.form.get("do"):
        case "create":
            outcome = await call_operation(visit, "create_api_key", new_key_arguments(visit))
            return await show_api_keys(visit, made=outcome.body if outcome.problem is None else None, problem=outcome.problem)
        case "revoke":
            outcome = await call_operation(visit, "revoke_api_key", {"id": visit.form.get("id", "")})
            return visit.redirect("/api-keys") if outcome.problem is None else await show_api_keys(visit, problem=outcome.problem)
        case _:
            raise unknown_form()


def new_key_arguments(visit: PageRequest) -> dict[str, object]:
    arguments = filled_fields(visit.form, "name", "description")
    seconds = visit.form.get("seconds_until_expiration", "")
    if seconds:
        arguments["seconds_until_expiration"] = int(seconds) if seconds in KEY_LIFETIMES else seconds
    restrictions: dict[str, object] = {"read_only": True} if visit.form.get("read_only") == "on" else {}
    calls, toolset = visit.form.get("calls_per_day", ""), visit.form.get("toolset", "")
    if calls:
        restrictions["calls_per_day"] = int(calls) if CALLS_A_DAY.fullmatch(calls) else calls
    if toolset:
        restrictions["toolsets"] = [toolset]
    return arguments | ({"restrictions": restrictions} if restrictions else {})


def problem_at_field(problem: PageProblem | None) -> PageProblem | None:
    """A problem with a restriction, at the field of the form that asks for it."""
    field = None if problem is None else RESTRICTION_FIELDS.get(problem.field)
    return problem if problem is None or field is None else replace(problem, field=field)


async def show_session_token(visit: PageRequest) -> Response:
    return visit.page("session_token.html", {"issued": None, "expires_at": 0.0})


async def post_session_token(visit: PageRequest) -> Response:
    acting = visit.acting
    token, expires_at = await new_console_token(
        visit.context.deps, person=visit.who.person, organisation=acting.organisation or None, now=visit.now
    )
    return visit.page("session_token.html", {"issued": token, "expires_at": float(expires_at)})
