"""Events of usage."""

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


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
