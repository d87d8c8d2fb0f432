"""`reseller mcp`: connect an MCP client, or be one's server over stdio."""

import asyncio
import shlex
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import anyio
import orjson
import typer
from pydantic import SecretStr

from registry.errors import StoreUnavailable
from transports.cli.target import local_caller, only_organisation, open_local
from transports.cli.terminal import command_settings, print_line, to_stderr, warn_of_argument
from transports.mcp.request_caller import RequestCaller, select_tools
from transports.service import mcp_settings
from transports.settings import Settings


async def serve_stdio(settings: Settings, *, organisation: str | None, toolsets: str, read_only: bool) -> None:
    """Serves one client until it hangs up; with the embedded database, delivers webhooks meanwhile."""
    from transports.mcp.server import run_stdio  # brings the MCP SDK

    database = (settings.data / "service.db").absolute()
    if settings.embedded and not database.exists():
        to_stderr(f"there is no database at {database} yet: making one{', with a demo organisation' if settings.with_demo else ''}")
    async with open_local(settings, seed=True) as service:
        caller = await local_caller(service, organisation)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.write_buffers)
            if settings.embedded:
                tasks.start_soon(service.worker.run)
            requester = RequestCaller(caller, select_tools(toolsets, read_only))
            await run_stdio(
                service.pipeline,
                mcp_settings(service),
                lambda call, error: to_stderr(f"{call.request_id} {call.operation.id}: {type(error).__name__}"),  # stdout is the protocol's
                requester,
            )
            service.worker.stop()
            tasks.cancel_scope.cancel()


DEFAULT_SERVER = "http://127.0.0.1:8000"
SERVER_ONLY_SETTINGS = frozenset({"data", "host", "port", "worker", "metrics_port", "metrics_host", "log"})
mcp_app = typer.Typer(no_args_is_help=True, help="Connect MCP clients.")
ToolsetsOption = Annotated[str, typer.Option("--toolsets", help="Toolsets or presets, by comma; empty: connectivity, fleet and operator.")]
ReadOnlyOption = Annotated[bool, typer.Option("--read-only", help="Offer only tools that change nothing.")]


class McpClient(StrEnum):
    """MCP clients whose configuration we know."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"


@mcp_app.command("config")
def print_config(
    client: Annotated[McpClient, typer.Argument(help="The client to configure.")],
    url: Annotated[
        str | None, typer.Option("--url", envvar="RESELLER_URL", help=f"The server's address. Default {DEFAULT_SERVER}.")
    ] = None,
    key: Annotated[
        str, typer.Option("--key", envvar="RESELLER_API_KEY", callback=warn_of_argument, help="API key to put into the block.")
    ] = "<API_KEY>",
    data: Annotated[Path | None, typer.Option("--data", help="claude-desktop: directory with the embedded database.")] = None,
    org: Annotated[str | None, typer.Option("--org", help="claude-desktop: the organisation to act for, when there are several.")] = None,
) -> None:
    """Print what the client's configuration needs; nothing is written anywhere."""
    server_url, url = url, f"{(url or DEFAULT_SERVER).rstrip('/').removesuffix('/mcp')}/mcp"
    server: dict[str, object] = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {key}"}}
    if client is McpClient.CLAUDE_CODE:
        header = shlex.quote(f"Authorization: Bearer {key}")
        print_line(f"claude mcp add --transport http connectivity {shlex.quote(url)} --header {header}")
        return
    settings = command_settings(data=data)
    if client is McpClient.CLAUDE_DESKTOP:
        if org is None:
            asyncio.run(require_one_organisation(settings))
        sys.stderr.writelines(f"{line}\n" for line in desktop_warnings(settings, server_url))
    blocks: dict[McpClient, dict[str, object]] = {
        McpClient.CLAUDE_DESKTOP: {"mcpServers": {"connectivity": local_program(settings, org)}},
        McpClient.CURSOR: {"mcpServers": {"connectivity": {"url": url, "headers": server["headers"]}}},
        McpClient.VSCODE: {"servers": {"connectivity": server}},
    }
    print_line(orjson.dumps(blocks[client], option=orjson.OPT_INDENT_2).decode())


async def require_one_organisation(settings: Settings) -> None:
    """Refuse a block that could not start, because the database has several organisations and it names none."""
    if settings.embedded and not (settings.data / "service.db").exists():
        return  # a warning says so
    async with AsyncExitStack() as stack:
        try:
            service = await stack.enter_async_context(open_local(settings))
        except StoreUnavailable as error:
            sys.stderr.write(f"the database does not answer ({error.message}): if it has several organisations, name one with --org\n")
            return
        await only_organisation(service)


def local_program(settings: Settings, organisation: str | None) -> dict[str, object]:
    """The command that starts this program on the same database from anywhere, where neither the shell's settings nor this `.env` are
    known."""
    words = ["mcp", "stdio"]
    words += ["--data", str(settings.data.absolute())] if settings.embedded else []
    words += ["--org", organisation] if organisation else []
    passed = given_settings(settings)
    return {"command": str(Path(sys.executable).with_name("reseller")), "args": words, **({"env": passed} if passed else {})}


def given_settings(settings: Settings) -> dict[str, str]:
    """The settings that were made, without those of a server; the value of a secret is left to the reader."""
    values = settings.model_dump(mode="json", include=settings.model_fields_set - SERVER_ONLY_SETTINGS)
    named = {f"SERVICE_{name.upper()}": (name, value) for name, value in values.items()}
    return {
        word: f"<{word}>" if isinstance(getattr(settings, name), SecretStr) else setting_text(value)
        for word, (name, value) in named.items()
    }


def setting_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def desktop_warnings(settings: Settings, server_url: str | None) -> Iterator[str]:
    """What may surprise a reader of the block for Claude Desktop."""
    here = settings.data.absolute()
    if server_url:
        place = f"the database in {here}" if settings.embedded else "the database of SERVICE_DATABASE_URL"
        yield f"Claude Desktop starts a local program on {place}, as its admin: {server_url} and the key are not used"
    secrets = [word for word, value in given_settings(settings).items() if value == f"<{word}>"]
    if secrets:
        yield f"write the values of the server into the block, which leaves secrets out: {', '.join(secrets)}"
    if settings.embedded and not (here / "service.db").exists():
        yield f"there is no database in {here}: name the directory of `serve` with --data"


@mcp_app.command("stdio")
def mcp_stdio(
    toolsets: ToolsetsOption = "",
    read_only: ReadOnlyOption = False,
    org: Annotated[str | None, typer.Option("--org", help="The organisation to act for, when there are several.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None,
) -> None:
    """Serve MCP over standard input and output, on the local database, as the organisation's admin."""
    settings = command_settings(data=data)
    asyncio.run(serve_stdio(settings, organisation=org, toolsets=toolsets, read_only=read_only))
