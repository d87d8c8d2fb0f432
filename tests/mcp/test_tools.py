"""Tools over HTTP, with the SDK's own client in both protocol eras."""

from typing import Any, NamedTuple

import pytest
from inline_snapshot import snapshot
from mcp_types import CallToolResult, TextContent

from registry.caller import Tier
from storage.engine.sql import Connection
from tests.mcp.house import ERAS, House, request
from tests.mcp.refusals import refusal_in, refusal_of
from tests.registry.ledgers import audited
from tests.world import Credentials


class Row(NamedTuple):
    surface: str
    operation: str
    outcome: str


def audit_rows(connection: Connection) -> list[Row]:
    return [Row(row.surface, row.operation, row.outcome) for row in audited(connection)]


def texts_of(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def text_of(result: CallToolResult) -> str:
    (text,) = texts_of(result)
    return text


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_answers_with_the_body_of_the_http_door(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client, house.world.client(pro.secret) as http:
        written = await client.call_tool("create_note", {"name": "first"})
        read = await client.call_tool("get_note", {"name": "first"})
        over_http = await http.get("/v1/notes/first")
    assert written.structured_content == {"name": "first", "writes": 1}
    assert text_of(read) == over_http.text
    assert read.structured_content == over_http.json()


@pytest.mark.cases
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("get_note", {"name": "nowhere"}, "/v1/notes/nowhere"),
        ("list_notes", {"limit": 0}, "/v1/notes?limit=0"),
        ("list_notes", {"size": 1}, "/v1/notes?size=1"),
    ],
)
async def test_a_refusal_is_a_result_with_the_body_of_the_http_door(
    house: House, pro: Credentials, era: str, name: str, arguments: dict[str, Any], path: str
) -> None:
    async with house.connect(pro, era) as client, house.world.client(pro.secret) as http:
        refused = await client.call_tool(name, arguments)
        over_http = (await http.get(path)).json()
    assert refused.is_error
    body = refusal_of(refused)
    assert body.pop("request_id") != over_http.pop("request_id")
    assert body == over_http


async def test_the_definition_of_a_tool_is_short_and_whole(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["get_note"].model_dump(by_alias=True, exclude_none=True) == snapshot(
        {
            "name": "get_note",
            "title": "Get note",
            "description": """\
Read one note.
Use list_notes to find its name.\
""",
            "inputSchema": {
                "type": "object",
                "properties": {"name": {"description": "Name of the note, 1-100 characters.", "type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            "outputSchema": {
                "properties": {"name": {"type": "string"}, "writes": {"type": "integer"}},
                "required": ["name", "writes"],
                "type": "object",
            },
            "annotations": {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
        }
    )
    assert tools["copy_note"].model_dump(by_alias=True, exclude_none=True, exclude={"output_schema"}) == snapshot(
        {
            "name": "copy_note",
            "title": "Copy note",
            "description": "Write a note once per key.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": {"description": "Name of the note, 1-100 characters.", "type": "string"},
                    "tags": {"default": [], "description": "Labels.", "items": {"type": "string"}, "type": "array"},
                    "megabytes": {"type": "integer", "description": "Megabytes, at least 1."},
                    "idempotency_key": {"type": "string", "description": "Same key, one effect: a UUID."},
                },
                "required": ["name", "idempotency_key"],
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
        }
    )
    assert tools["delete_note"].model_dump(by_alias=True, exclude_none=True, exclude={"output_schema"}) == snapshot(
        {
            "name": "delete_note",
            "title": "Delete note",
            "description": "Remove a note for good.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": {"description": "Name of the note, 1-100 characters.", "type": "string"},
                    "confirm_token": {"type": "string", "description": "Of the first answer, if the user agrees."},
                },
                "required": ["name"],
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": False},
        }
    )


async def test_hints_say_what_a_tool_may_do(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    hints = {name: tool.annotations.model_dump(by_alias=True, exclude_none=True) for name, tool in tools.items() if tool.annotations}
    assert {name: hints[name] for name in ("list_notes", "create_note", "put_note", "delete_note", "order_upstream")} == snapshot(
        {
            "list_notes": {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
            "create_note": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False},
            "put_note": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
            "delete_note": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": False},
            "order_upstream": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True},
        }
    )


async def test_a_picture_is_not_a_tool(house: House, pro: Credentials) -> None:
    async with house.connect(pro, "legacy") as client:
        assert "get_picture" not in {tool.name for tool in (await client.list_tools()).tools}
    answer = await house.post(request("tools/call", name="get_picture", arguments={}), secret=pro.secret)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("era", ERAS)
async def test_a_bare_array_comes_under_data_as_the_schema_says(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client:
        await client.call_tool("create_note", {"name": "only"})
        listed = await client.call_tool("list_names", {})
    assert listed.structured_content == {"data": ["only"]}
    assert text_of(listed) == '{"data":["only"]}'


@pytest.mark.parametrize("era", ERAS)
async def test_a_null_in_an_answer_stays_a_null(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client:
        plans = await client.call_tool("list_connectivity_plans", {"limit": 1})
    assert plans.structured_content == {"object": "list", "data": [{"id": "cnp_000", "note": None}], "has_more": False}


async def test_the_next_position_of_a_list_is_in_the_meta_field(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        for name in ("a", "b", "c"):
            await client.call_tool("create_note", {"name": name})
        page = await client.call_tool("list_notes", {"limit": 2})
        assert page.meta is not None
        assert page.meta["next"] == "b"
        rest = await client.call_tool("list_notes", {"limit": 2, "starting_after": page.meta["next"]})
    assert [note["name"] for note in rest.structured_content["data"]] == ["c"]


async def test_a_tool_may_have_defaults_that_its_model_has_not(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        for name in ("a", "b", "c", "d"):
            await client.call_tool("create_note", {"name": name})
        few = await client.call_tool("list_short_notes", {})
        more = await client.call_tool("list_short_notes", {"limit": 5})
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert [len(few.structured_content["data"]), len(more.structured_content["data"])] == [3, 4]
    assert tools["list_short_notes"].input_schema["properties"]["limit"]["default"] == 3
    more_text = [block.text for block in few.content[1:] if isinstance(block, TextContent)]
    assert more_text == ['There is more: call again with the same arguments and starting_after="c"']


async def test_characters_that_only_a_machine_reads_are_left_out(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        answer = await client.call_tool("read_hidden", {})
    assert answer.structured_content == {"name": "plain text[31m\nnext", "writes": 1}


@pytest.mark.parametrize("era", ERAS)
async def test_a_second_call_with_the_same_key_returns_the_first_answer(house: House, pro: Credentials, era: str) -> None:
    arguments = {"name": "once", "idempotency_key": "order-1"}
    async with house.connect(pro, era) as client:
        first = await client.call_tool("copy_note", arguments)
        second = await client.call_tool("copy_note", arguments)
        other = await client.call_tool("copy_note", {**arguments, "tags": ["new"]})
    assert first.structured_content == second.structured_content == {"name": "once", "writes": 1}
    assert second.meta is not None
    assert second.meta["replayed"] is True
    assert texts_of(first) == ['{"name":"once","writes":1}']
    assert texts_of(second) == [
        '{"name":"once","writes":1}',
        "This is the stored answer of an earlier call with the same idempotency_key; nothing was done again.",
    ]
    assert refusal_of(other)["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"name": "x"}, "idempotency_key_required"),
        ({"name": "x", "idempotency_key": 7}, "invalid_request"),
        ({"name": "x", "idempotency_key": "two words"}, "invalid_request"),
    ],
)
async def test_a_missing_or_bad_key_is_refused_by_name(house: House, pro: Credentials, arguments: dict[str, Any], code: str) -> None:
    async with house.connect(pro) as client:
        refused = await client.call_tool("copy_note", arguments)
    assert refused.is_error
    assert (refusal_of(refused)["code"], refusal_of(refused)["param"]) == (code, "idempotency_key")


async def test_a_key_where_none_is_taken_is_an_unknown_field(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        refused = await client.call_tool("list_notes", {"idempotency_key": "k"})
    assert refusal_of(refused)["code"] == "unknown_field"


@pytest.mark.parametrize("era", ERAS)
async def test_a_fault_of_ours_tells_the_request_id_and_nothing_else(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client:
        broken = await client.call_tool("break_down", {})
    ((request_id, operation, error),) = house.world.faults
    assert broken.is_error
    assert refusal_of(broken) == {
        "error": "Internal error; quote the request id when you report it",
        "code": "internal",
        "request_id": request_id,
    }
    assert (operation, type(error)) == ("break_down", RuntimeError)


async def test_the_request_id_of_the_body_is_that_of_the_http_header(house: House, pro: Credentials) -> None:
    answer = await house.post(request("tools/call", name="get_note", arguments={"name": "nowhere"}), secret=pro.secret)
    assert refusal_in(answer.json()["result"])["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_caller_without_the_scope_reads_the_body_of_the_402(house: House, era: str) -> None:
    free = await house.world.caller(Tier.FREE)
    async with house.connect(free, era) as client:
        refused = await client.call_tool("put_note", {"name": "x"})
    assert refused.is_error
    assert refusal_of(refused)["code"] == "upgrade_required"
    assert refusal_of(refused)["required_tier"] == "pro"


async def test_every_call_stands_in_the_audit_log_as_made_at_this_door(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        await client.call_tool("create_note", {"name": "first"})
    await house.world.journal.flush()
    rows = await house.world.store.read(audit_rows)
    assert [(row.surface, row.operation, row.outcome) for row in rows] == [("mcp", "create_note", "ok")]


async def test_a_field_that_is_not_known_is_told_before_the_key_that_is_missing(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        unknown = await client.call_tool("copy_note", {"nme": "x"})
        missing = await client.call_tool("copy_note", {"name": "x"})
    assert (refusal_of(unknown)["code"], refusal_of(unknown)["param"]) == ("unknown_field", "nme")
    assert refusal_of(missing)["error"] == "idempotency_key: missing; it is required, so that a repeated call has one effect"
