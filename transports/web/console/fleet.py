"""The page Fleet: lines found by their facts. What is looked for stands in the address, so that a link shows the same to a colleague."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response

from operations.fleet.line_selection import LineStatusWord, SupplyWord
from operations.vocabulary import ProblemCause
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.console.views import forget_view, save_view, view_facts
from transports.web.pages.calls import CallArguments, CallOutcome
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute, see_other

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
COLUMNS = (
    "name", "company", "msisdn", "imsi", "account_id", "status", "status_since", "country", "last_used", "package_state", "data_left",
    "package_ends", "problems", "tags", "issued", "balance",
)  # fmt: skip
"""What can be shown of a line beside its ICCID: fields of query_fleet, in the order of the table."""
USUAL_COLUMNS = ("name", "status", "country", "last_used", "package_state", "data_left", "problems")
LINES_A_PIECE = 200
"""Lines that are read at once for a download: as many as query_fleet gives."""
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


class AskedLines(NamedTuple):
    """What an address asks of the page: filters, the order, and the columns that are shown, in the order of COLUMNS."""

    wanted: Mapping[str, str]
    sort: str
    columns: Sequence[str]

    @property
    def kept(self) -> Mapping[str, str]:
        """What an address says to ask the same. The usual columns need not be named."""
        chosen = {} if tuple(self.columns) == USUAL_COLUMNS else {"columns": ".".join(self.columns)}
        return {**self.wanted, **chosen, "sort": self.sort}

    @property
    def page(self) -> Mapping[str, object]:
        """What query_fleet is asked, without the place in the list."""
        return {**filter_arguments(self.wanted), "sort": self.sort, "fields": list(self.columns)}


def asked_lines(query: Mapping[str, str]) -> AskedLines:
    """What `query` asks; columns and orders that there are not are left out."""
    chosen, sort = query.get("columns", "").split("."), query.get("sort", "")
    columns = [name for name in COLUMNS if name in chosen] or list(USUAL_COLUMNS)
    return AskedLines(wanted_filters(query), sort if sort in SORTS else SORTS[0], columns)


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
    """Which lines have these facts, and how many are there in all? The same lines as a file, where the address asks for it."""
    asked = asked_lines(visit.query)
    if is_csv_asked(visit):
        columns = ("iccid", *asked.columns)
        return await csv_download(visit, "fleet", "query_fleet", columns, asked.page, at_once=LINES_A_PIECE)
    return await fleet_page(visit, asked, visit.query)


async def counted_page(visit: ConsoleRequest, page: CallArguments, counting: CallArguments) -> tuple[CallOutcome, object]:
    """A page of lines, and how many there are in all.

    What is looked for as a text is compared with every line: where the first page has all that is found, nothing is counted.
    """
    if "text" not in page:
        found = await visit.read_together(lines=PageRead("query_fleet", page), count=PageRead("query_fleet", counting))
        return found["lines"], found["count"].body.get("count")
    lines = await visit.read("query_fleet", **page)
    if lines.problem is None and lines.next_cursor is None and "starting_after" not in page:
        return lines, len(lines.rows)
    return lines, (await visit.read("query_fleet", **counting)).body.get("count")


async def fleet_page(visit: ConsoleRequest, asked: AskedLines, source: Mapping[str, str], problem: PageProblem | None = None) -> Response:
    """A page of the lines. `source`: where the list begins and what is chosen, `problem`: why a view was not saved."""
    after = source.get("after", "")
    page = {**asked.page, "limit": LINES_A_PAGE, **({"starting_after": after} if after else {})}
    lines, count = await counted_page(visit, page, {**filter_arguments(asked.wanted), "countOnly": True})
    wanted = asked.wanted
    facts: Mapping[str, object] = {
        **choice_facts(asked.kept, picked_lines(source), [str(line["iccid"]) for line in lines.rows], after),
        **view_facts(visit, urlencode(asked.kept)),
        "lines": lines.rows,
        "count": count,
        "as_of": lines.body.get("as_of"),
        "incomplete": lines.body.get("incomplete"),
        "columns": asked.columns,
        "all_columns": COLUMNS,
        "wanted": wanted,
        "sort": asked.sort,
        "sorts": SORTS,
        "choices": [
            FilterChoice("status", get_args(LineStatusWord), wanted.get("status", "")),
            FilterChoice("package", get_args(SupplyWord), wanted.get("package", "")),
            FilterChoice("problem", get_args(ProblemCause), wanted.get("problem", "")),
        ],
        "next_cursor": lines.next_cursor,
        "after": after,
    }
    return visit.draw("fleet.html", facts, problem=lines.problem or problem)


async def post_fleet(visit: ConsoleRequest) -> Response:
    """Saves a view in this browser, or forgets one, and shows the lines that were shown before."""
    asked, do = asked_lines(dict(parse_qsl(visit.form.get("where", "")))), visit.form.get("do", "")
    query = urlencode(asked.kept)
    if do == "save_view":
        problem = save_view(visit, visit.form.get("view", ""), query)
        if problem is not None:
            return await fleet_page(visit, asked, {}, problem)
    elif do == "forget_view":
        forget_view(visit, visit.form.get("view", ""))
    else:
        raise unknown_form()
    return see_other(f"{visit.context.root}{CONSOLE_PATH}/fleet?{query}")


FLEET_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/fleet": PageRoute(show_fleet, post_fleet)}
