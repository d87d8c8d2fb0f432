"""Calls of operations by a page, through the pipeline: the outcome, and the question to confirm."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import orjson
from starlette.responses import Response

from registry.caller import ANONYMOUS_CALLER, Caller
from transports.web.pages.request import PageProblem, PageRequest, problem_of_reply

CallArguments = Mapping[str, object]


class CallOutcome(NamedTuple):
    body: Mapping[str, object]
    problem: PageProblem | None
    next_cursor: str | None = None
    """Where the next page of a long list begins, for operations that say it so."""
    replayed: bool = False
    """Whether the same form was sent before: the answer is the former one, and nothing was done again."""
    version: str = ""
    """The ETag of what it is about, for a form that changes it; empty where it has none."""

    @property
    def rows(self) -> list[Mapping[str, object]]:
        """The entries of a list; none when it was refused."""
        return cast(list[Mapping[str, object]], self.body.get("data", [])) if self.problem is None else []


async def call_operation(
    visit: PageRequest, operation: str, arguments: CallArguments, *, caller: Caller | None = None, confirm_token: str | None = None
) -> CallOutcome:
    """Calls an operation as the signed-in person, or as an anonymous caller. A refusal is in the outcome and is not raised."""
    caller = caller or visit.caller or ANONYMOUS_CALLER
    reply = await visit.context.call(visit, operation, arguments, caller=caller, confirm_token=confirm_token)
    body = cast(Mapping[str, object], orjson.loads(reply.body))
    return CallOutcome(body, problem_of_reply(reply, body))


def filled_fields(form: Mapping[str, str], *names: str) -> dict[str, object]:
    """The fields that were filled in: an empty one of a form is one left out."""
    return {name: form[name] for name in names if form.get(name)}


OPERATION_WORDS: Mapping[str, str] = {
    "onboarding_restore_ocs_token": "the button \u201cGo back to the former token\u201d of the page Set up",
    "onboarding_start_managed_account": "the button \u201cChange to a managed account\u201d of the page Set up",
    "operator_billing_connect_oauth_begin": "the button \u201cI have an account there\u201d of the page Payments",
}
"""What pages call the operations that a question names."""
NAMED_OPERATION = re.compile("|".join(OPERATION_WORDS))


@dataclass(frozen=True, slots=True)
class ConfirmQuestion:
    """What the page asks. `fields` are those of the form that goes on: never a secret as it was typed."""

    title: str
    text: str
    button: str
    page: str
    fields: Mapping[str, str]


def needs_confirmation(outcome: CallOutcome) -> bool:
    """Whether the operation waits for a confirmation, and not for an approval: it has done nothing."""
    return outcome.problem is not None and outcome.problem.status == 202 and "confirm_token" in outcome.body


def confirmation_page(
    visit: PageRequest, outcome: CallOutcome, *, title: str, button: str, page: str, fields: Mapping[str, str]
) -> Response:
    """The page with the question; its form brings `fields` and the confirm token back to `page`."""
    text = NAMED_OPERATION.sub(lambda found: OPERATION_WORDS[found[0]], str(outcome.body["message"]))
    whole = {**fields, "confirm_token": str(outcome.body["confirm_token"])}
    return visit.page("confirm.html", {"question": ConfirmQuestion(title, text, button, page, whole)})
