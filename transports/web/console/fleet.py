"""The page Fleet: lines found by their facts. What is looked for stands in the address, so that a link shows the same to a colleague."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from operations.fleet.line_selection import LineStatusWord, SupplyWord
from operations.vocabulary import ProblemCause
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.site import PageRoute

LINES_A_PAGE = 50
MOST_CHOSEN = 200
"""Lines that are chosen one by one: their numbers stand in the address. More are chosen by filters."""
CHOSEN_ICCID = re.compile(r"89[0-9]{16,20}", re.ASCII)
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


def wanted_filters(query: Mapping[str, str]) -> dict[str, str]:
    """The filters of the bar that are filled in."""
    return {name: query[name].strip() for name in FILTERS if query.get(name, "").strip()}


def filter_arguments(wanted: Mapping[str, str]) -> dict[str, object]:
    """The filters as query_fleet takes them."""
    return {FILTERS[name]: value for name, value in wanted.items()}


def picked_lines(fields: Mapping[str, str]) -> list[str]:
    """The lines that were chosen one by one: those that were `picked` on other pages, and those of this one; each once."""
    given = f"{fields.get('picked', '')}.{fields.get('pick', '')}".split(".")
    return [iccid for iccid in dict.fromkeys(given) if CHOSEN_ICCID.fullmatch(iccid)]


def choice_facts(kept: Mapping[str, str], chosen: Sequence[str], here: Sequence[str], after: str) -> Mapping[str, object]:
    """What the page shows of the choice, and the addresses that choose all lines `here`, or none. `after`: where this page begins."""
    first, stay = chosen[:MOST_CHOSEN], {"after": after} if after else {}
    carried = [iccid for iccid in first if iccid not in here]
    return {
        "chosen": first,
        "too_many": len(chosen) > MOST_CHOSEN,
        "most_chosen": MOST_CHOSEN,
        "kept": kept,
        "carried": ".".join(carried),
        "choose_page": f"?{urlencode({**kept, **stay, 'picked': '.'.join([*carried, *here])})}",
        "choose_none": f"?{urlencode({**kept, **stay})}",
    }


async def show_fleet(visit: ConsoleRequest) -> Response:
    """The lines that the address asks for, a page of them, and how many there are in all."""
    wanted, after = wanted_filters(visit.query), visit.query.get("after", "")
    arguments = filter_arguments(wanted)
    columns = [name for name in COLUMNS if name in visit.query.get("columns", "").split(".")] or list(USUAL_COLUMNS)
    sort = visit.query.get("sort", "")
    sort = sort if sort in SORTS else SORTS[0]
    page: dict[str, object] = {**arguments, "sort": sort, "fields": columns, "limit": LINES_A_PAGE}
    if after:
        page["starting_after"] = after
    found = await visit.read_together(
        lines=PageRead("query_fleet", page),
        count=PageRead("query_fleet", {**arguments, "countOnly": True}),
    )
    lines = found["lines"]
    kept = {**wanted, **({"columns": visit.query["columns"]} if visit.query.get("columns") else {}), "sort": sort}
    here = [str(line["iccid"]) for line in lines.rows]
    facts: Mapping[str, object] = {
        **choice_facts(kept, picked_lines(visit.query), here, after),
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
        "next_cursor": lines.next_cursor,
        "after": after,
    }
    return visit.draw("fleet.html", facts, problem=lines.problem)


FLEET_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/fleet": PageRoute(show_fleet)}
