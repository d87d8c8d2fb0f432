"""`reseller`: run the service, call it, look after it."""

import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, NamedTuple, cast

import typer

from registry.errors import Refusal
from storage.engine.migrate import SchemaMismatch
from transports.cli.terminal import Failure, command_settings, print_line, to_stderr
from transports.settings import BadSettings
from transports.version import VERSION, build_sha

RESELLER_HELP = "Issue eSIMs and follow what happens to them: over HTTP, MCP and here."


class CommandSource(NamedTuple):
    """Where a command, or a group of commands, is defined: in which module, and under which name."""

    module: str
    name: str


GROUPS = {
    "call": CommandSource("transports.cli.call", "call_app"),
    "events": CommandSource("transports.cli.events", "events_app"),
    "webhooks": CommandSource("transports.cli.webhooks", "webhooks_app"),
    "org": CommandSource("transports.cli.org", "org_app"),
    "keys": CommandSource("transports.cli.keys", "keys_app"),
    "members": CommandSource("transports.cli.members", "members_app"),
    "issuance": CommandSource("transports.cli.issuance", "issuance_app"),
    "invoice": CommandSource("transports.cli.invoice", "invoice_app"),
    "payments": CommandSource("transports.cli.payments", "payments_app"),
    "storefront": CommandSource("transports.cli.storefront", "storefront_app"),
    "orders": CommandSource("transports.cli.orders", "orders_app"),
    "cdr": CommandSource("transports.cli.cdr", "cdr_app"),
    "plan": CommandSource("transports.cli.plan", "plan_app"),
    "db": CommandSource("transports.cli.database", "database_app"),
    "mcp": CommandSource("transports.cli.mcp", "mcp_app"),
    "sandbox": CommandSource("transports.cli.sandbox", "sandbox_app"),
}
"""Groups of commands by their word, in the order in which the help lists them."""
COMMANDS = {
    "serve": CommandSource("transports.cli.serve", "serve"),
    "worker": CommandSource("transports.cli.serve", "worker"),
    "trigger": CommandSource("transports.cli.events", "trigger"),
    "audit": CommandSource("transports.cli.audit", "audit"),
    "login": CommandSource("transports.cli.login", "login"),
    "logout": CommandSource("transports.cli.login", "logout"),
    "openapi": CommandSource("transports.cli.documents", "openapi"),
    "asyncapi": CommandSource("transports.cli.documents", "asyncapi"),
    "llms": CommandSource("transports.cli.documents", "llms"),
    "reference": CommandSource("transports.cli.documents", "reference"),
    "doctor": CommandSource("transports.cli.doctor", "doctor"),
}
"""Commands by their word."""


def show_version(asked: bool) -> None:
    """Version and build as /health shows them; wrong settings do not hide the version."""
    if not asked:
        return
    try:
        build = build_sha(command_settings().build_sha)
    except BadSettings:
        build = "unknown, since the settings are wrong: see `reseller doctor`"
    print_line(f"reseller {VERSION} (build {build})")
    raise typer.Exit


def root_options(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=show_version, help="Show the version and end.")] = False,
) -> None:
    """Issue eSIMs and follow what happens to them: over HTTP, MCP and here."""
    del version


def make_app(words: list[str]) -> typer.Typer:
    """The commands. Imports only the module of the command that `words` begin with, or all of them for the help."""
    app = typer.Typer(name="reseller", help=RESELLER_HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback(help=RESELLER_HELP)(root_options)  # keeps a command a word of the command line where it is the only one here
    if words[:1] == ["--version"]:
        return app
    named = words[0] if words and words[0] in {*GROUPS, *COMMANDS} else None
    for word, source in COMMANDS.items():
        if named in (None, word):
            app.command(word)(cast("Callable[..., None]", loaded(source)))
    for word, source in GROUPS.items():
        if named in (None, word):
            if word == "sandbox" and find_spec("simulators") is None:  # a product that came without them
                continue
            group = loaded(source)
            made = cast("Callable[[list[str]], typer.Typer]", group)(words) if word == "call" else cast(typer.Typer, group)
            app.add_typer(made, name=word)
    return app


def loaded(source: CommandSource) -> object:
    """The object that `source` names. Its module is imported now, since importing all of them takes seconds."""
    return getattr(import_module(source.module), source.name)


def main() -> None:
    """Runs a command; what the user can fix is one line on stderr, not a traceback."""
    words = sys.argv[1:]
    try:
        app = make_app(words)
        if words[:1] != ["serve"]:
            gc.enable()
        app(prog_name="reseller")
    except Failure as failure:
        exit_with(failure.message, failure.exit_code)
    except BadSettings as wrong:
        exit_with(str(wrong), 2)
    except SchemaMismatch as wrong:
        exit_with(str(wrong), 3)
    except Refusal as refusal:
        exit_with(refusal.message, 3)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_with(message: str, code: int) -> None:
    to_stderr(message)
    sys.exit(code)
