"""What could be read in two ways is refused, and what only a machine reads never reaches a model."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.call import Reply
from registry.errors import BadRequest
from registry.ports import SharedSecrets
from registry.schema import OutputSchema
from tests.world import World, open_world
from transports.mcp.calls import tool_result
from transports.mcp.request_caller import read_selection

INGEST = "/v1/connectivity/usage_records/ingest"
OBSERVE = "/v1/connectivity/events/observe"


@pytest.fixture(params=["", " ", "\t\n", "   "], ids=["unset", "a space", "white space", "spaces"])
async def careless(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World]:
    """A service whose operator left the internal key empty or blank."""
    blank: str = request.param
    async with open_world(tmp_path, CATALOGUE, secrets=SharedSecrets(internal=blank, storefront=blank, bridge=blank)) as world:
        yield world


@pytest.mark.cases
@pytest.mark.parametrize("credential", ["Bearer", "Bearer ", "Bearer  ", "bearer    ", "Bearer \t", "Bearer undefined", "Bearer null", ""])
async def test_a_blank_internal_key_admits_nobody(careless: World, credential: str) -> None:
    async with careless.client() as http:
        for path in (OBSERVE, INGEST):
            answer = await http.post(path, json={}, headers={"Authorization": credential})
            assert answer.status_code == 401, answer.text


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        (b"read_only=true&read_only=false", []),
        (b"toolsets=core&toolsets=all", []),
        (b"read_only=true&read%5Fonly=false", []),
        (b"", [(b"x-mcp-readonly", b"true"), (b"x-mcp-readonly", b"false")]),
        (b"", [(b"x-mcp-toolsets", b"core"), (b"x-mcp-toolsets", b"all")]),
    ],
)
def test_a_selection_that_is_made_twice_is_refused(query: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(BadRequest):
        read_selection(query, headers)


def test_read_only_in_one_place_is_not_undone_in_another() -> None:
    assert read_selection(b"read_only=true", [(b"x-mcp-readonly", b"false")]).read_only
    assert read_selection(b"read_only=false", [(b"x-mcp-readonly", b"true")]).read_only


HIDDEN = (0x1B, 0x7F, 0x85, 0x9B, 0xAD, 0x61C, 0x115F, 0x180E, 0x200B, 0x200F, 0x2028, 0x202E, 0x2066, 0x3164, 0xFEFF, 0xE0041, 0xE0101)


@pytest.mark.parametrize("code", HIDDEN, ids=hex)
def test_a_character_that_only_a_machine_reads_is_not_shown_to_a_model(code: int) -> None:
    text = f'{{"name":"a{chr(code)}b"}}' if code > 0x1F else f'{{"name":"a\\u{code:04x}b"}}'
    result = tool_result(Reply(200, text.encode()), OutputSchema({}, None))
    assert result["structuredContent"] == {"name": "ab"}
