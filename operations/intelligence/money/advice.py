"""Advice about a line: an action with the operations that carry it out, why, and what it saves the operator and the customer, apart.

An action never costs either of them more than what is. Where no action is known to be so, the advice is none and says why.
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.offers.coverage_map import KnownNetwork, NetworkCodes, NetworkTold
from operations.upstream.usage import euros

CoverageAction = Literal["push_steering", "change_steering_list", "offer_package", "none"]
AdviceReason = Literal[
    "list_leads_elsewhere",
    "list_leads_there",
    "list_not_known",
    "no_list",
    "cheaper_network",
    "not_covered",
    "cheaper_package",
    "has_package",
    "pushed_lately",
    "push_did_not_help",
    "no_list_known",
    "dearer",
    "price_not_known",
    "cheapest",
    "not_there_now",
    "not_active",
    "unknown_network",
    "no_package_fits",
    "not_read",
]
LEAST_SAVING = 10_000
"""Choice: what saves less than a cent is no advice, but for what mends coverage."""


class Saving(NamedTuple):
    """What is paid less, micro-euros; for the customer it is what the operator receives less."""

    operator: int
    customer: int

    @property
    def harms_nobody(self) -> bool:
        return self.operator >= 0 and self.customer >= 0

    @property
    def total(self) -> int:
        return self.operator + self.customer


class LineAdvice(NamedTuple):
    """What to do for a line: the list to change to, or the template to offer; `network` is where the line would be.

    `saving` is None where there is nothing to compare with: nothing was used.
    """

    action: CoverageAction
    why: AdviceReason
    saving: Saving | None = None
    network: KnownNetwork | None = None
    list_id: int | None = None
    template_id: int | None = None


class AdviceStep(TypedDict):
    """An operation to call."""

    operation: str
    arguments: dict[str, str | int]


class AdviceFigures(TypedDict):
    """What to do for a line, why, and what it saves whom."""

    action: Annotated[
        CoverageAction,
        Field(
            description="push_steering: push_steering_to_subscriber; change_steering_list: modify_subscriber_steering_list, then push; "
            "offer_package: assign_package; none: nothing is known that helps and costs nobody more"
        ),
    ]
    why: Annotated[
        AdviceReason,
        Field(
            description="list_leads_elsewhere: the SIM may not have its list; list_leads_there: the list itself prefers this network; "
            "has_package: it has one now that works there; "
            "no_list_known: of no list is known that it leads to a better network; pushed_lately: in 24 hours, or not seen since"
        ),
    ]
    do: Annotated[list[AdviceStep], Field(description="The operations of the action, in this order")]
    leads_to: Annotated[NetworkTold | None, Field(description="Where the line would be; null: not another network, or not known which")]
    saving_operator: Annotated[
        float | None, Field(description="EUR that the operator would have paid networks less for the same use; null: nothing to compare")
    ]
    saving_customer: Annotated[
        float | None, Field(description="EUR that the customer would have paid less, which the operator receives less; null: as above")
    ]


def advice_figures(iccid: str, advice: LineAdvice, codes: NetworkCodes) -> AdviceFigures:
    saving, network = advice.saving, advice.network
    return {
        "action": advice.action,
        "why": advice.why,
        "do": advice_steps(iccid, advice),
        "leads_to": None if network is None else codes.view(network, None),
        "saving_operator": None if saving is None else euros(saving.operator),
        "saving_customer": None if saving is None else euros(saving.customer),
    }


def advice_steps(iccid: str, advice: LineAdvice) -> list[AdviceStep]:
    push: AdviceStep = {"operation": "push_steering_to_subscriber", "arguments": {"iccid": iccid}}
    if advice.action == "push_steering":
        return [push]
    if advice.action == "change_steering_list" and advice.list_id is not None:
        return [{"operation": "modify_subscriber_steering_list", "arguments": {"iccid": iccid, "listId": advice.list_id}}, push]
    if advice.action == "offer_package" and advice.template_id is not None:
        return [{"operation": "assign_package", "arguments": {"iccid": iccid, "packageTemplateId": advice.template_id}}]
    return []
