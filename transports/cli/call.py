"""`reseller call OPERATION`: one command per operation, made from the catalogue."""

import asyncio
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import orjson
import typer

from operations.catalogue import CATALOGUE
from registry.binding import kind_of
from registry.call import Reply
from registry.clock import SystemClock
from registry.ids import SystemIds
from registry.operation import Operation
from transports.cli.failure import Failure
from transports.cli.local import call_locally
from transports.cli.remote import call_remotely
from transports.cli.render import explain, show
from transports.settings import load_settings

Url = Annotated[str | None, typer.Option("--url", envvar="RESELLER_URL", help="Call this server; without it, the local database.")]
Key = Annotated[str | None, typer.Option("--key", envvar="RESELLER_API_KEY", help="API key for --url.")]
Org = Annotated[str | None, typer.Option("--org", help="Local calls: the organisation to act for.")]
Data = Annotated[Path | None, typer.Option("--data", help="Local calls: the directory with the database.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal too.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Confirm a two-step operation without asking.")]
IdempotencyKey = Annotated[str | None, typer.Option("--idempotency-key", help="Same key and input: same answer, one effect.")]
ConfirmToken = Annotated[str | None, typer.Option("--confirm-token", help="Token of the first half of a two-step operation.")]
COMMON: dict[str, Any] = {
    "url": Url,
    "key": Key,
    "org": Org,
    "data": Data,
    "as_json": AsJson,
}
DEFAULTS: dict[str, Any] = {"as_json": False, "yes": False}
PLAIN = {"int": int, "float": float, "bool": bool}


def call_app() -> typer.Typer:
    """Every operation as a command, in catalogue order."""
    app = typer.Typer(no_args_is_help=True, help="Call one operation; prints JSON, or a table on a terminal.")
    for operation in CATALOGUE.operations.values():
        app.command(operation.id, help=operation.description, short_help=operation.summary)(command(operation))
    return app


def command(operation: Operation[Any, Any]) -> Callable[..., None]:
    """The command of one operation; its options are the fields of the input model."""
    fields = {name: info.alias or name for name, info in operation.params.model_fields.items()}

    def run(**given: Any) -> None:
        arguments = {wire: read(operation, name, given[f"f_{name}"]) for name, wire in fields.items() if given[f"f_{name}"] is not None}
        finish(operation, arguments, given)

    parameters: list[inspect.Parameter] = []
    for name, info in operation.params.model_fields.items():
        option = typer.Option(
            f"--{fields[name].replace('_', '-')}", help=(info.description or "") + ("" if info.is_required() else " Optional.")
        )
        kind = PLAIN.get(kind_of(info.annotation), str)
        annotation: Any = Annotated[kind, option] if info.is_required() else Annotated[kind | None, option]
        parameters.append(parameter(f"f_{name}", annotation, inspect.Parameter.empty if info.is_required() else None))
    common = dict(COMMON)
    if operation.once is not None:
        common["idempotency_key"] = IdempotencyKey
    if operation.confirm:
        common |= {"confirm_token": ConfirmToken, "yes": Yes}
    parameters += [parameter(name, annotation, DEFAULTS.get(name)) for name, annotation in common.items()]
    run.__name__ = operation.id
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    cast(Any, run).__signature__ = inspect.Signature(parameters)
    return run


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """A keyword parameter."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def read(operation: Operation[Any, Any], name: str, text: Any) -> Any:
    """Objects and arrays are given as JSON text."""
    annotation = operation.params.model_fields[name].annotation
    if not isinstance(text, str) or not takes_json(annotation):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Failure(f'--{name.replace("_", "-")}: must be JSON, for example \'{{"order": "A-17"}}\'; got {text[:60]}') from None


def takes_json(annotation: Any) -> bool:
    """Whether a field holds an object or an array."""
    return any(word in str(annotation) for word in ("dict[", "list[", "tuple["))


def finish(operation: Operation[Any, Any], arguments: dict[str, Any], given: dict[str, Any]) -> None:
    """Call, ask for a confirmation where one is needed, and show what came of it."""
    reply = asyncio.run(ask(operation, arguments, given))
    if reply.status == 202 and (given.get("yes") or agreed(reply)):
        given["confirm_token"] = orjson.loads(reply.body)["confirm_token"]
        reply = asyncio.run(ask(operation, arguments, given))
    if reply.status == 202 or reply.status >= 400:
        words = [w for w in sys.argv if w != "--json"]
        raise Failure(explain(reply, " ".join(["reseller", *words[1:]])), exit_code=3 if reply.status >= 500 else 1)
    show(reply, as_json=given["as_json"])


def agreed(reply: Reply) -> bool:
    """The person at the terminal says yes; in a pipe nobody does."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm(orjson.loads(reply.body)["message"] + " Do it?")


async def ask(operation: Operation[Any, Any], arguments: dict[str, Any], given: dict[str, Any]) -> Reply:
    """One call, here or there."""
    key, token = given.get("idempotency_key"), given.get("confirm_token")
    if key is None and operation.once is not None and operation.once.required:
        # Choice: a person at a terminal gets a key made for them, shown so that the very call can be repeated.
        key = given["idempotency_key"] = SystemIds(SystemClock()).new("cli-")
        sys.stderr.write(f"idempotency key: {key}\n")
    if given["url"]:
        return await call_remotely(given["url"], given["key"], operation, arguments, idempotency_key=key, confirm_token=token)
    settings = load_settings(os.environ, env_file=Path(".env"), data=given["data"])
    return await call_locally(settings, operation, arguments, organisation=given["org"], idempotency_key=key, confirm_token=token)
