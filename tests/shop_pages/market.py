"""A shop with its pages and the processor's beside them, behind one HTTP door; and buyers with browsers."""

import re
from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httpx
import sqlalchemy as sa

from storage.engine.sql import Command, Connection
from storage.orders import StorefrontOrderTable
from storage.storefronts import Storefront, StorefrontPlan, insert_storefront, put_plan, write_storefront
from tests.network_facts import ACCOUNT
from tests.pages.browser import Browser, Seen
from tests.pages.document import Document
from tests.shop_pages.qr_reader import read_qr
from tests.top_ups.counter import TopUpShop, open_counter
from tests.world import HOST
from transports.http.asgi import HttpScope, Receive, Scope, Send
from transports.http.door import HttpDoor, InnerApplication
from transports.http.request import HttpRules
from transports.logs import RequestLine
from transports.payments import PAYMENT_PAGES_PATH, serve_payment_pages
from transports.web.shop.app import ShopsApp
from transports.web.shop.request import shop_context_of

SHOP_PATH = "/shop/fjord"
BUYER = "buyer@home.test"
ORDERS = StorefrontOrderTable.table


@dataclass
class PagesMarket:
    """The shop, its door, and what the door wrote into its log."""

    counter: TopUpShop
    shops: ShopsApp
    lines: list[RequestLine] = field(default_factory=list[RequestLine])
    door: HttpDoor = field(init=False)

    def __post_init__(self) -> None:
        world = self.counter.world
        inner = InnerApplication(self.serve, prefixes=("/shop", PAYMENT_PAGES_PATH), shown=self.shops.refused)
        rules = HttpRules(hosts=frozenset({HOST}), origins=frozenset({f"https://{HOST}"}))
        log, fault = self.lines.append, lambda *fault: world.faults.append(fault)
        self.door = HttpDoor(world.pipeline, rules=rules, log=log, fault=fault, inner=inner)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = cast(HttpScope, scope)
        if request["path"].startswith(PAYMENT_PAGES_PATH):
            await serve_payment_pages(self.counter.world.payments, scope, receive, send)
            return
        await self.counter.world.pipeline.rate_limiter.address((request.get("client") or ("", 0))[0])
        await self.shops(scope, receive, send)

    @asynccontextmanager
    async def browser(self, address: str = "203.0.113.7", language: str = "en", agent: str = "a browser") -> AsyncGenerator[Browser]:
        transport = httpx.ASGITransport(app=self.door, client=(address, 50000), raise_app_exceptions=False)
        headers = {"Accept": "text/html", "Accept-Language": language, "User-Agent": agent}
        async with httpx.AsyncClient(transport=transport, base_url=f"https://{HOST}", headers=headers) as http:
            yield Browser(http)

    async def to_checkout(self, browser: Browser, plan: str = "nordic") -> Seen:
        """From the shop to the processor's page."""
        seen = await browser.get(SHOP_PATH)
        return await browser.send(seen.page.form("/checkout", plan=plan))

    async def pay(self, browser: Browser, checkout: Seen, *, told: bool = True) -> Seen:
        """Pay there, and be led back; the processor tells of it, and the worker works."""
        seen = await browser.send(checkout.page.form(checkout.path), "Pay", email=BUYER)
        if not told:
            return seen
        await self.counter.told()
        await self.counter.work()
        return await browser.get(seen.path)

    async def bought(self, browser: Browser, plan: str = "nordic") -> Seen:
        """The page of an eSIM that is ready."""
        return await self.pay(browser, await self.to_checkout(browser, plan))

    async def change(self, **fields: object) -> Storefront:
        """The shop is another from now on."""
        row = self.counter.shop = self.counter.shop._replace(**fields)
        await self.counter.world.store.write(write_storefront, row=row)
        return row

    async def add_shop(self, row: Storefront) -> None:
        assert await self.counter.world.store.write(insert_storefront, row=row)

    async def sell(self, slug: str, **fields: object) -> StorefrontPlan:
        world, plans = self.counter.world, self.counter.plans
        row = plans.get(slug) or plans["nordic"]._replace(id=world.ids.new("sfp_"), slug=slug, name=slug.title())
        plans[slug] = await world.store.write(put_plan, row=row._replace(**fields))
        return plans[slug]

    async def set_order(self, order: str, **values: object) -> None:
        """As the service would never have written it."""
        await self.counter.world.store.write(write_order, order=order, values=values)

    async def sell_out(self) -> None:
        world = self.counter.world
        for line in (await world.network()).lines_of(ACCOUNT):
            line.sim.status = "AFFECTED" if line.sim.status == "FREE" else line.sim.status
        world.clock.advance(60)


def write_order(connection: Connection, *, order: str, values: dict[str, object]) -> None:
    connection.run(Command(sa.update(ORDERS).where(ORDERS.c.id == order).values(values)))


def order_of(seen: Seen) -> str:
    """The number of the order that a page is about, as its buyer came back to it from the processor."""
    found = re.search(r"/orders/(onr_[0-9a-z]{26})", seen.path)
    assert found is not None, seen.path
    return found[1]


def token_of(browser: Browser) -> str:
    """What opens the newest order that was begun in a browser: what its cookie holds."""
    cookies = sorted((one.name, one.value) for one in browser.http.cookies.jar if one.name.startswith("__Secure-order_"))
    assert cookies and cookies[-1][1] is not None
    return cookies[-1][1]


def heading(page: Document) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page.html, re.DOTALL)
    assert found is not None
    return found[1]


def scanned(page: Document) -> str:
    pictures = [tag.attributes["src"] for tag in page.tags if tag.name == "img" and tag.attributes["alt"].startswith("QR")]
    assert len(pictures) == 1
    return read_qr(b64decode(pictures[0].removeprefix("data:image/png;base64,")))


def field_of(page: Document, id: str) -> str:
    """The value of a field that is there to be copied."""
    return next(tag.attributes["value"] for tag in page.tags if tag.attributes.get("id") == id)


@asynccontextmanager
async def open_market(folder: Path) -> AsyncGenerator[PagesMarket]:
    """A market with the shop of tests/top_ups."""
    async with open_counter(folder) as counter:
        pipeline = counter.world.pipeline
        made = shop_context_of(
            pipeline, lambda call, error: counter.world.faults.append((call.request_id, call.operation.id, error)), f"https://{HOST}"
        )
        yield PagesMarket(counter, ShopsApp(made))
