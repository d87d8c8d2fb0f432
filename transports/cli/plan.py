"""`reseller plan`: plan a change of many lines, apply it, see what came of it, take it back."""

import asyncio
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Annotated, cast

import orjson
import typer
from pydantic.fields import FieldInfo

from operations.catalogue import CATALOGUE
from operations.changes.plans.changes import ACTION_FIELDS, ActionWord, RequestedChange
from operations.fleet.line_selection import LineConditions
from operations.times import utc_text
from registry.binding import text_kind
from registry.call import Reply
from registry.caller import Money
from registry.clock import SystemClock
from registry.operation import Input, shown_field_name
from registry.spending import shown_money
from transports.cli.call import PLAIN_TYPES, field_choices, is_text_field, item_kind, parse_number, repeatable_command, user_agrees
from transports.cli.target import (
    CommandCall,
    TargetOptions,
    at_target,
    call_locally,
    call_remotely,
    fresh_key,
    is_simulated,
    option_parameters,
    refuse_simulated,
    require_one_place,
    require_success,
)
from transports.cli.terminal import Failure, command_settings, input_text, parse_moment, print_line

AGE_HELP = "A UTC time, or an age such as 90m, 12h, 60d or 8w."
FLAG_ALIASES = {"used_before": ("--last-use-before",), "used_after": ("--last-use-after",)}
SHOWN_ROWS = 20
WAIT_SECONDS = 25
SetArgument = Annotated[str, typer.Argument(help="The set, chg_...")]
KeyOfCallOption = Annotated[str | None, typer.Option("--idempotency-key", help="Same key and input: same answer, one effect.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Confirm without being asked.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]

plan_app = typer.Typer(no_args_is_help=True, help="Change many lines with one decision: plan it, apply it, undo it.")


def flag_of(name: str, taken: Collection[str] = ()) -> str:
    """The option of a field: `used_before` is --used-before."""
    word = name.replace("_", "-")
    return f"--{'change-' if word in taken else ''}{word}"


TAKEN_FLAGS = frozenset({"data", "url", "key", "org", "csv", "iccid", "tagged", "json"})


def field_parameters(model: type[Input], names: Collection[str], prefix: str) -> list[inspect.Parameter]:
    """An option for each of the fields of `model` that `names` holds."""
    written = cast("Mapping[str, Mapping[str, object]]", model.model_json_schema(by_alias=True)["properties"])
    return [
        field_parameter(name, model.model_fields[name], written[shown_field_name(name, model.model_fields[name])], prefix) for name in names
    ]


def field_parameter(name: str, info: FieldInfo, schema: Mapping[str, object], prefix: str) -> inspect.Parameter:
    word = "str" if is_text_field(schema) else text_kind(info.annotation)
    words = [flag_of(name, TAKEN_FLAGS), *FLAG_ALIASES.get(name, ())]
    if word == "bool":
        words = [f"{words[0]}/--no-{words[0].removeprefix('--')}"]
    choices = ", ".join(field_choices(info))
    text = " ".join(
        part
        for part in (info.description, f"One of: {choices}." if choices and word != "bool" else "", AGE_HELP if is_time(schema) else "")
        if part
    )
    kind = list[str] if word == "list" else PLAIN_TYPES.get(word, str)
    annotation = Annotated[kind | None, typer.Option(*words, help=text)]
    return inspect.Parameter(f"{prefix}{name}", inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None)


def is_time(schema: Mapping[str, object]) -> bool:
    kinds = cast("list[Mapping[str, object]]", schema.get("anyOf", [schema]))
    return any(kind.get("format") == "date-time" for kind in kinds)


def time_fields(model: type[Input]) -> frozenset[str]:
    """The fields that hold a time."""
    written = cast("Mapping[str, Mapping[str, object]]", model.model_json_schema(by_alias=True)["properties"])
    return frozenset(name for name, info in model.model_fields.items() if is_time(written[shown_field_name(name, info)]))


def absolute_time(option: str, text: str) -> str:
    """`text` as a UTC time; an age is counted back from now. Raises Failure."""
    if text[:1].isdigit() and "-" in text:
        return text
    return utc_text(datetime.fromtimestamp(int(parse_moment(option, text, SystemClock().now())), UTC))


def given_fields(model: type[Input], texts: Mapping[str, object]) -> dict[str, object]:
    """The fields by the names of the API, with their values as it takes them. Raises Failure."""
    times = time_fields(model)
    found: dict[str, object] = {}
    for name, value in texts.items():
        info = model.model_fields[name]
        if value is None:
            continue
        if name in times:
            value = absolute_time(flag_of(name), str(value))
        if isinstance(value, list):
            kind, words = item_kind(info.annotation), cast("list[str]", value)
            value = [parse_number(flag_of(name), kind, part.strip()) for word in words for part in word.split(",")]
        found[shown_field_name(name, info)] = value
    return found


def change_command(action: ActionWord) -> Callable[..., None]:
    """The command that plans an action: its value first, then its other fields, then which lines."""
    fields = ACTION_FIELDS[action]
    value = fields.value
    others = [name for name in (*fields.required, *fields.optional) if name not in (value, "irreversible")]
    parameters: list[inspect.Parameter] = []
    if value is not None:
        info = RequestedChange.model_fields[value]
        words = field_choices(info)
        text = (
            f"{info.description or ''} {'One of: ' + ', '.join(words) + '.' if words else ''} Left out where a --csv says it for each line."
        )
        annotation = Annotated[str | None, typer.Argument(help=text)]
        parameters.append(inspect.Parameter("value", inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None))
    parameters += field_parameters(RequestedChange, others, "c_")
    parameters += [*LINE_PARAMETERS, *field_parameters(LineConditions, list(LineConditions.model_fields), "q_")]
    parameters += [inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, annotation=JsonFlag, default=False)]
    parameters += option_parameters(TargetOptions)

    def run(**given: object) -> None:
        where = TargetOptions(**{p.name: given[p.name] for p in option_parameters(TargetOptions)})  # pyright: ignore[reportArgumentType]  # typer has parsed them to these types
        change: dict[str, object] = {"action": action, **given_fields(RequestedChange, taken(given, "c_"))}
        if value is not None and given["value"] is not None:
            change |= own_value(action, value, str(given["value"]))
        if "irreversible" in fields.required:
            change["irreversible"] = True
        lines = chosen_lines(given)
        show_plan(
            ask_once(where, "plan_changes", {"change": change, "lines": lines}, key=fresh_key("cli-")), as_json=bool(given["as_json"])
        )

    run.__name__ = action
    run.__annotations__ = {p.name: cast(object, p.annotation) for p in parameters}
    setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010  # typer reads the signature
    return run


LINE_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None)
    for name, annotation in (
        ("iccid", Annotated[list[str] | None, typer.Option("--iccid", help="This line; may be repeated.")]),
        (
            "csv",
            Annotated[
                str | None,
                typer.Option("--csv", metavar="-|@FILE", help="A table of lines, each with a value of its own if you like: - or @FILE."),
            ],
        ),
        ("tagged", Annotated[str | None, typer.Option("--tagged", help="Lines that have this tag.")]),
    )
]


def taken(given: Mapping[str, object], prefix: str) -> dict[str, object]:
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


def own_value(action: ActionWord, field: str, text: str) -> dict[str, object]:
    """The value of the action's argument, as the API takes it. Raises Failure."""
    if action == "set_steering_list" and text == "none":
        return {"noList": True}
    info = RequestedChange.model_fields[field]
    return {shown_field_name(field, info): parse_number("VALUE", text_kind(info.annotation), text)}


def chosen_lines(given: Mapping[str, object]) -> dict[str, object]:
    """Which lines, as the API takes them."""
    query = given_fields(LineConditions, taken(given, "q_"))
    found = {"query": query or None, "iccids": given["iccid"] or None, "tagged": given["tagged"]}
    csv = given["csv"]
    if csv is not None:
        found["csv"] = input_text("--csv", str(csv))
    return {name: value for name, value in found.items() if value is not None}


def ask_once(
    where: TargetOptions, operation: str, arguments: Mapping[str, object], *, key: str | None = None, token: str | None = None
) -> Reply:
    """The answer of one call. Raises Failure for a local network that is simulated: another process has the lines."""
    declared = CATALOGUE.operations[operation]
    require_one_place(where.url, where.org, where.data)
    wish = CommandCall(declared, arguments, key, token)
    if where.url:
        return asyncio.run(call_remotely(where.url, where.key, wish))
    settings = command_settings(data=where.data)
    row = CATALOGUE.operations["modify_subscriber_status"]
    if is_simulated(row, settings) and not declared.read_only:
        refuse_simulated(row)
    return asyncio.run(call_locally(settings, wish, where.org))


def show_plan(reply: Reply, *, as_json: bool) -> None:
    """The plan in words, and the command that goes on."""
    body = orjson.loads(require_success(reply, "reseller plan").body)
    if as_json:
        print_line(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
        return
    for line in plan_lines_of(body):
        print_line(line)


def plan_lines_of(body: Mapping[str, object]) -> list[str]:
    """The lines that tell of a set."""
    counts = cast("Mapping[str, int]", body["counts"])
    money = cast("Mapping[str, Mapping[str, object] | None]", body["money"])["network"]
    found = [f"{body['id']}  {body['action']}  {body['state']}"]
    found.append(
        f"  {counts['planned']} to change, {counts['skipped']} skipped, of {counts['lines']} lines"
        + ("" if counts["lines_read"] == counts["lines"] else f", {counts['lines_read']} of them read so far")
    )
    if counts["done"] or counts["failed"] or counts["unknown"] or counts["not_sent"]:
        found.append(f"  {counts['done']} done, {counts['failed']} failed, {counts['unknown']} unknown, {counts['not_sent']} not sent")
    costs = "what nobody can say" if money is None else shown_money(Money(cast(int, money["amount"]), cast(str, money["currency"])))
    found.append(f"  costs {costs}; {body['cannot_be_undone']} cannot be undone; about {body['seconds']} s")
    found += [row_line(row) for row in cast("list[Mapping[str, object]]", body.get("rows", []))[:SHOWN_ROWS]]
    stopped = cast("Mapping[str, object] | None", body.get("stopped"))
    if stopped is not None:
        found.append(f"  stopped: {stopped['error']}")
    return [*found, *next_commands(body)]


def row_line(row: Mapping[str, object]) -> str:
    before, after = cast("Mapping[str, object]", row["before"]), cast("Mapping[str, object]", row["after"])
    what = ", ".join(f"{name}: {before.get(name)} -> {value}" for name, value in after.items()) if after else ""
    return f"  {row['iccid']}  {row['state']}  {what}{row.get('reason', '')}".rstrip()


def next_commands(body: Mapping[str, object]) -> list[str]:
    id, state = body["id"], body["state"]
    words = {
        "planning": f"see it: reseller plan show {id}",
        "planned": f"do it: reseller plan apply {id} --digest {body['digest']}",
        "applying": f"see it: reseller plan show {id}",
        "applied": f"take it back: reseller plan undo {id}",
        "partly_applied": f"what failed: reseller plan show {id} --rows failed; take it back: reseller plan undo {id}",
    }
    return [f"  {words[str(state)]}"] if state in words else []


for _action in ACTION_FIELDS:
    plan_app.command(_action.replace("_", "-"), short_help=_action.replace("_", " ").capitalize())(change_command(_action))


@plan_app.command("show")
@at_target
def show_set(
    where: TargetOptions,
    id: SetArgument,
    rows: Annotated[str, typer.Option("--rows", help="all, planned, skipped, done, failed or unknown.")] = "all",
    wait: Annotated[int, typer.Option("--wait", help="Waits so many seconds, 0-25, while it is read or sent.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Show how far a set is, and its first rows."""
    arguments = {"id": id, "rows": rows, "waitSeconds": wait, "limit": SHOWN_ROWS}
    show_plan(ask_once(where, "get_change_set", arguments), as_json=as_json)


@plan_app.command("list")
@at_target
def list_plans(where: TargetOptions, as_json: JsonFlag = False) -> None:
    """List the newest sets."""
    body = orjson.loads(require_success(ask_once(where, "list_change_sets", {}), "reseller plan list").body)
    if as_json:
        print_line(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
        return
    for row in body["data"]:
        print_line(f"{row['id']}  {row['action']}  {row['state']}  {row['counts']['planned']} planned  {row['counts']['done']} done")


@plan_app.command("apply")
@at_target
def apply_plan(
    where: TargetOptions,
    id: SetArgument,
    digest: Annotated[str | None, typer.Option("--digest", help="Of the plan as you have read it; absent: as it is now.")] = None,
    wait: Annotated[int, typer.Option("--wait", help="Waits so many seconds, 0-25, for its end.")] = WAIT_SECONDS,
    yes: YesOption = False,
    idempotency_key: KeyOfCallOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make the changes of a plan, and wait for the end of them for a while."""
    if digest is None:
        digest = orjson.loads(require_success(ask_once(where, "get_change_set", {"id": id, "limit": 1}), "reseller plan apply").body)[
            "digest"
        ]
    if digest is None:
        raise Failure(f"the lines of {id} are still being read; `reseller plan show {id} --wait 25` waits for it")
    arguments = {"id": id, "digest": digest}
    reply = ask_once(where, "apply_changes", arguments, key=idempotency_key)
    token = orjson.loads(reply.body).get("confirm_token") if reply.status == 202 else None  # none: a person has to approve it elsewhere
    if token is not None and (yes or user_agrees(reply)):
        reply = ask_once(where, "apply_changes", arguments, key=idempotency_key, token=token)
    again = repeatable_command(sys.argv[1:])
    require_success(reply, again if yes or token is None else f"{again} --yes")
    if wait:
        reply = ask_once(where, "get_change_set", {"id": id, "rows": "failed", "waitSeconds": min(wait, WAIT_SECONDS), "limit": SHOWN_ROWS})
    show_plan(reply, as_json=as_json)


@plan_app.command("cancel")
@at_target
def cancel_plan(where: TargetOptions, id: SetArgument, as_json: JsonFlag = False) -> None:
    """Stop a set: what was not sent yet is not sent."""
    show_plan(ask_once(where, "cancel_change_set", {"id": id}), as_json=as_json)


@plan_app.command("undo")
@at_target
def undo_plan(
    where: TargetOptions,
    id: SetArgument,
    iccid: Annotated[list[str] | None, typer.Option("--iccid", help="Only this line; may be repeated.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Plan the way back from a set; apply carries it out."""
    arguments: dict[str, object] = {"id": id} if not iccid else {"id": id, "iccids": iccid}
    show_plan(ask_once(where, "undo_changes", arguments, key=fresh_key("cli-")), as_json=as_json)
