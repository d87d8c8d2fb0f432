"""The pages of API keys and of session tokens: which keys there are, a new one, the end of one, and a token for an hour."""

import re
from dataclasses import replace
from typing import cast

from pydantic import ValidationError
from starlette.responses import Response

from operations.people.session_tokens import new_console_token
from operations.setup.api_keys import preview_key
from operations.setup.credentials.restrictions import KeyRestrictions
from operations.setup.credentials.worst_case import WorstCase
from registry.caller import EVERY_TOOL
from registry.errors import Refusal
from registry.spending import read_money
from transports.web.pages.calls import call_operation, filled_fields
from transports.web.pages.request import PageProblem, PageRequest, unknown_form

KEY_LIFETIMES = {"": "never", "604800": "in 7 days", "2592000": "in 30 days", "7776000": "in 90 days", "31536000": "in a year"}

CALLS_A_DAY = re.compile(r"[0-9]{1,9}", re.ASCII)
AMOUNT_FIELDS = ("spend_per_call", "spend_per_day", "spend_per_month")
LIMIT_NAMES = frozenset({*AMOUNT_FIELDS, "approval"})
RESTRICTION_FIELDS = {
    "restrictions.calls_per_day": "calls_per_day",
    "restrictions.toolsets": "toolset",
    **{f"restrictions.{name}{end}": name for name in AMOUNT_FIELDS for end in ("", ".amount", ".currency")},
}
KEY_APPROVALS = {
    "none": "nothing",
    "irreversible": "what cannot be undone",
    "every_write": "every call that changes something",
}


async def show_api_keys(
    visit: PageRequest, *, made: object = None, problem: PageProblem | None = None, worst: WorstCase | None = None
) -> Response:
    """`made`: a new key with its secret, which is on this answer and nowhere else. `worst`: that of the key that is about to be made."""
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
        "approvals": KEY_APPROVALS,
        "worst": worst,
        "typed": visit.form if problem is not None or worst is not None else {},
    }
    return visit.page("api_keys.html", facts, problem=problem)


async def post_api_keys(visit: PageRequest) -> Response:
    match visit.form.get("do"):
        case "create":
            worst = unseen_worst_case(visit)
            if worst is not None:
                return await show_api_keys(visit, worst=worst)
            outcome = await call_operation(visit, "create_api_key", new_key_arguments(visit))
            return await show_api_keys(visit, made=outcome.body if outcome.problem is None else None, problem=outcome.problem)
        case "revoke":
            outcome = await call_operation(visit, "revoke_api_key", {"id": visit.form.get("id", "")})
            return visit.redirect("/api-keys") if outcome.problem is None else await show_api_keys(visit, problem=outcome.problem)
        case _:
            raise unknown_form()


def unseen_worst_case(visit: PageRequest) -> WorstCase | None:
    """The worst case of the key that the form asks for, where it has limits and the person has not seen just this one yet.

    None, too, for a key that cannot be made: making it says why.
    """
    asked = new_key_arguments(visit).get("restrictions")
    if not isinstance(asked, dict) or visit.caller is None or LIMIT_NAMES.isdisjoint(cast("dict[str, object]", asked)):
        return None
    try:
        worst = preview_key(visit.context.deps, visit.caller, KeyRestrictions.model_validate(asked))
    except (ValidationError, Refusal):
        return None
    return worst if worst is not None and worst["sentence"] != visit.form.get("seen", "") else None


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
    for name in AMOUNT_FIELDS:
        given = visit.form.get(name, "").strip()
        if given:
            amount = read_money(given)
            restrictions[name] = given if amount is None else amount._asdict()
    approval = visit.form.get("approval", "none")
    if approval != "none":
        restrictions["approval"] = approval
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
