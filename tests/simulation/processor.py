"""The payment processor as its port shows it, small and quick: pages that buyers pay on, their charges, and refunds under keys.

Its log of moved money is the only truth about money that an episode is judged by.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, NamedTuple, TypeVar, cast

from clients.payments.records import Charge, CheckoutSession, NewCheckout, Refund
from registry.errors import NotFound, PaymentsRefused, Refusal
from tests.simulation.processor_rows import charge_row, refund_row, session_json

Made = TypeVar("Made", CheckoutSession, Refund)

DAY = 86_400
KEY_SECONDS = DAY
"""After a day a key may be forgotten, and what is sent under it again is done again."""
DISPUTED, FALLS = 0.04, 0.06
"""Of the charges: their refund is refused, for the payer's bank takes the money back. Of the refunds: the bank does not take them."""
FALLS_WITHIN = 900.0
Plan = Callable[[float, Callable[[], object]], None]
Announced = Callable[[str, str, dict[str, object]], None]
"""The type of an event, the account it is of, and the object it is about."""
Way = Literal["card", "bank", "bank_fails", "free", "less", "converted"]
"""`bank`: the page is complete at once, and the money comes later, or not. `free`, `less`: a code takes off all of it, or half.
`converted`: the page was shown in another currency, and is paid in it."""
PRICE_OFF: Mapping[Way, float] = {"free": 0.0, "less": 0.5}


class Moved(NamedTuple):
    """Money that came from a buyer, or went back. `about` is the order or top-up of the page it was paid on."""

    at: float
    what: Literal["paid", "refunded", "refused", "fell"]
    account: str
    about: str
    charge: str
    amount: int
    key: str
    attempt: str | None
    refund: str | None = None


@dataclass(slots=True)
class Page:
    """A checkout session; `about` is the order that its metadata names."""

    session: CheckoutSession
    account: str
    about: str
    charges: list[str] = field(default_factory=list[str])
    paid: bool = False


@dataclass(slots=True)
class Answer:
    """What a key has been answered, and with what it came."""

    given: object
    at: float
    value: CheckoutSession | Refund | Refusal


class Processor:
    """The state and the methods. Times are Unix seconds of its own clock, which never jumps."""

    def __init__(self, clock: Callable[[], float], announce: Announced, plan: Plan, rng: Random) -> None:
        """`plan`: something happens here after so many seconds."""
        self._clock, self._announce, self._plan, self._draw = clock, announce, plan, rng.random
        self.pages: dict[str, Page] = {}
        self.charges: dict[str, Charge] = {}
        self.refunds: dict[str, Refund] = {}
        self.log: list[Moved] = []
        self._of_charge: dict[str, Page] = {}
        self._keys: dict[tuple[str, str], Answer] = {}
        self._made = 0

    # What the service asks for

    def create_checkout(self, account: str, checkout: NewCheckout) -> CheckoutSession:
        def make() -> CheckoutSession:
            id = self._new("cs")
            session = CheckoutSession(
                id=id,
                status="open",
                payment_status="unpaid",
                amount_total=checkout.amount,
                currency=checkout.currency,
                payment_intent=None,
                expires_at=checkout.expires_at or int(self._clock()) + DAY,
                url=f"https://pay.sim.invalid/c/{id}",
                metadata=dict(checkout.metadata),
            )
            self.pages[id] = Page(session, account, checkout.metadata.get("order", ""))
            return session

        made = self._once(account, checkout.key, checkout, make)
        return self.find_checkout(account, made.id)

    def find_checkout(self, account: str, session: str) -> CheckoutSession:
        page = self._page(account, session)
        self._expire_in_time(page)
        return page.session

    def expire_checkout(self, account: str, session: str) -> CheckoutSession:
        """One that is open is so no more."""
        page = self._page(account, session)
        self._expire_in_time(page)
        if page.session.status == "open":
            self._expire(page)
        return page.session

    def find_charge(self, account: str, charge: str) -> Charge:
        if charge not in self.charges or self._of_charge[charge].account != account:
            raise NotFound("no such charge")
        return self.charges[charge]

    def list_charges(self, account: str, payment_intent: str | None) -> list[Charge]:
        found = [charge for charge in self.charges.values() if self._of_charge[charge.id].account == account]
        return [charge for charge in reversed(found) if payment_intent in (None, charge.payment_intent)]

    def list_refunds(self, account: str, charge: str | None) -> list[Refund]:
        found = [refund for refund in self.refunds.values() if self._of_charge[refund.charge or ""].account == account]
        return [refund for refund in reversed(found) if charge in (None, refund.charge)]

    def refund(self, account: str, *, charge: str, amount: int, reason: str | None, key: str, metadata: Mapping[str, str]) -> Refund:
        """Money back, once per key, and never more than was paid."""

        def make() -> Refund:
            held, about = self.find_charge(account, charge), self._of_charge[charge].about
            left = held.amount - held.amount_refunded
            refused = "charge_disputed" if held.disputed else "charge_already_refunded" if not left else None
            if refused is None and amount > left:
                refused = "amount_too_large"
            if refused is not None:
                self.log.append(Moved(self._clock(), "refused", account, about, charge, amount, key, metadata.get("attempt")))
                raise PaymentsRefused(f"it was refused: {refused}", processor_code=refused)
            made = Refund(
                id=self._new("re"),
                amount=amount,
                currency=held.currency,
                status="succeeded",
                charge=charge,
                payment_intent=held.payment_intent,
                reason=reason,
                created=int(self._clock()),
                metadata=dict(metadata),
            )
            self.refunds[made.id] = made
            self.charges[charge] = replace(
                held, amount_refunded=held.amount_refunded + amount, refunded=held.amount_refunded + amount == held.amount
            )
            self.log.append(Moved(self._clock(), "refunded", account, about, charge, amount, key, metadata.get("attempt"), made.id))
            self._announce("refund.created", account, refund_row(made))
            self._announce("charge.refunded", account, charge_row(self.charges[charge]))
            if self._draw() < FALLS:
                self._plan(self._draw() * FALLS_WITHIN, lambda: self._fall(account, made.id))
            return made

        return self._once(account, key, (charge, amount, reason, tuple(sorted(metadata.items()))), make)

    # What buyers do

    def pay(self, about: str, way: Way, email: str) -> bool:
        """A buyer comes to the page and pays; False when it is not open any more."""
        page = next(page for page in self.pages.values() if page.about == about)
        self._expire_in_time(page)
        if page.session.status != "open":
            return False
        total = int(page.session.amount_total * PRICE_OFF.get(way, 1.0))
        waits = way in ("bank", "bank_fails")
        page.session = replace(
            page.session,
            status="complete",
            payment_status="unpaid" if waits else "paid" if total else "no_payment_required",
            amount_total=total,
            currency="USD" if way == "converted" else page.session.currency,
            payment_intent=self._new("pi") if total else None,
            url=None,
            email=email,
        )
        if not waits:
            self._receive(page)
        self._announce("checkout.session.completed", page.account, session_json(page.session))
        return True

    def settle_bank(self, about: str, *, arrives: bool) -> None:
        """What was to come from a bank comes, or does not."""
        page = next(page for page in self.pages.values() if page.about == about and page.session.status == "complete")
        if arrives:
            page.session = replace(page.session, payment_status="paid")
            self._receive(page)
        how = "succeeded" if arrives else "failed"
        self._announce(f"checkout.session.async_payment_{how}", page.account, session_json(page.session))

    def paid(self, about: str) -> int | None:
        """What came for an order or top-up; None: nothing did, and nothing was to be paid."""
        pages = [page for page in self.pages.values() if page.about == about and page.paid]
        return sum(self.charges[charge].amount for page in pages for charge in page.charges) if pages else None

    def refunds_of(self, about: str) -> int:
        """How many refunds of it were done or refused; what is repeated under its key is neither."""
        return sum(moved.what in ("refunded", "refused") and moved.about == about for moved in self.log)

    def given_back(self, about: str, without: str = "-") -> int:
        """What went back of it, but for keys that begin so."""
        found = [moved for moved in self.log if moved.about == about and not moved.key.startswith(without)]
        return sum(moved.amount if moved.what == "refunded" else -moved.amount for moved in found if moved.what in ("refunded", "fell"))

    def fell(self, about: str) -> bool:
        """Whether what went back of it came back."""
        return any(moved.what == "fell" and moved.about == about for moved in self.log)

    def keeps(self, about: str) -> bool:
        """Whether what came for it cannot be given back."""
        return any(self.charges[charge].disputed for charge in self.charges_of(about))

    def charges_of(self, about: str) -> list[str]:
        """The payments of an order or top-up."""
        return [charge for page in self.pages.values() if page.about == about for charge in page.charges]

    def _fall(self, account: str, refund: str) -> None:
        """The payer's bank does not take it."""
        fallen = self.refunds[refund] = replace(self.refunds[refund], status="failed", failure_reason="lost_or_stolen_card")
        charge = self.charges[fallen.charge or ""]
        self.charges[charge.id] = replace(charge, amount_refunded=charge.amount_refunded - fallen.amount, refunded=False)
        moved = next(moved for moved in self.log if moved.what == "refunded" and moved.refund == refund)
        self.log.append(moved._replace(at=self._clock(), what="fell"))
        self._announce("refund.failed", account, refund_row(fallen))

    def _receive(self, page: Page) -> None:
        page.paid = True
        session = page.session
        if not session.amount_total:
            return
        charge = Charge(
            id=self._new("ch"),
            amount=session.amount_total,
            amount_refunded=0,
            currency=session.currency,
            status="succeeded",
            refunded=False,
            disputed=self._draw() < DISPUTED,
            created=int(self._clock()),
            payment_intent=session.payment_intent,
            metadata=session.metadata,
        )
        self.charges[charge.id] = charge
        self._of_charge[charge.id] = page
        page.charges.append(charge.id)
        self.log.append(Moved(self._clock(), "paid", page.account, page.about, charge.id, charge.amount, "", None))
        self._announce("charge.succeeded", page.account, charge_row(charge))

    def _expire_in_time(self, page: Page) -> None:
        if page.session.status == "open" and page.session.expires_at <= self._clock():
            self._expire(page)

    def _expire(self, page: Page) -> None:
        page.session = replace(page.session, status="expired", url=None)
        self._announce("checkout.session.expired", page.account, session_json(page.session))

    def _once(self, account: str, key: str, given: object, make: Callable[[], Made]) -> Made:
        """The same call under the same key is done once; refusals are kept as well, and other values are refused."""
        kept = self._keys.get((account, key))
        if kept is not None and self._clock() - kept.at < KEY_SECONDS:
            if kept.given != given:
                raise PaymentsRefused("the key is known with other values", processor_code="idempotency_error")
            if isinstance(kept.value, Refusal):
                raise kept.value
            return cast(Made, kept.value)
        try:
            made = make()
        except Refusal as refusal:
            self._keys[account, key] = Answer(given, self._clock(), refusal)
            raise
        self._keys[account, key] = Answer(given, self._clock(), made)
        return made

    def _page(self, account: str, session: str) -> Page:
        page = self.pages.get(session)
        if page is None or page.account != account:
            raise NotFound("no such checkout session")
        return page

    def _new(self, kind: str) -> str:
        self._made += 1
        return f"{kind}_{self._made}"
