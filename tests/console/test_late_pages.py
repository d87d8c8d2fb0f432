"""Pages that wait for the charging system: their frame is sent before it answers, and the answer in the same document, in its place."""

from collections.abc import AsyncGenerator, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from registry.caller import Tier
from simulators.network.faults import NetworkFault
from simulators.network.simulated_network import SimulatedNetwork
from storage.upstream_connections import set_connection
from tests.console.test_every_console_page import POLICY
from tests.fleet.stage import HeldSleep, thirty_lines
from tests.network_facts import ACCOUNT
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.document import Document
from tests.pages.site import Site
from tests.pages.trail import trail
from transports.web.console.request import FRAME_END

QUESTION = "/console/insight/detect_country_entry"
ICCID, FOREIGN = "8988303700000100013", "8988303700009999999"
"""A line of the account, and one of nobody."""


@dataclass
class HeldNetwork:
    """A charging system whose answers wait until `until` is set, for an organisation that is connected to it."""

    site: Site
    browser: Browser
    sleep: HeldSleep
    network: SimulatedNetwork

    def hold(self) -> None:
        self.sleep.until = anyio.Event()
        self.network.faults.add(NetworkFault("*", delay=1.0, times=None))

    def release(self) -> None:
        assert self.sleep.until is not None
        self.sleep.until.set()


@dataclass
class PieceReader:
    """A browser that notes each piece of an answer as it comes; `first` is told the first one."""

    held: HeldNetwork
    first: Callable[[bytes], None]
    leaves: bool = False
    """Whether it goes away once it has asked."""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    pieces: list[bytes] = field(default_factory=list[bytes])

    async def get(self, path: str, query: str, method: str = "GET") -> str:
        """The whole document."""
        cookies = "; ".join(f"{one.name}={one.value}" for one in self.held.browser.http.cookies.jar)
        scope: MutableMapping[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1:8000"), (b"cookie", cookies.encode()), (b"accept-encoding", b"gzip")],
            "client": ("203.0.113.7", 50000),
            "server": ("127.0.0.1", 8000),
        }
        asked = False

        async def receive() -> MutableMapping[str, Any]:
            nonlocal asked
            if asked and not self.leaves:
                await anyio.sleep_forever()
            if asked:
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        with anyio.fail_after(20):
            await self.held.site.app(scope, receive, self.send)
        return b"".join(self.pieces).decode()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self.pieces.append(message.get("body", b""))
        if len(self.pieces) == 1:
            self.first(self.pieces[0])


@pytest.fixture
async def held(site: Site, browser: Browser) -> AsyncGenerator[HeldNetwork]:
    sleep, simulation = HeldSleep(), site.service.upstream.simulation
    assert simulation is not None
    simulation.begun = SimulatedNetwork(thirty_lines().copy(), wall=site.clock.now, following=True, sleep=sleep)
    organisation = await site.organisation(await site.person(ADA_ADDRESS), "Fjord", tier=Tier.ENTERPRISE)
    await site.service.store.write(set_connection, organisation=organisation, mode="managed", account_id=ACCOUNT, own_token=None)
    await site.sign_in(browser, ADA_ADDRESS, "/console/insight")
    yield HeldNetwork(site, browser, sleep, simulation.begun)


@pytest.mark.long
async def test_the_frame_is_sent_before_the_charging_system_answers_and_the_answer_follows_in_its_place(held: HeldNetwork) -> None:
    frames: list[str] = []

    def seen(piece: bytes) -> None:
        frames.append(piece.decode())
        held.release()

    held.hold()
    reader = PieceReader(held, seen)
    whole = await reader.get(QUESTION, f"ask=now&iccid={ICCID}")
    assert reader.status == 200 and reader.headers["content-security-policy"] == POLICY
    assert reader.headers["cache-control"] == "no-store" and reader.headers["x-accel-buffering"] == "no"
    assert reader.headers.keys().isdisjoint({"content-length", "content-encoding", "etag"})
    assert frames[0].count("<h1>") == frames[0].count("<title>") == frames[0].count('class="menu"') == 1
    assert frames[0].rstrip().endswith('<p class="asking" role="status">The answer is being worked out. It appears here by itself.</p>')
    assert 'id="answer"' not in frames[0] and FRAME_END not in whole
    rest = whole.removeprefix(frames[0])
    assert '<h2 id="answer">' in rest and f"/console/lines/{ICCID}" in rest and "reseller call detect_country_entry" in rest
    assert whole.count("</main>") == whole.count("</html>") == whole.count("<main") == 1 and whole.rstrip().endswith("</html>")
    assert {row.outcome for row in await trail(held.site, "console.insight")} == {"ok"}


async def test_a_browser_that_leaves_before_the_answer_ends_the_question(held: HeldNetwork) -> None:
    calls, before = len(held.network.calls), await trail(held.site, "console.insight")
    held.hold()
    reader = PieceReader(held, lambda _: None, leaves=True)
    await reader.get(QUESTION, f"ask=now&iccid={ICCID}")  # it ends, though nothing is ever answered
    assert "<main" in reader.pieces[0].decode() and not any(b"</html>" in piece for piece in reader.pieces)
    assert len(held.network.calls) > calls and held.sleep.until is not None and not held.sleep.until.is_set()
    assert await trail(held.site, "console.insight") == [*before, before[0]]  # it was looked at all the same


@pytest.mark.long
async def test_what_is_refused_late_is_told_in_its_place_and_the_document_is_whole(held: HeldNetwork) -> None:
    held.hold()
    reader = PieceReader(held, lambda _piece: held.release())
    whole = await reader.get(QUESTION, f"ask=now&iccid={FOREIGN}")
    assert reader.status == 200 and len([piece for piece in reader.pieces if piece]) == 2
    page = Document(whole)
    assert "no line with this ICCID" in (page.wrong("iccid") or "") and page.form(QUESTION).fields["iccid"] == FOREIGN
    assert whole.rstrip().endswith("</html>") and whole.count("</main>") == 1


async def test_what_is_answered_at_once_is_one_page_with_its_length_and_a_look_at_its_head_has_no_body(held: HeldNetwork) -> None:
    pieces = PieceReader(held, lambda _piece: None)
    page = await pieces.get("/console/issue/stock", "")
    assert "asking" not in page and pieces.headers["content-length"] == str(len(page.encode()))
    head = PieceReader(held, lambda _piece: None)
    assert await head.get(QUESTION, f"ask=now&iccid={ICCID}", "HEAD") == ""
    assert (head.status, head.headers["content-type"]) == (200, "text/html; charset=utf-8")


@pytest.mark.cases
@pytest.mark.parametrize(("path", "pieces"), [("/console/shops", 2), ("/console/money/refunds", 1), ("/console/money/payouts", 1)])
async def test_pages_of_shops_and_payments_are_the_same_whether_their_frame_was_sent_first_or_nothing_was_waited_for(
    held: HeldNetwork, monkeypatch: pytest.MonkeyPatch, path: str, pieces: int
) -> None:
    monkeypatch.setattr("transports.web.console.request.FRAME_SECONDS", 0.0)  # what waits at all takes too long
    frames: list[str] = []
    reader = PieceReader(held, lambda piece: frames.append(piece.decode()))
    whole = await reader.get(path, "")
    assert reader.status == 200 and len([piece for piece in reader.pieces if piece]) == pieces
    asking = '<p class="asking" role="status">The answer is being worked out. It appears here by itself.</p>'
    assert frames[0].count("<h1>") == 1 and frames[0].rstrip().endswith(asking) is (pieces == 2)
    assert whole.count("</main>") == whole.count("</html>") == whole.count("<h1>") == 1 and FRAME_END not in whole
    monkeypatch.undo()
    at_once = (await held.browser.get(path)).page
    assert Document(whole.replace(asking, "")).text == at_once.text
