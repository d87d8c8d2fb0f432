"""The simulated processor under the official library: its calls go to the sandbox, whatever it believes to be on the other side."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import stripe

from simulators.processor.api import ProcessorApi
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.charges import make_charge
from simulators.processor.clock import catch_up_processor
from simulators.processor.onboarding import complete_onboarding
from simulators.processor.state import ProcessorState, enter_turn, make_processor_state
from simulators.server import WireAnswer

SIMULATED_KEY = "sk_test_simulated_processor"
PAGES_ADDRESS = "https://sandbox.example/pages"
BEGIN = 1_780_000_000
GOOD = PaymentCard("4242424242424242", "Ada Meier", "ada@example.com")
AT_ONCE = PaymentCard("4000000000000077", "Ada Meier", "ada@example.com")
DAY = 86_400


class Loop(stripe.HTTPClient):
    """The library's way out, bent back."""

    name = "loop"

    def __init__(self, processor: "ClockedProcessor") -> None:
        super().__init__()
        self._processor = processor

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None, *, _usage: list[str] | None = None
    ) -> tuple[str, int, Mapping[str, str]]:
        where = urlsplit(url)
        answer = self._processor.call(method.upper(), where.path, where.query, dict(headers or {}), (post_data or "").encode())
        return answer.body.decode(), answer.status, answer.headers

    def close(self) -> None:
        pass


class ClockedProcessor:
    """One simulated processor with its clock, and the library's client for it."""

    def __init__(self, key: str = SIMULATED_KEY, seed: int = 1) -> None:
        self.now = float(BEGIN)
        self.key, self.live = key, "_live_" in key
        self.state: ProcessorState = make_processor_state(now=self.now, pages_url=PAGES_ADDRESS, live=self.live, seed=seed)
        self.api = ProcessorApi(key=key)
        self.stripe: Any = stripe.StripeClient(key, http_client=Loop(self), max_network_retries=0)  # its parameters are not ours to type
        self.v1 = self.stripe.v1
        self.last: WireAnswer | None = None

    def call(self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b"") -> WireAnswer:
        enter_turn(self.state, now=self.now, pages_url=PAGES_ADDRESS, live=self.live)
        catch_up_processor(self.state)
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        self.last = self.api.handle(self.state, method, path, query, lower, body)
        return self.last

    def post(self, path: str, body: str = "", **headers: str) -> WireAnswer:
        """A call without the library; header names with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", path, headers={"authorization": f"Bearer {self.key}", **named}, body=body.encode())

    def advance(self, seconds: float) -> None:
        self.now += seconds
        enter_turn(self.state, now=self.now, pages_url=PAGES_ADDRESS, live=self.live)
        catch_up_processor(self.state)

    def account(self, **more: Any) -> str:
        """An Express account that takes payments, paid out by hand."""
        account = self.v1.accounts.create({"type": "express", "country": "US", "email": "owner@example.com", **more})
        complete_onboarding(self.state, account.id)
        self.state.accounts[account.id].interval = "manual"
        return account.id

    def charge(self, account: str, amount: int = 5_000, card: PaymentCard = AT_ONCE, fee: int | None = None) -> str:
        return make_charge(self.state, account, amount=amount, currency="usd", card=card, fee_amount=fee, metadata={"ref": "A"}).id

    def invoice(self, account: str, *amounts: int, number: str | None = None, fee: int | None = None) -> Any:
        at = {"stripe_account": account}
        customer = self.v1.customers.create({"name": "Nordic GmbH", "email": "pay@example.com"}, at)
        named: Any = {name: value for name, value in (("number", number), ("application_fee_amount", fee)) if value is not None}
        asked: Any = {"customer": customer.id, "collection_method": "send_invoice", "due_date": int(self.now) + DAY, **named}
        invoice = self.v1.invoices.create({**asked, "currency": "usd", "metadata": {"invoice": "inv_1"}}, at)
        for amount in amounts:
            line: Any = {"customer": customer.id, "invoice": invoice.id, "amount": amount, "currency": "usd", "description": "SIM"}
            self.v1.invoice_items.create(line, at)
        return self.v1.invoices.retrieve(invoice.id, None, at)

    def types(self, account: str | None = None) -> list[str]:
        """Types of the events so far; of one account, or of all."""
        return [str(event["type"]) for event in self.state.events.values() if account in (None, event.get("account"))]


def processor_with_account(**more: Any) -> tuple[ClockedProcessor, str, Any]:
    """A processor, an account that takes payments there, and what names the account in a call of the library."""
    p = ClockedProcessor()
    account = p.account(**more)
    return p, account, {"stripe_account": account}


def words(metadata: Any) -> dict[str, str]:
    """An object's metadata, as plain as it was sent."""
    return metadata.to_dict()
