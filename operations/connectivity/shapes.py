"""What plans, intents and usage look like in answers (api.md 2.2, 2.4, 2.7)."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

BYTES_PER_MB = 1_000_000  # Choice: a megabyte is 10^6 bytes, as a gigabyte on an invoice is 10^9

Currency = Literal["USD", "EUR", "GBP", "CHF"]
IntentId = Annotated[str, Field(max_length=64, description="Intent id, cni_...")]


class Price(TypedDict):
    """`amount` in minor units (cents) of `currency`."""

    amount: int
    currency: Currency


class Plan(TypedDict):
    """An offer: data, days, countries, price. `data_mb` is in megabytes of 10^6 bytes, and 0 when `unlimited`."""

    id: str
    object: Literal["connectivity.plan"]
    name: str
    data_mb: int
    unlimited: bool
    validity_days: int
    countries: list[str]
    livemode: bool
    price: Price | None


class Esim(TypedDict):
    """A SIM profile to download. Whoever holds the activation code can install it: treat it as a secret.

    A list without `activation_codes` leaves out what installs it.
    """

    iccid: str
    activation_code: NotRequired[str | None]
    qr_code: NotRequired[str | None]
    smdp_address: str | None
    matching_id: NotRequired[str | None]


class IntentError(TypedDict):
    """Why no eSIM was issued, or why that is not known."""

    code: str
    message: str


Status = Literal["requires_plan", "processing", "succeeded", "failed"]


class Intent(TypedDict):
    """A request for one eSIM. `created` is Unix seconds; `plan` is as it was when it was attached."""

    id: str
    object: Literal["connectivity.intent"]
    status: Status
    livemode: bool
    plan: Plan | None
    esim: Esim | None
    metadata: dict[str, str]
    error: IntentError | None
    created: int
    unresolved_issuance: NotRequired[
        Annotated[
            str, Field(description="In the answer that issued it: another key or intent of yours for this template has an unknown outcome")
        ]
    ]


def without_codes(intent: Intent) -> Intent:
    """The intent without what installs its eSIM."""
    esim = intent["esim"]
    return intent if esim is None else {**intent, "esim": {"iccid": esim["iccid"], "smdp_address": esim["smdp_address"]}}


class UsageRecord(TypedDict):
    """Usage reported for a test intent. `quantity_mb` in megabytes of 10^6 bytes; `created` is Unix seconds."""

    id: str
    object: Literal["connectivity.usage_record"]
    intent: str
    quantity_mb: float
    livemode: bool
    created: int


class NetworkMetered(TypedDict):
    """The network meters a live intent; nothing was stored."""

    object: Literal["connectivity.usage_record"]
    status: Literal["network_metered"]
    intent: str
