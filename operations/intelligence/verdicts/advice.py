"""What mends a cause: the operation to call, with its arguments, and why. Advice is what works, and never costs more than what is."""

from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.verdicts.rules import EvidenceValue
from operations.vocabulary import ProblemCause


class ProblemStep(TypedDict):
    """The call that mends it, or that looks closer where nobody can know from here."""

    operation: Annotated[str, Field(description="A tool of this service")]
    arguments: Annotated[dict[str, str | int | bool], Field(description="What to call it with")]
    why: str
    customer_pays: Annotated[float | None, Field(description="EUR that the customer pays for it; null: nothing, or not known")]


class Step(NamedTuple):
    """An operation with its arguments beside the ICCID, why, and which evidence says what the customer pays for it."""

    operation: str
    arguments: Callable[[Mapping[str, EvidenceValue]], Mapping[str, EvidenceValue | bool]]
    why: str
    price: str = ""


def nothing(evidence: Mapping[str, EvidenceValue]) -> Mapping[str, EvidenceValue]:
    del evidence
    return {}


def same_template(evidence: Mapping[str, EvidenceValue]) -> Mapping[str, EvidenceValue]:
    return {"packageTemplateId": evidence.get("template_id")}


STEPS: Mapping[ProblemCause, Step] = {
    "exhausted": Step("assign_package", same_template, "All data is used up: put the same package on the line once more.", "price"),
    "expired": Step("assign_package", same_template, "The last package has ended: put the same one on the line once more.", "price"),
    "blocked": Step(
        "modify_package_status",
        lambda evidence: {"packageId": evidence.get("package_id"), "active": True},
        "The package has data left and is paused: let it be used again.",
    ),
    "suspended": Step(
        "modify_subscriber_status", lambda evidence: {"status": "ACTIVE"}, "The line was in use and is suspended: activate it again."
    ),
    "forbidden": Step(
        "set_subscriber_traffic_restrictions", lambda evidence: {"data": True}, "Data is switched off although a package has data left."
    ),
    "no_coverage": Step("list_package_templates", nothing, "No package of the line works in this country: choose one that does."),
    "throttled": Step(
        "hlr_get_bitrate",
        nothing,
        "See whose limit it is: hlr_set_bitrate lifts one set by hand, a new package lifts a package's.",
    ),
    "mis_steered": Step(
        "audit_network_coverage", nothing, "It is on a network beside its package: the audit names the list that leads to a covered one."
    ),
    "wrong_package": Step(
        "optimize_package", nothing, "What was used costs the customer half elsewhere: it names the packages to take instead."
    ),
    "high_cost": Step("high_cost_subscribers", nothing, "Networks charge more than the customer pays: it names what would lower that."),
    "abroad": Step("subscriber_country_history", nothing, "It is where it hardly ever was: see whether its user travels, or lost it."),
    "spike": Step("subscriber_usage", nothing, "See what used so much, and whether its user knows."),
    "silence": Step("subscriber_network_events", nothing, "See whether it still registers: then its device is on and uses nothing."),
    "churn": Step("churn_risk", nothing, "Its user may be leaving: it tells the signs, before an offer is made."),
    "series_running_on_suspended": Step(
        "stop_resume_recurring_package",
        lambda evidence: {"recurringId": evidence.get("series_id"), "active": False},
        "The series goes on making packages that nobody can use: stop it, or activate the line.",
    ),
    "never_attached": Step("get_sim_provider_status", nothing, "See whether the eSIM was ever installed; send its user the code again."),
}
FLEET_WIDE = frozenset({"audit_network_coverage", "high_cost_subscribers", "list_package_templates"})
"""Operations of the table that take no ICCID."""


def step_for(cause: ProblemCause, iccid: str, evidence: Mapping[str, EvidenceValue]) -> ProblemStep:
    """The step for a line with this cause."""
    step = STEPS[cause]
    given: dict[str, str | int | bool] = {} if step.operation in FLEET_WIDE else {"iccid": iccid}
    given |= {name: value for name, value in step.arguments(evidence).items() if isinstance(value, str | int)}
    price = evidence.get(step.price) if step.price else None
    return {
        "operation": step.operation,
        "arguments": given,
        "why": step.why,
        "customer_pays": float(price) if isinstance(price, int | float) else None,
    }
