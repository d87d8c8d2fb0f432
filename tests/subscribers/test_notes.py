"""Notes on lines: local, of one organisation, without a connection."""

import asyncio
from typing import Any

import httpx
import pytest
from inline_snapshot import Is, snapshot

from operations.subscribers import notes
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits
from tests.stage import caller_client, opened
from tests.world import World, open_world

CATALOGUE = Catalogue([Toolset("subscribers", "Lines.", (notes,))])
ICCID = "8988303000000912345"
PATH = f"/v1/subscribers/{ICCID}/notes"


world = opened(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))
http = caller_client(Tier.PRO)
"""An organisation that is not connected."""


async def read(http: httpx.AsyncClient, path: str = PATH) -> dict[str, Any]:
    answer = await http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.rule("4.2.27")
async def test_a_line_nobody_wrote_about_has_an_empty_text_and_no_history(http: httpx.AsyncClient) -> None:
    assert await read(http) == {"notes": "", "data": []}


@pytest.mark.rule("4.2.27")
async def test_a_note_is_appended_and_shown_newest_first(world: World, http: httpx.AsyncClient) -> None:
    first = await http.post(PATH, json={"note": "  installed again\n", "author": " Mia "})
    world.clock.advance(60)
    second = await http.post(PATH, json={"note": "tabs\tand\nlines 🙂 stay"})
    assert (first.status_code, second.status_code) == (201, 201)
    id = first.json()["data"]["id"]
    assert id.startswith("not_")
    assert first.json() == snapshot({"data": {"id": Is(id), "note": "installed again", "author": "Mia", "created": "2027-01-15T12:00:00Z"}})
    assert await read(http) == {"notes": "", "data": [second.json()["data"], first.json()["data"]]}
    assert second.json()["data"]["note"] == "tabs\tand\nlines 🙂 stay"
    assert second.json()["data"]["author"] is None


@pytest.mark.rule("4.2.29")
async def test_the_text_is_replaced_and_cleared_and_the_history_stays(http: httpx.AsyncClient) -> None:
    await http.post(PATH, json={"note": "kept"})
    for text in (" VIP ", "VIP: call first", "x" * 4000, "", ""):
        answer = await http.put(PATH, json={"notes": text})
        assert (answer.status_code, answer.json()) == (200, {"notes": text})
        said = await read(http)
        assert (said["notes"], [entry["note"] for entry in said["data"]]) == (text, ["kept"])


@pytest.mark.rule("4.2.28")
async def test_a_note_does_not_change_the_text(http: httpx.AsyncClient) -> None:
    await http.put(PATH, json={"notes": "one text"})
    await http.post(PATH, json={"note": "entry"})
    assert (await read(http))["notes"] == "one text"


@pytest.mark.rule("8.9")
async def test_the_history_shows_the_newest_hundred(http: httpx.AsyncClient) -> None:
    for number in range(103):
        await http.post(PATH, json={"note": f"{number}"})
    assert [entry["note"] for entry in (await read(http))["data"]] == [f"{number}" for number in range(102, 2, -1)]


async def test_notes_written_at_once_are_all_kept(http: httpx.AsyncClient) -> None:
    await asyncio.gather(*(http.post(PATH, json={"note": f"{number}"}) for number in range(12)))
    assert sorted(int(entry["note"]) for entry in (await read(http))["data"]) == list(range(12))
    texts = [f"text {number}" for number in range(8)]
    await asyncio.gather(*(http.put(PATH, json={"notes": text}) for text in texts))
    assert (await read(http))["notes"] in texts


@pytest.mark.rule("4.2.27")
async def test_another_organisation_sees_and_changes_nothing_of_it(world: World, http: httpx.AsyncClient) -> None:
    await http.post(PATH, json={"note": "ours"})
    await http.put(PATH, json={"notes": "ours"})
    async with world.client((await world.caller(Tier.ENTERPRISE)).secret) as other:
        assert await read(other) == {"notes": "", "data": []}
        await other.put(PATH, json={"notes": ""})
        await other.post(PATH, json={"note": "theirs"})
    said = await read(http)
    assert (said["notes"], [entry["note"] for entry in said["data"]]) == ("ours", ["ours"])


async def test_another_line_has_its_own_notes(http: httpx.AsyncClient) -> None:
    await http.post(PATH, json={"note": "of this line"})
    await http.put(PATH, json={"notes": "of this line"})
    assert await read(http, "/v1/subscribers/8988303000000912346/notes") == {"notes": "", "data": []}


@pytest.mark.parametrize(
    ("method", "body", "param"),
    [
        ("POST", {"note": " \n\t "}, "note"),
        ("POST", {"note": "x", "author": ""}, "author"),
        ("POST", {"note": "x", "notes": "y"}, "notes"),
    ],
)
@pytest.mark.rule("8.9")
async def test_a_body_that_breaks_a_rule_is_named_and_changes_nothing(
    http: httpx.AsyncClient, method: str, body: dict[str, object], param: str
) -> None:
    answer = await http.request(method, PATH, json=body)
    assert (answer.status_code, answer.json()["param"]) == (400, param)
    assert await read(http) == {"notes": "", "data": []}


@pytest.mark.rule("8.9")
async def test_the_longest_note_and_text_are_taken_after_trim(http: httpx.AsyncClient) -> None:
    longest = "ä" * 4000
    assert (await http.post(PATH, json={"note": f"  {longest}  ", "author": "x" * 200})).status_code == 201
    assert (await http.put(PATH, json={"notes": longest})).status_code == 200
    said = await read(http)
    assert (said["notes"], said["data"][0]["note"]) == (longest, longest)
