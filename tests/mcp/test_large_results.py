"""Results above 1 MB are counted with the large answers of the HTTP door."""

import time
from pathlib import Path

import orjson
import pytest

from registry.catalogue import Catalogue, Toolset
from tests.mcp import large
from tests.mcp.house import open_house
from transports.http.concurrency import AnswerReader
from transports.mcp.calls import LONG_STRING

CATALOGUE = Catalogue([Toolset("texts", "Texts.", (large,))], core=("get_text",))


# In the legacy era the SDK answers with an event, and its own client takes none above 1 MiB.
@pytest.mark.cases
@pytest.mark.parametrize(("mode", "edge"), [("auto", True), ("auto", False), ("legacy", True)])
async def test_a_large_result_waits_for_the_large_answer_that_its_key_is_reading(tmp_path: Path, mode: str, edge: bool) -> None:
    async with open_house(tmp_path, catalogue=CATALOGUE, edge=edge) as house:
        caller, counted = await house.world.caller(), house.world.door.large
        async with house.connect(caller, mode, query="?toolsets=texts") as client:
            whole = await client.call_tool("get_text", {})
            assert whole.structured_content == {"text": ["x" * 1000] * (large.SIZE // 1000)}
            assert (counted.in_progress, counted.held) == (0, 0)
            with counted.one_more(AnswerReader(caller.key_id, caller.organisation), 1):
                refused = await client.call_tool("get_text", {})
            again = await client.call_tool("get_text", {})
        assert refused.is_error and '"code":"rate_limited"' in str(refused.content[0])
        assert refused.meta is not None and refused.meta["retryAfter"] == 5
        assert not again.is_error


def test_a_long_text_is_looked_through_in_no_time() -> None:
    text = orjson.dumps(["x" * 1999] * 500).decode()
    begun = time.thread_time()
    assert LONG_STRING.search(text) is None
    assert time.thread_time() - begun < 0.5  # from every character it would be some two billion steps
    for long in ("x" * 2001, "\n" + "x" * 10, 'a"' * 3):
        assert LONG_STRING.search(orjson.dumps([long]).decode())
    assert not LONG_STRING.search(orjson.dumps(["x" * 2000]).decode())
