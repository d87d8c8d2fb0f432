"""When the door makes its server, and how it closes."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.mcp.house import CATALOGUE, SETTINGS, House, open_house, request
from tests.world import Credentials, open_world
from transports.mcp.door import McpDoor
from transports.mcp.settings import McpSettings

LIST = request("tools/list")


@pytest.mark.long
async def test_importing_and_opening_the_door_does_not_import_the_sdk() -> None:
    code = "import transports.mcp.door, transports.cli.mcp, sys; sys.exit('mcp' in sys.modules or 'mcp_types' in sys.modules)"
    done = await anyio.to_thread.run_sync(lambda: subprocess.run([sys.executable, "-c", code], check=False))
    assert done.returncode == 0


async def test_a_request_without_a_credential_does_not_make_the_server(house: House) -> None:
    made: list[str] = []
    make = house.door.make

    def counted() -> object:
        made.append("made")
        return make()

    house.door.make = counted  # pyright: ignore[reportAttributeAccessIssue]  # counts and hands on
    assert (await house.post(LIST)).status_code == 401
    assert made == []
    pro = await house.world.caller()
    assert [(await house.post(LIST, secret=pro.secret)).status_code for _ in range(2)] == [200, 200]
    assert made == ["made"]


async def test_the_first_requests_may_come_all_at_once(house: House, pro: Credentials) -> None:
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append((await house.post(LIST, secret=pro.secret)).status_code)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert statuses == [200] * 10


async def test_a_door_that_served_nobody_closes_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with open_house(tmp_path):
            pass


async def test_a_door_may_be_opened_anew_in_the_same_process(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        async with open_house(tmp_path / name) as house:
            pro = await house.world.caller()
            assert (await house.post(LIST, secret=pro.secret)).status_code == 200


async def test_a_door_that_is_not_running_says_so_instead_of_waiting(tmp_path: Path) -> None:
    async with open_world(tmp_path, CATALOGUE) as world:
        door = McpDoor(world.pipeline, SETTINGS, lambda call, error: None)
        house = House(world, door)
        pro = await world.caller()
        world.door = door  # pyright: ignore[reportAttributeAccessIssue]  # the MCP door alone
        with pytest.raises(RuntimeError, match="running"):
            await house.post(LIST, secret=pro.secret)


@pytest.mark.parametrize("keys", [(), (b"short",), (bytes(32), bytes(32))])
def test_keys_that_cannot_seal_are_refused_before_anything_is_served(keys: tuple[bytes, ...]) -> None:
    with pytest.raises(ValueError, match="MCP state keys"):
        McpSettings(version="1", state_keys=keys, allowed_hosts=("x",))
