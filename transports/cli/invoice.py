"""`reseller invoice preview`: see an invoice as its recipient does."""

import asyncio
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from operations.invoicing.document import get_invoice_document
from registry.call import Reply
from transports.cli.door import Data, Key, Org, Url, Where, accepted, open_door
from transports.cli.failure import Failure
from transports.cli.render import print_line

invoice_app = typer.Typer(no_args_is_help=True, help="Look at invoices.")


@invoice_app.callback()
def invoice() -> None:
    """Look at invoices."""


@invoice_app.command("preview")
def preview(
    id: Annotated[str, typer.Argument(help="The invoice, inv_...")],
    save: Annotated[Path | None, typer.Option("--save", help="Write it here instead of opening it.")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only write it, and say where.")] = False,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Open an invoice: a draft as a page in the browser, one that was sent as its PDF. Both show the same figures."""
    reply = asyncio.run(fetch(Where(url, key, org, data), id))
    suffix = ".pdf" if reply.media_type.startswith("application/pdf") else ".html"
    path = save or Path(tempfile.mkdtemp(prefix="invoice-")) / f"{id}{suffix}"
    try:
        path.write_bytes(reply.body)
    except OSError as error:
        raise Failure(f"--save: {path} cannot be written ({error.strerror})") from None
    print_line(str(path))
    if save is None and not no_open and not webbrowser.open(path.absolute().as_uri()):
        print_line("no browser could be opened here: open the file yourself")


async def fetch(where: Where, id: str) -> Reply:
    """The document, or the refusal as a failure."""
    async with open_door(where) as door:
        return accepted(await door.ask(get_invoice_document.id, {"id": id}), get_invoice_document.id)
