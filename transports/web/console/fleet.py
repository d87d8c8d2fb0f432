"""The page Fleet: lines found by their facts. What is looked for stands in the address, so that a link shows the same to a colleague."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from operations.fleet.line_selection import LineStatusWord, SupplyWord
from operations.vocabulary import ProblemCause
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.site import PageRoute

LINES_A_PAGE = 50
FILTERS: Mapping[str, str] = {
    "text": "text",
    "status": "status",
    "country": "country",
    "package": "packageState",
    "problem": "problem",
    "tag": "tag",
}
"""The fields of the filter bar, and the filters of query_fleet that they are."""
COLUMNS = ("name", "status", "country", "last_used", "package_state", "data_left", "package_ends", "problems", "tags")
USUAL_COLUMNS = ("name", "status", "country", "last_used", "package_state", "data_left", "problems")
SORTS = ("subscriber_id", "-last_used", "last_used", "data_left", "package_ends", "-status_since")


class FilterChoice(NamedTuple):
    """What a filter may be, and what is chosen."""

    name: str
    options: Sequence[str]
    chosen: str


async def show_fleet(visit: ConsoleRequest) -> Response:
    """The lines that the address asks for, a page of them, and how many there are in all."""
    wanted = {name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()}
    arguments: dict[str, object] = {FILTERS[name]: value for name, value in wanted.items()}
    columns = [name for name in COLUMNS if name in visit.query.get("columns", "").split(".")] or list(USUAL_COLUMNS)
    sort = visit.query.get("sort", "")
    sort = sort if sort in SORTS else SORTS[0]
    page = {**arguments, "sort": sort, "fields": columns, "limit": LINES_A_PAGE}
    if visit.query.get("after"):
        page["starting_after"] = visit.query["after"]
    found = await visit.read_together(
        lines=PageRead("query_fleet", page),
        count=PageRead("query_fleet", {**arguments, "countOnly": True}),
    )
    lines = found["lines"]
    kept = {**wanted, **({"columns": visit.query["columns"]} if visit.query.get("columns") else {}), "sort": sort}
    facts: Mapping[str, object] = {
        "lines": lines.rows,
        "count": found["count"].body.get("count"),
        "as_of": lines.body.get("as_of"),
        "incomplete": lines.body.get("incomplete"),
        "columns": columns,
        "wanted": wanted,
        "sort": sort,
        "sorts": SORTS,
        "choices": [
            FilterChoice("status", get_args(LineStatusWord), wanted.get("status", "")),
            FilterChoice("package", get_args(SupplyWord), wanted.get("package", "")),
            FilterChoice("problem", get_args(ProblemCause), wanted.get("problem", "")),
        ],
        "next_page": next_address(kept, lines.next_cursor),
        "first_page": f"?{urlencode(kept)}" if visit.query.get("after") else "",
    }
    return visit.draw("fleet.html", facts, problem=lines.problem)


def next_address(kept: Mapping[str, str], cursor: str | None) -> str:
    """The address of the page after this one; empty where this is the last."""
    return f"?{urlencode({**kept, 'after': cursor})}" if cursor else ""


FLEET_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/fleet": PageRoute(show_fleet)}
