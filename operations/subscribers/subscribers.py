"""Finding and listing lines, and reading one; new ones cannot be made."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, NamedTuple, NotRequired, cast

from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from clients.ocs.subscribers import Subscriber
from operations.deps import Ctx
from operations.upstream.account_lines import OCS_INVALID_REQUEST, LineList, read_account_lines, read_line_page, subscriber_number
from operations.upstream.connection import AccountGone, Upstream, connect_upstream, require_own_account
from operations.upstream.lines import Line, LineRef, PublicSim, SubscriberRow, current_line_status, find_own_line, public_line_row
from operations.upstream.paging import Data, FieldName, FieldsQuery, cursor_value, page_rows, select_fields
from operations.vocabulary import UpstreamId
from registry.errors import BadRequest, NotFound, NotSupported, OcsError, OcsNotFound
from registry.operation import CamelInput, Example, Scope, SpendKind, operation

INSTALL_CODES = ("activationCode", "confirmationCode")
"""Members of `sim` that install the profile on any device."""


def select_line_fields(ctx: Ctx, rows: list[SubscriberRow], fields: Sequence[str] | None) -> list[SubscriberRow]:
    """The rows with the members that `fields` names. Codes are shown where it names each; without `fields` a row is whole.

    Choice: neither `*` nor `sim` names the codes, so that they are shown only where they were asked for.
    """
    if fields is None:
        return rows
    named = [name.removeprefix("sim.") for name in fields]
    codes = [name for name in INSTALL_CODES if name in named]
    members = [name for name in fields if name.removeprefix("sim.") not in INSTALL_CODES]
    parts = select_fields(ctx, [without_install_codes(row) for row in rows], members) if members else [SubscriberRow() for _ in rows]
    return [with_install_codes(part, row, codes) for part, row in zip(parts, rows, strict=True)] if codes else parts


def without_install_codes(row: SubscriberRow) -> SubscriberRow:
    """`row` without the codes that install its profile."""
    sim = row.get("sim")
    if sim is None:
        return row
    return {**row, "sim": cast(PublicSim, {name: value for name, value in sim.items() if name not in INSTALL_CODES})}


def with_install_codes(part: SubscriberRow, row: SubscriberRow, codes: Sequence[str]) -> SubscriberRow:
    """`part` with the `codes` of `row`, where it has them."""
    found = {name: value for name, value in row.get("sim", {}).items() if name in codes}
    return {**part, "sim": cast(PublicSim, {**part.get("sim", {}), **found})} if found else part


SearchField = Literal["iccidPrefix", "imsiPrefix", "msisdnPrefix", "activationCode", "text"]
ICCID_TERM = re.compile(r"89[0-9]{4,20}", re.ASCII)
IMSI_TERM = re.compile(r"[0-9]{15}", re.ASCII)
MSISDN_TERM = re.compile(r"[0-9]{6,15}", re.ASCII)
LAST_DIGITS_TERM = re.compile(r"[0-9]{2,5}", re.ASCII)
SPACED_DIGITS_TERM = re.compile(r"\s*[+(]?[0-9][0-9 ()./+-]*\s*", re.ASCII)
SEARCH_VALUES: dict[SearchField, Callable[[Subscriber], Iterable[str]]] = {
    "iccidPrefix": lambda row: (past.get("iccid", "") for past in row.get("imsiList", [])),
    "imsiPrefix": lambda row: (past.get("imsi", "") for past in row.get("imsiList", [])),
    "msisdnPrefix": lambda row: (past.get("phoneNumber", "") for past in row.get("phoneNumberList", [])),
}


class SearchTerm(NamedTuple):
    """What is looked for, and where."""

    by: SearchField
    value: str


class SearchScope(NamedTuple):
    """Whose lines a search may find: those of one account, or all that the token sees."""

    upstream: Upstream
    account: int | None
    """The one whose lines may be found; None: any."""
    default: int | None
    """The one that is listed where the network cannot search; None: the caller has no account."""


def parse_search_term(q: str) -> SearchTerm:
    """A number is recognised by its form; anything else is part of a name or e-mail address, or the end of a number."""
    if ICCID_TERM.fullmatch(q):
        return SearchTerm("iccidPrefix", q)
    if IMSI_TERM.fullmatch(q):
        return SearchTerm("imsiPrefix", q)
    if MSISDN_TERM.fullmatch(q):
        return SearchTerm("msisdnPrefix", q)
    return SearchTerm("text", q.strip().casefold())


ENDING_ADVICE = "An ending is found by its last 2 to 5 digits alone, and query_fleet finds beginnings and endings of any length."
NUMBER_SEARCH_HINTS: dict[SearchField, str] = {
    "iccidPrefix": "q was read as the beginning of an ICCID, since it starts with 89. Send the whole ICCID or its first digits; a phone "
    f"number that starts with 89 goes into msisdn. {ENDING_ADVICE}",
    "imsiPrefix": "q was read as a whole IMSI, since it has 15 digits. Send an ICCID by its first digits, which are 89; a phone number of "
    f"15 digits goes into msisdn. {ENDING_ADVICE}",
    "msisdnPrefix": "q was read as the beginning of a phone number (MSISDN). Send the number from its country code on, without + or 00; an "
    f"IMSI whole or by its first digits in imsi; an ICCID by its first digits, which are 89. {ENDING_ADVICE}",
}
LAST_DIGITS_HINT = (
    "q was read as the last digits of an ICCID or phone number, or as part of a name or email. To search by first digits send 6 or more; "
    "of an IMSI all 15."
)
ONE_DIGIT_HINT = "q was read as part of a name or email. To search for a number send its first 6 or more digits, or its last 2 to 5."
LONG_NUMBER_HINT = (
    "q was read as part of a name or email, since no number has so many digits: an ICCID starts with 89 and has at most 22, an IMSI has "
    "15, a phone number at most 15."
)
SPACED_DIGITS_HINT = "q was read as part of a name or email, since it holds more than digits. Send the digits of the number alone."


def number_search_hint(q: str) -> str | None:
    """How `q`, which found nothing, was read where it looks like a number, and what else may find the line; None for other texts."""
    if not SPACED_DIGITS_TERM.fullmatch(q):
        return None
    if not (q.isascii() and q.isdigit()):
        return SPACED_DIGITS_HINT
    term = parse_search_term(q)
    if term.by != "text":
        return NUMBER_SEARCH_HINTS[term.by]
    if LAST_DIGITS_TERM.fullmatch(q):
        return LAST_DIGITS_HINT
    return ONE_DIGIT_HINT if len(q) == 1 else LONG_NUMBER_HINT


async def search_lines(scope: SearchScope, term: SearchTerm | None) -> LineList:
    """The matching lines in `scope`; all lines without a term. Waits for the network."""
    if term is None or term.by == "text":
        fleet = await read_account_lines(scope.upstream, [] if scope.default is None else [scope.default])
        rows = fleet.rows if term is None else [row for row in fleet.rows if line_matches(row, term)]
        return LineList(rows, fleet.incomplete)
    return await search_lines_by_number(scope, term)


async def search_lines_by_number(scope: SearchScope, term: SearchTerm) -> LineList:
    """The upstream's own search. Where it refuses a short term or cuts its answer off, accounts are read and searched here."""
    found = await search_upstream(scope, term)
    if not found.incomplete or term.by == "activationCode":
        return found
    accounts = [scope.account] if scope.account is not None else [row.get("id", 0) for row in await scope.upstream.accounts()]
    fleet = await read_account_lines(scope.upstream, accounts)
    seen = {row.get("subscriberId"): row for row in found.rows}
    seen |= {row.get("subscriberId"): row for row in fleet.rows if has_number_prefix(row, term)}
    return LineList(list(seen.values()), fleet.incomplete)


async def search_upstream(scope: SearchScope, term: SearchTerm) -> LineList:
    """Lines by a number, without foreign ones; none, and incomplete, where the upstream finds the term too short. Waits for the network."""
    assert term.by != "text"
    try:
        answer = await scope.upstream.ocs.subscriber.list_subscriber(term.value, by=term.by)
    except OcsNotFound:
        return LineList([], False)
    except OcsError as refusal:
        if refusal.ocs_code != OCS_INVALID_REQUEST or term.by == "activationCode":
            raise
        return LineList([], True)
    rows = [row for row in answer.get("subscriberList", []) if scope.account in (None, row.get("accountId"))]
    return LineList(rows, bool(answer.get("hasMore")))


def has_number_prefix(row: Subscriber, term: SearchTerm) -> bool:
    """Whether a number of the line begins with the term."""
    return any(value.startswith(term.value) for value in SEARCH_VALUES[term.by](row))


def line_matches(row: Subscriber, term: SearchTerm) -> bool:
    """Whether a number begins with the term. A text is part of the name or address, or the end of the ICCID or number."""
    if term.by != "text":
        return has_number_prefix(row, term)
    named = (row.get("subscriberName", ""), row.get("email", ""))
    return any(term.value in text.casefold() for text in named) or has_number_suffix(row, term.value)


def has_number_suffix(row: Subscriber, digits: str) -> bool:
    """Whether an ICCID or a number ends with `digits`: people read the last digits of a SIM."""
    if not LAST_DIGITS_TERM.fullmatch(digits):
        return False
    return any(value.endswith(digits) for column in ("iccidPrefix", "msisdnPrefix") for value in SEARCH_VALUES[column](row))


LINE_SELECTORS = ("q", "iccid", "msisdn", "imsi", "activationCode")


def canonical_line_status(value: object) -> object:
    """Upper case with underscores: statuses are read in title case and written in capitals."""
    return value.upper().replace(" ", "_") if isinstance(value, str) and len(value) <= 20 else value


LineStatus = Annotated[
    Literal["ACTIVE", "INACTIVE", "SUSPENDED", "DISCONNECTED", "PENDING", "END_OF_LIFE"], BeforeValidator(canonical_line_status)
]


class SubscriberSearch(FieldsQuery):
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
    status: Annotated[LineStatus | None, Field(description="Current status.")] = None


class SubscriberPage(TypedDict):
    """Lines, lowest subscriberId first."""

    data: list[SubscriberRow]
    incomplete: NotRequired[Annotated[bool, Field(description="True when the network has more lines than it lets us read")]]
    hint: NotRequired[Annotated[str, Field(description="When a number in q found nothing: how it was read, and what to try")]]


LINE_SEARCH_EXAMPLE: SubscriberRow = {
    "iccid": "8988303700000100286",
    "msisdn": "882390910045",
    "subscriberName": "Anna Berg",
    "currentStatus": "Active",
    "lastUsageDate": "2027-01-15T09:41:07",
}


async def own_search_scope(ctx: Ctx, params: SubscriberSearch) -> SearchScope:
    """Whose lines may be found. Choice: without an account, names are searched in the account with the lowest id, numbers in all."""
    values = (params.q, params.iccid, params.msisdn, params.imsi, params.activation_code)
    given = [name for name, value in zip(LINE_SELECTORS, values, strict=True) if value is not None]
    if len(given) > 1:
        raise BadRequest(
            f"{given[0]} and {given[1]} were both sent", param=given[1], hint=f"Send at most one of {', '.join(LINE_SELECTORS)}"
        )
    if params.q is not None and not params.q.strip():
        raise BadRequest("q: got only blanks; it must hold what to look for", param="q", hint="Leave q out to list all lines")
    upstream = await connect_upstream(ctx)
    if params.account_id is not None:
        await require_own_account(upstream, params.account_id)
        return SearchScope(upstream, params.account_id, params.account_id)
    if upstream.managed:
        own = upstream.account_id or 0  # no account is 0: without one nothing is theirs
        return SearchScope(upstream, own, own)
    accounts = await upstream.accounts()
    return SearchScope(upstream, None, accounts[0].get("id") if accounts else None)


def search_term(params: SubscriberSearch) -> SearchTerm | None:
    if params.q is not None:
        return parse_search_term(params.q)
    if params.iccid is not None:
        return SearchTerm("iccidPrefix", params.iccid)
    if params.imsi is not None:
        return SearchTerm("imsiPrefix", params.imsi)
    if params.msisdn is not None:
        return SearchTerm("msisdnPrefix", params.msisdn.removeprefix("+"))
    return None if params.activation_code is None else SearchTerm("activationCode", params.activation_code)


@operation(
    "GET",
    "/v1/subscribers",
    upstream=True,
    operator=True,
    title="List lines",
    access=own_search_scope,
    raises=[NotFound, AccountGone, OcsError],
    examples=[
        Example("Find the line of a customer by name", {"q": "anna"}, {"data": [LINE_SEARCH_EXAMPLE]}),
        Example("Six digits are a beginning, never an ending", {"q": "100286"}, {"data": [], "hint": NUMBER_SEARCH_HINTS["msisdnPrefix"]}),
    ],
    tool_defaults={"limit": 20, "fields": ["iccid", "msisdn", "subscriberName", "currentStatus", "lastUsageDate", "balance"]},
)
async def list_subscribers(ctx: Ctx, params: SubscriberSearch, scope: SearchScope) -> SubscriberPage:
    """Find or list lines of your account.

    At most one of q, iccid, msisdn, imsi, activationCode; none lists all. More `fields`: sim, email, imsi, ... or *;
    activationCode by name only. For one known line: get_subscriber.

    Rows are sorted by subscriberId, which the cursor follows. Former ICCIDs and numbers match too. `incomplete` is true when an account
    has more lines than the network lets anybody read. `hint` says how a number in q was read that found nothing.
    """
    page = await find_lines(ctx, params, scope)
    hint = None if params.q is None or page["data"] or params.starting_after is not None else number_search_hint(params.q)
    return page if hint is None else {**page, "hint": hint}


async def find_lines(ctx: Ctx, params: SubscriberSearch, scope: SearchScope) -> SubscriberPage:
    """The page of lines that were asked for. Waits for the network."""
    term = search_term(params)
    account = scope.default if term is None or term.by == "text" else scope.account
    if term is not None and term.by in SEARCH_VALUES and params.limit is not None and account is not None:
        search = await search_upstream(scope, term)
        if not search.incomplete:
            return page_of_lines(ctx, params, search)
    if params.limit is not None and account is not None and (term is None or term.by != "activationCode"):
        return await first_matching_lines(ctx, params, scope, term, account)
    return page_of_lines(ctx, params, await search_lines(scope, term))


def page_of_lines(ctx: Ctx, params: SubscriberSearch, fleet: LineList) -> SubscriberPage:
    rows = fleet.rows if params.status is None else [row for row in fleet.rows if has_line_status(row, params.status)]
    page = page_rows(ctx, rows, params, subscriber_number)
    return render_lines(ctx, params, page, incomplete=fleet.incomplete)


async def first_matching_lines(
    ctx: Ctx, params: SubscriberSearch, scope: SearchScope, term: SearchTerm | None, account: int
) -> SubscriberPage:
    """A page of one account's lines; reading stops when the page is full."""

    def fits(row: Subscriber) -> bool:
        return (params.status is None or has_line_status(row, params.status)) and (term is None or line_matches(row, term))

    assert params.limit is not None
    after = 0 if params.starting_after is None else cursor_value(params.starting_after)
    filtered = params.status is not None or term is not None
    page = await read_line_page(scope.upstream, account, after=after, count=params.limit, fits=fits if filtered else None)
    if page.incomplete and term is not None and term.by in SEARCH_VALUES:  # its own search may know lines that no part shows
        return page_of_lines(ctx, params, await search_lines(scope, term))
    if page.more:
        ctx.next_cursor = str(subscriber_number(page.rows[-1]))
        ctx.note = f"{len(page.rows)} lines." if page.total is None else f"{len(page.rows)} of {page.total}."
    return render_lines(ctx, params, page.rows, incomplete=page.incomplete)


def has_line_status(row: Subscriber, status: str) -> bool:
    """Whether the line has `status` now, in any spelling."""
    return canonical_line_status(current_line_status(row)) == status


def render_lines(ctx: Ctx, params: SubscriberSearch, rows: Sequence[Subscriber], *, incomplete: bool) -> SubscriberPage:
    """`rows` with the requested fields."""
    data = select_line_fields(ctx, [public_line_row(row) for row in rows], params.fields)
    return {"data": data, "incomplete": True} if incomplete else {"data": data}


class SubscriberQuery(LineRef):
    """Which line, which of its members, and whether with its fair-use counter."""

    gz_counter: Annotated[bool, Field(description="With greenZoneCounter.")] = False
    fields: Annotated[
        list[FieldName] | None, Field(max_length=40, description="Only these members; * for all but activationCode, confirmationCode.")
    ] = None


class NewSubscriber(CamelInput):
    """Anything: it is refused whatever it says."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})


SUBSCRIBER_EXAMPLE: SubscriberRow = {
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


async def own_line_with_counter(ctx: Ctx, params: SubscriberQuery) -> Line:
    """The caller's own line; the counter comes with the same call."""
    return await find_own_line(ctx, await connect_upstream(ctx), params.iccid, green_zone=params.gz_counter)


@operation(
    "GET",
    "/v1/subscribers/{iccid}",
    upstream=True,
    operator=True,
    title="Get line",
    card="line",
    access=own_line_with_counter,
    raises=[NotFound, OcsError],
    examples=[Example("What do we know of this line?", {"iccid": "8988303700000100286"}, {"data": SUBSCRIBER_EXAMPLE})],
    tool_defaults={"fields": ["*"]},
)
async def get_subscriber(ctx: Ctx, params: SubscriberQuery, line: Line) -> Data[SubscriberRow]:
    """Get one line: status, identifiers, SIM, last network, histories.

    Packages are in list_subscriber_packages, usage in subscriber_usage. Name `activationCode` in fields only to install the eSIM.

    PIN and PUK are never shown. Histories (status, imsiList, phoneNumberList) hold former values with their endDate.
    """
    return {"data": select_line_fields(ctx, [public_line_row(line.row)], params.fields)[0]}


@operation(
    "POST",
    "/v1/subscribers",
    spends=SpendKind.NOTHING,
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
