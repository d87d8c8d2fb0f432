"""Where a line has been, as the network's bridge told it."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.reached import Upstream
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation
from registry.policy import stamp
from storage.network.country_ring import CountryEntry, country_history


class HistoryOf(LineRef):
    """Which line, and how far back."""

    limit: Annotated[int, Field(ge=1, le=50, description="Number of entries.")] = 20


class CountryEntered(TypedDict):
    """The line came into a country."""

    type: Literal["country.entered"]
    iccid: str
    country: str
    mcc: str
    mnc: str | None
    occurred_at: str


class CountryHistory(TypedDict):
    """Newest first."""

    data: list[CountryEntered]


EXAMPLE: CountryEntered = {
    "type": "country.entered",
    "iccid": "8988303700000100286",
    "country": "FR",
    "mcc": "208",
    "mnc": "01",
    "occurred_at": "2026-11-20T09:00:00Z",
}


@operation(
    "GET",
    "/v1/subscribers/{iccid}/country-history",
    title="List countries of a line",
    upstream=True,
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[Example("Where has this line been?", {"iccid": EXAMPLE["iccid"], "limit": 5}, {"data": [EXAMPLE]})],
)
async def subscriber_country_history(ctx: Ctx, params: HistoryOf, line: Line) -> CountryHistory:
    """List the countries a line came into, newest first.

    At most the last 50 entries are kept. Empty when no location was pushed yet.

    They come from the locations that the network's bridge pushes; `country` is the ISO 3166-1 alpha-2 code of the network's country.
    A location that arrives late is put where it belongs in time. A line that was moved to your account shows the countries it
    came into since then, none of its time with the former account. Entries older than 400 days are forgotten.
    """
    accounts = await visible_accounts(line.upstream)
    entries = await ctx.deps.store.read(country_history, iccid=line.iccid, limit=params.limit, accounts=accounts)
    return {"data": [shown(line.iccid, entry) for entry in entries]}


async def visible_accounts(upstream: Upstream) -> set[int | None]:
    """Whose entries the caller sees.

    Choice: with a token of their own also those of nobody, since the service's token, which tells whose a line is, may not see theirs.
    """
    if upstream.managed:
        return {upstream.account_id}
    return {None, *(account.get("id") for account in await upstream.accounts())}


def shown(iccid: str, entry: CountryEntry) -> CountryEntered:
    """An entry as it is answered."""
    return {
        "type": "country.entered",
        "iccid": iccid,
        "country": entry.country,
        "mcc": entry.mcc,
        "mnc": entry.mnc,
        "occurred_at": stamp(entry.occurred_at),
    }
