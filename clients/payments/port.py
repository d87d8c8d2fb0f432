"""What the service asks of a payment processor. Its vendor is known in this room alone.

Every method raises, from registry.errors: NotFound where the processor knows no such thing in that account; PaymentsRefused (400) with
the processor's code where it refuses what was asked; PaymentsError (502) where it failed, with `before_execution` where it surely did
nothing and `outcome_unknown` where a write may have happened. Its own texts are never handed on: only codes and parameter names.
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
    """A payment processor with connected accounts.

    Every method but `authorize_url` and `read_event` waits for the network. `account` is the id of the connected account in which something
    is done. `key` is the processor's idempotency key: the same call under the same key is done once, and answered alike, for at least a
    day. Amounts are whole numbers of the currency's smallest unit. `limit` is how many rows a page has at most, 1 to 100;
    `starting_after` is the id that the page follows, and lists are newest first. `metadata` comes back with the object and with every
    event about it.
    """

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
        """A new Express account with the owner's `email`. `country` is ISO 3166-1 alpha-2. None: the owner is asked."""
        ...

    async def find_account(self, account: str) -> ConnectedAccount:
        """The connected `account` as it stands."""
        ...

    async def onboarding_link(self, account: str, *, return_url: str, refresh_url: str) -> HostedPage:
        """A page on which the owner of `account` gives the processor what it asks for; for one visit, a few minutes long.

        From there the owner comes back to `return_url`; to `refresh_url` where the page no longer works.
        """
        ...

    async def dashboard_link(self, account: str) -> HostedPage:
        """The pages of `account` at the processor; Express accounts only."""
        ...

    def authorize_url(self, *, state: str, return_url: str) -> str | None:
        """Where the owner of a Standard account lets the service in (OAuth 2.0), who then comes back to `return_url` with `state`.

        None where the service has no client id for it.
        """
        ...

    async def attach(self, code: str) -> str:
        """The id of the account whose owner came back with `code`. A wrong or used code is PaymentsRefused."""
        ...

    async def schedule_of(self, account: str) -> PayoutTiming:
        """When the balance of `account` is paid out."""
        ...

    async def set_schedule(self, account: str, schedule: PayoutTiming, *, key: str) -> PayoutTiming:
        """Replace the payout schedule by `schedule`; without `delay_days` the delay stays. Returns the schedule that holds now."""
        ...

    # Money

    async def balance_of(self, account: str) -> Balance:
        """What `account` has, by currency."""
        ...

    async def find_charge(self, account: str, charge: str) -> Charge:
        """The `charge` as it stands."""
        ...

    async def list_charges(
        self, account: str, *, limit: int, starting_after: str | None = None, payment_intent: str | None = None
    ) -> ProcessorPage[Charge]:
        """Charges of all payments, or the tries of one `payment_intent`."""
        ...

    async def refund(self, account: str, *, charge: str, amount: int, reason: str | None, key: str, metadata: Mapping[str, str]) -> Refund:
        """Give `amount` of `charge` back; `reason` is one of the processor's words. The service's fee is given back in proportion."""
        ...

    async def find_refund(self, account: str, refund: str) -> Refund:
        """The `refund` as it stands."""
        ...

    async def list_refunds(
        self, account: str, *, limit: int, starting_after: str | None = None, charge: str | None = None
    ) -> ProcessorPage[Refund]:
        """Refunds of all charges, or of one `charge`."""
        ...

    async def pay_out(self, account: str, *, amount: int, currency: str, key: str, metadata: Mapping[str, str]) -> Payout:
        """Send `amount` minor units of `currency` to the bank of `account`."""
        ...

    async def list_payouts(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Payout]:
        """Payouts of `account`."""
        ...

    async def find_dispute(self, account: str, dispute: str) -> Dispute:
        """The `dispute` as it stands."""
        ...

    async def list_disputes(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Dispute]:
        """Disputes of `account`."""
        ...

    async def answer_dispute(self, account: str, dispute: str, evidence: EvidenceTexts, *, submit: bool, key: str) -> Dispute:
        """Add `evidence` to `dispute`; with `submit` it goes to the payer's bank, once."""
        ...

    async def list_fees(self, *, limit: int, starting_after: str | None = None, charge: str | None = None) -> ProcessorPage[ApplicationFee]:
        """The service's fees of all connected accounts, or of one `charge`; each names its account."""
        ...

    # Fraud

    async def list_reviews(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Review]:
        """Open reviews of `account`."""
        ...

    async def approve_review(self, account: str, review: str, *, key: str) -> Review:
        """Close `review`: its charge is good."""
        ...

    async def list_value_lists(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[ValueList]:
        """Lists that the fraud rules of `account` use."""
        ...

    async def add_to_value_list(self, account: str, value_list: str, value: str, *, key: str) -> ValueListItem:
        """Add `value` to `value_list`: the fraud rules block it, or let it pass, from now on."""
        ...

    # Selling

    async def draft_invoice(self, account: str, invoice: NewInvoice) -> ProcessorInvoice:
        """Make customer, invoice and lines of `invoice`, not sent yet: only the owner of `account` sees it. Repeated, it is the same."""
        ...

    async def send_invoice(self, account: str, invoice: str, *, key: str) -> ProcessorInvoice:
        """Finalise `invoice` and mail it to its recipient. One that has been sent, or paid, is answered as it is."""
        ...

    async def void_invoice(self, account: str, invoice: str, *, key: str) -> ProcessorInvoice:
        """Take `invoice` back: an open one is voided, a draft deleted (and answered as void). A paid one is PaymentsRefused."""
        ...

    async def find_invoice(self, account: str, invoice: str) -> ProcessorInvoice:
        """The `invoice` as it stands."""
        ...

    async def create_promotion(self, account: str, promotion: NewPromotion) -> PromotionCode:
        """Make the code of `promotion`, once for its key."""
        ...

    async def create_checkout(self, account: str, checkout: NewCheckout) -> CheckoutSession:
        """Make a page on which a buyer pays `checkout`, once for its key."""
        ...

    async def find_checkout(self, account: str, session: str) -> CheckoutSession:
        """The page `session` as it stands."""
        ...

    async def expire_checkout(self, account: str, session: str) -> CheckoutSession:
        """End the page `session`. One that is paid or has expired is answered as it is."""
        ...

    # Webhooks

    async def read_event(self, body: bytes, signature: str, now: float) -> ProcessorEvent:
        """The event in a webhook's raw `body`. `signature` is the value of its header, `now` is in Unix seconds.

        BadProcessorEvent where none of the secrets signed it, or where it was signed more than 300 s before or after `now`.
        """
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
