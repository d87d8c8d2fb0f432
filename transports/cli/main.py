"""`reseller`: run the service, call it, look after it."""

import gc
import os
import sys

import typer

from registry.errors import Refusal
from storage.migrate import SchemaMismatch
from transports.cli.failure import Failure
from transports.cli.terminal_text import shown_on
from transports.settings import BadSettings

HELP = "Issue eSIMs and follow what happens to them: over HTTP, MCP and here."


def make_app(words: list[str]) -> typer.Typer:
    """The commands; those that cost start-up time are loaded only when they are asked for."""
    app = typer.Typer(name="reseller", help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    from transports.cli.serve import serve  # the one command whose start-up time is measured is loaded alone

    app.command()(serve)
    if words[:1] == ["serve"]:
        app.callback()(lambda: None)  # keeps `serve` a word of the command line although it is the only one here
        return app
    add_others(app, words)
    return app


def add_others(app: typer.Typer, words: list[str]) -> None:
    """All but `serve`."""
    from transports.cli.audit import audit
    from transports.cli.call import call_app
    from transports.cli.cdr import cdr_app
    from transports.cli.database import database_app
    from transports.cli.doctor import doctor
    from transports.cli.documents import llms, openapi, reference
    from transports.cli.events import events_app
    from transports.cli.invoice import invoice_app
    from transports.cli.issuance import issuance_app
    from transports.cli.keys import keys_app
    from transports.cli.login import login, logout
    from transports.cli.mcp import mcp_app
    from transports.cli.members import members_app
    from transports.cli.orders import orders_app
    from transports.cli.org import org_app
    from transports.cli.payments import payments_app
    from transports.cli.sandbox import sandbox_app
    from transports.cli.storefront import storefront_app
    from transports.cli.trigger import trigger
    from transports.cli.version import whole
    from transports.cli.webhooks import webhooks_app
    from transports.cli.worker import worker

    app.callback(help=HELP)(whole)
    groups = {
        "call": call_app(words),
        "events": events_app,
        "webhooks": webhooks_app,
        "org": org_app,
        "keys": keys_app,
        "members": members_app,
        "issuance": issuance_app,
        "invoice": invoice_app,
        "payments": payments_app,
        "storefront": storefront_app,
        "orders": orders_app,
        "cdr": cdr_app,
        "db": database_app,
        "mcp": mcp_app,
        "sandbox": sandbox_app,
    }
    for name, group in groups.items():
        app.add_typer(group, name=name)
    for plain in (worker, trigger, audit, login, logout, openapi, llms, reference, doctor):
        app.command()(plain)


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
    sys.stderr.write(shown_on(sys.stderr, message) + "\n")
    sys.exit(code)
