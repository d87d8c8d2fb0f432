"""`reseller call OPERATION`: one command per operation, made from the catalogue."""

import asyncio
import dataclasses
import inspect
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, cast

import orjson
import typer

from operations.catalogue import CATALOGUE
from registry.binding import kind_of
from registry.call import Reply
from registry.catalogue import AnyOperation
from registry.clock import SystemClock
from registry.ids import SystemIds
from transports.cli.failure import Failure
from transports.cli.local import call_locally
from transports.cli.remote import call_remotely
from transports.cli.render import explain, show
from transports.settings import load_settings

PLAIN: dict[str, type] = {"int": int, "float": float, "bool": bool}


@dataclass(frozen=True, slots=True)
class How:
    """How to make a call: where, as whom, and how to show it. The fields are options of every command."""

    url: Annotated[str | None, typer.Option("--url", envvar="RESELLER_URL", help="Call this server; without it, the local database.")] = (
        None
    )
    key: Annotated[str | None, typer.Option("--key", envvar="RESELLER_API_KEY", help="API key for --url.")] = None
    org: Annotated[str | None, typer.Option("--org", help="Local calls: the organisation to act for.")] = None
    data: Annotated[Path | None, typer.Option("--data", help="Local calls: the directory with the database.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on a terminal too.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Confirm a two-step operation without asking.")] = False
    idempotency_key: Annotated[str | None, typer.Option("--idempotency-key", help="Same key and input: same answer, one effect.")] = None
    confirm_token: Annotated[str | None, typer.Option("--confirm-token", help="Token of the first half of a two-step operation.")] = None


def call_app() -> typer.Typer:
    """Every operation as a command, in catalogue order."""
    app = typer.Typer(no_args_is_help=True, help="Call one operation; prints JSON, or a table on a terminal.")
    for operation in CATALOGUE.operations.values():
        app.command(operation.id, help=operation.description, short_help=operation.summary)(command(operation))
    return app


def command(operation: AnyOperation) -> Callable[..., None]:
    """The command of one operation; its options are the fields of the input model and those of How."""
    fields = {name: info.alias or name for name, info in operation.params.model_fields.items()}

    def run(**given: object) -> None:
        texts = {name: given.pop(f"f_{name}") for name in fields}
        arguments = {fields[name]: read(operation, name, text) for name, text in texts.items() if text is not None}
        finish(operation, arguments, How(**given))  # pyright: ignore[reportArgumentType]  # typer has parsed them to these types

    wanted = {"yes", "confirm_token"} if operation.confirm else set[str]()
    wanted |= {"idempotency_key"} if operation.once is not None else set()
    common = [
        p
        for p in inspect.signature(How).parameters.values()
        if p.name in wanted or p.name not in {"yes", "confirm_token", "idempotency_key"}
    ]
    parameters = [*field_options(operation, fields), *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in common)]
    run.__name__ = operation.id
    run.__annotations__ = {p.name: cast(object, p.annotation) for p in parameters}
    setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010  # typer reads the signature
    return run


def field_options(operation: AnyOperation, fields: dict[str, str]) -> list[inspect.Parameter]:
    """One option per input field; prefixed, so that none collides with an option of How."""
    found: list[inspect.Parameter] = []
    for name, info in operation.params.model_fields.items():
        needed = info.is_required()
        option = typer.Option(flag(fields[name]), help=(info.description or "") + ("" if needed else " Optional."))
        word = kind_of(info.annotation)
        kind = list[str] if word == "list" else PLAIN.get(word, str)
        annotation = Annotated[kind if needed else kind | None, option]
        default = inspect.Parameter.empty if needed else None
        found.append(inspect.Parameter(f"f_{name}", inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default))
    return found


def flag(field: str) -> str:
    """A field's option. Choice: where How has the word already, as with a webhook's url, it is `--input-url`."""
    taken = {field.name for field in dataclasses.fields(How)} | {"json", "help"}
    return f"--{'input-' if field in taken else ''}{field.replace('_', '-')}"


def read(operation: AnyOperation, name: str, given: object) -> object:
    """Objects and arrays are given as JSON text; an array of words may be `DE,FR` as well, and its option given several times."""
    info = operation.params.model_fields[name]
    option = flag(info.alias or name)
    if isinstance(given, list):
        return [word for text in cast(list[str], given) for word in words(option, text)]
    return parsed(option, given) if isinstance(given, str) and takes_json(info.annotation) else given


def words(option: str, text: str) -> list[object]:
    """What one use of a list's option holds."""
    return cast(list[object], parsed(option, text)) if text.startswith("[") else [word.strip() for word in text.split(",")]


def parsed(option: str, text: str) -> object:
    """JSON text as a value."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Failure(f'{option}: must be JSON, for example \'{{"order": "A-17"}}\'; got {text[:60]}') from None


def takes_json(annotation: object) -> bool:
    """Whether a field holds an object or an array."""
    return any(word in str(annotation) for word in ("dict[", "list[", "tuple["))


def finish(operation: AnyOperation, arguments: dict[str, object], how: How) -> None:
    """Call, ask for a confirmation where one is needed, and show what came of it."""
    if how.idempotency_key is None and operation.once is not None and operation.once.required:
        # Choice: a person at a terminal gets a key made for them, shown so that the very call can be repeated.
        how = replace(how, idempotency_key=SystemIds(SystemClock()).new("cli-"))
        sys.stderr.write(f"idempotency key: {how.idempotency_key}\n")
    reply = asyncio.run(ask(operation, arguments, how))
    if reply.status == 202 and (how.yes or agreed(reply)):
        how = replace(how, confirm_token=orjson.loads(reply.body)["confirm_token"])
        reply = asyncio.run(ask(operation, arguments, how))
    if reply.status == 202 or reply.status >= 400:
        raise Failure(explain(reply, repeatable(sys.argv[1:])), exit_code=3 if reply.status >= 500 else 1)
    show(reply, as_json=how.as_json)


def repeatable(words: list[str]) -> str:
    """The command to type again: the API key is left to the reader, and a token that was used up is left out."""
    kept = ["reseller"]
    following = iter(words)
    for word in following:
        option, equals, _ = word.partition("=")
        if option in ("--key", "--confirm-token"):
            if not equals:
                next(following, None)
            kept += ["--key", "<API_KEY>"] if option == "--key" else []
        elif word != "--json":
            kept.append(word)
    return shlex.join(kept)


def agreed(reply: Reply) -> bool:
    """The person at the terminal says yes; in a pipe nobody does."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm(orjson.loads(reply.body)["message"] + " Do it?")


async def ask(operation: AnyOperation, arguments: dict[str, object], how: How) -> Reply:
    """One call, here or there."""
    key, token = how.idempotency_key, how.confirm_token
    if how.url:
        return await call_remotely(how.url, how.key, operation, arguments, idempotency_key=key, confirm_token=token)
    settings = load_settings(os.environ, env_file=Path(".env"), data=how.data)
    return await call_locally(settings, operation, arguments, organisation=how.org, idempotency_key=key, confirm_token=token)
