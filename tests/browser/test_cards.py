"""Cards in a real browser, in a small host that hands them what the service answers and calls its tools for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import segno
from playwright.sync_api import Browser, Error, Frame, Page

from operations.catalogue import CATALOGUE
from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS
from tests.browser.test_shop import found_by_axe
from tests.harness.processes import ROOT, Running
from tests.mcp.house import request, wire_headers
from tests.shop_pages.qr_reader import decoded, read_qr
from transports.mcp.cards import card_of, card_uri

HOST_PAGE = ROOT / "tests" / "browser" / "card_host.html"
ALL = {"serverTools": {}, "openLinks": {}, "updateModelContext": {"text": {}}}
SHOWS_CARDS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}

pytestmark = [*NEEDS_CHROMIUM, pytest.mark.long]


class CardHost:
    """The host's page, its connection to the service, and what happens beside the card's own work."""

    def __init__(self, server: Running, page: Page) -> None:
        self.server, self.page = server, page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.calls: list[dict[str, Any]] = []
        headers = {"authorization": f"Bearer {server.api_key}"}
        self._http = httpx.Client(headers=headers, params={"toolsets": "all"}, timeout=60)
        page.expose_function("callTool", self.call_tool)
        page.on("request", lambda asked: self.requests.append(asked.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.begin()

    def begin(self) -> None:
        """The host's page without a card, as if nothing had happened on it."""
        self.page.goto("about:blank")
        self.page.set_content(HOST_PAGE.read_text())
        for kept in (self.requests, self.complaints, self.calls):
            kept.clear()

    def close(self) -> None:
        self._http.close()
        self.page.close()

    def rpc(self, method: str, **params: Any) -> dict[str, Any]:
        body = request(method, capabilities=SHOWS_CARDS, **params)
        named = {"mcp-name": params["uri"]} if "uri" in params else {}
        return self._http.post(self.server.mcp_url, json=body, headers={**wire_headers(body), **named}).json()["result"]

    def call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(params)
        return self.rpc("tools/call", **params)

    def open(self, tool: str, arguments: dict[str, Any], result: dict[str, Any] | None = None, **more: Any) -> Frame:
        """The tool's card with the result of a call; of a real one unless it is given."""
        card = card_of(CATALOGUE.operations[tool])
        assert card is not None
        html = self.rpc("resources/read", uri=card_uri(card))["contents"][0]["text"]
        said = result or self.rpc("tools/call", name=tool, arguments=arguments)
        shown = {"arguments": arguments, "result": said, "capabilities": ALL, **more}
        self.page.evaluate("([html, call]) => showCard(html, call)", [html, shown])
        frame = self.page.frame_locator("#card")
        frame.locator("#content :not(p:text('Waiting'))").first.wait_for()
        return self.page.frames[-1]

    def heard(self, method: str) -> list[dict[str, Any]]:
        said = cast("list[dict[str, Any]]", self.page.evaluate("heard"))
        return [message["params"] for message in said if message.get("method") == method]

    def look(self, frame: Frame, name: str) -> None:
        """What everybody needs of a card, whatever they read it with; and a picture of it, where somebody wants one."""
        assert found_by_axe(frame) == []
        assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(("about:", "data:"))] == []
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            self.page.locator("#card").screenshot(path=Path(SHOTS) / f"card-{name}.png")


@pytest.fixture(scope="module")
def card_host(server: Running, browser: Browser) -> Iterator[CardHost]:
    context = browser.new_context(color_scheme="light", viewport={"width": 680, "height": 1000})
    host = CardHost(server, context.new_page())
    yield host
    host.close()
    context.close()


@pytest.fixture
def host(card_host: CardHost) -> CardHost:
    card_host.begin()
    return card_host


@pytest.fixture(scope="module")
def lines(server: Running) -> list[str]:
    """Two lines of the demo that still have a package to lose."""
    found: list[str] = []
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}, timeout=60) as http:
        for line in http.get("/v1/subscribers", params={"limit": 100}).json()["data"]:
            held = http.get(f"/v1/subscribers/{line['iccid']}/packages").json()["data"]
            found += [line["iccid"]] if any(row["state"] == "running" for row in held) else []
            if len(found) == 2:
                return found
    raise AssertionError("the demo has no two lines with a running package")


def packages_of(host: CardHost, iccid: str) -> list[dict[str, Any]]:
    return host.call_tool({"name": "list_subscriber_packages", "arguments": {"iccid": iccid}})["structuredContent"]["data"]


def test_a_person_confirms_in_the_card_and_the_call_is_made_once(host: CardHost, lines: list[str]) -> None:
    iccid = lines[1]
    card = host.open("clean_all_packages", {"iccid": iccid})
    text = card.inner_text("main")
    assert "Not done yet" in text and iccid in text and "unused data" in text
    assert all(
        row["packageTemplate"]["prepaidpackagetemplatename"] in text for row in packages_of(host, iccid) if row["state"] == "running"
    )
    host.look(card, "confirmation")
    host.calls.clear()
    card.get_by_role("button", name="Do it").click()
    card.get_by_role("heading", name="Done").wait_for()
    assert [call["name"] for call in host.calls] == ["clean_all_packages"]
    assert host.calls[0]["arguments"].keys() == {"iccid", "confirm_token"}
    assert packages_of(host, iccid) == []
    assert "The user confirmed in the card" in host.heard("ui/update-model-context")[0]["content"][0]["text"]
    host.look(card, "confirmed")


def test_a_person_cancels_and_nothing_is_called(host: CardHost, lines: list[str]) -> None:
    iccid = lines[0]
    card = host.open("clean_all_packages", {"iccid": iccid})
    host.calls.clear()
    card.get_by_role("button", name="Cancel").click()
    card.get_by_text("Cancelled. Nothing was done.").wait_for()
    assert card.get_by_role("button", name="Do it").is_disabled()
    assert host.calls == [] and "declined" in host.heard("ui/update-model-context")[0]["content"][0]["text"]
    assert packages_of(host, iccid) != []
    host.look(card, "cancelled")


def test_a_host_that_calls_no_tools_for_a_card_leaves_the_answer_to_the_chat(host: CardHost, lines: list[str]) -> None:
    card = host.open("clean_all_packages", {"iccid": lines[0]}, capabilities={})
    assert card.get_by_role("button", name="Do it").count() == 0
    assert "Tell the assistant whether to go on" in card.inner_text("main")


def test_a_question_that_has_expired_cannot_be_answered_any_more(host: CardHost) -> None:
    body = {"message": "This will end soon.", "confirm_token": "A" * 43, "expires_in_seconds": 0.5}
    asked = {**asked_back(body), "_meta": {"connectivity/tool": "clean_all_packages"}}
    card = host.open("clean_all_packages", {"iccid": "8988303700000100286"}, asked)
    card.get_by_text("The question has expired").wait_for()
    assert card.get_by_role("button", name="Do it").is_disabled()
    assert host.calls == []


APPROVAL: dict[str, Any] = {
    "message": "Wait for an approval",
    "expires_in_seconds": 86_400,
    "route": "POST /v1/operator-billing/refunds",
    "hint": "",
    "approval": {
        "id": "apr_01mcckg2g00000000000000005",
        "sentence": "This will refund 5.00 EUR of the charge ch_3QxAbCdEfGhIjKlM to the payer of this charge.",
        "money": [{"amount": 500, "currency": "EUR"}],
        "expires": "2027-01-16T12:00:00Z",
        "page": "https://service.example/auth/approvals/apr_01mcckg2g00000000000000005",
        "idempotency_key": "8d1f",
    },
    "losses": [{"kind": "money", "name": "5.00 EUR", "details": {"payee": "<b>the payer</b>"}}],
}


def asked_back(body: dict[str, Any]) -> dict[str, Any]:
    text = f"Not done yet: {body['message']}\n{httpx.Response(200, json=body).text}"
    return {"content": [{"type": "text", "text": text}], "isError": True}


def test_an_approval_is_led_to_its_page_and_never_decided_here(host: CardHost) -> None:
    card = host.open("operator_billing_create_refund", {"charge": "ch_3QxAbCdEfGhIjKlM"}, asked_back(APPROVAL))
    assert [each.inner_text() for each in card.get_by_role("button").all()] == ["Open the approval page"]
    assert "object Object" not in card.inner_text("main")
    assert "<b>the payer</b>" in card.inner_text("main")  # what others wrote is text, not markup
    card.get_by_role("button").click()
    card.get_by_text("The page is open").wait_for()
    assert host.heard("ui/open-link") == [{"url": APPROVAL["approval"]["page"]}]
    assert host.calls == []
    host.look(card, "approval")


def test_an_address_that_is_no_page_is_not_opened(host: CardHost) -> None:
    for page in ("javascript:alert(1)", "not an address", "file:///etc/passwd"):
        host.begin()
        body = {**APPROVAL, "approval": {**APPROVAL["approval"], "page": page}}
        card = host.open("operator_billing_create_refund", {"charge": "ch_3QxAbCdEfGhIjKlM"}, asked_back(body))
        assert card.get_by_role("button").count() == 0 and page not in card.inner_text("main")


def test_any_card_shows_an_approval(host: CardHost) -> None:
    card = host.open("issue_esim_from_inventory", {"accountId": 8101}, asked_back(APPROVAL))
    assert card.get_by_role("heading", name="Waits for an approval").count() == 1


def test_a_line_is_shown_and_its_packages_when_they_are_asked_for(host: CardHost, lines: list[str]) -> None:
    iccid = lines[0]
    card = host.open("get_subscriber", {"iccid": iccid, "fields": ["*"]})
    assert f"Line {iccid}" in card.inner_text("h1") and "Active" in card.inner_text("main")
    host.calls.clear()
    card.get_by_role("button", name="Show packages").click()
    card.get_by_role("progressbar").first.wait_for()
    assert [call["name"] for call in host.calls] == ["list_subscriber_packages"]
    used = card.get_by_role("progressbar").first
    assert float(used.get_attribute("max") or 0) >= float(used.get_attribute("value") or 0)
    host.look(card, "line")


def test_a_diagnosis_is_shown_with_what_to_mend_first(host: CardHost, lines: list[str]) -> None:
    card = host.open("diagnose_subscriber", {"iccid": lines[0]})
    assert card.get_by_role("list").first.get_by_role("listitem").count() >= 1
    assert "undefined" not in card.inner_text("main") and "null" not in card.inner_text("main")
    host.look(card, "diagnosis")


def test_an_esim_is_shown_as_a_code_that_a_phone_reads(host: CardHost) -> None:
    made = host.rpc(
        "tools/call", name="create_connectivity_intent", arguments={"plan": "test_eu_1gb", "idempotency_key": f"card-{id(host)}"}
    )
    code = made["structuredContent"]["esim"]["activation_code"]
    card = host.open("create_connectivity_intent", {"plan": "test_eu_1gb"}, made)
    picture = card.get_by_role("img", name="QR code that installs the eSIM")
    assert read_qr(picture.screenshot()) == code
    assert code.split("$")[2] in card.inner_text("main")
    host.look(card, "install")


FULL_LENGTHS = (14, 26, 42, 62, 84, 106, 122, 152, 180, 213)
"""Characters that fill the versions 1 to 10, so that nothing is padded: segno pads with a byte of zeros first; the standard does not."""

MOST_READ = 106
"""Characters of the longest code that our reader reads."""


def test_a_code_is_drawn_as_the_standard_has_it_at_every_length(host: CardHost) -> None:
    card = host.open("create_connectivity_intent", {}, {"structuredContent": {"status": "requires_plan", "esim": None}, "content": []})
    assert card.get_by_role("heading", name="No eSIM to install yet").count() == 1
    text = "LPA:1$smdp.example$" + "A7K2-QX9M-" * 20
    lengths = sorted({1, *(length + more for length in FULL_LENGTHS for more in (-1, 0, 1) if length + more < 214)})
    codes = cast("list[dict[str, Any]]", card.evaluate("texts => texts.map(text => makeQr(text))", [text[:each] for each in lengths]))
    drawn = dict(zip(lengths, codes, strict=True))
    for length in lengths:
        if length <= MOST_READ:
            assert decoded([[module == 1 for module in row] for row in drawn[length]["modules"]]) == text[:length]
    for length in FULL_LENGTHS:
        meant = segno.make(text[:length], mode="byte", error="m", mask=drawn[length]["mask"], boost_error=False, micro=False)
        assert [list(row) for row in meant.matrix] == drawn[length]["modules"], length
    with pytest.raises(Error, match="too long"):
        card.evaluate("makeQr", text[:214])


def test_cards_are_read_by_night_too(host: CardHost, lines: list[str]) -> None:
    host.page.emulate_media(color_scheme="dark")
    host.look(host.open("clean_all_packages", {"iccid": lines[0]}), "confirmation-dark")
    host.begin()
    host.look(host.open("list_subscriber_packages", {"iccid": lines[0]}), "packages-dark")
    host.page.emulate_media(color_scheme="light")
