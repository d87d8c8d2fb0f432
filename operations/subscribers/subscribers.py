"""One line; new ones cannot be made."""

from typing import Annotated

from pydantic import ConfigDict, Field

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, reached_line
from operations.services.network.passing import Data, FieldName
from operations.services.network.subscriber_rows import SubscriberRow, chosen_rows, public_row
from operations.services.network.upstream import reach
from registry.errors import NotFound, NotSupported, OcsError
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Example, operation


class SubscriberQuery(LineRef):
    """Which line, which of its members, and whether with its fair-use counter."""

    gz_counter: Annotated[bool, Field(description="With greenZoneCounter.")] = False
    fields: Annotated[
        list[FieldName] | None, Field(max_length=40, description="Only these members; * for all but activationCode, confirmationCode.")
    ] = None


class NewSubscriber(CamelInput):
    """Anything: it is refused whatever it says."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})


EXAMPLE: SubscriberRow = {
    "iccid": "8988303700000100286",
    "imsi": "901700000912345",
    "msisdn": "882390910045",
    "currentStatus": "Active",
    "subscriberId": 910045,
    "accountId": 8101,
    "account": "Demo Retail",
    "resellerId": 7001,
    "reseller": "Fjord Mobile",
    "subscriberName": "Anna Berg",
    "balance": 0.0,
    "lastUsageDate": "2027-01-15T09:41:07",
    "allowedData": True,
    "sim": {"id": 760112, "subscriberId": 910045, "esim": True, "status": "AFFECTED"},
}


async def own_line_in_full(ctx: Ctx, params: SubscriberQuery) -> Line:
    """The caller's own line; the counter comes with the same call."""
    return await reached_line(ctx, await reach(ctx), params.iccid, green_zone=params.gz_counter)


@operation(
    "GET",
    "/v1/subscribers/{iccid}",
    upstream=True,
    operator=True,
    title="Get line",
    access=own_line_in_full,
    raises=[NotFound, OcsError],
    examples=[Example("What do we know of this line?", {"iccid": "8988303700000100286"}, {"data": EXAMPLE})],
    tool_defaults={"fields": ["*"]},
)
async def get_subscriber(ctx: Ctx, params: SubscriberQuery, line: Line) -> Data[SubscriberRow]:
    """Get one line: status, identifiers, SIM, last network, histories.

    Packages are in list_subscriber_packages, usage in subscriber_usage. Name `activationCode` in fields only to install the eSIM.

    PIN and PUK are never shown. Histories (status, imsiList, phoneNumberList) hold former values with their endDate.
    """
    return {"data": chosen_rows(ctx, [public_row(line.row)], params.fields)[0]}


@operation(
    "POST",
    "/v1/subscribers",
    scope=Scope.WRITE,
    tool=False,
    title="Create line",
    raises=[NotSupported],
    examples=[Example("Lines come from stock", {})],
)
async def create_subscriber(ctx: Ctx, params: NewSubscriber) -> Data[SubscriberRow]:
    """Refuse: lines are not made here, they come from the account's stock.

    Always answers 501 PROVISIONING_NOT_SUPPORTED, whatever the body says. The stock is kept at the charging system:
    esim_status_per_account counts the free eSIMs, list_subscribers lists them with the rest, assign_package puts one to use.
    """
    raise NotSupported(
        "Lines cannot be created: they come from the account's stock at the charging system. Nothing was done",
        code="PROVISIONING_NOT_SUPPORTED",
        hint="GET /v1/accounts/{accountId}/esim-status counts the free eSIMs, GET /v1/subscribers lists them with all lines, and "
        "POST /v1/subscribers/{iccid}/packages puts one to use",
    )
