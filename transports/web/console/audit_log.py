"""The page of the audit log: who called what and how it ended, found by person, key, operation, door, outcome and day."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from registry.call import Surface
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome
from transports.web.pages.organisation import AUDIT_OUTCOMES, is_page_read
from transports.web.pages.request import PageProblem
from transports.web.site import PageRoute

AUDIT_ROWS_A_PAGE, READ_AT_ONCE, MOST_READS = 50, 100, 4
"""The looks of pages are left out, so a page may need more than one read; it takes at most MOST_READS."""
AUDIT_FILTERS: Mapping[str, str] = {
    "outcome": "outcome",
    "way": "surface",
    "operation": "operation",
    "person": "principal",
    "key": "key_id",
    "from": "from",
    "to": "to",
}
"""The fields of the filter bar, and the filters of list_audit_log that they are."""
AUDIT_COLUMNS = (
    "at", "operation", "outcome", "status", "surface", "principal", "principal_name", "key_id", "milliseconds", "change",
    "request_id", "id",
)  # fmt: skip
"""Of a file: members of the entries of list_audit_log."""
NAMES_READ = 100
"""Of the newest members and keys, which the filters name; others are found by their ids."""


class AuditLine(NamedTuple):
    """One call as a row: `title` is what was done in words, empty where there are none; `key` what the key is called."""

    row: Mapping[str, object]
    title: str
    key: str
    outcome: str
    way: str
    refused: bool


def audit_line(visit: ConsoleRequest, row: Mapping[str, object], keys: Mapping[str, str]) -> AuditLine:
    """A row in words; `keys` names those keys that have a name."""
    operation, key = str(row["operation"]), str(row["key_id"] or "")
    known, said = visit.context.pipeline.catalogue.operations.get(operation), visit.word("audit_words", operation)
    look = visit.say("audit_log.page_look") if is_console_look(row) else visit.say("audit_log.list_file") if is_list_file(row) else ""
    title = visit.operation_title(operation) if known is not None else look or (said if said != operation else "")
    name = keys.get(key) or (f"{key[:4]}…{key[-6:]}" if key else "")
    outcome, way = visit.word("audit_words", str(row["outcome"])), visit.word("audit_words", str(row["surface"]))
    return AuditLine(row, title, name, outcome, way, refused=cast(int, row["status"]) >= 400)


def is_console_look(row: Mapping[str, object]) -> bool:
    """Whether a row of the log is a page of the console that somebody has looked at."""
    return row["surface"] == "web" and str(row["operation"]).partition(".")[0] == "console" and not is_list_file(row)


def is_list_file(row: Mapping[str, object]) -> bool:
    """Whether a row of the log is a list of the console that somebody has downloaded."""
    return row["surface"] == "web" and str(row["operation"]).startswith("console.") and str(row["operation"]).endswith(".csv")


def is_shown(row: Mapping[str, object], *, looks: bool) -> bool:
    """Whether a row is shown: the looks of pages are where `looks` are wanted, too."""
    return looks or not (is_page_read(row) or is_console_look(row))


class FoundRows(NamedTuple):
    """Rows of the log, how many looks at pages were left out, after which row the rest begins, and why nothing could be read."""

    rows: Sequence[Mapping[str, object]]
    hidden: int
    cursor: str
    problem: PageProblem | None


async def show_audit_log(visit: ConsoleRequest) -> Response:
    """Who did what for us, by which key, and how did it end?"""
    wanted = {name: visit.query[name] for name in AUDIT_FILTERS if visit.query.get(name)}
    looks = visit.query.get("looks") == "shown"
    arguments = {AUDIT_FILTERS[name]: audit_bound(name, value) for name, value in wanted.items()}
    if is_csv_asked(visit):
        return await csv_download(visit, "audit-log", "list_audit_log", AUDIT_COLUMNS, arguments, keep=partial(is_shown, looks=looks))
    found = await find_rows(visit, arguments, visit.query.get("after", ""), looks=looks)
    named = await visit.read_together(
        members=PageRead("list_members", {"limit": NAMES_READ}), keys=PageRead("list_api_keys", {"limit": NAMES_READ})
    )
    people = {str(row["id"]): str(row["name"] or row["email"] or row["id"]) for row in named["members"].rows if row["status"] == "active"}
    keys = key_names(named["keys"])
    kept = {**wanted, **({"looks": "shown"} if looks else {})}
    facts: Mapping[str, object] = {
        "lines": [audit_line(visit, row, keys) for row in found.rows],
        "hidden": found.hidden,
        "wanted": wanted,
        "looks": looks,
        "kept": kept,
        "named": {"person": with_chosen(people, wanted.get("person")), "key": with_chosen(keys, wanted.get("key"))},
        "outcomes": list(dict.fromkeys((*filter(None, AUDIT_OUTCOMES), *filter(None, [wanted.get("outcome")])))),
        "ways": get_args(Surface),
        "with_looks": urlencode({**kept, "looks": "shown"}),
        "first_page": f"?{urlencode(kept)}" if visit.query.get("after") else "",
        "next_page": f"?{urlencode({**kept, 'after': found.cursor})}" if found.cursor else "",
    }
    return visit.draw("audit_log.html", facts, problem=found.problem)


def key_names(listed: CallOutcome) -> dict[str, str]:
    """What each key is called, by its id."""
    return {str(row["id"]): str(row["name"]) for row in listed.rows}


def with_chosen(names: Mapping[str, str], chosen: str | None) -> Mapping[str, str]:
    """`names`, and what is chosen though it has no name here."""
    return names if not chosen or chosen in names else {**names, chosen: chosen}


def audit_bound(name: str, value: str) -> str:
    """A filter as the operation takes it: a day of the form is its first moment, and `to` the end of its day. Else what was typed."""
    if name not in ("from", "to"):
        return value
    try:
        day = date.fromisoformat(value) + timedelta(days=name == "to")
    except (ValueError, OverflowError):
        return value
    return f"{day.isoformat()}T00:00:00Z"


async def find_rows(
    visit: ConsoleRequest, arguments: Mapping[str, object], after: str = "", *, looks: bool = False, most: int = AUDIT_ROWS_A_PAGE
) -> FoundRows:
    """A page of `most` rows, which begins after one; without the looks of pages unless these are wanted, too."""
    rows, hidden, before = list[Mapping[str, object]](), 0, len(visit.reads)
    problem: PageProblem | None = None
    more = True
    for _ in range(MOST_READS):
        listed = await visit.read("list_audit_log", **arguments, limit=READ_AT_ONCE, **({"starting_after": after} if after else {}))
        problem, more = listed.problem, bool(listed.body.get("has_more"))
        for place, row in enumerate(listed.rows, 1):
            after = str(row["id"])
            if not is_shown(row, looks=looks):
                hidden += 1
                continue
            rows.append(row)
            if len(rows) == most:
                more = more or place < len(listed.rows)
                break
        if problem is not None or not more or len(rows) == most:
            break
    del visit.reads[before + 1 :]
    return FoundRows(rows, hidden, after if more and problem is None else "", problem)


AUDIT_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/organisation/audit": PageRoute(show_audit_log)}
