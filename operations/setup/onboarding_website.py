"""The address of an operator's website."""

from typing import Annotated

from pydantic import AfterValidator, Field

from operations.services.web_host import checked_host


def without_credentials(address: str) -> str:
    """An address that is shown, and that nobody is led to."""
    return checked_host(address, what="an address of a website", such_as="address such as https://fjord.example", strict=False)


Website = Annotated[str, Field(max_length=300, pattern=r"^https?://[^\s\\\x1c-\x1f\x85\ufeff]+$"), AfterValidator(without_credentials)]
