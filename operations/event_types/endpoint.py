"""Events of webhook endpoints."""

from typing import Literal

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType

DisablingReason = Literal["gone", "failing", "chooser_ended"]


class DisabledEndpointData(TypedDict):
    """`gone`: it answered 410. `failing`: it has only failed for 120 hours. `chooser_ended`: the key or login that chose its types."""

    endpoint: str
    reason: DisablingReason


ORGANISATION_ENDPOINT_DISABLED = EventType(
    "organisation.endpoint_disabled",
    "A webhook endpoint was disabled: nothing is sent to it until somebody enables it.",
    DisabledEndpointData,
    {"endpoint": "we_01k0a8w7zv6q4k3m2n1p0r9s8t", "reason": "failing"},
    read_with="list_connectivity_webhook_endpoints",
    admin=True,
)
