"""What mends a cause: the operation to call, with its arguments, and why. Advice is what works, and never costs more than what is."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.verdicts.rules import EvidenceValue
from operations.upstream.usage import euros
from operations.vocabulary import ProblemCause
from registry.clock import rfc3339_utc


class ProblemStep(TypedDict):
    """The call that mends it, or that looks closer where nobody can know from here."""

    operation: Annotated[str, Field(description="A tool of this service")]
    arguments: Annotated[dict[str, str | int | bool], Field(description="What to call it with")]
    why: str
    customer_pays: Annotated[float | None, Field(description="EUR that the customer pays for it; 0: nothing; null: not known")]


class LineProblem(TypedDict):
    """A cause, and what mends it."""

    cause: ProblemCause
    since: Annotated[str, Field(description="RFC 3339, UTC: when it began, or was found where that is not known")]
    money_a_month: Annotated[float, Field(description="EUR a month that it costs the operator; 0: nothing, or not known")]
    evidence: Annotated[dict[str, str | int | float | None], Field(description="What was seen; money in EUR, data in bytes")]
    do: ProblemStep


class Step(NamedTuple):
    """An operation and why. `takes`: arguments by the evidence that they are; `gives`: arguments that are always the same.

    `price`: the evidence that says what the customer pays for it.
    """

    operation: str
    why: str
    takes: Mapping[str, str] = {}
    gives: Mapping[str, str | bool] = {}
    price: str = ""


SAME_TEMPLATE = {"packageTemplateId": "template_id"}

STEPS: Mapping[ProblemCause, Step] = {
    "exhausted": Step("assign_package", "All data is used up: put the same package on the line once more.", SAME_TEMPLATE, {}, "price"),
    "expired": Step("assign_package", "The last package has ended: put the same one on the line once more.", SAME_TEMPLATE, {}, "price"),
    "blocked": Step(
        "modify_package_status",
        "The package has data left and is paused: let it be used again.",
        {"packageId": "package_id"},
        {"status": "ACTIVE"},
    ),
    "suspended": Step("modify_subscriber_status", "The line was in use and is suspended: activate it again.", {}, {"status": "ACTIVE"}),
    "forbidden": Step("set_subscriber_traffic_restrictions", "Data is switched off although a package has data left.", {}, {"data": True}),
    "no_coverage": Step(
        "list_package_templates",
        "No package of the line works in this country: choose one that does.",
        {"country": "country"},
        {"recurring": False},
    ),
    "throttled": Step("hlr_get_bitrate", "See whose limit it is: hlr_set_bitrate lifts one set by hand, a new package lifts a package's."),
    "mis_steered": Step(
        "audit_network_coverage", "It is on a network beside its package: the audit names the list that leads to a covered one."
    ),
    "wrong_package": Step("optimize_package", "What was used costs the customer half elsewhere: it names the packages to take instead."),
    "high_cost": Step("high_cost_subscribers", "Networks charge more than the customer pays: it names what would lower that."),
    "abroad": Step("subscriber_network_events", "It is where it hardly ever was: see whether its user travels, or lost it."),
    "spike": Step("subscriber_usage", "See what used so much, and whether its user knows."),
    "silence": Step("subscriber_network_events", "See whether it still registers: then its device is on and uses nothing."),
    "churn": Step("churn_risk", "Its user may be leaving: it tells the signs, before an offer is made."),
    "series_running_on_suspended": Step(
        "stop_resume_recurring_package",
        "The series goes on making packages that nobody can use: stop it, or activate the line.",
        {"packageId": "series_id"},
        {"action": "stop"},
    ),
    "never_attached": Step("get_sim_provider_status", "See whether the eSIM was ever installed; send its user the code again."),
}
FLEET_WIDE = frozenset({"audit_network_coverage", "high_cost_subscribers", "list_package_templates"})
"""Operations of the table that take no ICCID."""

CHANGING_OPERATIONS = frozenset(
    {
        "assign_package",
        "modify_package_status",
        "modify_subscriber_status",
        "set_subscriber_traffic_restrictions",
        "stop_resume_recurring_package",
    }
)
"""Operations of the table that change something; the others only look."""


def step_for(cause: ProblemCause, iccid: str, evidence: Mapping[str, EvidenceValue]) -> ProblemStep:
    """The step for a line with this cause."""
    step = STEPS[cause]
    given: dict[str, str | int | bool] = {} if step.operation in FLEET_WIDE else {"iccid": iccid}
    for name, source in step.takes.items():
        value = evidence.get(source)
        if isinstance(value, str | int):
            given[name] = value
    given.update(step.gives)
    price = evidence.get(step.price) if step.price else 0.0
    return {
        "operation": step.operation,
        "arguments": given,
        "why": step.why,
        "customer_pays": float(price) if isinstance(price, int | float) else None,
    }


def line_problem(cause: ProblemCause, iccid: str, since: float, money: int, evidence: Mapping[str, EvidenceValue]) -> LineProblem:
    """What is told of a cause that holds. `since`: Unix seconds; `money`: micro-euro a month that it costs the operator."""
    return {
        "cause": cause,
        "since": rfc3339_utc(since),
        "money_a_month": euros(money),
        "evidence": dict(evidence),
        "do": step_for(cause, iccid, evidence),
    }
