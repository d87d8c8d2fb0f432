"""The input fields of an operation as options: what each is called, what its help says, and what its text means."""

import inspect
import types
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Literal, Union, cast, get_args, get_origin

import orjson
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from registry.binding import INTEGER, NUMBER, kind_of
from registry.model import Input, Secret
from registry.spelling import shown
from transports.cli.failure import Failure

PLAIN: Mapping[str, type] = {"int": int, "float": float, "bool": bool}
KINDS = {"int": "INTEGER", "float": "NUMBER"}
NUMBERS = {"int": (INTEGER, int, "an integer"), "float": (NUMBER, float, "a number")}


def field_options(model: type[Input], taken: Collection[str]) -> list[inspect.Parameter]:
    """One option per input field; prefixed, so that none collides with an option of every command."""
    found: list[inspect.Parameter] = []
    written = model.model_json_schema(by_alias=True).get("properties", {})
    for name, info in model.model_fields.items():
        needed = info.is_required()
        word, nullable = kind_of(info.annotation), takes_null(model, info)
        word = "str" if is_text(written.get(info.alias or name, {})) else word
        words, metavar = flag(shown(name, info), taken), "-|@FILE" if is_secret(info) else metavar_of(info, nullable=nullable)
        if word == "bool":
            words = f"{words}/--no-{words.removeprefix('--')}"
        option = typer.Option(words, metavar=metavar, help=help_of(shown(name, info), info, taken))
        kind = list[str] if word == "list" else str if nullable else PLAIN.get(word, str)
        annotation = Annotated[kind if needed else kind | None, option]
        default = inspect.Parameter.empty if needed else None
        found.append(inspect.Parameter(f"f_{name}", inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default))
    return found


def is_text(schema: Mapping[str, object]) -> bool:
    """Whether a field is written as a text, whatever it is kept as: a time is a number of seconds inside."""
    kinds = cast("list[Mapping[str, object]]", schema.get("anyOf", [schema]))
    return any(kind.get("type") == "string" for kind in kinds)


def is_secret(info: FieldInfo) -> bool:
    """Whether a field holds a credential, which no command line is to hold."""
    return any(mark is Secret for mark in info.metadata)


def flag(field: str, taken: Collection[str]) -> str:
    """A field's option. Choice: where every command has the word already, as with a webhook's url, it is `--input-url`."""
    return f"--{'input-' if field in taken else ''}{field.replace('_', '-')}"


def help_of(field: str, info: FieldInfo, taken: Collection[str]) -> str:
    """What the field means, the values it may have, and the name it has everywhere else."""
    allowed = ", ".join(choices(info))
    keys = next((", ".join(shown(*item) for item in model.model_fields.items()) for model in objects(info.annotation)), "")
    parts = [
        info.description or "",
        f"One of: {allowed}." if allowed else "",
        f"An object with {keys}." if keys else "",
        f"The field `{field}`." if field in taken else "",
        "A secret: - reads it from standard input, @FILE from a file." if is_secret(info) else "",
        "" if info.is_required() else "Optional.",
    ]
    return " ".join(part for part in parts if part)


def metavar_of(info: FieldInfo, *, nullable: bool) -> str | None:
    """The kind of value, where it is not the option's own type."""
    if takes_object(info.annotation):
        return "JSON"
    if kind_of(info.annotation) == "list":
        return f"{KINDS.get(item_kind(info.annotation), 'TEXT')},..."
    return KINDS.get(kind_of(info.annotation), "TEXT") + "|null" if nullable else None


def takes_null(model: type[Input], info: FieldInfo) -> bool:
    """Whether null asks for something that leaving the field out does not."""
    kinds = members(info.annotation)
    told = info.is_required() or any(model.model_fields[name] is info for name in model.null_clears)
    return told and type(None) in kinds and not {"bool", "list"} & {kind_of(kind) for kind in kinds}


def members(annotation: object) -> list[object]:
    """The kinds that a field may have, without their annotations."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return members(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [kind for member in get_args(annotation) for kind in members(member)]
    return [annotation]


def item_kind(annotation: object) -> str:
    """The kind of a list's items."""
    return next((kind_of(get_args(kind)[0]) for kind in members(annotation) if get_origin(kind) is list and get_args(kind)), "str")


def objects(annotation: object) -> Iterator[type[BaseModel]]:
    """The models among them."""
    yield from (kind for kind in members(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel))


def takes_object(annotation: object) -> bool:
    """Whether a field holds an object."""
    return any(get_origin(kind) is dict for kind in members(annotation)) or any(objects(annotation))


def takes_anything(annotation: object) -> bool:
    """Whether a field holds any JSON: a text is a text there, and what begins like an object or an array is one."""
    return any(str(kind) == "JsonValue" for kind in members(annotation))


def choices(info: FieldInfo) -> list[str]:
    """The values that a field may have, where they are few and known."""
    extra = cast(object, info.json_schema_extra)
    listed = cast("dict[str, object]", extra).get("enum") if isinstance(extra, dict) else None
    return [str(value) for value in (cast("list[object]", listed) if isinstance(listed, list) else literals(info.annotation))]


def literals(annotation: object) -> list[object]:
    """The values of every Literal in it, or of an enumeration that only its schema tells."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if isinstance(annotation, FieldInfo):
        return list[object](choices(annotation))
    return [value for part in get_args(annotation) for value in literals(part)]


def read(model: type[Input], name: str, given: object, taken: Collection[str]) -> object:
    """Objects and arrays are given as JSON text; an array of words or numbers may be `DE,FR`, or its option given several times."""
    info = model.model_fields[name]
    option = flag(shown(name, info), taken)
    if isinstance(given, list):
        kind = item_kind(info.annotation)
        return [item(option, kind, word) for text in cast("list[str]", given) for word in words(option, text)]
    if not isinstance(given, str):
        return given
    if takes_null(model, info):
        return None if given == "null" else number(option, kind_of(info.annotation), given, " or null")
    if takes_object(info.annotation) or (takes_anything(info.annotation) and given.startswith(("{", "["))):
        return parsed(option, given)
    return given


def item(option: str, kind: str, word: object) -> object:
    """One item of a list; what was JSON is what it is."""
    return number(option, kind, word) if isinstance(word, str) else word


def number(option: str, kind: str, text: str, other: str = "") -> object:
    """The number of an option that takes `other` things as well; text that is to be text stays as it is."""
    if kind not in NUMBERS:
        return text
    pattern, convert, rule = NUMBERS[kind]
    if not pattern.fullmatch(text):
        raise Failure(f"{option}: must be {rule}{other}; got {text[:60]}")
    return convert(text)


def words(option: str, text: str) -> list[object]:
    """What one use of a list's option holds."""
    return cast("list[object]", parsed(option, text)) if text.startswith("[") else [word.strip() for word in text.split(",")]


def parsed(option: str, text: str) -> object:
    """JSON text as a value."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Failure(f'{option}: must be JSON, for example \'{{"order": "A-17"}}\'; got {text[:60]}') from None


def whole_input(option: str, text: str) -> dict[str, object]:
    """The whole input as one JSON object."""
    value = parsed(option, text)
    if not isinstance(value, dict):
        raise Failure(f"{option}: must be a JSON object with the operation's fields; got {text[:60]}")
    return cast("dict[str, object]", value)
