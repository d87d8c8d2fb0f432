"""Cards for hosts that show them: which tools name one, what a card may do, and that everybody else is told of none."""

import re
from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.operation import Card
from tests.mcp.house import House, request
from tests.mcp.refusals import refusal_in, refusal_of
from tests.world import Credentials
from transports.mcp.cards import CARD_SCRIPTS, card_document, card_of, source_digest
from transports.mcp.tools import card_tool_definition, is_tool, tool_definition

EXTENSION = "io.modelcontextprotocol/ui"
SHOWS_CARDS = {"extensions": {EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
URI = "ui://connectivity/confirmation"
SVG_NAMESPACE = "http://www.w3.org/2000/svg"
CARDS = sorted(CARD_SCRIPTS)


async def result(house: House, who: Credentials, method: str, capabilities: dict[str, Any], **params: Any) -> dict[str, Any]:
    headers = {"mcp-name": params["uri"]} if "uri" in params else {}
    said = await house.post(request(method, capabilities=capabilities, **params), secret=who.secret, **headers)
    return orjson.loads(said.content)["result"]


async def test_a_client_that_shows_cards_is_told_which_tool_has_one(house: House, pro: Credentials) -> None:
    tools = (await result(house, pro, "tools/list", SHOWS_CARDS))["tools"]
    assert {tool["name"]: tool["_meta"] for tool in tools if "_meta" in tool} == {"delete_note": {"ui": {"resourceUri": URI}}}
    listed = (await result(house, pro, "resources/list", SHOWS_CARDS))["resources"]
    card = next(each for each in listed if each["uri"] == URI)
    read = (await result(house, pro, "resources/read", SHOWS_CARDS, uri=URI))["contents"]
    assert card["mimeType"] == read[0]["mimeType"] == "text/html;profile=mcp-app"
    assert card["_meta"]["ui"] == read[0]["_meta"]["ui"]
    assert read[0]["_meta"]["ui"]["csp"] == {"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []}
    assert read[0]["text"] == card_document("confirmation")


@pytest.mark.parametrize("capabilities", [{}, {"extensions": {}}, {"extensions": {EXTENSION: {"mimeTypes": ["text/plain"]}}}])
async def test_a_client_that_shows_none_is_told_of_none(house: House, pro: Credentials, capabilities: dict[str, Any]) -> None:
    tools = (await result(house, pro, "tools/list", capabilities))["tools"]
    assert [tool["name"] for tool in tools if "_meta" in tool] == []
    listed = (await result(house, pro, "resources/list", capabilities))["resources"]
    assert [each["uri"] for each in listed if each["uri"].startswith("ui:")] == []


async def test_an_earlier_client_may_show_cards_and_is_told(house: House, pro: Credentials) -> None:
    async with house.connect(pro, "legacy") as client:
        tools = (await client.list_tools()).tools
        contents = (await client.read_resource(URI)).contents
    assert {tool.name for tool in tools if tool.meta} == {"delete_note"}
    assert contents[0].mime_type == "text/html;profile=mcp-app"


async def test_the_server_says_that_it_has_cards(house: House, pro: Credentials) -> None:
    assert (await result(house, pro, "server/discover", {}))["capabilities"]["extensions"] == {EXTENSION: {}}


async def test_a_card_that_no_tool_here_has_is_not_found(house: House, pro: Credentials) -> None:
    said = await house.post(
        request("resources/read", uri="ui://connectivity/install"), secret=pro.secret, **{"mcp-name": "ui://connectivity/install"}
    )
    assert orjson.loads(said.content)["error"]["message"] == "Resource not found"


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_challenge_is_a_sentence_and_then_the_json(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client:
        said = await client.call_tool("delete_note", {"name": "first"})
    assert (said.is_error, said.structured_content, len(said.content)) == (True, None, 1)
    assert getattr(said.content[0], "text", "").startswith("Not done yet: This will remove a note for good (name first).\n{")
    body = refusal_of(said)
    assert (body["route"], len(body["confirm_token"])) == ("DELETE /v1/notes/{name}", 43)
    assert said.meta is not None and said.meta["connectivity/tool"] == "delete_note"


async def test_hidden_characters_of_an_argument_reach_no_sentence(house: House, pro: Credentials) -> None:
    said = await result(house, pro, "tools/call", {}, name="delete_note", arguments={"name": "a\u202eb"})
    assert "\u202e" not in str(said["content"]) and refusal_in(said)["message"].endswith("(name ab).")


@pytest.mark.parametrize("card", CARDS)
def test_a_card_loads_nothing_and_runs_only_what_stands_in_it(card: Card) -> None:
    document = card_document(card)
    assert set(re.findall(r"[a-z]+://[^\"'\s<>)]+", document)) <= {SVG_NAMESPACE}
    assert (
        re.findall(r"\b(?:src|href|srcset|action|poster)=|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|innerHTML|\beval\(", document)
        == []
    )
    assert re.findall(r"\{\{\w+\}\}", document) == []
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', document)
    style, script = re.search(r"<style>(.*?)</style>", document, re.DOTALL), re.search(r"<script>(.*?)</script>", document, re.DOTALL)
    assert policy and style and script
    assert policy[1] == (
        f"default-src 'none'; script-src '{source_digest(script[1])}'; style-src '{source_digest(style[1])}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert document.count("<script") == document.count("<style") == 1
    assert len(document) < 32_000


def test_each_tool_of_the_service_has_the_card_of_what_it_answers() -> None:
    cards: dict[str, list[str]] = {}
    for operation in CATALOGUE.operations.values():
        if is_tool(operation) and (card := card_of(operation)) is not None:
            cards.setdefault(card, []).append(operation.id)
    assert cards["line"] == ["get_subscriber", "list_subscriber_packages", "diagnose_subscriber"]
    assert cards["install"] == [
        "create_connectivity_intent",
        "get_connectivity_intent",
        "confirm_connectivity_intent",
        "issue_esim_from_inventory",
        "assign_package",
    ]
    asked = [o.id for o in CATALOGUE.operations.values() if is_tool(o) and o.card is None and (o.confirmable or o.challenge is not None)]
    assert cards["confirmation"] == asked


def test_cards_add_little_to_the_list_of_tools() -> None:
    tools = [o for o in CATALOGUE.operations.values() if is_tool(o)]
    plain, shown = (
        sum(len(define(o).model_dump_json(by_alias=True, exclude_none=True)) for o in tools)
        for define in (tool_definition, card_tool_definition)
    )
    assert 0 < shown - plain < 0.01 * plain
