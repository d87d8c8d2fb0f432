"""Destination lists: which called numbers a package covers, by prefix."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.zones import DestinationPrefixes, DetailedDestinationList
from operations.deps import Ctx
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.paging import Data, member_number, paged_data
from operations.upstream.resellers import (
    DESTINATION_LISTS,
    ResellerPage,
    ResellerQuery,
    not_listed,
    read_reseller_list,
    require_listed,
    resolve_reseller,
)
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError, OcsNotFound
from registry.free_text import FreeText
from registry.operation import Example, operation

DESTINATION_LIST_EXAMPLE: DetailedDestinationList = {
    "listId": 64,
    "listName": "Home",
    "reseller": {"id": 7001, "name": "Fjord Mobile"},
    "prefixes": ["47"],
}


class DestinationPrefixQuery(ResellerQuery):
    """Which list."""

    destination_list_id: Annotated[UpstreamId | None, Field(description="Absent: all lists merged.")] = None


class Prefixes(TypedDict):
    """The prefixes of one destination list, or of all of a reseller merged: then the list is null."""

    listId: int | None
    listName: FreeText | None
    resellerId: int | None
    prefixes: list[str]


@operation(
    "GET",
    "/v1/destination-lists",
    upstream=True,
    raises=[NotFound, OcsError],
    examples=[Example("Which destinations can a package cover?", {}, {"data": [DESTINATION_LIST_EXAMPLE]})],
    tool_defaults={"limit": 20},
)
async def list_destination_lists(ctx: Ctx, params: ResellerPage) -> Data[list[DetailedDestinationList]]:
    """List the destination lists with their prefixes.

    A template that names one covers calls to these prefixes only.
    """
    upstream = await connect_upstream(ctx)
    rows = await read_reseller_list(upstream, DESTINATION_LISTS, params.reseller_id)
    return paged_data(ctx, rows, params, member_number("listId"))


@operation(
    "GET",
    "/v1/destination-prefixes",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Which numbers does the list Home cover?",
            {"destinationListId": 64},
            {"data": {"listId": 64, "listName": "Home", "resellerId": 7001, "prefixes": ["47"]}},
        )
    ],
)
async def list_destination_prefixes(ctx: Ctx, params: DestinationPrefixQuery) -> Data[Prefixes]:
    """List the called-number prefixes of one destination list, or of all.

    Digits without plus; the longest prefix wins. list_destination_lists names the lists.
    """
    upstream = await connect_upstream(ctx)
    if params.destination_list_id is None:
        return {"data": await merged_prefixes(upstream, params.reseller_id)}
    if params.reseller_id is not None:
        await resolve_reseller(upstream, params.reseller_id)
    found = await read_prefixes(upstream, params.destination_list_id)
    return {
        "data": {
            "listId": found.get("listId", params.destination_list_id),
            "listName": found.get("listName"),
            "resellerId": found.get("resellerId"),
            "prefixes": found.get("prefixes", []),
        }
    }


async def merged_prefixes(upstream: Upstream, requested: int | None) -> Prefixes:
    """Every prefix of any list of the reseller, once."""
    rows = await read_reseller_list(upstream, DESTINATION_LISTS, requested)
    found = {prefix for row in rows for prefix in row.get("prefixes", [])}
    return {"listId": None, "listName": None, "resellerId": await resolve_reseller(upstream, requested), "prefixes": sorted(found)}


async def read_prefixes(upstream: Upstream, list_id: int) -> DestinationPrefixes:
    """The prefixes of a list. Raises NotFound unless it is the caller's to see. Waits for the network."""
    if upstream.managed:
        await require_listed(upstream, DESTINATION_LISTS, list_id, "destinationListId")
    try:
        return await upstream.ocs.zones.destination_list_prefixes(list_id)
    except OcsNotFound:
        raise not_listed(DESTINATION_LISTS.hint, "destinationListId") from None
