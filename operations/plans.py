"""A plan and its price, as answers show them."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from operations.vocabulary import Currency
from registry.errors import NotFound
from registry.free_text import FreeText

BYTES_PER_MB = 1_000_000  # Choice: a megabyte is 10^6 bytes, as a gigabyte on an invoice is 10^9


class Price(TypedDict):
    """`amount` in minor units (cents) of `currency`."""

    amount: int
    currency: Currency


PlanWarningCode = Literal[
    "data_exceeds_template",
    "days_exceed_template",
    "countries_exceed_template",
    "data_below_template",
    "days_below_template",
    "countries_below_template",
    "price_below_cost",
    "cost_not_compared",
    "template_recurring",
    "template_not_found",
    "template_not_compared",
]


class PlanWarning(TypedDict):
    """Where an offer differs from the package that its template makes. `code` for programs, `message` for people."""

    code: Annotated[
        PlanWarningCode,
        Field(description="*_exceed_*: more is promised than the package has; *_below_*: less; *_not_*: it could not be compared"),
    ]
    message: str


class Plan(TypedDict):
    """An offer: data, days, countries, price. `data_mb` is in megabytes of 10^6 bytes, and 0 when `unlimited`."""

    id: str
    object: Literal["connectivity.plan"]
    name: FreeText
    data_mb: int
    unlimited: bool
    validity_days: int
    countries: list[str]
    livemode: bool
    price: Price | None
    adapt: NotRequired[Annotated[bool, Field(description="Of a product: its packages get its own data and days, not their template's")]]
    warnings: NotRequired[
        Annotated[list[PlanWarning], Field(description="Of a product, where it is read: how it differs from its template now")]
    ]


def offered_plan(
    id: str, name: str, *, data_mb: int, validity_days: int, countries: list[str], livemode: bool = True, price: Price | None = None
) -> Plan:
    """The offer of `data_mb` megabytes for `validity_days`; without a `price` it is not sold."""
    return {
        "id": id,
        "object": "connectivity.plan",
        "name": name,
        "data_mb": data_mb,
        "unlimited": False,
        "validity_days": validity_days,
        "countries": countries,
        "livemode": livemode,
        "price": price,
    }


def product_not_found(param: str) -> NotFound:
    """The refusal that names `param`; unknown and foreign products are answered alike."""
    return NotFound(
        "Your organisation has no product with this id", param=param, hint="list_connectivity_products names the ones you defined"
    )
