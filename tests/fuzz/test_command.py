"""What `python3 ./run fuzz` would find, and that it finds the same again."""

from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from tests.fuzz.app_under_test import AppUnderTest, Scope
from tests.fuzz.engine import FuzzPlan, FuzzVerdict, fuzz
from tests.fuzz.main import COMMANDS, PARTS, main
from tests.fuzz.tools_under_test import ToolDoorFault, ToolsUnderTest
from transports.http.asgi import Receive, Send

PLANS = CATALOGUE.operations["list_connectivity_plans"]
FEW = FuzzPlan(examples=1)


class OpenDoor(AppUnderTest):
    """A service that takes everybody for the same."""

    taken_for = "admin"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.furnished is not None:
            kept = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
            scope = {**scope, "headers": [*kept, (b"authorization", f"Bearer {self.furnished.bearers[self.taken_for]}".encode())]}
        await super().__call__(scope, receive, send)


class OpenToolDoor(OpenDoor, ToolsUnderTest):
    """The same of the MCP door."""


class NarrowDoor(OpenDoor):
    """A service that takes an admin for a plain member."""

    taken_for = "member"


def played(stand: AppUnderTest, plan: FuzzPlan = FEW) -> FuzzVerdict:
    stand.folder.mkdir()
    return fuzz(stand, plan)


@pytest.mark.long
def test_a_door_that_everybody_passes_is_found_and_found_again(tmp_path: Path) -> None:
    once, again = (played(OpenDoor(tmp_path / name, PLANS)) for name in ("once", "again"))
    assert "GET /v1/connectivity/plans ignored_auth" in {failure.split(": ")[0] for failure in once.failures}
    assert (again.calls, again.statuses, sorted(again.failures)) == (once.calls, once.statuses, sorted(once.failures))


@pytest.mark.long
def test_an_mcp_door_that_everybody_passes_is_found(tmp_path: Path) -> None:
    verdict = played(OpenToolDoor(tmp_path / "open", PLANS))
    assert "POST /tools/list_connectivity_plans ignored_auth" in {failure.split(": ")[0] for failure in verdict.failures}


async def test_what_is_no_answer_to_a_call_of_a_tool_is_a_fault() -> None:
    stand, text = ToolsUnderTest(Path()), {"type": "text", "text": "{}"}
    stand.signals.status = 200
    result = {"content": [text], "structuredContent": {}, "isError": False}
    assert stand.read_answer(200, {"jsonrpc": "2.0", "id": 1, "result": result}) == (200, {})
    for changed, said in (
        ({"content": []}, "no text"),
        ({"content": [{**text, "text": "[]"}]}, "what the structured content is"),
        ({"isError": True}, "where the status is 200"),
    ):
        with pytest.raises(ToolDoorFault, match=said):
            stand.read_answer(200, {"jsonrpc": "2.0", "id": 1, "result": {**result, **changed}})


@pytest.mark.long
def test_an_admin_who_may_not_is_found(tmp_path: Path) -> None:
    """What a member is told is no fault; what an admin is told is one."""
    balance = CATALOGUE.operations["modify_account_balance"]
    member = played(AppUnderTest(tmp_path / "member", balance), FuzzPlan(examples=1, kind="member"))
    assert (402 in member.statuses, member.failures) == (True, [])
    assert "status 402" in played(NarrowDoor(tmp_path / "admin", balance)).failures


def test_a_part_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(SystemExit, match=", ".join(PARTS)):
        main(["call"])


def test_the_help_names_the_commands_that_measure_real_servers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert [name for name in COMMANDS if f"  run fuzz {name} " not in shown] == []
