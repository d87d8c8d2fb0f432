"""Events of eSIMs: from the order to the first attach, and what is used of a plan."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class EsimIssuance(TypedDict):
    """`plan` is the id of the plan it was issued for; null where a template was named in its place.

    An eSIM that was drawn from the inventory has no intent: `intent` is null then, and the key of the call and the template name it.
    """

    intent: str | None
    iccid: str
    plan: str | None
    idempotency_key: NotRequired[str]
    package_template_id: NotRequired[int]


class FirstAttach(TypedDict):
    """Where the eSIM was seen first. `country` is ISO 3166-1 alpha-2."""

    intent: str
    iccid: str
    plan: str | None
    mcc: str | None
    mnc: str | None
    country: str | None


ESIM_ISSUED = EventType(
    "esim.issued",
    "An eSIM was issued: for an intent, or from the inventory.",
    EsimIssuance,
    {"intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t", "iccid": "8999012345678901237", "plan": "test_global_1gb"},
    read_with="get_connectivity_intent",
    line="iccid",
    since="1.0.0",
)

ESIM_FIRST_ATTACH = EventType(
    "esim.first_attach",
    "The eSIM of an intent was seen in a network for the first time.",
    FirstAttach,
    {
        "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "iccid": "8999012345678901237",
        "plan": "test_global_1gb",
        "mcc": "262",
        "mnc": "01",
        "country": "DE",
    },
    read_with="get_connectivity_intent",
    line="iccid",
    since="1.0.0",
)


class UnknownIssuance(TypedDict):
    """An issuance, named by its key; `intent` and `iccid` are null where there is none, or it is not known.

    `idempotency_key`: the key that the eSIM was asked for with; an order of a shop has its number there. `reason`: `no_answer`, or
    `late_answer` where an answer names an eSIM after it had been settled that none was drawn.
    """

    intent: str | None
    idempotency_key: str
    package_template_id: int
    iccid: str | None
    reason: Literal["no_answer", "late_answer"]


class FailedIssuance(TypedDict):
    """An issuance that drew nothing. `code` says why, as the answer of its key does."""

    intent: str | None
    idempotency_key: str
    package_template_id: int
    iccid: str | None
    code: str


class RolledBackEsim(TypedDict):
    """An eSIM that was given back. `intent` is null where it was issued without one."""

    intent: str | None
    idempotency_key: str
    package_template_id: int
    iccid: str | None


ESIM_ISSUANCE_UNKNOWN = EventType(
    "esim.issuance_unknown",
    "Nobody knows whether an eSIM was drawn; it is found out, and none is drawn a second time under the same key.",
    UnknownIssuance,
    {
        "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "idempotency_key": "order-2041",
        "package_template_id": 9001,
        "iccid": None,
        "reason": "no_answer",
    },
    read_with="get_connectivity_intent",
    line="iccid",
)

ESIM_ISSUANCE_FAILED = EventType(
    "esim.issuance_failed",
    "An issuance has ended without an eSIM: nothing was drawn.",
    FailedIssuance,
    {
        "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "idempotency_key": "order-2041",
        "package_template_id": 9001,
        "iccid": None,
        "code": "no_inventory",
    },
    read_with="get_connectivity_intent",
    line="iccid",
)

ESIM_ROLLED_BACK = EventType(
    "esim.rolled_back",
    "An issued eSIM was given back: its package is removed.",
    RolledBackEsim,
    {
        "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "idempotency_key": "order-2041",
        "package_template_id": 9001,
        "iccid": "8999012345678901237",
    },
    read_with="get_connectivity_intent",
    line="iccid",
)


class ReachedThreshold(TypedDict):
    """`threshold_percent` is 50, 80 or 100 of the plan's `data_mb`. Megabytes have 1,000,000 bytes."""

    intent: str
    iccid: str | None
    plan: str | None
    threshold_percent: int
    used_mb: float
    data_mb: int


USAGE_THRESHOLD_REACHED = EventType(
    "usage.threshold_reached",
    "An intent has used 50, 80 or 100 percent of the data of its plan.",
    ReachedThreshold,
    {
        "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "iccid": "8999012345678901237",
        "plan": "test_global_1gb",
        "threshold_percent": 80,
        "used_mb": 812.5,
        "data_mb": 1000,
    },
    read_with="get_connectivity_intent",
    line="iccid",
    since="1.0.0",
)
