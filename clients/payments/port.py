"""What the service asks of a payment processor. Its vendor is known in this room alone.

Every method raises, from registry.errors: NotFound where the processor knows no such thing in that account; PaymentsRefused (400) with
the processor's code where it refuses what was asked; PaymentsError (502) where it failed, with `before_execution` where it surely did
nothing and `outcome_unknown` where a write may have happened. Its own texts are never handed on: only codes and parameter names.

`account` is the connected account in which something is done. `key` is the processor's idempotency key: the same call under the same
key is done once, and answered alike, for at least a day.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from clients.payments.records import (
    ApplicationFee,
    Balance,
    Charge,
    CheckoutSession,
    ConnectedAccount,
    Dispute,
    EvidenceTexts,
    HostedPage,
    NewCheckout,
    NewInvoice,
    NewPromotion,
    Payout,
    PayoutTiming,
    ProcessorEvent,
    ProcessorInvoice,
    ProcessorPage,
    PromotionCode,
    Refund,
    Review,
    ValueList,
    ValueListItem,
)
from registry.errors import PaymentsError


class BadProcessorEvent(Exception):
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

    async def create_account(self, *, key: str, email: str | None, country: str | None, metadata: Mapping[str, str]) -> ConnectedAccount:
        """A new Express account. `country` is ISO 3166-1 alpha-2."""
        ...

    async def find_account(self, account: str) -> ConnectedAccount: ...

    async def onboarding_link(self, account: str, *, return_url: str, refresh_url: str) -> HostedPage:
        """A page on which the account's owner tells the processor what it asks for; for one visit, a few minutes long."""
        ...

    async def dashboard_link(self, account: str) -> HostedPage:
        """The account's own pages at the processor; Express accounts only."""
        ...

    def authorize_url(self, *, state: str, return_url: str) -> str | None:
        """Where the owner of a Standard account lets the service in (OAuth 2.0); None where the service has no client id for it."""
        ...

    async def attach(self, code: str) -> str:
        """The account whose owner came back with this code. A wrong or used code is PaymentsRefused."""
        ...

    async def schedule_of(self, account: str) -> PayoutTiming: ...

    async def set_schedule(self, account: str, schedule: PayoutTiming, *, key: str) -> PayoutTiming: ...

    # Money

    async def balance_of(self, account: str) -> Balance: ...

    async def find_charge(self, account: str, charge: str) -> Charge: ...

    async def list_charges(
        self, account: str, *, limit: int, starting_after: str | None = None, payment_intent: str | None = None
    ) -> ProcessorPage[Charge]:
        """Newest first; of all payments or of one, whose tries they are."""
        ...

    async def refund(self, account: str, *, charge: str, amount: int, reason: str | None, key: str, metadata: Mapping[str, str]) -> Refund:
        """`amount` in minor units of the charge's currency. The service's fee is given back in proportion."""
        ...

    async def find_refund(self, account: str, refund: str) -> Refund: ...

    async def list_refunds(
        self, account: str, *, limit: int, starting_after: str | None = None, charge: str | None = None
    ) -> ProcessorPage[Refund]: ...

    async def pay_out(self, account: str, *, amount: int, currency: str, key: str, metadata: Mapping[str, str]) -> Payout:
        """To the account's own bank."""
        ...

    async def list_payouts(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Payout]: ...

    async def find_dispute(self, account: str, dispute: str) -> Dispute: ...

    async def list_disputes(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Dispute]: ...

    async def answer_dispute(self, account: str, dispute: str, evidence: EvidenceTexts, *, submit: bool, key: str) -> Dispute:
        """Add evidence; with `submit` it goes to the payer's bank, once."""
        ...

    async def list_fees(self, *, limit: int, starting_after: str | None = None, charge: str | None = None) -> ProcessorPage[ApplicationFee]:
        """Of all connected accounts: each says whose it is."""
        ...

    # Fraud

    async def list_reviews(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Review]: ...

    async def approve_review(self, account: str, review: str, *, key: str) -> Review: ...

    async def list_value_lists(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[ValueList]: ...

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

    def read_event(self, body: bytes, signature: str, now: float) -> ProcessorEvent:
        """The event in a webhook's raw body, or BadEvent: signed by none of the secrets, or more than 300 s off our clock."""
        ...


PROCESSOR_OPERATOR_HINT = "This is for the service's operator: `reseller doctor` checks the key."


class KeyRefused(PaymentsError):
    """The processor does not know the service's key, or the key may not do this. Nothing was done."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} {PROCESSOR_OPERATOR_HINT}", before_execution=True)


class AccountDetached(PaymentsError):
    """The connected account has let the service go, or never let it in. Nothing was done."""

    def __init__(self) -> None:
        text = "The connected account is no longer attached to the service at the payment processor. Connect it again."
        super().__init__(text, before_execution=True)


PROCESSOR_API_VERSION = "2026-10-28.endive"
"""The shapes of the wire that this room reads and writes: the vendor's library is typed for it, and may move only together with it."""
CHECKOUT_ORIGIN = "https://checkout.stripe.com"
AUTHORIZE_HOST = "https://connect.stripe.com"


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """Where the processor is, and who the service is there. Empty addresses are the vendor's own."""

    key: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    client_id: str = ""
    checkout_origin: str = CHECKOUT_ORIGIN
    url: str = ""
    connect_url: str = ""
    total_seconds: float = 20.0
    """For a call with everything that is repeated of it, and the wait for a place."""
    calls_of_one: int = 8
    """Calls under way in one connected account, or in the service's own: one that hangs leaves connections to the others."""
    place_seconds: float = 5.0
    """How long one more of its calls waits for a place."""
    pauses: tuple[float, ...] = (0.25, 1.0)
    """Seconds before a write is sent again, each time; a read is repeated after the first one only."""
