"""The organisation's account at the payment processor: where it stands, and the two ways to one."""

from collections.abc import Mapping
from dataclasses import replace

from registry.errors import BadRequest
from transports.pages.answers import Answer, Page, Redirect
from transports.pages.asking import Outcome, ask
from transports.pages.confirmation import ask_first, is_question
from transports.pages.problem import Problem
from transports.pages.visit import Visit

# Neither is told where to lead back to: that is this page, and an address that is told must be https, which ours need not be.
WAYS = {"begin": "operator_billing_connect_begin", "oauth": "operator_billing_connect_oauth_begin"}
DENIED = "access_denied"


async def show(visit: Visit) -> Page:
    """Where the account stands. Whoever comes back from the processor with a code is asked first: opening an address changes nothing."""
    assert visit.organisation
    code, state, error = (visit.query.get(name, "") for name in ("code", "state", "error"))
    if error:
        text = "You did not allow it" if error == DENIED else "The payment processor did not let it happen"
        return await page(visit, notice=f"{text}; nothing was changed.")
    if code and state:
        return Page("payments_attach.html", {"code": code, "state": state})
    if code:
        return await page(visit, notice="This address is not complete, so nothing was changed. Begin again.")
    return await page(visit)


async def page(visit: Visit, *, notice: str = "", problem: Problem | None = None) -> Page:
    """What the processor says, and what can be done."""
    outcome = await ask(visit, "operator_billing_connect_status", {})
    if outcome.problem is not None:
        return Page("error.html", {"problem": outcome.problem}, status=outcome.problem.status)
    facts = {"account": outcome.body, "notice": notice, "problem": problem}
    return Page("payments.html", facts, status=200 if problem is None else problem.status)


async def act(visit: Visit) -> Answer:
    """Go to the processor, or attach what its owner let us into."""
    assert visit.organisation
    do = visit.form.get("do", "")
    if do == "attach":
        given = {name: visit.form.get(name, "") for name in ("code", "state")}
        outcome = await ask(visit, "operator_billing_connect_oauth_complete", given, confirm_token=visit.form.get("confirm_token"))
        if is_question(outcome):
            return question(outcome, {"do": do, **given})
        return Redirect("/payments") if outcome.problem is None else await page(visit, problem=in_words(outcome.problem))
    if do not in WAYS:
        raise BadRequest("The form does not say what to do", hint="Use the buttons of this page")
    outcome = await ask(visit, WAYS[do], {}, confirm_token=visit.form.get("confirm_token"))
    if is_question(outcome):
        return question(outcome, {"do": do})
    if outcome.problem is not None:
        return await page(visit, problem=in_words(outcome.problem))
    # A link, since form-action forbids that a form of ours ends elsewhere, and the processor's address is not known when the form is shown.
    return Page("payments_away.html", {"begun": outcome.body, "own": do == "oauth"})


def question(outcome: Outcome, fields: Mapping[str, str]) -> Page:
    """Another account is to take the place of one that took payments."""
    return ask_first(outcome, title="Replace your payment account?", button="Replace the account", page="/payments", fields=fields)


def in_words(problem: Problem) -> Problem:
    """What the operations say for programs, said for people."""
    if problem.code == "not_implemented":
        text = "This deployment has no client id at the payment processor, so an account that you have there cannot be attached"
        return replace(problem, text=text, hint="Begin onboarding, or ask whoever runs the service")
    if problem.field in ("code", "state"):
        text = "Nothing was attached: this was used already, is older than 10 minutes, or somebody else or another organisation began it"
        return replace(problem, text=text, hint="Begin again here")
    return problem
