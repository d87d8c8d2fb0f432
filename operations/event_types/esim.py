"""Events of eSIMs: from the order to the first attach."""

from typing import NotRequired

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class IssuedEsim(TypedDict):
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
    IssuedEsim,
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
