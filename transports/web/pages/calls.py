"""Calls of operations by a page, through the pipeline: the outcome, a refusal in words of the page, and the question to confirm."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import orjson

from operations.catalogue import CATALOGUE
from registry.answer import answer_call
from registry.call import Call
from registry.caller import ANONYMOUS_CALLER, Caller
from registry.errors import Refusal
from transports.web.pages.request import HtmlPage, PageRequest

PROBLEM_WORDS: Mapping[str, tuple[str, str]] = {
    "role_required": ("Only admins of your organisation may do this", "Ask one of them; the page Members names them"),
    "organization_required": ("You belong to no organisation yet", "Sign up to make one, or ask a colleague to invite you"),
    "org_not_connected": ("Your organisation is not connected yet", "Connect it in step 2 of the page Set up"),
    "quota_exceeded": (
        "Your organisation has used up what it may do today",
        "It goes on at midnight UTC; the page Tiers shows larger ones",
    ),
    "upgrade_required": ("The tier or role that you have does not carry this", "The page Tiers shows which one does"),
}
"""Text and hint of refusals whose own words are for programs, by code."""
MORE_PROBLEMS = re.compile(r" \(and [0-9]+ more\)$")
FOR_PROGRAMS = re.compile(r"[a-z]+_[a-z]|/v1/|\b(?:HTTP|GET|POST|PUT|PATCH|DELETE|call)\b|`")
"""What a hint for somebody before a page does not speak of: operations, requests, the command line."""


@dataclass(frozen=True, slots=True)
class PageProblem:
    """`field` is the one at fault, where it is one."""

    status: int
    text: str
    hint: str = ""
    field: str = ""
    code: str = ""


def problem_of(refusal: Refusal) -> PageProblem:
    """A refusal in the words of a page: beside its field, a text need not name it."""
    code, field = refusal.error_code, refusal.param or ""
    if code == "rate_limited":
        return PageProblem(refusal.status, f"Too many tries; try again in {waiting_time(int(refusal.headers['Retry-After']))}", code=code)
    if code in PROBLEM_WORDS:
        return PageProblem(refusal.status, *PROBLEM_WORDS[code], field, code)
    text, more = MORE_PROBLEMS.subn("", refusal.message.removeprefix(f"{field}: ") if field else refusal.message)
    hint = "" if FOR_PROGRAMS.search(refusal.hint or "") else refusal.hint or ""
    if more:
        hint = f"{hint.removesuffix('.')}. Another field is to be mended, too".removeprefix(". ")
    return PageProblem(refusal.status, text[:1].upper() + text[1:], hint, field, code)


def waiting_time(seconds: int) -> str:
    """A time to wait, as people say it."""
    number, unit = (seconds, "second") if seconds < 60 else (-(-seconds // 60), "minute")
    return f"{number} {unit}" + ("s" if number > 1 else "")


CallArguments = Mapping[str, object]


class CallOutcome(NamedTuple):
    """What came of a call."""

    body: Mapping[str, object]
    problem: PageProblem | None

    @property
    def rows(self) -> list[Mapping[str, object]]:
        """The entries of a list; none when it was refused."""
        return cast(list[Mapping[str, object]], self.body.get("data", [])) if self.problem is None else []


async def call_operation(
    visit: PageRequest, operation: str, arguments: CallArguments, *, caller: Caller | None = None, confirm_token: str | None = None
) -> CallOutcome:
    """Call an operation for whoever sits before the browser; nobody for public ones."""
    call = Call(
        operation=CATALOGUE.operations[operation],
        surface="web",
        request_id=visit.request_id,
        caller=caller or visit.caller or ANONYMOUS_CALLER,
        arguments=arguments,
        client=visit.client,
        confirm_token=confirm_token,
    )
    reply = await answer_call(visit.context.pipeline, call, visit.context.report)
    body = cast(Mapping[str, object], orjson.loads(reply.body))
    return CallOutcome(body, problem_of(reply.refusal) if reply.refusal is not None else None)


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
    """Whether the operation waits for a confirmation: it has done nothing."""
    return outcome.problem is not None and outcome.problem.status == 202


def confirmation_page(outcome: CallOutcome, *, title: str, button: str, page: str, fields: Mapping[str, str]) -> HtmlPage:
    """The page with the question; its form brings `fields` and the confirm token back to `page`."""
    text = NAMED_OPERATION.sub(lambda found: OPERATION_WORDS[found[0]], str(outcome.body["message"]))
    whole = {**fields, "confirm_token": str(outcome.body["confirm_token"])}
    return HtmlPage("confirm.html", {"question": ConfirmQuestion(title, text, button, page, whole)})
