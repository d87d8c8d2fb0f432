"""The organisation's account at the payment processor: where it stands, and the two ways to one."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from transports.web.pages.calls import CallOutcome, call_operation, confirmation_page, needs_confirmation
from transports.web.pages.request import PageProblem, PageRequest, unknown_form

# Neither is told where to lead back to: that is this page, and an address that is told must be https, which ours need not be.
CONNECT_OPERATIONS = {"begin": "operator_billing_connect_begin", "oauth": "operator_billing_connect_oauth_begin"}
ACCESS_DENIED = "access_denied"


async def show_payments(visit: PageRequest) -> Response:
    """Where the account stands. Whoever comes back from the processor with a code is asked first: opening an address changes nothing."""
    assert visit.organisation
    code, state, error = (visit.query.get(name, "") for name in ("code", "state", "error"))
    if error:
        text = "You did not allow it" if error == ACCESS_DENIED else "The payment processor did not let it happen"
        return await payments_page(visit, notice=f"{text}; nothing was changed.")
    if code and state:
        return visit.page("payments_attach.html", {"code": code, "state": state})
    if code:
        return await payments_page(visit, notice="This address is not complete, so nothing was changed. Begin again.")
    return await payments_page(visit)


async def payments_page(visit: PageRequest, *, notice: str = "", problem: PageProblem | None = None) -> Response:
    outcome = await call_operation(visit, "operator_billing_connect_status", {})
    if outcome.problem is not None:
        return visit.page("error.html", {}, problem=outcome.problem)
    facts = {"account": outcome.body, "notice": notice}
    return visit.page("payments.html", facts, problem=problem)


async def post_payments(visit: PageRequest) -> Response:
    """Go to the processor after a sign-in that is not old, or attach what its owner let us into."""
    assert visit.organisation
    do = visit.form.get("do", "")
    if do == "attach":
        given = {name: visit.form.get(name, "") for name in ("code", "state")}
        outcome = await call_operation(
            visit, "operator_billing_connect_oauth_complete", given, confirm_token=visit.form.get("confirm_token")
        )
        if needs_confirmation(outcome):
            return replace_account_question(visit, outcome, {"do": do, **given})
        if outcome.problem is None:
            return visit.redirect("/payments")
        return await payments_page(visit, problem=payments_problem(outcome.problem))
    if do not in (*CONNECT_OPERATIONS, "again"):
        raise unknown_form()
    if do == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again("/auth/payments")
    outcome = await call_operation(visit, CONNECT_OPERATIONS[do], {}, confirm_token=visit.form.get("confirm_token"))
    if needs_confirmation(outcome):
        return replace_account_question(visit, outcome, {"do": do})
    if outcome.problem is not None:
        return await payments_page(visit, problem=payments_problem(outcome.problem))
    # A link, since form-action forbids that a form of ours ends elsewhere, and the processor's address is not known when the form is shown.
    return visit.page("payments_away.html", {"begun": outcome.body, "own": do == "oauth"})


def replace_account_question(visit: PageRequest, outcome: CallOutcome, fields: Mapping[str, str]) -> Response:
    """Another account is to take the place of one that took payments."""
    title, button = "Replace your payment account?", "Replace the account"
    return confirmation_page(visit, outcome, title=title, button=button, page="/payments", fields=fields)


def payments_problem(problem: PageProblem) -> PageProblem:
    """`problem` in words for people, where the operation's words are for programs."""
    if problem.code == "not_implemented":
        text = "This deployment has no client id at the payment processor, so an account that you have there cannot be attached"
        return replace(problem, text=text, hint="Begin onboarding, or ask whoever runs the service")
    if problem.field in ("code", "state"):
        text = "Nothing was attached: this was used already, is older than 10 minutes, or somebody else or another organisation began it"
        return replace(problem, text=text, hint="Begin again here")
    return problem
