"""The simulated processor with one account that takes payments, and what a platform asks of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import httpx

from clients.payments.port import Processor
from clients.payments.records import CheckoutSession, InvoiceLine, NewCheckout, NewInvoice, NewPromotion, ProcessorInvoice
from simulators.processor.simulated_processor import SimulatedProcessor
from tests.pages.browser import Browser
from tests.world import HOST, SettableClock, new_payments
from transports.payments import serve_payment_pages, simulated_processor

BACK = "https://shop.example/back"
AGAIN = "https://shop.example/again"
SUCCESS = "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}"
CANCEL = "https://shop.example/basket"
PAGES = "/sandbox/payments"


@dataclass
class Post:
    """One webhook as it arrived, and a receiver of them."""

    answers: list[int] = field(default_factory=list[int])
    """What the next posts are answered; afterwards 200."""
    taken: list[tuple[bytes, str]] = field(default_factory=list[tuple[bytes, str]])
    """Body and signature."""

    async def __call__(self, url: str, body: bytes, headers: "dict[str, str] | object") -> int:
        assert url == f"http://{HOST}/v1/operator-billing/payments-webhook"
        self.taken.append((body, cast("dict[str, str]", headers)["stripe-signature"]))
        return self.answers.pop(0) if self.answers else 200


@dataclass
class PagesShop:
    """A processor, the platform's way to it, and somebody's browser."""

    sandbox: SimulatedProcessor
    processor: Processor
    clock: SettableClock
    browser: Browser
    post: Post = field(default_factory=Post)
    account: str = ""

    async def ask(self, method: str, path: str, body: object = None) -> dict[str, object]:
        return cast("dict[str, object]", await self.sandbox.control(method, path, body))

    async def new_account(self, email: str | None = "owner@example.com") -> str:
        return (await self.processor.create_account(key=f"new-{email}", email=email, country="US", metadata={})).id

    async def link(self, account: str) -> str:
        return path_of((await self.processor.onboarding_link(account, return_url=BACK, refresh_url=AGAIN)).url)

    async def invoice(self, number: str = "INV-1", *, name: str = "Ada Berg", text: str = "Data, January") -> ProcessorInvoice:
        """An invoice over 25.00 that was sent."""
        wanted = NewInvoice(
            key=f"make-{number}",
            number=number,
            currency="USD",
            lines=(InvoiceLine(text, 2000), InvoiceLine("Tax", 500)),
            fee=25,
            due_at=int(self.clock.now()) + 14 * 86_400,
            recipient_name=name,
            recipient_email="ada@example.com",
            metadata={"our": number},
        )
        made = await self.processor.draft_invoice(self.account, wanted)
        return await self.processor.send_invoice(self.account, made.id, key=f"send-{number}")

    async def checkout(self, key: str = "buy-1", *, email: str | None = None, promotions: bool = False) -> CheckoutSession:
        """A thing of 10.00 to be paid."""
        wanted = NewCheckout(
            key=key,
            text="Europe 1 GB",
            amount=1000,
            currency="USD",
            fee=10,
            success_url=SUCCESS,
            cancel_url=CANCEL,
            email=email,
            promotions=promotions,
            metadata={"order": key},
        )
        return await self.processor.create_checkout(self.account, wanted)

    async def promotion(self, code: str, bps: int) -> None:
        await self.processor.create_promotion(self.account, NewPromotion(code, code, bps, None, None, None))

    async def told(self) -> list[str]:
        import orjson

        seen = len(self.post.taken)
        while await self.sandbox.deliver(self.post):
            pass
        return [orjson.loads(body)["type"] for body, _ in self.post.taken[seen:]]


def path_of(url: str | None) -> str:
    assert url is not None and url.startswith(f"https://{HOST}{PAGES}/")
    return url.removeprefix(f"https://{HOST}")


@asynccontextmanager
async def open_pages_shop() -> AsyncGenerator[PagesShop]:
    """A processor that begins at noon."""
    clock = SettableClock()
    sandbox = new_payments(clock)
    processor = simulated_processor(sandbox)
    transport = httpx.ASGITransport(app=partial(serve_payment_pages, sandbox))
    async with httpx.AsyncClient(transport=transport, base_url=f"https://{HOST}") as http:
        shop = PagesShop(sandbox, processor, clock, Browser(http))
        shop.account = await shop.new_account()
        await shop.ask("POST", f"accounts/{shop.account}", {"do": "enable"})
        yield shop
    await processor.aclose()
