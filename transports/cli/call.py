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
from registry.call import Reply
from registry.catalogue import AnyOperation
from registry.clock import SystemClock
from registry.ids import SystemIds
from registry.model import Input
from registry.nulls import without_nulls
from registry.spelling import shown
from transports.cli.door import require_one_place
from transports.cli.event_stream import MEDIA_TYPE, failure
from transports.cli.failure import Failure
from transports.cli.fields import field_options, flag, is_secret, read, whole_input
from transports.cli.local import call_locally
from transports.cli.paging import FIELD, next_cursor
from transports.cli.remote import call_remotely
from transports.cli.render import explain, show
from transports.cli.secret_option import input_text, secret_text, warn_of_argument
from transports.cli.terminal_text import harmless
from transports.settings import load_settings


def all_or_nothing(context: typer.Context, text: str | None) -> str | None:
    """With the whole input in one option no field's own option is needed."""
    if text is not None:
        for parameter in context.command.params:
            parameter.required = False
    return text


@dataclass(frozen=True, slots=True)
class How:
    """How to make a call: where, as whom, and how to show it. The fields are options of every command."""

    url: Annotated[str | None, typer.Option("--url", envvar="RESELLER_URL", help="Call this server; without it, the local database.")] = (
        None
    )
    key: Annotated[
        str | None,
        typer.Option("--key", envvar="RESELLER_API_KEY", callback=warn_of_argument, help="API key for --url; else your login there."),
    ] = None
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


TAKEN = frozenset({field.name for field in dataclasses.fields(How)} | {"json", "help"})


def call_app(words: list[str]) -> typer.Typer:
    """Every operation as a command, in catalogue order; only the one that is asked for, since making them all takes a while."""
    app = typer.Typer(no_args_is_help=True, help="Call one operation; prints JSON, or a table on a terminal.")
    for operation in asked_for(words):
        app.command(operation.id, help=operation.description, short_help=operation.summary)(command(operation))
    return app


def asked_for(words: list[str]) -> list[AnyOperation]:
    """The operations that a command line may be about."""
    if words[:1] != ["call"]:
        return []
    named = [CATALOGUE.operations[word] for word in words[1:2] if word in CATALOGUE.operations]
    return named or list(CATALOGUE.operations.values())


def command(operation: AnyOperation) -> Callable[..., None]:
    """The command of one operation; its options are the fields of the input model and those of How."""
    model = operation.params

    def run(**given: object) -> None:
        texts = {name: given.pop(f"f_{name}") for name in model.model_fields}
        how = How(**given)  # pyright: ignore[reportArgumentType]  # typer has parsed them to these types
        finish(operation, arguments_of(model, {name: text for name, text in texts.items() if text is not None}, how), how)

    wanted = {"yes", "confirm_token"} if operation.confirmable else set[str]()
    wanted |= {"idempotency_key"} if operation.once is not None else set()
    common = [
        p
        for p in inspect.signature(How).parameters.values()
        if p.name in wanted or p.name not in {"yes", "confirm_token", "idempotency_key"}
    ]
    parameters = [*field_options(model, TAKEN), *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in common)]
    run.__name__ = operation.id
    run.__annotations__ = {p.name: cast(object, p.annotation) for p in parameters}
    setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010  # typer reads the signature
    return run


def arguments_of(model: type[Input], texts: dict[str, object], how: How) -> dict[str, object]:
    """The input as the options say it, one by one or as a whole."""
    names = {name: shown(name, info) for name, info in model.model_fields.items()}
    if how.json_input is None:
        return {names[name]: field_value(model, name, text) for name, text in texts.items()}
    if texts:
        given = ", ".join(flag(names[name], TAKEN) for name in texts)
        raise Failure(f"--json-input: is the whole input; leave out {given}, or put what it says into the object")
    value = whole_input("--json-input", input_text("--json-input", how.json_input))
    held = [names[name] for name, info in model.model_fields.items() if is_secret(info) and names[name] in value]
    if held and not how.json_input.startswith(("-", "@")):
        raise Failure(
            f"--json-input: {held[0]} is a secret, and is not taken from the command line, where others can read it; nothing was sent. "
            "Give `--json-input -` and pipe the object, or `--json-input @FILE`"
        )
    return without_nulls(model, value)


def field_value(model: type[Input], name: str, given: object) -> object:
    """What an option says; that of a secret says where the secret is."""
    info = model.model_fields[name]
    return secret_text(flag(shown(name, info), TAKEN), str(given)) if is_secret(info) else read(model, name, given, TAKEN)


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
    stopped = failure(reply.body) if reply.media_type.startswith(MEDIA_TYPE) else None
    if stopped is not None:
        raise Failure(stopped, exit_code=1)
    cursor = next_cursor(reply)
    if cursor is not None and FIELD in operation.params.model_fields:
        sys.stdout.flush()
        sys.stderr.write(f"more: {flag(FIELD, TAKEN)} {shlex.quote(cursor)}\n")


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
    return typer.confirm(harmless(orjson.loads(reply.body)["message"]) + " Do it?")


async def ask(operation: AnyOperation, arguments: dict[str, object], how: How) -> Reply:
    """One call, here or there."""
    key, token = how.idempotency_key, how.confirm_token
    require_one_place(how.url, how.org, how.data)
    if how.url:
        return await call_remotely(how.url, how.key, operation, arguments, idempotency_key=key, confirm_token=token)
    settings = load_settings(os.environ, env_file=Path(".env"), data=how.data)
    return await call_locally(settings, operation, arguments, organisation=how.org, idempotency_key=key, confirm_token=token)
