"""An agent with the official Python client: it reads what a model reads, and a person stands by to be asked."""

from dataclasses import dataclass
from typing import Any

import orjson
from mcp.client.client import Client
from mcp_types import CallToolResult, TextContent

from tests.mcp.refusals import refusal_of
from tests.mcp.test_confirm import AnsweringPerson


@dataclass(slots=True)
class Agent:
    """Works with tools alone. Without a person in the client, it asks its user itself and passes the token on."""

    client: Client
    person: AnsweringPerson | None

    async def try_to(self, tool: str, **arguments: Any) -> CallToolResult:
        said = await self.client.call_tool(tool, arguments)
        first = said.content[0]
        assert isinstance(first, TextContent)
        if not said.is_error:
            assert orjson.loads(first.text) == said.structured_content  # whoever reads text sees the same
        return said

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool that did its work answers."""
        said = await self.try_to(tool, **arguments)
        assert not said.is_error, said.content
        assert said.structured_content is not None
        return said.structured_content["data"]

    async def rows(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """A whole list, page by page, as the second block of each answer says."""
        found: list[dict[str, Any]] = []
        while True:
            said = await self.try_to(tool, **arguments)
            assert said.structured_content is not None
            found += said.structured_content["data"]
            cursor = (said.meta or {}).get("next")
            if cursor is None:
                return found
            more = said.content[1]
            assert isinstance(more, TextContent) and f'starting_after="{cursor}"' in more.text
            arguments = {**arguments, "starting_after": cursor}

    async def confirmed(self, tool: str, **arguments: Any) -> Any:
        """Something that has to be agreed to: the client asks, or we do and bring the token."""
        if self.person is not None:
            asked = len(self.person.asked)
            done = await self.call(tool, **arguments)
            assert len(self.person.asked) == asked + 1
            return done
        token = await self.token(tool, **arguments)
        done = await self.call(tool, **arguments, confirm_token=token)
        again = await self.try_to(tool, **arguments, confirm_token=token)
        assert refusal_of(again)["code"] in ("confirm_token_invalid", "not_found")  # or what it was for is gone
        return done

    async def token(self, tool: str, **arguments: Any) -> str:
        """What a tool gives that does nothing yet."""
        challenge = await self.try_to(tool, **arguments)
        body = refusal_of(challenge)
        assert "ask whether to go on" in body["hint"]
        return body["confirm_token"]

    async def find(self, part: str) -> str:
        """The one line whose ICCID begins so."""
        rows = await self.rows("list_subscribers", q=part)
        (row,) = [row for row in rows if row["iccid"].startswith(part)]
        return row["iccid"]

    async def package(self, iccid: str, id: int) -> dict[str, Any]:
        return next(row for row in await self.rows("list_subscriber_packages", iccid=iccid) if row["packageId"] == id)

    async def why_no_data(self, iccid: str) -> str:
        """What a support agent would say after a look at the line and its packages."""
        line = await self.call("get_subscriber", iccid=iccid)
        if line["currentStatus"] != "Active":
            return f"the line is {line['currentStatus']}"
        if not line["allowedData"]:
            return "data is not allowed"
        states = {row["state"] for row in await self.rows("list_subscriber_packages", iccid=iccid)}
        if not states:
            return "no package"
        return "it should work" if states & {"running", "assigned"} else f"packages are {', '.join(sorted(states))}"
