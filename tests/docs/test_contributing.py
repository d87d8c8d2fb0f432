"""The example operation of CONTRIBUTING, added to a catalogue of its own."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from tests.docs.blocks import blocks
from tests.mcp.house import open_house
from tests.mcp.refusals import refusal_of


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    [block] = blocks("python", document="CONTRIBUTING.md")
    path = tmp_path / "estimates.py"
    path.write_text(block.text)
    spec = importlib.util.spec_from_file_location("estimates", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["estimates"] = made  # annotations are looked up by module name
    spec.loader.exec_module(made)
    yield made
    del sys.modules["estimates"]


async def test_the_example_operation_is_served_by_http_and_mcp_alike(module: ModuleType, tmp_path: Path) -> None:
    catalogue = Catalogue([Toolset("estimates", "How much data is needed.", (module,))])
    async with open_house(tmp_path, catalogue=catalogue) as house:
        caller = await house.world.caller(Tier.FREE)
        async with house.world.client(caller.secret) as http, house.connect(caller, query="?toolsets=all") as mcp:
            by_http = [(await http.get(path)).json() for path in ("/v1/estimates/7", "/v1/estimates/365?mb_per_day=100000")]
            by_mcp = [await mcp.call_tool("estimate_data", arguments) for arguments in ({"days": 7}, {"days": 365, "mb_per_day": 100_000})]
        assert by_http[0] == by_mcp[0].structured_content == {"days": 7, "data_mb": 2100}
        for refused in (by_http[1], refusal_of(by_mcp[1])):
            assert (refused["code"], refused["param"]) == ("invalid_request", "mb_per_day")


async def test_the_example_of_the_example_operation_is_its_answer(module: ModuleType, tmp_path: Path) -> None:
    [operation] = Toolset("estimates", "", (module,)).operations()
    async with open_house(tmp_path, catalogue=Catalogue([Toolset("estimates", "How much.", (module,))])) as house:
        http = house.world.client((await house.world.caller()).secret)
        for example in operation.examples:
            assert (await http.get(f"/v1/estimates/{example.input['days']}")).json() == example.answer
        await http.aclose()
