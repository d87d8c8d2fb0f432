"""How these tests set, remove and look at tags."""

from collections.abc import Sequence
from typing import Any

import httpx

from simulators.network.entities import Line
from tests.fleet.stage import ReadModelStage

STRANGE_ICCID = "8988303700000999999"


def refusals(answer: dict[str, Any]) -> dict[str, int]:
    """How many lines were refused for what."""
    return {each["reason"]: each["lines"] for each in answer["refused"]}


async def change_tag(
    stage: ReadModelStage, path: str, given: dict[str, Any], http: httpx.AsyncClient | None = None, answers: int = 200
) -> dict[str, Any]:
    said = await (http or stage.http).post(path, json=given)
    assert said.status_code == answers, said.text
    return said.json()


async def tag(
    stage: ReadModelStage, name: str, lines: Sequence[Line] = (), *, http: httpx.AsyncClient | None = None, answers: int = 200, **more: Any
) -> dict[str, Any]:
    """Tags lines, given by themselves or as `more` says."""
    given = {"iccids": [line.iccid for line in lines]} if lines else more
    return await change_tag(stage, f"/v1/tags/{name}/lines", given, http, answers)


async def untag(
    stage: ReadModelStage, name: str, lines: Sequence[Line] = (), *, http: httpx.AsyncClient | None = None, answers: int = 200, **more: Any
) -> dict[str, Any]:
    """Takes the tag from lines."""
    given = {"iccids": [line.iccid for line in lines]} if lines else more
    return await change_tag(stage, f"/v1/tags/{name}/lines/remove", given, http, answers)


async def counts(stage: ReadModelStage, http: httpx.AsyncClient | None = None) -> dict[str, int]:
    """What list_tags says, all pages of it."""
    found, after = dict[str, int](), dict[str, str]()
    while True:
        said = await (http or stage.http).get("/v1/tags", params={"limit": "3", **after})
        assert said.status_code == 200, said.text
        rows = said.json()["data"]
        found |= {row["tag"]: row["lines"] for row in rows}
        if not said.json()["has_more"]:
            return found
        after = {"starting_after": rows[-1]["tag"]}


async def tags_shown(stage: ReadModelStage, http: httpx.AsyncClient | None = None, **params: Any) -> dict[str, list[str]]:
    """The lines of a page with their tags."""
    said = await stage.query(http=http, fields="tags", limit=200, **params)
    return {row["iccid"]: row["tags"] for row in said["data"]}


def move_line(stage: ReadModelStage, line: Line, account: int) -> None:
    """Somebody moves the line."""
    line.account_id = account
    stage.network.lookup.moved()


async def list_again(stage: ReadModelStage) -> None:
    """The fleet is listed once more, and everything that is due is read."""
    await stage.pass_time(400)
    await stage.sync()
