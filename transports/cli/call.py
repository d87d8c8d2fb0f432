"""`reseller call OPERATION`: one command per operation, made from the catalogue."""

import asyncio
import dataclasses
import inspect
import shlex
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Union, cast, get_args, get_origin

import orjson
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from operations.catalogue import CATALOGUE
from registry.binding import QUERY_INTEGER, QUERY_NUMBER, text_kind, without_nulls
from registry.call import Reply
from registry.catalogue import AnyOperation
from registry.operation import Input, Secret, shown_field_name
from transports.cli.render import CURSOR_FIELD, EVENT_STREAM_TYPE, next_cursor, print_reply, stream_failure
from transports.cli.target import (
    CommandCall,
    KeyOption,
    call_locally,
    call_remotely,
    fresh_key,
    option_parameters,
    require_one_place,
    require_success,
)
from transports.cli.terminal import Failure, command_settings, harmless_text, input_text, secret_text

PLAIN_TYPES: Mapping[str, type] = {"int": int, "float": float, "bool": bool}
METAVARS = {"int": "INTEGER", "float": "NUMBER"}
NUMBER_KINDS = {"int": (QUERY_INTEGER, int, "an integer"), "float": (QUERY_NUMBER, float, "a number")}


def field_options(model: type[Input], reserved: Collection[str]) -> list[inspect.Parameter]:
    """One option per input field; prefixed, so that none collides with an option of every command."""
    found: list[inspect.Parameter] = []
    written = model.model_json_schema(by_alias=True).get("properties", {})
    for name, info in model.model_fields.items():
        needed = info.is_required()
        word, nullable = text_kind(info.annotation), takes_null(model, info)
        word = "str" if is_text_field(written.get(info.alias or name, {})) else word
        words = option_flag(shown_field_name(name, info), reserved)
        metavar = "-|@FILE" if is_secret_field(info) else metavar_of(info, nullable=nullable)
        if word == "bool":
            words = f"{words}/--no-{words.removeprefix('--')}"
        option = typer.Option(words, metavar=metavar, help=field_help(shown_field_name(name, info), info, reserved))
        kind = list[str] if word == "list" else str if nullable else PLAIN_TYPES.get(word, str)
        annotation = Annotated[kind if needed else kind | None, option]
        default = inspect.Parameter.empty if needed else None
        found.append(inspect.Parameter(f"f_{name}", inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default))
    return found


def is_text_field(schema: Mapping[str, object]) -> bool:
    """Whether a field is written as text, whatever its type inside is: a time is a number of seconds there."""
    kinds = cast("list[Mapping[str, object]]", schema.get("anyOf", [schema]))
    return any(kind.get("type") == "string" for kind in kinds)


def is_secret_field(info: FieldInfo) -> bool:
    """Whether a field holds a credential, which must not be on the command line."""
    return any(mark is Secret for mark in info.metadata)


def option_flag(field: str, reserved: Collection[str]) -> str:
    """The option of `field`. Choice: where every command already has that word, as with a webhook's url, it is `--input-url`."""
    return f"--{'input-' if field in reserved else ''}{field.replace('_', '-')}"


def field_help(field: str, info: FieldInfo, reserved: Collection[str]) -> str:
    """What the field means, the values it may have, and the name it has everywhere else."""
    allowed = ", ".join(field_choices(info))
    keys = next((", ".join(shown_field_name(*item) for item in model.model_fields.items()) for model in object_models(info.annotation)), "")
    parts = [
        info.description or "",
        f"One of: {allowed}." if allowed else "",
        f"An object with {keys}." if keys else "",
        f"The field `{field}`." if field in reserved else "",
        "A secret: - reads it from standard input, @FILE from a file." if is_secret_field(info) else "",
        "" if info.is_required() else "Optional.",
    ]
    return " ".join(part for part in parts if part)


def metavar_of(info: FieldInfo, *, nullable: bool) -> str | None:
    """The kind of value, where it is not the option's own type."""
    if takes_object(info.annotation):
        return "JSON"
    if text_kind(info.annotation) == "list":
        return f"{METAVARS.get(item_kind(info.annotation), 'TEXT')},..."
    return METAVARS.get(text_kind(info.annotation), "TEXT") + "|null" if nullable else None


def takes_null(model: type[Input], info: FieldInfo) -> bool:
    """Whether null means something else than leaving the field out."""
    kinds = union_members(info.annotation)
    distinct = info.is_required() or any(model.model_fields[name] is info for name in model.null_clears)
    return distinct and type(None) in kinds and not {"bool", "list"} & {text_kind(kind) for kind in kinds}


def union_members(annotation: object) -> list[object]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return union_members(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [kind for member in get_args(annotation) for kind in union_members(member)]
    return [annotation]


def item_kind(annotation: object) -> str:
    return next((text_kind(get_args(kind)[0]) for kind in union_members(annotation) if get_origin(kind) is list and get_args(kind)), "str")


def object_models(annotation: object) -> Iterator[type[BaseModel]]:
    yield from (kind for kind in union_members(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel))


def takes_object(annotation: object) -> bool:
    return any(get_origin(kind) is dict for kind in union_members(annotation)) or any(object_models(annotation))


def takes_anything(annotation: object) -> bool:
    """Whether a field holds any JSON. There, text that begins like an object or an array is parsed, other text stays text."""
    return any(str(kind) == "JsonValue" for kind in union_members(annotation))


def field_choices(info: FieldInfo) -> list[str]:
    extra = cast(object, info.json_schema_extra)
    listed = cast("dict[str, object]", extra).get("enum") if isinstance(extra, dict) else None
    return [str(value) for value in (cast("list[object]", listed) if isinstance(listed, list) else literal_values(info.annotation))]


def literal_values(annotation: object) -> list[object]:
    """The values of every Literal in `annotation`, or of an enumeration that only its schema names."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if isinstance(annotation, FieldInfo):
        return list[object](field_choices(annotation))
    return [value for part in get_args(annotation) for value in literal_values(part)]


def read_field(model: type[Input], name: str, given: object) -> object:
    """Objects and arrays are given as JSON text; an array of words or numbers may be `DE,FR`, or its option given several times.

    The option of a secret says where the secret is.
    """
    info = model.model_fields[name]
    option = option_flag(shown_field_name(name, info), TAKEN_OPTIONS)
    if is_secret_field(info):
        return secret_text(option, str(given))
    if isinstance(given, list):
        kind = item_kind(info.annotation)
        words = [word for text in cast("list[str]", given) for word in list_words(option, text)]
        return [parse_number(option, kind, word) if isinstance(word, str) else word for word in words]  # JSON stays as it is
    if not isinstance(given, str):
        return given
    if takes_null(model, info):
        return None if given == "null" else parse_number(option, text_kind(info.annotation), given, " or null")
    if takes_object(info.annotation) or (takes_anything(info.annotation) and given.startswith(("{", "["))):
        return parse_json(option, given)
    return given


def parse_number(option: str, kind: str, text: str, other: str = "") -> object:
    """The number in `text`. `other`: what else the option takes, for the message. Text of another kind stays as it is."""
    if kind not in NUMBER_KINDS:
        return text
    pattern, convert, rule = NUMBER_KINDS[kind]
    if not pattern.fullmatch(text):
        raise Failure(f"{option}: must be {rule}{other}; got {text[:60]}")
    return convert(text)


def list_words(option: str, text: str) -> list[object]:
    return cast("list[object]", parse_json(option, text)) if text.startswith("[") else [word.strip() for word in text.split(",")]


def parse_json(option: str, text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Failure(f'{option}: must be JSON, for example \'{{"order": "A-17"}}\'; got {text[:60]}') from None


def all_or_nothing(context: typer.Context, text: str | None) -> str | None:
    """An option callback: with the whole input in one option, no field's own option is required."""
    if text is not None:
        for parameter in context.command.params:
            parameter.required = False
    return text


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How to make a call: where, as whom, and how to show it. The fields are options of every command."""

    url: Annotated[str | None, typer.Option("--url", envvar="RESELLER_URL", help="Call this server; without it, the local database.")] = (
        None
    )
    key: KeyOption = None
    org: Annotated[str | None, typer.Option("--org", help="Local calls: the organisation to act for.")] = None
    data: Annotated[Path | None, typer.Option("--data", help="Local calls: the directory with the database.")] = None
    json_input: Annotated[
        str | None,
        typer.Option(
            "--json-input",
            metavar="JSON",
            is_eager=True,
            callback=all_or_nothing,
            help="The whole input as one object, instead of fields; - or @FILE: read it there.",
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on a terminal too.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Confirm a two-step operation without asking.")] = False
    idempotency_key: Annotated[str | None, typer.Option("--idempotency-key", help="Same key and input: same answer, one effect.")] = None
    confirm_token: Annotated[str | None, typer.Option("--confirm-token", help="Token of the first half of a two-step operation.")] = None


TAKEN_OPTIONS = frozenset({field.name for field in dataclasses.fields(CallOptions)} | {"json", "help"})


def call_app(words: list[str]) -> typer.Typer:
    """The command of the operation that is named; where none is, all of them by name, in catalogue order, for the list and suggestions."""
    app = typer.Typer(no_args_is_help=True, help="Call one operation; prints JSON, or a table on a terminal.")
    if words[:1] != ["call"]:
        return app
    named = [CATALOGUE.operations[word] for word in [word for word in words[1:] if word != "--"][:1] if word in CATALOGUE.operations]
    for operation in named or CATALOGUE.operations.values():
        # The options of all of them take a second to make.
        command = operation_command(operation) if named else uncalled_command
        app.command(operation.id, help=operation.description, short_help=operation.summary)(command)
    return app


def uncalled_command() -> None:
    """An operation of the list; without the name of one in the words, none is called."""


def operation_command(operation: AnyOperation) -> Callable[..., None]:
    """The command of one operation; its options are the fields of the input model and those of CallOptions."""
    model = operation.params

    def run(**given: object) -> None:
        texts = {name: given.pop(f"f_{name}") for name in model.model_fields}
        how = CallOptions(**given)  # pyright: ignore[reportArgumentType]  # typer has parsed them to these types
        finish_call(operation, call_arguments(model, {name: text for name, text in texts.items() if text is not None}, how), how)

    needed = {"yes", "confirm_token"} if operation.confirmable else set[str]()
    needed |= {"idempotency_key"} if operation.once is not None else set()
    common = [p for p in option_parameters(CallOptions) if p.name in needed or p.name not in {"yes", "confirm_token", "idempotency_key"}]
    parameters = [*field_options(model, TAKEN_OPTIONS), *common]
    run.__name__ = operation.id
    run.__annotations__ = {p.name: cast(object, p.annotation) for p in parameters}
    setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010  # typer reads the signature
    return run


def call_arguments(model: type[Input], texts: dict[str, object], how: CallOptions) -> dict[str, object]:
    """The input, from one option per field or from `--json-input`."""
    names = {name: shown_field_name(name, info) for name, info in model.model_fields.items()}
    if how.json_input is None:
        return {names[name]: read_field(model, name, text) for name, text in texts.items()}
    if texts:
        given = ", ".join(option_flag(names[name], TAKEN_OPTIONS) for name in texts)
        raise Failure(f"--json-input: is the whole input; leave out {given}, or put what it says into the object")
    text = input_text("--json-input", how.json_input)
    value = parse_json("--json-input", text)
    if not isinstance(value, dict):
        raise Failure(f"--json-input: must be a JSON object with the operation's fields; got {text[:60]}")
    value = cast("dict[str, object]", value)
    secrets = [names[name] for name, info in model.model_fields.items() if is_secret_field(info) and names[name] in value]
    if secrets and not how.json_input.startswith(("-", "@")):
        raise Failure(
            f"--json-input: {secrets[0]} is a secret, and is not taken from the command line, where others can read it; nothing was sent. "
            "Give `--json-input -` and pipe the object, or `--json-input @FILE`"
        )
    return without_nulls(model, value)


def finish_call(operation: AnyOperation, arguments: dict[str, object], how: CallOptions) -> None:
    """Calls, asks for confirmation where one is needed, and prints the answer."""
    if how.idempotency_key is None and operation.once is not None and operation.once.required:
        # Choice: a person at a terminal gets a key made for them, shown so that the very call can be repeated.
        how = replace(how, idempotency_key=fresh_key("cli-"))
        sys.stderr.write(f"idempotency key: {how.idempotency_key}\n")
    reply = asyncio.run(send_call(operation, arguments, how))
    token = orjson.loads(reply.body).get("confirm_token") if reply.status == 202 else None  # none: a person has to approve it elsewhere
    if token is not None and (how.yes or user_agrees(reply)):
        how = replace(how, confirm_token=token)
        reply = asyncio.run(send_call(operation, arguments, how))
    print_reply(require_success(reply, repeatable_command(sys.argv[1:])), as_json=how.as_json)
    stopped = stream_failure(reply.body) if reply.media_type.startswith(EVENT_STREAM_TYPE) else None
    if stopped is not None:
        raise Failure(stopped, exit_code=1)
    cursor = next_cursor(reply)
    if cursor is not None and CURSOR_FIELD in operation.params.model_fields:
        sys.stdout.flush()
        sys.stderr.write(f"more: {option_flag(CURSOR_FIELD, TAKEN_OPTIONS)} {shlex.quote(cursor)}\n")


def repeatable_command(words: list[str]) -> str:
    """The command to type again, with a placeholder for the API key and without a used confirm token."""
    shown_words = ["reseller"]
    following = iter(words)
    for word in following:
        option, equals, _ = word.partition("=")
        if option in ("--key", "--confirm-token"):
            if not equals:
                next(following, None)
            shown_words += ["--key", "<API_KEY>"] if option == "--key" else []
        elif word != "--json":
            shown_words.append(word)
    return shlex.join(shown_words)


def user_agrees(reply: Reply) -> bool:
    """Whether the person at the terminal says yes; False in a pipe."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm(harmless_text(orjson.loads(reply.body)["message"]) + " Do it?")


async def send_call(operation: AnyOperation, arguments: dict[str, object], how: CallOptions) -> Reply:
    wish = CommandCall(operation, arguments, how.idempotency_key, how.confirm_token)
    require_one_place(how.url, how.org, how.data)
    if how.url:
        return await call_remotely(how.url, how.key, wish)
    return await call_locally(command_settings(data=how.data), wish, how.org)
