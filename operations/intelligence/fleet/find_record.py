"""Finding one thing by what somebody has of it: a piece of a number, a number, an id, a name, an address."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.line_selection import IDENTIFIER_TERM
from operations.fleet.sync import fleet_identity
from operations.ledger.payment_records import payment_amount_text
from operations.upstream.connection import upstream_of_organisation
from operations.vocabulary import normal_email
from registry.errors import BadRequest, OcsError
from registry.free_text import FreeText
from registry.operation import Example, Input, operation
from registry.restrictions import is_shown_to
from storage.engine.sql import Connection
from storage.fleet_numbers import NumberedLine, find_lines_by_number, match_rank
from storage.fleet_search import FleetBounds
from storage.fleets import find_fleet
from storage.intents import find_intent
from storage.invoices import find_invoice, invoices_numbered
from storage.members import MemberRow, list_people
from storage.orders import find_order, find_order_detail, order_status_of, shops_of_buyer

RecordKind = Literal["line", "order", "invoice", "intent", "person", "buyer"]

RECORDS_LIMIT = 20
PEOPLE_SHOWN, SHOPS_SHOWN = 8, 4
"""Of these kinds so many at most, so that lines have room beside them."""
SHORTEST_PIECE = 4
PEOPLE_READ_AT_ONCE = 1000
LISTS: dict[RecordKind, str] = {
    "line": "query_fleet",
    "order": "list_storefront_orders",
    "invoice": "list_invoices",
    "intent": "list_connectivity_intents",
    "person": "list_members",
    "buyer": "list_storefront_orders",
}
"""The operation that shows what is found: whoever may not call it finds none of the kind."""


class RecordQuery(Input):
    """What somebody has of it."""

    q: Annotated[
        str,
        Field(
            min_length=2,
            max_length=254,
            description="4 or more digits in a row of an ICCID, IMSI or phone number; the number of an order or invoice; an id of these or "
            "of an intent; part of a member's name or address; or the whole address of a buyer.",
        ),
    ]


class FoundRecord(TypedDict):
    """Something that was found."""

    kind: RecordKind
    id: Annotated[
        str,
        Field(
            description="ICCID of a line, number of an order, id of an invoice, intent or person; of a buyer the number of the last order"
        ),
    ]
    title: Annotated[FreeText, Field(description="A line's ICCID, an order's plan, an invoice's number, a person's name, a buyer's shop")]
    detail: Annotated[str, Field(description="Where it stands, and the number that was found")]


class FoundRecords(TypedDict):
    """What was found: each kind together, what was named whole first."""

    object: Literal["record_list"]
    data: list[FoundRecord]
    more: Annotated[bool, Field(description="There is more than the 20 that are shown")]


class RecordMatch(NamedTuple):
    """Something that was found; `rank` is 0 where it was named whole."""

    record: FoundRecord
    rank: int


def make_record(kind: RecordKind, id: str, title: str, detail: str, *, rank: int = 0) -> RecordMatch:
    return RecordMatch({"kind": kind, "id": id, "title": title, "detail": detail}, rank)


async def bounds_of_caller(ctx: Ctx, params: RecordQuery) -> FleetBounds:
    """The lines that the credential may see. Raises BadRequest for blanks alone."""
    held = ctx.row_bounds()
    if len(params.q.strip()) < 2:
        raise BadRequest("q: got blanks; it must hold 2 characters or more to look for", param="q", hint="Give a number, an id or a name")
    return FleetBounds(held.iccids, held.account_ids, held.tags)


def kinds_shown(ctx: Ctx) -> set[RecordKind]:
    """The kinds that the caller may list, by role, toolsets and restrictions to lines, accounts and tags."""
    catalogue = ctx.deps.internal_calls.pipeline.catalogue
    inside = catalogue.operations_in(ctx.caller.restrictions.toolsets or ())
    return {kind for kind, name in LISTS.items() if is_shown_to(catalogue.operations[name], ctx.caller, inside)}


LINE_FOUND_EXAMPLE: FoundRecord = {
    "kind": "line",
    "id": "8988303700000100286",
    "title": "8988303700000100286",
    "detail": "ACTIVE, 4759000286",
}
ORDER_FOUND_EXAMPLE: FoundRecord = {
    "kind": "order",
    "id": "onr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "title": "Nordic 1 GB",
    "detail": "fjord-travel, ready, 9.00 EUR",
}


@operation(
    "GET",
    "/v1/records",
    bounded=True,
    access=bounds_of_caller,
    title="Find record",
    raises=[BadRequest],
    examples=[
        Example("Whose number ends so?", {"q": "000286"}, {"object": "record_list", "data": [LINE_FOUND_EXAMPLE], "more": False}),
        Example(
            "Which order is this?",
            {"q": "onr_01k0a8w7zv6q4k3m2n1p0r9s8t"},
            {"object": "record_list", "data": [ORDER_FOUND_EXAMPLE], "more": False},
        ),
    ],
)
async def find_record(ctx: Ctx, params: RecordQuery, bounds: FleetBounds) -> FoundRecords:
    """Find a line, order, invoice, intent, person or buyer by what you have of it.

    Lines by any 4 digits or more of a number that they have or had; buyers by their whole mail address alone.

    You find only what you may list. Lines are those that were listed in the background (fleet_sync_status says when); the charging system
    is not asked, and an EID is not known. A buyer who was erased is not found, nor is an order that nobody paid for found by its buyer.
    """
    text, kinds = params.q.strip(), kinds_shown(ctx)
    others = await ctx.deps.store.read(find_others, organisation=ctx.organisation, text=text, kinds=kinds, now=ctx.now)
    lines = await lines_with_piece(ctx, text, bounds) if "line" in kinds else []
    room = RECORDS_LIMIT - len(others)
    groups: dict[RecordKind, list[RecordMatch]] = {kind: [] for kind in LISTS}
    for match in [*lines[:room], *others]:
        groups[match.record["kind"]].append(match)
    shown = sorted((sorted(group, key=lambda match: match.rank) for group in groups.values() if group), key=lambda group: group[0].rank > 0)
    return {"object": "record_list", "data": [match.record for group in shown for match in group], "more": len(lines) > room}


async def lines_with_piece(ctx: Ctx, text: str, bounds: FleetBounds) -> list[RecordMatch]:
    """Lines of the fleet as it was read, at most one more than are shown. Waits for the database alone."""
    piece = "".join(letter for letter in text if letter.isdigit()) if IDENTIFIER_TERM.fullmatch(text) else ""
    if len(piece) < SHORTEST_PIECE:
        return []
    try:
        upstream = await upstream_of_organisation(ctx.deps, ctx.organisation)
    except OcsError:  # it is connected to nothing, so it has no lines
        return []
    identity = fleet_identity(upstream, ctx.deps.network_instance)
    fleet = await ctx.deps.store.read(find_fleet, organisation=ctx.organisation, identity=identity)
    if fleet is None:
        return []
    found = await ctx.deps.store.read(find_lines_by_number, fleet=fleet.id, bounds=bounds, piece=piece, most=RECORDS_LIMIT + 1)
    return [line_match(line, piece) for line in found]


def line_match(line: NumberedLine, piece: str) -> RecordMatch:
    numbers = sorted(line.numbers.strip("|").split("|"), key=lambda number: match_rank(f"|{number}|", piece) if piece in number else 4)
    detail = line.status if numbers[0] == line.iccid else f"{line.status}, {numbers[0]}"
    return make_record("line", line.iccid, line.iccid, detail, rank=match_rank(line.numbers, piece))


def find_others(connection: Connection, *, organisation: str, text: str, kinds: set[RecordKind], now: float) -> list[RecordMatch]:
    """What is found beside lines, of the kinds that the caller may see. `now`: Unix seconds."""
    found = list[RecordMatch]()
    if "order" in kinds:
        found += find_orders(connection, organisation, text.lower())
    if "invoice" in kinds:
        found += find_invoices(connection, organisation, text)
    if "intent" in kinds:
        found += find_intents(connection, organisation, text.lower())
    if "person" in kinds:
        found += find_people(connection, organisation, text, now)
    if "buyer" in kinds and "@" in text:
        shops = shops_of_buyer(connection, organisation=organisation, email=normal_email(text), most=SHOPS_SHOWN)
        found += [make_record("buyer", shop.newest, shop.slug, f"{shop.orders} paid orders") for shop in shops]
    return found


def find_orders(connection: Connection, organisation: str, number: str) -> Sequence[RecordMatch]:
    """The order with this number, or that the top-up with this id is of."""
    row = find_order(connection, order=number)
    order = None if row is None or row.organisation != organisation else find_order_detail(connection, order=row.top_up_of or row.id)
    if order is None:
        return []
    price, plan = payment_amount_text(order.row.amount, order.row.currency), cast("str", orjson.loads(order.row.bought).get("name", ""))
    return [make_record("order", order.row.id, plan, f"{order.shop}, {order_status_of(order.row)}, {price}")]


def find_invoices(connection: Connection, organisation: str, text: str) -> Sequence[RecordMatch]:
    rows = invoices_numbered(connection, organisation=organisation, named=text, most=2)
    by_id = find_invoice(connection, invoice=text.lower(), organisation=organisation)
    rows = [by_id] if by_id is not None else rows
    return [
        make_record("invoice", row.id, row.number, f"{row.status}, {payment_amount_text(row.total_cents, row.currency)}") for row in rows
    ]


def find_intents(connection: Connection, organisation: str, id: str) -> Sequence[RecordMatch]:
    row = find_intent(connection, intent=id, organisation=organisation)
    if row is None:
        return []
    return [make_record("intent", row.id, row.id, row.status if row.iccid is None else f"{row.status}, {row.iccid}")]


def find_people(connection: Connection, organisation: str, text: str, now: float) -> list[RecordMatch]:
    """Members and those who are invited, by a piece of a name or an address, whatever its case; those who are named whole first."""
    part, found, after = text.casefold(), list[RecordMatch](), None
    while True:
        rows = list_people(connection, organisation=organisation, now=now, after=after, most=PEOPLE_READ_AT_ONCE)
        found += [person_match(row, part) for row in rows if part == row.id or any(part in name for name in names_of_person(row))]
        if len(rows) < PEOPLE_READ_AT_ONCE:
            return sorted(found, key=lambda match: match.rank)[:PEOPLE_SHOWN]
        after = rows[-1].id


def names_of_person(row: MemberRow) -> list[str]:
    return [text.casefold() for text in (row.name, row.email) if text]


def person_match(row: MemberRow, part: str) -> RecordMatch:
    detail = row.role if row.active else f"{row.role}, invited"
    return make_record("person", row.id, row.name or row.email or row.id, detail, rank=0 if part in (row.id, *names_of_person(row)) else 1)
