"""Which reseller a call means, and the refusal when the network knows no such one."""

from collections.abc import Awaitable
from typing import Annotated, TypeVar

from pydantic import Field

from clients.ocs.failure import OcsNotFound
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import PageOf
from registry.errors import NotFound, OcsError
from registry.model import CamelInput

T = TypeVar("T")
INVALID_RESELLER = 10

ResellerId = Annotated[UpstreamId | None, Field(description="Absent: your own.")]


class ResellerQuery(CamelInput):
    """Which reseller."""

    reseller_id: ResellerId = None


class ResellerPage(PageOf):
    """Which reseller, and which part of its list."""

    reseller_id: ResellerId = None


async def of_reseller(requested: int | None, asked: Awaitable[T]) -> T:
    """The answer; a reseller that the caller named and the network refuses is not found."""
    try:
        return await asked
    except OcsError as error:
        if requested is not None and (isinstance(error, OcsNotFound) or error.ocs_code == INVALID_RESELLER):
            raise no_such_reseller() from None
        raise


def no_such_reseller() -> NotFound:
    """Unknown and foreign resellers are answered alike."""
    return NotFound("There is no such reseller", param="resellerId", hint="Leave resellerId out: get_reseller_info names your own")
