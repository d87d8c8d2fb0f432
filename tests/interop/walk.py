"""The walk of walk.mjs by a client in Python: `python walk.py CLIENT URL API_KEY`, where CLIENT is fastmcp or official."""

import asyncio
import json
import sys
from typing import Any


class FastMcp:
    """The client of FastMCP, in the environment that has it."""

    def __init__(self, url: str, key: str) -> None:
        from fastmcp import Client  # pyright: ignore[reportMissingImports]  # of .venv-clients
        from fastmcp.client.transports import StreamableHttpTransport  # pyright: ignore[reportMissingImports]  # of .venv-clients

        self.client: Any = Client(StreamableHttpTransport(url, headers={"Authorization": f"Bearer {key}"}))

    async def close(self) -> None:
        """Nothing is left open."""

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """One call; what is refused is raised, with the text."""
        from fastmcp.exceptions import ToolError  # pyright: ignore[reportMissingImports]  # of .venv-clients

        try:
            result = await self.client.call_tool(tool, arguments)
        except ToolError as error:
            return {"refused": True, "texts": [str(error)]}
        return {"refused": False, "texts": [block.text for block in result.content], "value": result.structured_content}


class Official:
    """The client of the official SDK."""

    def __init__(self, url: str, key: str) -> None:
        import httpx2
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        self.http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)
        self.client: Any = Client(streamable_http_client(url, http_client=self.http))

    async def close(self) -> None:
        """The connections, which the SDK leaves to whoever made them."""
        await self.http.aclose()

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        return {"refused": result.is_error, "texts": [block.text for block in result.content], "value": result.structured_content}


async def walk(name: str, url: str, key: str) -> dict[str, object]:
    """The same calls as in walk.mjs."""
    made = {"fastmcp": FastMcp, "official": Official}[name](url, key)
    async with made.client:
        names = await made.names()
        refused = await made.call("get_connectivity_intent", id=f"cni_{'0' * 26}")
        lines = await made.call("list_subscribers", limit=1, fields=["iccid"], q=None)
        message = {"iccid": json.loads(lines["texts"][0])["data"][0]["iccid"], "message": "Hello"}
        challenge = await made.call("send_sms", **message)
        sent = await made.call("send_sms", **message, confirm_token=json.loads(challenge["texts"][0].splitlines()[-1])["confirm_token"])
        order = {"plan": "test_eu_1gb", "metadata": None, "idempotency_key": f"walk-{name}"}
        first = await made.call("create_connectivity_intent", **order)
        again = await made.call("create_connectivity_intent", **order)
    await made.close()
    return {"names": names, "refused": refused, "challenge": challenge, "sent": sent, "first": first, "again": again}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(walk(*sys.argv[1:4]))))
