"""What the service asks of a payment processor. Its vendor is known in this room alone.

Every method raises, from registry.errors: NotFound where the processor knows no such thing in that account; PaymentsRefused (400) with
the processor's code where it refuses what was asked; PaymentsError (502) where it failed, with `before_execution` where it surely did
nothing and `outcome_unknown` where a write may have happened. Its own texts are never handed on: only codes and parameter names.

`account` is the connected account in which something is done. `key` is the processor's idempotency key: the same call under the same
key is done once, and answered alike, for at least a day.
"""

from collections.abc import Mapping
from typing import Protocol

from clients.payments.records import (
    Account,
    ApplicationFee,
    Balance,
    Charge,
    CheckoutSession,
    Dispute,
    Event,
    Evidence,
    Link,
    Listed,
    NewCheckout,
    NewInvoice,
    NewPromotion,
    Payout,
    ProcessorInvoice,
    PromotionCode,
    Refund,
    Review,
    Schedule,
    ValueList,
    ValueListItem,
)


class BadEvent(Exception):
    """A webhook that has no effect: `reason` says why, without repeating anything of it. `signed`: it is the processor's, all the same."""

    def __init__(self, reason: str, *, signed: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.signed = reason, signed


class Processor(Protocol):
    """A payment processor with connected accounts."""

    @property
    def live(self) -> bool:
        """Real money moves; False: the key is one for tests."""
        ...

    @property
    def checkout_origin(self) -> str:
        """Where its checkout pages are: scheme and host, as a page's policy for forms names them."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...

    # Connected accounts

    async def create_account(self, *, key: str, email: str | None, country: str | None, metadata: Mapping[str, str]) -> Account:
        """A new Express account. `country` is ISO 3166-1 alpha-2."""
        ...

    async def find_account(self, account: str) -> Account: ...

    async def onboarding_link(self, account: str, *, return_url: str, refresh_url: str) -> Link:
        """A page on which the account's owner tells the processor what it asks for; for one visit, a few minutes long."""
        ...

    async def dashboard_link(self, account: str) -> Link:
        """The account's own pages at the processor; Express accounts only."""
        ...

    def authorize_url(self, *, state: str, return_url: str) -> str | None:
        """Where the owner of a Standard account lets the service in (OAuth 2.0); None where the service has no client id for it."""
        ...

    async def attach(self, code: str) -> str:
        """The account whose owner came back with this code. A wrong or used code is PaymentsRefused."""
        ...

    async def schedule_of(self, account: str) -> Schedule: ...

    async def set_schedule(self, account: str, schedule: Schedule, *, key: str) -> Schedule: ...

    # Money

    async def balance_of(self, account: str) -> Balance: ...

    async def find_charge(self, account: str, charge: str) -> Charge: ...

    async def list_charges(
        self, account: str, *, limit: int, starting_after: str | None = None, payment_intent: str | None = None
    ) -> Listed[Charge]:
        """Newest first; of all payments or of one, whose tries they are."""
        ...

    async def refund(self, account: str, *, charge: str, amount: int, reason: str | None, key: str, metadata: Mapping[str, str]) -> Refund:
        """`amount` in minor units of the charge's currency. The service's fee is given back in proportion."""
        ...

    async def find_refund(self, account: str, refund: str) -> Refund: ...

    async def list_refunds(
        self, account: str, *, limit: int, starting_after: str | None = None, charge: str | None = None
    ) -> Listed[Refund]: ...

    async def pay_out(self, account: str, *, amount: int, currency: str, key: str, metadata: Mapping[str, str]) -> Payout:
        """To the account's own bank."""
        ...

    async def list_payouts(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[Payout]: ...

    async def find_dispute(self, account: str, dispute: str) -> Dispute: ...

    async def list_disputes(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[Dispute]: ...

    async def answer_dispute(self, account: str, dispute: str, evidence: Evidence, *, submit: bool, key: str) -> Dispute:
        """Add evidence; with `submit` it goes to the payer's bank, once."""
        ...

    async def list_fees(self, *, limit: int, starting_after: str | None = None, charge: str | None = None) -> Listed[ApplicationFee]:
        """Of all connected accounts: each says whose it is."""
        ...

    # Fraud

    async def list_reviews(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[Review]: ...

    async def approve_review(self, account: str, review: str, *, key: str) -> Review: ...

    async def list_value_lists(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[ValueList]: ...

    async def add_to_value_list(self, account: str, value_list: str, value: str, *, key: str) -> ValueListItem: ...

    # Selling

    async def draft_invoice(self, account: str, invoice: NewInvoice) -> ProcessorInvoice:
        """Customer, invoice and lines, not sent yet: nobody but the account's owner sees it. Repeated, it is the same invoice."""
        ...

    async def send_invoice(self, account: str, invoice: str, *, key: str) -> ProcessorInvoice:
        """Finalise it and mail it to its recipient. One that has been sent, or paid, is answered as it is."""
        ...

    async def void_invoice(self, account: str, invoice: str, *, key: str) -> ProcessorInvoice:
        """Take it back: an open one is voided, a draft deleted (and answered as void). A paid one is PaymentsRefused."""
        ...

    async def find_invoice(self, account: str, invoice: str) -> ProcessorInvoice: ...

    async def create_promotion(self, account: str, promotion: NewPromotion) -> PromotionCode: ...

    async def create_checkout(self, account: str, checkout: NewCheckout) -> CheckoutSession: ...

    async def find_checkout(self, account: str, session: str) -> CheckoutSession: ...

    async def expire_checkout(self, account: str, session: str) -> CheckoutSession: ...

    # Webhooks

    def read_event(self, body: bytes, signature: str, now: float) -> Event:
        """The event in a webhook's raw body, or BadEvent: signed by none of the secrets, or more than 300 s off our clock."""
        ...
