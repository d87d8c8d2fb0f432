"""The question before a form of a page replaces something live: what the operation says, said for people, and a form to go on with."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from transports.pages.answers import Page
from transports.pages.asking import Outcome

WORDS: Mapping[str, str] = {
    "onboarding_restore_ocs_token": "the button \u201cGo back to the former token\u201d of the page Set up",
    "onboarding_start_managed_account": "the button \u201cChange to a managed account\u201d of the page Set up",
    "operator_billing_connect_oauth_begin": "the button \u201cI have an account there\u201d of the page Payments",
}
"""What pages call the operations that a question names."""
NAMED = re.compile("|".join(WORDS))


@dataclass(frozen=True, slots=True)
class Question:
    """What the page asks. `fields` are those of the form that goes on: never a secret as it was typed."""

    title: str
    text: str
    button: str
    page: str
    fields: Mapping[str, str]


def is_question(outcome: Outcome) -> bool:
    """Whether the operation waits for a confirmation: it has done nothing."""
    return outcome.problem is not None and outcome.problem.status == 202


def ask_first(outcome: Outcome, *, title: str, button: str, page: str, fields: Mapping[str, str]) -> Page:
    """The page with the question; its form brings `fields` and the confirm token back to `page`."""
    text = NAMED.sub(lambda found: WORDS[found[0]], str(outcome.body["message"]))
    whole = {**fields, "confirm_token": str(outcome.body["confirm_token"])}
    return Page("confirm.html", {"question": Question(title, text, button, page, whole)})
