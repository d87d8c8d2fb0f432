"""Finding and listing lines."""

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from clients.ocs.wire.subscriber import Subscriber
from operations.deps import Ctx
from operations.services.network.accounts import UpstreamId, require_account
from operations.services.network.fleet import Fleet
from operations.services.network.line_page import line_page
from operations.services.network.line_search import COLUMNS, Reach, Term, found_lines, matches, network_search, term_of
from operations.services.network.passing import PartOf, page_of, position
from operations.services.network.reached import AccountGone
from operations.services.network.subscriber_rows import SubscriberRow, chosen_rows, current_status, public_row, subscriber_id
from operations.services.network.upstream import reach
from registry.errors import BadRequest, NotFound, OcsError
from registry.operation import Example, operation

SELECTORS = ("q", "iccid", "msisdn", "imsi", "activationCode")


def written(value: object) -> object:
    """Statuses are read in title case and written in capitals: both are taken."""
    return value.upper().replace(" ", "_") if isinstance(value, str) and len(value) <= 20 else value


Status = Annotated[Literal["ACTIVE", "INACTIVE", "SUSPENDED", "DISCONNECTED", "PENDING", "END_OF_LIFE"], BeforeValidator(written)]


class SubscriberSearch(PartOf):
    """What to look for; at most one of q, iccid, msisdn, imsi and activationCode."""

    q: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=120,
            description="First 6+ or last 2-5 digits of an ICCID or number, an IMSI, or part of a name or email.",
        ),
    ] = None
    account_id: Annotated[UpstreamId | None, Field(description="Only of this account.")] = None
    iccid: Annotated[str | None, Field(pattern=r"^89[0-9]{4,20}$", description="First 6+ digits.")] = None
    msisdn: Annotated[str | None, Field(pattern=r"^\+?[0-9]{6,15}$", description="First 6+ digits.")] = None
    imsi: Annotated[str | None, Field(pattern=r"^[0-9]{6,15}$", description="First 6+ digits.")] = None
    activation_code: Annotated[str | None, Field(min_length=1, max_length=200, description="Exact.")] = None
    status: Annotated[Status | None, Field(description="Current status.")] = None


class SubscriberPage(TypedDict):
    """Lines, lowest subscriberId first."""

    data: list[SubscriberRow]
    incomplete: NotRequired[Annotated[bool, Field(description="True when the network has more lines than it lets us read")]]


EXAMPLE: SubscriberRow = {
    "iccid": "8988303700000100286",
    "msisdn": "882390910045",
    "subscriberName": "Anna Berg",
    "currentStatus": "Active",
    "lastUsageDate": "2027-01-15T09:41:07",
}


async def own_reach(ctx: Ctx, params: SubscriberSearch) -> Reach:
    """Whose lines may be found. Choice: without an account, names are looked up in the one with the lowest id and numbers in all."""
    given = [name for name, value in zip(SELECTORS, selectors(params), strict=True) if value is not None]
    if len(given) > 1:
        raise BadRequest(f"{given[0]} and {given[1]} were both sent", param=given[1], hint=f"Send at most one of {', '.join(SELECTORS)}")
    if params.q is not None and not params.q.strip():
        raise BadRequest("q: got only blanks; it must hold what to look for", param="q", hint="Leave q out to list all lines")
    upstream = await reach(ctx)
    if params.account_id is not None:
        await require_account(upstream, params.account_id)
        return Reach(upstream, params.account_id, params.account_id)
    if upstream.managed:
        own = upstream.account_id or 0  # no account is 0: without one nothing is theirs
        return Reach(upstream, own, own)
    accounts = await upstream.accounts()
    return Reach(upstream, None, accounts[0].get("id") if accounts else None)


def selectors(params: SubscriberSearch) -> tuple[str | None, ...]:
    """The values of SELECTORS."""
    return params.q, params.iccid, params.msisdn, params.imsi, params.activation_code


def term(params: SubscriberSearch) -> Term | None:
    """What is looked for."""
    if params.q is not None:
        return term_of(params.q)
    if params.iccid is not None:
        return Term("iccidPrefix", params.iccid)
    if params.imsi is not None:
        return Term("imsiPrefix", params.imsi)
    if params.msisdn is not None:
        return Term("msisdnPrefix", params.msisdn.removeprefix("+"))
    return None if params.activation_code is None else Term("activationCode", params.activation_code)


@operation(
    "GET",
    "/v1/subscribers",
    upstream=True,
    operator=True,
    title="List lines",
    access=own_reach,
    raises=[NotFound, AccountGone, OcsError],
    examples=[Example("Find the line of a customer by name", {"q": "anna"}, {"data": [EXAMPLE]})],
    tool_defaults={"limit": 20, "fields": ["iccid", "msisdn", "subscriberName", "currentStatus", "lastUsageDate", "balance"]},
)
async def list_subscribers(ctx: Ctx, params: SubscriberSearch, scope: Reach) -> SubscriberPage:
    """Find or list lines of your account.

    At most one of q, iccid, msisdn, imsi, activationCode; none lists all. More `fields`: sim, email, imsi, ... or *;
    activationCode by name only. For one known line: get_subscriber.

    Rows are sorted by subscriberId, which the cursor follows. Former ICCIDs and numbers match too. `incomplete` is true when an account
    has more lines than the network lets anybody read.
    """
    wanted = term(params)
    account = scope.default if wanted is None or wanted.by == "text" else scope.account
    if wanted is not None and wanted.by in COLUMNS and params.limit is not None and account is not None:
        search = await network_search(scope, wanted)
        if search.whole:
            return listed_lines(ctx, params, Fleet(search.rows, False))
    if params.limit is not None and account is not None and (wanted is None or wanted.by != "activationCode"):
        return await first_found(ctx, params, scope, wanted, account)
    return listed_lines(ctx, params, await found_lines(scope, wanted))


def listed_lines(ctx: Ctx, params: SubscriberSearch, fleet: Fleet) -> SubscriberPage:
    """A page of lines that were all read."""
    rows = fleet.rows if params.status is None else [row for row in fleet.rows if has_status(row, params.status)]
    page = page_of(ctx, sorted(rows, key=subscriber_id), params, subscriber_id)
    return shown_page(ctx, params, page, incomplete=fleet.incomplete)


async def first_found(ctx: Ctx, params: SubscriberSearch, scope: Reach, wanted: Term | None, account: int) -> SubscriberPage:
    """A page of one account's lines: reading stops when it is full."""

    def fits(row: Subscriber) -> bool:
        return (params.status is None or has_status(row, params.status)) and (wanted is None or matches(row, wanted))

    assert params.limit is not None
    after = 0 if params.starting_after is None else position(params.starting_after)
    filtered = params.status is not None or wanted is not None
    page = await line_page(scope.upstream, account, after=after, count=params.limit, fits=fits if filtered else None)
    if page.incomplete and wanted is not None and wanted.by in COLUMNS:  # its own search may know lines that no part shows
        return listed_lines(ctx, params, await found_lines(scope, wanted))
    if page.more:
        ctx.next_cursor = str(subscriber_id(page.rows[-1]))
        ctx.note = f"{len(page.rows)} lines." if page.total is None else f"{len(page.rows)} of {page.total}."
    return shown_page(ctx, params, page.rows, incomplete=page.incomplete)


def has_status(row: Subscriber, status: str) -> bool:
    """Whether a line has a status now, however the charging system writes it."""
    return written(current_status(row)) == status


def shown_page(ctx: Ctx, params: SubscriberSearch, rows: Sequence[Subscriber], *, incomplete: bool) -> SubscriberPage:
    """Lines with the members that were asked for."""
    data = chosen_rows(ctx, [public_row(row) for row in rows], params.fields)
    return {"data": data, "incomplete": True} if incomplete else {"data": data}
