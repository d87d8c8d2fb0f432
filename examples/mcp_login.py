"""Log in over MCP from the URL alone, with the official Python client: no key is handed out, a person allows it in their browser.

python examples/mcp_login.py http://127.0.0.1:8000/mcp
"""

import asyncio
import logging
import sys
import webbrowser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import MCPError
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import TextContent
from pydantic import AnyUrl

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n%s: go back to the terminal.\n"


class Memory:
    """Keeps the registration and the tokens while the program runs; a real program keeps them in a file of its own."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Sends the person to the login, and waits on this machine for what comes back."""

    def __init__(self) -> None:
        self.came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request: `GET /callback?code=...&state=...&iss=... HTTP/1.1`."""
        words = (await reader.readline()).decode().split()
        said = {name: values[0] for name, values in parse_qs(urlsplit(words[1]).query).items()} if len(words) > 1 else {}
        writer.write(PAGE % (b"Not logged in" if "error" in said else b"Logged in"))
        await writer.drain()
        writer.close()
        if self.came.done():
            return
        if "error" in said:
            self.came.set_exception(OAuthFlowError(f"it was refused ({said['error']})"))
        elif "state" in said:
            self.came.set_result(AuthorizationCodeResult(code=said.get("code", ""), state=said["state"], iss=said.get("iss")))

    async def open(self, address: str) -> None:
        """Show the address, too: the browser may be on another screen."""
        print(f"Log in with your browser:\n{address}", flush=True)
        webbrowser.open(address)

    async def wait(self) -> AuthorizationCodeResult:
        """What the person said."""
        return await self.came


async def main(url: str) -> None:
    """List the tools that were allowed, then issue a test eSIM."""
    browser = Browser()
    server = await asyncio.start_server(browser.take, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"
    about = OAuthClientMetadata(client_name="My agent", redirect_uris=[AnyUrl(address)], token_endpoint_auth_method="none")
    login = OAuthClientProvider(url, about, Memory(), browser.open, browser.wait)
    async with server, httpx2.AsyncClient(auth=login) as http, Client(streamable_http_client(url, http_client=http)) as client:
        print(f"{len((await client.list_tools()).tools)} tools")
        arguments = {"plan": "test_global_1gb", "idempotency_key": "my-first-esim-after-a-login"}
        result = await client.call_tool("create_connectivity_intent", arguments)
    if result.is_error:  # the text is for the model, and says what to do
        sys.exit(f"refused: {next(block.text for block in result.content if isinstance(block, TextContent))}")
    answer: dict[str, Any] = result.structured_content or {}
    print(f"{answer['status']}: {answer['esim']['activation_code']}")


def first(errors: BaseExceptionGroup[OAuthFlowError]) -> BaseException:
    """What went wrong, out of the groups it is in."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


if __name__ == "__main__":
    url, failed = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/mcp", None
    if not url.startswith("http"):
        sys.exit(f"{url} is no address: give the one that `serve` prints, such as http://127.0.0.1:8000/mcp.")
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # what goes wrong is said here, in a sentence
    try:
        asyncio.run(main(url))
    except* httpx2.TransportError:  # in a group, since the client works in tasks
        failed = f"No answer from {url}: is `serve` running, and is it the address that it prints?"
    except* MCPError:
        failed = f"{url} refused: is it the address that `serve` prints?"
    except* OAuthFlowError as errors:
        failed = f"Not logged in: {first(errors)}. The same command asks again."
    except* KeyboardInterrupt:
        failed = "Not logged in: nobody came back from the browser."
    sys.exit(failed)
