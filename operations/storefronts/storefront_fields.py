"""What callers say of shops and plans: how each field is spelled, and its limits."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from operations.services.people.addresses import Email
from operations.services.plain_line import plain_line
from operations.setup.onboarding_country import assigned
from registry.model import Input

Status = Literal["draft", "published"]
PriceMode = Literal["test", "live"]
MOST_LOGO = 32 * 1024
BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"
LOGO = rf"^data:image/(?:png|jpeg|webp|gif);base64,{BASE64}$"
MOST_DATA_MB, MOST_DAYS, MOST_PRICE_CENTS = 1_000_000_000, 36_500, 99_999_999


def once_each(codes: list[str]) -> list[str]:
    """Every country once, in the order given."""
    return list(dict.fromkeys(codes))


# Choice: a slug begins and ends with a letter or a digit.
Slug = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9-]{1,38}[a-z0-9]$",
        description="Where it is found, /shop/{slug}: 3-40 of a-z, 0-9 and hyphens, none first or last; no other shop may have it.",
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=80, description="Shown to buyers, 1-80 characters."), AfterValidator(plain_line)]
Tagline = Annotated[
    str, Field(min_length=1, max_length=160, description="A line below the name, 1-160 characters."), AfterValidator(plain_line)
]
# Choice: pictures made of dots alone. An SVG is a document, with links and styles of its own.
Logo = Annotated[
    str,
    Field(max_length=MOST_LOGO, pattern=LOGO, description="data:image/png;base64,... (or jpeg, webp, gif), at most 32768 characters."),
]
Accent = Annotated[
    str, Field(pattern=r"^#[0-9a-fA-F]{6}$", description="Colour of buttons: #rrggbb."), AfterValidator(lambda text: text.lower())
]
SupportEmail = Annotated[Email, Field(description="Where buyers ask for help, at most 254 characters; shown to them.")]
PlanSlug = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$",
        description="Names the plan in its shop: 1-64 of a-z, 0-9 and hyphens, none first or last.",
    ),
]
DataMb = Annotated[int, Field(ge=1, le=MOST_DATA_MB, description="Megabytes (10^6 bytes), 1-1000000000.")]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS, description="Days it is valid, 1-36500.")]
CountryCode = Annotated[str, Field(pattern=r"^[A-Z]{2}$"), AfterValidator(assigned)]
Countries = Annotated[
    list[CountryCode],
    Field(min_length=1, max_length=250, description='Where it works, ISO 3166-1 alpha-2: ["DE","FR"].'),
    AfterValidator(once_each),
]
PriceCents = Annotated[int, Field(ge=1, le=MOST_PRICE_CENTS, description="Price in cents of the shop's currency, 1-99999999.")]
Position = Annotated[int, Field(ge=0, le=1_000_000, description="Place in the shop, 0-1000000: lower ones first, then older ones.")]
PriceId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=255,
        pattern=r"^[A-Za-z0-9_]+$",
        description="A price at the payment processor, price_...; kept, not charged by.",
    ),
]


class StorefrontRef(Input):
    """Which shop."""

    id: Annotated[str, Field(max_length=64, description="Storefront id, sf_...")]


class Change(StorefrontRef):
    """What is left out stays: a call that leaves a field out is another one than a call that gives it, whatever it gives."""

    @property
    def removed(self) -> Sequence[str]:
        """All fields that were given, so that the same key with other fields is refused."""
        return sorted(self.model_fields_set)
