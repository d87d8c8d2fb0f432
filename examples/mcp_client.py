"""Issue a test eSIM over MCP with the official Python client, which `mcp` in requirements.txt brings.

RESELLER_API_KEY=ak_... python examples/mcp_client.py http://127.0.0.1:8000/mcp
"""

import asyncio
import os
import sys
from typing import Any

import httpx2
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent


async def main(url: str, key: str) -> None:
    """List the tools, then issue one eSIM; the same idempotency key would answer the same eSIM again."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tools = await client.list_tools()
        print(f"{len(tools.tools)} tools")
        arguments = {"plan": "test_global_1gb", "idempotency_key": "my-first-esim-over-mcp"}
        result = await client.call_tool("create_connectivity_intent", arguments)
    if result.is_error:  # the text is for the model, and says what to do
        sys.exit(f"refused: {next(block.text for block in result.content if isinstance(block, TextContent))}")
    answer: dict[str, Any] = result.structured_content or {}
    print(f"{answer['status']}: {answer['esim']['activation_code']}")


if __name__ == "__main__":
    if "RESELLER_API_KEY" not in os.environ:
        sys.exit("Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.")
    address, failed = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/mcp", None
    if not address.startswith("http"):
        sys.exit(f"{address} is no address: give the one that `serve` prints, such as http://127.0.0.1:8000/mcp.")
    try:
        asyncio.run(main(address, os.environ["RESELLER_API_KEY"]))
    except* httpx2.TransportError:  # in a group, since the client works in tasks
        failed = f"No answer from {address}: is `serve` running, and is it the address that it prints?"
    except* MCPError:
        failed = f"{address} refused: is it the address that `serve` prints, and RESELLER_API_KEY a key of that server?"
    sys.exit(failed)
