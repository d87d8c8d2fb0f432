"""`reseller invoice preview`: see an invoice as its recipient does."""

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from transports.cli.target import TargetOptions, at_target, call_once
from transports.cli.terminal import Failure, print_line

invoice_app = typer.Typer(no_args_is_help=True, help="Look at invoices.")


@invoice_app.command("preview")
@at_target
def preview_invoice(
    where: TargetOptions,
    id: Annotated[str, typer.Argument(help="The invoice, inv_...")],
    save: Annotated[Path | None, typer.Option("--save", help="Write it here instead of opening it.")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only write it, and say where.")] = False,
) -> None:
    """Open an invoice: a draft as a page in the browser, one that was sent as its PDF. Both show the same figures."""
    reply = call_once(where, "get_invoice_document", {"id": id}, "get_invoice_document")
    suffix = ".pdf" if reply.media_type.startswith("application/pdf") else ".html"
    path = save or Path(tempfile.mkdtemp(prefix="invoice-")) / f"{id}{suffix}"
    try:
        path.write_bytes(reply.body)
    except OSError as error:
        raise Failure(f"--save: {path} cannot be written ({error.strerror})") from None
    print_line(str(path))
    if save is None and not no_open and not webbrowser.open(path.absolute().as_uri()):
        print_line("no browser could be opened here: open the file yourself")
