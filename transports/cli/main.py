"""`reseller`: run the service, call it, look after it."""

import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from registry.errors import Refusal
from storage.migrate import SchemaMismatch
from transports.cli.failure import Failure
from transports.settings import BadSettings

Data = Annotated[Path | None, typer.Option("--data", help="Directory that keeps all state of the embedded default.")]

HELP = "Issue eSIMs and follow what happens to them: over HTTP, MCP and here."


def make_app(words: list[str]) -> typer.Typer:
    """The commands; those that cost start-up time are loaded only when they are asked for."""
    app = typer.Typer(name="reseller", help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    from transports.cli.serve import serve  # the one command whose start-up time is measured is loaded alone

    app.command()(serve)
    if words[:1] == ["serve"]:
        app.callback()(lambda: None)  # keeps `serve` a word of the command line although it is the only one here
        return app
    from transports.cli.audit import audit
    from transports.cli.call import call_app
    from transports.cli.cdr import cdr_app
    from transports.cli.database import database_app
    from transports.cli.doctor import doctor
    from transports.cli.documents import openapi, reference
    from transports.cli.events import events_app
    from transports.cli.invoice import invoice_app
    from transports.cli.issuance import issuance_app
    from transports.cli.keys import keys_app
    from transports.cli.login import login, logout
    from transports.cli.mcp import mcp_app
    from transports.cli.members import members_app
    from transports.cli.order_settle import settle_one
    from transports.cli.org import org_app
    from transports.cli.payments import payments_app
    from transports.cli.sandbox import sandbox_app
    from transports.cli.storefront import storefront_app
    from transports.cli.trigger import trigger
    from transports.cli.version import whole
    from transports.cli.webhooks import webhooks_app
    from transports.cli.worker import worker

    app.callback(help=HELP)(whole)
    app.command()(worker)
    app.add_typer(call_app(words), name="call")
    app.add_typer(events_app, name="events")
    app.add_typer(webhooks_app, name="webhooks")
    app.command()(trigger)
    app.add_typer(org_app, name="org")
    app.add_typer(keys_app, name="keys")
    app.add_typer(members_app, name="members")
    app.command()(audit)
    app.add_typer(issuance_app, name="issuance")
    app.add_typer(invoice_app, name="invoice")
    app.add_typer(payments_app, name="payments")
    storefront_app.command("settle")(settle_one)
    app.add_typer(storefront_app, name="storefront")
    app.add_typer(cdr_app, name="cdr")
    app.add_typer(database_app, name="db")
    app.add_typer(mcp_app, name="mcp")
    app.add_typer(sandbox_app, name="sandbox")
    for plain in (login, logout, openapi, reference, doctor):
        app.command()(plain)
    return app


def main() -> None:
    """Run a command; what the user can mend is one line on stderr, not a traceback."""
    words = sys.argv[1:]
    try:
        app = make_app(words)
        if words[:1] != ["serve"]:
            gc.enable()
        app(prog_name="reseller")
    except Failure as failure:
        fail(failure.message, failure.exit_code)
    except BadSettings as wrong:
        fail(str(wrong), 2)
    except SchemaMismatch as wrong:
        fail(str(wrong), 3)
    except Refusal as refusal:
        fail(refusal.message, 3)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int) -> None:
    """One line, and the exit code."""
    sys.stderr.write(message + "\n")
    sys.exit(code)
