"""The pages of API keys and of session tokens: which keys there are, a new one, the end of one, and a token for an hour."""

import re
from collections.abc import Mapping
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
AMOUNT_FIELDS = ("spend_per_call", "spend_per_day", "spend_per_month", "approve_above")
LIMIT_NAMES = frozenset({*AMOUNT_FIELDS, "times", "approval"})
KEY_FIELDS = ("name", "description", "seconds_until_expiration", "calls_per_day", "toolset", "tags", "times", *AMOUNT_FIELDS)
"""The fields of the form that show what is wrong with them."""
RESTRICTION_MEMBER = re.compile(r"restrictions\.([a-z_]+)")
RESTRICTION_FIELDS = {"toolsets": "toolset"}
"""Members of the restrictions that the form calls otherwise."""
ENTRIES_END = re.compile(r"[\s,;]+")
TIMES_ENTRY = re.compile(r"([a-z][a-z0-9_]{0,63})=([0-9]{1,6})", re.ASCII)
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
        "fields": KEY_FIELDS,
        "worst": worst,
        "typed": visit.form if problem is not None or worst is not None else {},
    }
    return visit.page("api_keys.html", facts, problem=problem)


async def post_api_keys(visit: PageRequest) -> Response:
    """Make a key or end one; whoever signed in long ago signs in again before."""
    if visit.form.get("do") == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again("/auth/api-keys")
    match visit.form.get("do"):
        case "create":
            unread = unread_limit(visit.form)
            if unread is not None:
                return await show_api_keys(visit, problem=unread)
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


def unread_limit(form: Mapping[str, str]) -> PageProblem | None:
    """What is no amount, or no list of operations with numbers; None where each limit can be read."""
    for name in AMOUNT_FIELDS:
        given = form.get(name, "").strip()
        if given and read_money(given) is None:
            return PageProblem(400, f"“{given[:40]}” is no amount", "Write a number and its currency, for example 10.00 EUR", name)
    named = list[str]()
    for entry in form_entries(form.get("times", "")):
        found = TIMES_ENTRY.fullmatch(entry)
        if found is None or found[1] in named:
            wrong = "is no operation with a number" if found is None else "names an operation a second time"
            hint = "Write each operation once, with how often it may be called a day, for example create_connectivity_intent=12"
            return PageProblem(400, f"“{entry[:80]}” {wrong}", hint, "times")
        named.append(found[1])
    return None


def form_entries(text: str) -> list[str]:
    """What stands in a field between commas or spaces; spaces around an equals sign do not count."""
    return [entry for entry in ENTRIES_END.split(re.sub(r"\s*=\s*", "=", text)) if entry]


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
    """The input of create_api_key, of a form whose limits can be read."""
    arguments = filled_fields(visit.form, "name", "description")
    seconds = visit.form.get("seconds_until_expiration", "")
    if seconds:
        arguments["seconds_until_expiration"] = int(seconds) if seconds in KEY_LIFETIMES else seconds
    restrictions: dict[str, object] = {"read_only": True} if visit.form.get("read_only") == "on" else {}
    if visit.form.get("another_person") == "on":
        restrictions["another_person"] = True
    calls, toolset = visit.form.get("calls_per_day", ""), visit.form.get("toolset", "")
    if calls:
        restrictions["calls_per_day"] = int(calls) if CALLS_A_DAY.fullmatch(calls) else calls
    if toolset:
        restrictions["toolsets"] = [toolset]
    tags, times = form_entries(visit.form.get("tags", "")), form_entries(visit.form.get("times", ""))
    if tags:
        restrictions["tags"] = tags
    if times:
        restrictions["times"] = {found[1]: int(found[2]) for entry in times if (found := TIMES_ENTRY.fullmatch(entry))}
    for name in AMOUNT_FIELDS:
        amount = read_money(visit.form.get(name, "").strip())
        if amount is not None:
            restrictions[name] = amount._asdict()
    approval = visit.form.get("approval", "none")
    if approval != "none":
        restrictions["approval"] = approval
    return arguments | ({"restrictions": restrictions} if restrictions else {})


def problem_at_field(problem: PageProblem | None) -> PageProblem | None:
    """A problem with a restriction, at the field of the form that asks for it."""
    found = None if problem is None else RESTRICTION_MEMBER.match(problem.field)
    if problem is None or found is None:
        return problem
    return replace(problem, field=RESTRICTION_FIELDS.get(found[1], found[1]))


async def show_session_token(visit: PageRequest) -> Response:
    return visit.page("session_token.html", {"issued": None, "expires_at": 0.0})


async def post_session_token(visit: PageRequest) -> Response:
    acting = visit.acting
    token, expires_at = await new_console_token(
        visit.context.deps, person=visit.who.person, organisation=acting.organisation or None, now=visit.now
    )
    return visit.page("session_token.html", {"issued": token, "expires_at": float(expires_at)})
