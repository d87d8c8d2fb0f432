"""The five steps of an organisation's onboarding, on one page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import cast, get_args

from starlette.responses import Response

from operations.languages import texts_in
from operations.setup.onboarding import OperatorType
from operations.vocabulary import COUNTRY_CODES
from registry.errors import BadRequest, KeyUnknown
from storage.sealing import TYPED_TOKEN_FIELD, WrongSeal
from transports.web.countries import countries_by_name
from transports.web.pages.calls import CallArguments, call_operation, confirmation_page, filled_fields, needs_confirmation
from transports.web.pages.request import PageProblem, PageRequest, unknown_form

ONBOARDING_FORMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "org": ("onboarding_save_org", ("name", "website", "country", "operator_type")),
    "managed": ("onboarding_start_managed_account", ()),
    "own": ("onboarding_connect_ocs_token", ("token",)),
    "plan": ("onboarding_save_plan", ("template_id", "display_name")),
    "restore": ("onboarding_restore_ocs_token", ()),
    "skip": ("onboarding_skip_plan", ()),
    "preview": ("onboarding_test_esim", ()),
    "complete": ("onboarding_complete", ()),
}
"""What each form calls, and with which fields."""
OPERATOR_KINDS: Mapping[str, str] = {
    "mno": "Mobile network operator",
    "mvno": "Virtual operator (MVNO)",
    "mvne": "Enabler of virtual operators (MVNE)",
    "travel_esim": "Travel eSIMs",
    "iot": "Internet of things",
    "enterprise": "Enterprise with its own fleet",
    "marketplace": "Marketplace",
    "other": "Something else",
}
INCOMPLETE_STEPS = {
    "org": "Save step 1 first: it says who you are",
    "ocs": "Choose a connection in step 2 first: a managed account, or a token of your own",
}
"""What is to be done before the last step, by the step that is missing."""
CONNECTION_QUESTIONS: Mapping[str, tuple[str, str]] = {
    "managed": ("Change to the managed account?", "Change to the managed account"),
    "own": ("Connect with this token?", "Connect with this token"),
    "restore": ("Go back to the former token?", "Go back to the former token"),
}
"""Title and button of the question before a live connection is replaced."""
STEP_OF_FORM = {
    "org": "org",
    "managed": "ocs",
    "own": "ocs",
    "restore": "ocs",
    "plan": "plan",
    "skip": "plan",
    "preview": "test_esim",
    "complete": "complete",
}


@cache
def operator_countries() -> Sequence[tuple[str, str]]:
    """Code and English name of every country that an operator can be in, in the order of the names."""
    return countries_by_name(COUNTRY_CODES, texts_in("en"))


async def show_onboarding(visit: PageRequest, failed: str = "", problem: PageProblem | None = None) -> Response:
    """How far the organisation has come, and what is next. `failed`: the form with the problem; it keeps what was typed, but no token."""
    assert visit.organisation
    outcome = await call_operation(visit, "get_onboarding_state", {})
    if outcome.problem is not None:
        return visit.page("error.html", {}, problem=outcome.problem)
    state = outcome.body
    status = {step["step"]: step["status"] for step in cast(list[Mapping[str, str]], state["steps"])}
    if problem is not None and problem.code == "onboarding_incomplete":
        problem = replace(problem, text=INCOMPLETE_STEPS["org" if status["org"] == "todo" else "ocs"])
    countries = operator_countries()
    facts: Mapping[str, object] = {
        "state": state,
        "status": status,
        "templates": await first_templates(visit, state),
        "operator_types": [("", "Choose one"), *((kind, OPERATOR_KINDS[kind]) for kind in get_args(OperatorType))],
        "kinds": OPERATOR_KINDS,
        "countries": [("", "Choose one"), *countries],
        "names": dict(countries),
        "typed": {name: value for name, value in visit.form.items() if name not in ("token", "sealed_token")},
        "failed": failed,
        "failed_step": STEP_OF_FORM.get(failed, ""),
    }
    return visit.page("onboarding.html", facts, problem=problem)


async def first_templates(visit: PageRequest, state: Mapping[str, object]) -> list[Mapping[str, object]]:
    """What there is to begin with, where the organisation is connected; none where that cannot be read now."""
    if not cast(Mapping[str, object], state["connection"])["connected"]:
        return []
    fields = ["templateId", "prepaidpackagetemplatename"]
    return (await call_operation(visit, "list_package_templates", {"limit": 100, "fields": fields})).rows


async def post_onboarding(visit: PageRequest) -> Response:
    """Take a step; whoever signed in long ago signs in again before the connection is changed."""
    do = visit.form.get("do", "")
    if do == "again" or (do in CONNECTION_QUESTIONS and not visit.signed_in_lately):
        return await visit.sign_in_again("/auth/onboarding")
    if do not in ONBOARDING_FORMS:
        raise unknown_form()
    assert visit.organisation
    operation, names = ONBOARDING_FORMS[do]
    arguments = filled_fields(visit.form, *names)
    template = arguments.get("template_id")
    if isinstance(template, str) and template.isascii() and template.isdigit() and len(template) < 16:
        arguments["template_id"] = int(template)
    if "sealed_token" in visit.form:
        arguments["token"] = unseal_token(visit)
    outcome = await call_operation(visit, operation, arguments, confirm_token=visit.form.get("confirm_token"))
    if needs_confirmation(outcome):
        title, button = CONNECTION_QUESTIONS[do]
        return confirmation_page(
            visit, outcome, title=title, button=button, page="/onboarding", fields={"do": do, **sealed_token_field(visit, arguments)}
        )
    if outcome.problem is not None:
        return await show_onboarding(visit, do, outcome.problem)
    step = STEP_OF_FORM[do] if outcome.body.get("pending") or do == "preview" else outcome.body.get("current_step") or "complete"
    return visit.redirect(f"/onboarding#{step}")


def sealed_token_field(visit: PageRequest, arguments: CallArguments) -> Mapping[str, str]:
    """The token that was typed, as it goes through the question's form: sealed for this organisation, since no page ever shows it."""
    token = arguments.get("token")
    if not isinstance(token, str):
        return {}
    return {"sealed_token": visit.context.deps.keyring.seal(token, org_id=visit.organisation, field=TYPED_TOKEN_FIELD)}


def unseal_token(visit: PageRequest) -> str:
    try:
        return visit.context.deps.keyring.open(visit.form["sealed_token"], org_id=visit.organisation, field=TYPED_TOKEN_FIELD)
    except (KeyUnknown, ValueError, WrongSeal):
        raise BadRequest("The form is not the one that this page gave you, or too old", hint="Enter the token again on the page") from None
