"""Where somebody who was sent to a page of the payment processor comes back to."""

from typing import Annotated

from pydantic import AfterValidator, Field

from operations.deps import Deps
from operations.services.web_host import checked_host


def of_the_web(address: str) -> str:
    """An https address to come back to."""
    return checked_host(
        address, what="an address to come back to", such_as="https address such as https://fjord.example/billing", strict=True
    )


ReturnUrl = Annotated[
    str,
    Field(
        max_length=1000,
        pattern=r"^https://[^\s\\\x1c-\x1f\x85\ufeff]+$",  # which space is one, languages see differently
        description="Page of yours to come back to afterwards; https.",
    ),
    AfterValidator(of_the_web),
]


def own_page(deps: Deps) -> str:
    """A page of the service's for whoever named none: the one on payments, where people sign in here, and else the documentation."""
    return f"{deps.site.base_url}/auth/payments" if deps.own_identity else deps.site.docs_url
