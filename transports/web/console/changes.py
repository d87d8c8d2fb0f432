"""The pages of changes of many lines: which sets there are, a new plan, and one set with what it does, what it did and the way back."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast, get_args
from urllib.parse import parse_qsl, quote, urlencode

from markupsafe import Markup
from starlette.responses import Response

from operations.changes.plans.changes import STATUS_WORDS, SpeedWord
from operations.changes.plans.views import ChangeSetPage
from transports.web.console.csv_download import csv_download, is_csv_asked
from transports.web.console.fleet import FILTERS, MOST_CHOSEN, filter_arguments, picked_lines, wanted_filters
from transports.web.console.request import ConsoleRequest
from transports.web.pages.request import CONSOLE_PATH, PageProblem, unknown_form
from transports.web.site import PageRoute, see_other

SETS_A_PAGE = 20
ROWS_A_PAGE = 50
RESULT_COLUMNS = ("iccid", "state", "before", "after", "calls", "undoable", "cost", "lost", "code", "reason")
RESULTS_A_PIECE = 1000
"""Of a file: members of the rows of get_change_set, and how many are read at once."""
MEMBERS_READ = 100
OPTIONS_READ = 200
MEGABYTE, MINUTE = 1_000_000, 60
ROW_CHOICES = ("all", "planned", "skipped", "done", "failed", "unknown")
WORKING_STATES = frozenset({"planning", "applying"})
ENDED_STATES = frozenset({"applied", "partly_applied", "cancelled"})


class ChangeField(NamedTuple):
    """A field of the form of an action: its name in the API and what is typed or chosen."""

    name: str
    kind: str
    options: Sequence[str] = ()
    required: bool = False


NARROWED = ChangeField("packageTemplateId", "template")
"""Only packages of one template, where it is filled in."""
TEMPLATE = ChangeField("packageTemplateId", "template", required=True)
CHANGE_FIELDS: Mapping[str, Sequence[ChangeField]] = {
    "set_status": (ChangeField("status", "word", STATUS_WORDS["set_status"], required=True),),
    "assign_package": (TEMPLATE, ChangeField("validityDays", "number")),
    "set_traffic": tuple(ChangeField(name, "switch", ("on", "off")) for name in ("data", "moc", "mtc", "sms")),
    "set_tags": (ChangeField("addTags", "tags"), ChangeField("removeTags", "tags")),
    "set_bitrate": (ChangeField("speedLimit", "word", get_args(SpeedWord), required=True),),
    "set_steering_list": (ChangeField("listId", "list", ("none",), required=True), ChangeField("push", "box")),
    "assign_series": (TEMPLATE,),
    "stop_series": (NARROWED,),
    "set_package_status": (ChangeField("status", "word", STATUS_WORDS["set_package_status"], required=True), NARROWED),
    "set_package_expiry": (ChangeField("expires", "date"), ChangeField("validityDays", "number"), NARROWED),
    "set_package_limits": (
        ChangeField("dataLimit", "megabytes"),
        ChangeField("mocLimit", "minutes"),
        ChangeField("mtcLimit", "minutes"),
        ChangeField("moSmsLimit", "number"),
        ChangeField("mtSmsLimit", "number"),
        NARROWED,
    ),
    "delete_packages": (NARROWED,),
    "move_account": (ChangeField("accountId", "account", required=True),),
    "end_of_life": (ChangeField("irreversible", "box", required=True),),
}
"""The actions of plan_changes in the order in which they are offered, and their fields."""
OPTION_READS: Mapping[str, tuple[str, str, str]] = {
    "template": ("list_package_templates", "templateId", "prepaidpackagetemplatename"),
    "list": ("list_steering_lists", "id", "name"),
    "account": ("list_reseller_accounts", "id", "name"),
}
"""By kind of a field: what lists its options, and the members that are their numbers and names."""


class ShownField(NamedTuple):
    """A field as the form shows it. `options`: values with their words; where there are none, it is typed."""

    field: ChangeField
    options: Sequence[tuple[str, str]]


class ChosenLines(NamedTuple):
    """Lines named one by one, or the filters that find them."""

    iccids: Sequence[str]
    filters: Mapping[str, str]

    @property
    def arguments(self) -> Mapping[str, object]:
        """The lines as plan_changes takes them."""
        return {"query": filter_arguments(self.filters)} if self.filters else {"iccids": list(self.iccids)}


def lines_asked_for(visit: ConsoleRequest) -> ChosenLines:
    """The lines that the page Fleet sends here, or that the form carries."""
    if visit.form:
        filters = wanted_filters(dict(parse_qsl(visit.form.get("where", ""))))
        return ChosenLines([] if filters else picked_lines(visit.form), filters)
    if visit.query.get("whole"):
        return ChosenLines([], wanted_filters(visit.query))
    return ChosenLines(picked_lines(visit.query)[:MOST_CHOSEN], {})


def asked_change(form: Mapping[str, str]) -> Mapping[str, object]:
    """The change as plan_changes takes it: fields that were left empty are left out."""
    action = form.get("action", "")
    change: dict[str, object] = {"action": action}
    for field in CHANGE_FIELDS.get(action, ()):
        typed = form.get(field.name, "")
        if typed == "none" and field.kind == "list":
            change["noList"] = True
        elif typed:
            change[field.name] = field_value(field.kind, typed)
    return change


def field_value(kind: str, typed: str) -> object:
    """What was typed, as the API takes it; what is no number stays as it is, and the operation refuses it."""
    if kind in ("switch", "box"):
        return typed in ("on", "yes")
    if kind == "tags":
        return typed.replace(",", " ").split()
    if kind in ("word", "date") or not (typed.isascii() and typed.isdigit()):
        return typed
    return int(typed) * {"megabytes": MEGABYTE, "minutes": MINUTE}.get(kind, 1)


async def show_sets(visit: ConsoleRequest) -> Response:
    """Which changes of many lines were planned or made, and how far is each?"""
    after = visit.query.get("after", "")
    sets = await visit.read("list_change_sets", limit=SETS_A_PAGE, **({"starting_after": after} if after else {}))
    more = f"?{urlencode({'after': str(sets.rows[-1]['id'])})}" if sets.rows and sets.body.get("has_more") else ""
    facts: Mapping[str, object] = {
        "sets": sets.rows,
        "values": partial(value_words, visit),
        "after": after,
        "next_page": more,
    }
    return visit.draw("changes.html", facts, problem=sets.problem)


def value_words(visit: ConsoleRequest, change: Mapping[str, object]) -> list[str | Markup]:
    """What a change sets, in words, without its action."""
    shown = {
        name: value_text(visit, name, each) for name, each in change.items() if name not in ("action", "irreversible", "push", "noList")
    }
    return [f"{field_word(visit, name)}: {each}" if isinstance(change[name], bool) else each for name, each in shown.items()]


def field_word(visit: ConsoleRequest, name: str) -> str:
    """The name of a fact or of a field in the reader's language."""
    return visit.texts.words.get(f"changes.field_{name}", name)


async def show_plan_form(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What shall happen to the lines that were chosen? Nothing happens here: what is sent makes a plan."""
    lines, source = lines_asked_for(visit), visit.form or visit.query
    action = source.get("action", "")
    action = action if action in CHANGE_FIELDS else ""
    count: object = len(lines.iccids)
    if lines.filters:
        found = await visit.read("query_fleet", **filter_arguments(lines.filters), countOnly=True)
        count, problem = found.body.get("count", 0), problem or found.problem
    if problem is not None:
        field = problem.field.removeprefix("change.").partition("[")[0]
        problem = PageProblem(problem.status, problem.text, problem.hint, field, problem.code)
    facts: Mapping[str, object] = {
        "lines": lines,
        "count": count,
        "picked": ".".join(lines.iccids),
        "where": urlencode(lines.filters),
        "action": action,
        "actions": list(CHANGE_FIELDS),
        "fields": [await shown_field(visit, each) for each in CHANGE_FIELDS.get(action, ())],
        "typed": visit.form,
        "filter_words": filter_words(visit, lines.filters),
    }
    return visit.draw("change_new.html", facts, problem=problem)


def filter_words(visit: ConsoleRequest, filters: Mapping[str, str]) -> list[tuple[str, str]]:
    """The filters in the reader's language, in the order of the bar."""
    pages = {"problem": "problems", "status": "states", "package": "states"}
    return [(visit.say(f"fleet.{name}"), visit.word(pages.get(name, "fleet"), filters[name])) for name in FILTERS if name in filters]


async def shown_field(visit: ConsoleRequest, field: ChangeField) -> ShownField:
    """A field with what can be chosen. Where the list cannot be read, its number is typed."""
    words = [(option, option_word(visit, field, option)) for option in field.options]
    if field.kind not in OPTION_READS:
        return ShownField(field, words)
    operation, number, name = OPTION_READS[field.kind]
    found = await visit.read(operation, limit=OPTIONS_READ)
    listed = [(str(row[number]), f"{row[name]} ({row[number]})") for row in found.rows]
    return ShownField(field, [*words, *listed] if listed else [])


def option_word(visit: ConsoleRequest, field: ChangeField, option: str) -> str:
    """The words of a fixed option."""
    if field.name == "speedLimit":
        return speed_words(visit, option)
    return visit.texts.words.get(f"changes.option_{option}") or visit.word("states", option)


def speed_words(visit: ConsoleRequest, word: str) -> str:
    number = word.removeprefix("KB_")
    return f"{visit.texts.whole(int(number))} kbit/s" if number.isdigit() else visit.say("changes.unlimited")


async def post_plan_form(visit: ConsoleRequest) -> Response:
    """Makes the plan, and shows it."""
    asked = {"change": asked_change(visit.form), "lines": lines_asked_for(visit).arguments}
    outcome = await visit.press("plan_changes", asked)
    if outcome.problem is not None:
        return await show_plan_form(visit, outcome.problem)
    return visit.go(f"/changes/{outcome.body['id']}")


async def show_change(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What will change, what did, and can I take it back?"""
    source = visit.form if visit.form else visit.query
    which, after = source.get("rows", "all"), source.get("after", "")
    which = which if which in ROW_CHOICES else "all"
    if is_csv_asked(visit):
        arguments = {"id": set_id(visit), "rows": which}
        return await csv_download(visit, "changes", "get_change_set", RESULT_COLUMNS, arguments, rows="rows", at_once=RESULTS_A_PIECE)
    asked: dict[str, object] = {"id": set_id(visit), "rows": which, "limit": ROWS_A_PAGE}
    if after:
        asked["starting_after"] = after
    found = await visit.read("get_change_set", **asked)
    if found.problem is not None:
        return visit.draw("refused.html", {}, problem=found.problem)
    found_set = cast(ChangeSetPage, found.body)
    cancelled_by = found_set["stopped"].get("cancelled_by") if "stopped" in found_set else None
    rows = cast("list[Mapping[str, object]]", found.body["rows"])
    chosen, here = picked_lines(source), [row["iccid"] for row in rows if row["state"] == "done"]
    counts = cast(Mapping[str, int], found.body["counts"])
    facts: Mapping[str, object] = {
        "set": found.body,
        "counts": counts,
        "rows": rows,
        "which": which,
        "planner": await person_name(visit, found_set["planned_by"]["person"]),
        "stopper": await person_name(visit, cancelled_by["person"]) if cancelled_by else "",
        "row_choices": ROW_CHOICES,
        "after": after,
        "next_cursor": found.next_cursor,
        "working": found.body["state"] in WORKING_STATES,
        "undoable": found.body["state"] in ENDED_STATES and counts["done"] > 0,
        "chosen": chosen,
        "carried": ".".join(iccid for iccid in chosen if iccid not in here),
        "told": partial(value_text, visit),
        "named": partial(field_word, visit),
        "differences": differences,
        "lost_words": partial(lost_words, visit),
    }
    return visit.draw("change_set.html", facts, problem=problem)


async def person_name(visit: ConsoleRequest, person: str) -> str:
    """What somebody is called who planned a set or stopped it; their id where they are no member any more."""
    if person == visit.who.person:
        return visit.say("organisation.you")
    listed = await visit.read("list_members", limit=MEMBERS_READ)
    return next((str(row["name"] or row["email"] or person) for row in listed.rows if row["id"] == person), person)


def set_id(visit: ConsoleRequest) -> str:
    return str(visit.request.path_params["id"])


def differences(row: Mapping[str, Mapping[str, object]]) -> list[tuple[str, object, object]]:
    """What a row changes: the name of each fact that differs, its value before and after."""
    before, after = row["before"], row["after"]
    return [(name, before.get(name), value) for name, value in after.items() if value != before.get(name) or len(after) == 1]


def value_text(visit: ConsoleRequest, name: str, value: object) -> str | Markup:
    """A value of a line, a package or a change as the reader's language writes it."""
    if value is None or value == []:
        return "–"
    if isinstance(value, bool):
        return visit.say("changes.option_on" if value else "changes.option_off")
    if isinstance(value, list):
        return ", ".join(str(each) for each in cast("list[object]", value))
    if name in ("speed_limit", "speedLimit"):
        return speed_words(visit, str(value))
    if name in ("ends", "expires"):
        return visit.moment(str(value))
    if isinstance(value, int) and name in ("dataLimit", "unused_bytes"):
        return visit.texts.bytes(value)
    if isinstance(value, int) and name in ("mocLimit", "mtcLimit"):
        return visit.say("changes.minutes", count=visit.texts.plain_number(round(value / MINUTE, 1)))
    return visit.word("states", str(value)) if name == "status" else str(value)


def lost_words(visit: ConsoleRequest, lost: Mapping[str, object]) -> list[str | Markup]:
    """What a row takes away for good, each part with its name."""
    parts = ((name, lost.get(name)) for name in ("line", "name", "unused_bytes", "ends"))
    return [Markup("{} {}").format(visit.say(f"changes.lost_{name}"), value_text(visit, name, value)) for name, value in parts if value]


async def post_set(visit: ConsoleRequest) -> Response:
    """Applies a plan, stops it, or plans the way back; the buttons of the pages of its table carry the choice along."""
    id = set_id(visit)
    do, _, cursor = visit.form.get("do", "").partition(":")
    if do == "page":
        return to_rows(visit, cursor)
    if do in ("undo", "undo_chosen"):
        return await plan_undo(visit, picked_lines(visit.form) if do == "undo_chosen" else None)
    if do == "apply":
        outcome = await visit.press("apply_changes", {"id": id, "digest": visit.form.get("digest", "")})
        question = visit.ask_first(
            outcome, title=visit.say("changes.ask_apply"), button=visit.say("changes.ask_apply_button"), back=f"/changes/{id}"
        )
        if question is not None:
            return question
    elif do == "cancel":
        outcome = await visit.press("cancel_change_set", {"id": id})
    else:
        raise unknown_form()
    return visit.go(f"/changes/{id}") if outcome.problem is None else await show_change(visit, outcome.problem)


async def plan_undo(visit: ConsoleRequest, iccids: Sequence[str] | None) -> Response:
    """Plans the way back and shows that plan. None: for all lines that were changed."""
    if iccids is not None and not iccids:
        return await show_change(visit, PageProblem(400, visit.say("changes.choose_rows")))
    chosen = {} if iccids is None else {"iccids": list(iccids)}
    outcome = await visit.press("undo_changes", {"id": set_id(visit), **chosen})
    if outcome.problem is not None:
        return await show_change(visit, outcome.problem)
    return visit.go(f"/changes/{outcome.body['id']}")


def to_rows(visit: ConsoleRequest, cursor: str) -> Response:
    """The page of the table that begins behind `cursor`, with the lines that were chosen so far."""
    which, id = visit.form.get("rows", ""), set_id(visit)
    kept = {"rows": which if which in ROW_CHOICES else "all", "after": cursor, "picked": ".".join(picked_lines(visit.form)[:MOST_CHOSEN])}
    return see_other(
        f"{visit.context.root}{CONSOLE_PATH}/changes/{quote(id)}?{urlencode({name: each for name, each in kept.items() if each})}"
    )


CHANGE_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/changes": PageRoute(show_sets),
    "/changes/new": PageRoute(show_plan_form, post_plan_form),
    "/changes/{id}": PageRoute(show_change, post_set),
}
