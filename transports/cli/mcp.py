"""`reseller mcp`: connect an MCP client, or be one's server over stdio."""

import asyncio
import os
import shlex
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import orjson
import typer
from pydantic import SecretStr

from registry.errors import StoreUnavailable
from transports.cli.render import print_line
from transports.cli.secret_option import warn_of_argument
from transports.settings import Settings, load_settings

HERE = "http://127.0.0.1:8000"
OF_SERVERS = frozenset({"data", "host", "port", "worker", "metrics_port", "metrics_host", "log"})
mcp_app = typer.Typer(no_args_is_help=True, help="Connect MCP clients.")
Toolsets = Annotated[str, typer.Option("--toolsets", help="Comma-separated toolsets or presets; empty: connectivity and operator.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer only tools that change nothing.")]


class Client(StrEnum):
    """MCP clients whose configuration we know."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"


@mcp_app.command("config")
def config(
    client: Annotated[Client, typer.Argument(help="The client to configure.")],
    url: Annotated[str | None, typer.Option("--url", envvar="RESELLER_URL", help=f"The server's address. Default {HERE}.")] = None,
    key: Annotated[
        str, typer.Option("--key", envvar="RESELLER_API_KEY", callback=warn_of_argument, help="API key to put into the block.")
    ] = "<API_KEY>",
    data: Annotated[Path | None, typer.Option("--data", help="claude-desktop: directory with the embedded database.")] = None,
    org: Annotated[str | None, typer.Option("--org", help="claude-desktop: the organisation to act for, when there are several.")] = None,
) -> None:
    """Print what the client's configuration needs; nothing is written anywhere."""
    server_url, url = url, f"{(url or HERE).rstrip('/').removesuffix('/mcp')}/mcp"
    server: dict[str, object] = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {key}"}}
    if client is Client.CLAUDE_CODE:
        header = shlex.quote(f"Authorization: Bearer {key}")
        print_line(f"claude mcp add --transport http connectivity {shlex.quote(url)} --header {header}")
        return
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    if client is Client.CLAUDE_DESKTOP:
        if org is None:
            asyncio.run(require_one_organisation(settings))
        sys.stderr.writelines(f"{line}\n" for line in warnings(settings, server_url))
    blocks: dict[Client, dict[str, object]] = {
        Client.CLAUDE_DESKTOP: {"mcpServers": {"connectivity": local(settings, org)}},
        Client.CURSOR: {"mcpServers": {"connectivity": {"url": url, "headers": server["headers"]}}},
        Client.VSCODE: {"servers": {"connectivity": server}},
    }
    print_line(orjson.dumps(blocks[client], option=orjson.OPT_INDENT_2).decode())


async def require_one_organisation(settings: Settings) -> None:
    """Refuse a block that could not start, because the database has several organisations and it names none."""
    from transports.cli.local import only_organisation, open_local  # brings the whole service

    if settings.embedded and not (settings.data / "service.db").exists():
        return  # a warning says so
    try:
        service = await open_local(settings)
    except StoreUnavailable as error:
        sys.stderr.write(f"the database does not answer ({error.message}): if it has several organisations, name one with --org\n")
        return
    try:
        await only_organisation(service)
    finally:
        await service.stop()


def local(settings: Settings, organisation: str | None) -> dict[str, object]:
    """What starts this program on the same database from anywhere: no shell's settings and no `.env` of this directory are known there."""
    words = ["mcp", "stdio"]
    words += ["--data", str(settings.data.absolute())] if settings.embedded else []
    words += ["--org", organisation] if organisation else []
    passed = given(settings)
    return {"command": reseller(), "args": words, **({"env": passed} if passed else {})}


def given(settings: Settings) -> dict[str, str]:
    """The settings that were made, but for those that only a server has; a secret's value is left to the reader."""
    said = settings.model_dump(mode="json", include=settings.model_fields_set - OF_SERVERS)
    named = {f"SERVICE_{name.upper()}": (name, value) for name, value in said.items()}
    return {
        word: f"<{word}>" if isinstance(getattr(settings, name), SecretStr) else written(value) for word, (name, value) in named.items()
    }


def written(value: object) -> str:
    """A setting as the environment has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def warnings(settings: Settings, server_url: str | None) -> Iterator[str]:
    """What a reader of the block for Claude Desktop may not expect."""
    here = settings.data.absolute()
    if server_url:
        place = f"the database in {here}" if settings.embedded else "the database of SERVICE_DATABASE_URL"
        yield f"Claude Desktop starts a local program on {place}, as its admin: {server_url} and the key are not used"
    secrets = [word for word, value in given(settings).items() if value == f"<{word}>"]
    if secrets:
        yield f"write the values of the server into the block, which leaves secrets out: {', '.join(secrets)}"
    if settings.embedded and not (here / "service.db").exists():
        yield f"there is no database in {here}: name the directory of `serve` with --data"


def reseller() -> str:
    """This command's own path, for clients that start it."""
    return str(Path(sys.executable).with_name("reseller"))


@mcp_app.command("stdio")
def stdio(
    toolsets: Toolsets = "",
    read_only: ReadOnly = False,
    org: Annotated[str | None, typer.Option("--org", help="The organisation to act for, when there are several.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None,
) -> None:
    """Serve MCP over standard input and output, on the local database, as the organisation's admin."""
    from transports.cli.stdio import serve_stdio  # brings the MCP SDK

    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    asyncio.run(serve_stdio(settings, organisation=org, toolsets=toolsets, read_only=read_only))
