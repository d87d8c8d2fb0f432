"""What an agent does with the service over MCP, pattern by pattern: docs/guide-agents.md explains each of them.

    reseller serve
    RESELLER_API_KEY=ak_... python examples/mcp_agent.py http://127.0.0.1:8000/mcp

It issues a test eSIM, walks through a list, is taught by a refusal, and sends a message to a line of the simulated network, once with a
person who is asked by the client and once with a token. Give it no key of a real network: the message would go out.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

LINE = "8988303700000100286"


@asynccontextmanager
async def connected(url: str, key: str, **options: Any) -> AsyncGenerator[Client]:
    """A client with the key in a header; an address with a key in it is refused."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client


def body_of(result: CallToolResult) -> dict[str, Any]:
    """What a tool says, as a program reads it: the last line of its first text. Structured content has the same, but for refusals."""
    first = next(block.text for block in result.content if isinstance(block, TextContent))
    return json.loads(first.rpartition("\n")[2])


async def until_answered(client: Client, tool: str, arguments: dict[str, Any], patience: float = 60) -> CallToolResult:
    """Call, and repeat with the same key for as long as the answer is "later" or "nobody knows yet"."""
    ends = time.monotonic() + patience
    while True:
        result = await client.call_tool(tool, arguments)
        answer, meta = body_of(result), result.meta or {}
        later = result.is_error and (answer.get("code") in ("OUTCOME_UNKNOWN", "idempotency_in_progress") or "retryAfter" in meta)
        if not later or time.monotonic() > ends:
            return result
        await asyncio.sleep(meta.get("retryAfter", 5))


async def every_row(client: Client, tool: str, arguments: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
    """All rows of a list, page by page: the cursor of the next page is in `_meta.next`."""
    cursor = None
    while True:
        page = await client.call_tool(tool, arguments | ({"starting_after": cursor} if cursor else {}))
        answer = body_of(page)
        if page.is_error:
            sys.exit(f"{tool} was refused: {answer.get('error')}")
        for row in answer["data"]:
            yield row
        cursor = (page.meta or {}).get("next")
        if cursor is None:
            return


async def person(context: ClientRequestContext, question: ElicitRequestParams) -> ElicitResult:
    """Where a real client shows the question to its user; this one always agrees."""
    del context
    print(f"asked: {question.message}")
    return ElicitResult(action="accept", content={"confirm": True})


async def with_token(client: Client, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    """Without a client that asks, the first call gives the token, and the model has to ask before the second."""
    first = await client.call_tool(tool, arguments)
    challenge = body_of(first)
    if "confirm_token" not in challenge:
        return first
    print(f"to ask: {challenge['message']}")
    return await client.call_tool(tool, arguments | {"confirm_token": challenge["confirm_token"]})


async def issue(client: Client, order: str) -> None:
    """The key is made of the order, before the call, so that no crash in between can lead to a second eSIM."""
    arguments = {"plan": "test_global_1gb", "idempotency_key": f"order-{order}"}
    first = await until_answered(client, "create_connectivity_intent", arguments)
    again = await until_answered(client, "create_connectivity_intent", arguments)
    assert body_of(first) == body_of(again)
    print(f"issued: {body_of(first)['status']}, replayed: {(again.meta or {}).get('replayed', False)}")


async def be_taught(client: Client) -> None:
    """A refusal names the field, the value, the rule and the fix: give it to the model as it is."""
    refused = await client.call_tool("list_connectivity_intents", {"limit": 1000})
    answer = body_of(refused)
    print(f"refused: {answer['code']}: {answer['error']}")


async def main(url: str, key: str) -> None:
    """Each pattern once."""
    async with connected(f"{url}?toolsets=core", key) as client:
        print(f"{len((await client.list_tools()).tools)} tools of core")
        await issue(client, "1044")
        await be_taught(client)
    message = {"iccid": LINE, "message": "Your data is used up."}
    async with connected(f"{url}?toolsets=subscribers", key, elicitation_callback=person) as client:
        arguments = {"limit": 50, "fields": ["iccid"]}
        print(f"{len([row async for row in every_row(client, 'list_subscribers', arguments)])} lines")
        print(f"sent: {(await client.call_tool('send_sms', message)).structured_content}")
    async with connected(f"{url}?toolsets=subscribers", key) as client:
        print(f"sent: {(await with_token(client, 'send_sms', message)).structured_content}")
    async with connected(f"{url}?toolsets=all&read_only=true", key) as client:
        print(f"{len((await client.list_tools()).tools)} tools that change nothing")


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
