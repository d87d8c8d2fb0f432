"""`reseller openapi`, `reseller asyncapi`, `reseller llms` and `reseller reference`: the descriptions of the service as files."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from operations.catalogue import CATALOGUE
from transports.cli.terminal import print_line
from transports.openapi.asyncapi import asyncapi_bytes
from transports.openapi.page import openapi_bytes
from transports.reference.files import write_reference
from transports.reference.llms import llms_text
from transports.service import site_of
from transports.settings_files import load_settings

BaseUrlOption = Annotated[str, typer.Option("--base-url", help="Address to write into the document.")]
DOCUMENT_ADDRESS = "http://127.0.0.1:8000"


def openapi(base_url: BaseUrlOption = DOCUMENT_ADDRESS) -> None:
    """Print the OpenAPI 3.1 document."""
    sys.stdout.buffer.write(openapi_bytes(CATALOGUE, site_of(load_settings({}), base_url), pretty=True))


def asyncapi(base_url: BaseUrlOption = DOCUMENT_ADDRESS) -> None:
    """Print the AsyncAPI 3.0 document: the events that are sent to webhooks."""
    sys.stdout.buffer.write(asyncapi_bytes(CATALOGUE, site_of(load_settings({}), base_url), pretty=True))


def llms() -> None:
    """Print llms.txt: every guide and operation as a link into the source tree. A server has its own at /llms.txt."""
    sys.stdout.write(llms_text(CATALOGUE))


def reference(
    directory: Annotated[Path, typer.Argument(help="Directory to write.")] = Path("docs/reference"),
    base_url: BaseUrlOption = DOCUMENT_ADDRESS,
) -> None:
    """Write the reference: one Markdown page per toolset, and an index."""
    for path in write_reference(CATALOGUE, directory, site_of(load_settings({}), base_url)):
        print_line(str(path))
