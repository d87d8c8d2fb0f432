"""How the life of the demo reaches what is outside: the pages of the shop and of the simulated processor, and the simulated network."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin, urlsplit

import anyio
import anyio.to_thread
import orjson

from clients.http import load_httpx
from operations.demo import DEMO_SLUG
from operations.demo_life import DEMO_AGAIN_SECONDS, DEMO_LIFE_SECONDS, MOMENTARY_STATUSES, DemoCard, DemoLife, DemoStepFailed
from registry.ids import ORDER_NUMBER_PREFIX
from transports.http.asgi import App
from transports.upstream import LateSimulation
from transports.web.shop.door import SHOP_PATH
from transports.worker.chores import run_once

if TYPE_CHECKING:  # httpx is imported when the first buyer comes
    import httpx

    from transports.service import Service

BUYER_ADDRESSES = "203.0.113."
"""A network for documentation (RFC 5737): each buyer comes from an address of their own, as in life."""
ORDER_COOKIE = re.compile(r"(?:__Secure-)?order_([0-9a-z]{26})", re.ASCII)
PAGE_LIMIT_SECONDS = 30.0


class DemoVisitors:
    """Buyers, each with a browser of their own, who ask our own door; and what befalls the simulated network."""

    def __init__(self, app: App, base_url: str, network: LateSimulation) -> None:
        self._app, self._base_url, self._network = app, base_url, network
        self._browsers: dict[str, httpx.AsyncClient] = {}
        self._payments: dict[str, str] = {}
        self._orders: dict[str, str] = {}

    async def begin_order(self, buyer: str, plan: str) -> str:
        """The number of the new order; its payment page is open."""
        answer = await self._post(buyer, f"{SHOP_PATH}/{DEMO_SLUG}/checkout", {"plan": plan})
        self._payments[buyer] = answer.headers["location"]
        found = [ORDER_COOKIE.fullmatch(name) for name in answer.cookies]
        [number] = [ORDER_NUMBER_PREFIX + one[1] for one in found if one is not None]
        self._orders[buyer] = number
        return number

    async def begin_top_up(self, buyer: str, plan: str) -> None:
        """More data for the order that `buyer` began; its payment page is open."""
        answer = await self._post(buyer, f"{SHOP_PATH}/{DEMO_SLUG}/orders/{self._orders[buyer]}/top-up", {"plan": plan})
        self._payments[buyer] = answer.headers["location"]

    async def pay_order(self, buyer: str, card: DemoCard) -> None:
        """Presses the button of the payment page; a refused card leaves it open."""
        await self._post(buyer, self._payments[buyer], {"do": "pay", "email": buyer, "card": card}, refused=(402,))

    async def pay_invoice(self, address: str, card: DemoCard) -> None:
        """Presses the button of the invoice's page."""
        await self._post("", address, {"do": "pay", "card": card})

    async def disturb_network(self, fault: Mapping[str, object]) -> None:
        """Orders a fault by the control API of the simulated network."""
        answer = await self._network.sandbox().handle("POST", "/control/faults", body=orjson.dumps(fault))
        if answer.status != 200:
            raise DemoStepFailed("the simulated network does not take a fault")

    async def aclose(self) -> None:
        """Every browser is closed."""
        for browser in self._browsers.values():
            await browser.aclose()

    async def _post(self, buyer: str, address: str, fields: Mapping[str, str], *, refused: tuple[int, ...] = ()) -> httpx.Response:
        """Sends a form as a browser does, and follows nothing. Raises DemoStepFailed."""
        browser = await self._browser(buyer)
        origin = "/".join(self._base_url.split("/")[:3])
        headers = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded", "Accept-Language": "en", "Accept": "text/html"}
        target, began = urljoin(origin, html.unescape(address)), anyio.current_time()
        answer = await browser.post(target, content=urlencode(fields), headers=headers)
        while answer.status_code in MOMENTARY_STATUSES and anyio.current_time() - began < DEMO_LIFE_SECONDS:
            await anyio.sleep(DEMO_AGAIN_SECONDS)
            answer = await browser.post(target, content=urlencode(fields), headers=headers)
        if not answer.is_redirect and answer.status_code not in refused:
            raise DemoStepFailed(f"a form at {urlsplit(address).path.split('/')[1]} was answered with {answer.status_code}")
        return answer

    async def _browser(self, buyer: str) -> httpx.AsyncClient:
        found = self._browsers.get(buyer)
        if found is None:
            library = await anyio.to_thread.run_sync(load_httpx)
            client = (f"{BUYER_ADDRESSES}{len(self._browsers) + 1}", 50_000)
            transport = library.ASGITransport(app=self._app, raise_app_exceptions=False, client=client)
            found = self._browsers[buyer] = library.AsyncClient(transport=transport, timeout=PAGE_LIMIT_SECONDS)
        return found


async def live_demo(service: Service, app: App, key: str) -> None:
    """The life of the demo from its first part to its last. `app`: our own door. A part that fails is reported, and the next one begins."""
    network = service.upstream.simulation
    if network is None:
        return
    began = service.clock.monotonic()
    visitors = DemoVisitors(app, service.site.base_url, network)
    try:
        for name, part in DemoLife(service.pipeline, key, visitors).parts():
            await run_once(f"the demo's {name}", part, service.report)
    finally:
        await visitors.aclose()
    seconds = service.clock.monotonic() - began
    service.report(f"the demo has orders, invoices, reports and more to look at now; they took {seconds:.1f} seconds")
