"""An account with a past: some weeks of payments with what goes wrong now and then, the same for the same seed."""

from simulators.processor.accounts import make_account
from simulators.processor.balance import account_funds
from simulators.processor.call import ProcessorRefusal
from simulators.processor.cards import SimulatedCard
from simulators.processor.charges import make_charge
from simulators.processor.clock import catch_up_processor
from simulators.processor.disputes import open_dispute
from simulators.processor.onboarding import complete_onboarding
from simulators.processor.payouts import PAYOUTS, start_payout
from simulators.processor.refunds import refund_charge
from simulators.processor.state import PROCESSOR_DAY_SECONDS, ListValue, ProcessorAccount, ProcessorState, ValueList
from simulators.seeded_random import seeded_random

DEMO_PRICES = (450, 900, 1400, 1900, 2900, 4900)
DEMO_PAYERS = ("Ada Meier", "Noor Haddad", "Tomás Silva", "Mia Larsen", "Jun Tanaka", "Zoë Novak", "Léa Roux", "Sam Okoro")
DEMO_CARDS, DECLINED_DEMO_CARDS = ("4242424242424242", "5555555555554444", "378282246310005"), ("4000000000000002", "4000000000009995")
DEMO_VALUE_LISTS = (
    ("blocked_emails", "Blocked mail addresses", "email", ("chargeback@example.com", "bounce@example.net")),
    ("blocked_card_bins", "Blocked card ranges", "card_bin", ("424299",)),
    ("trusted_countries", "Countries we sell to", "country", ("CH", "DE", "AT", "FR")),
)
DEMO_FEE_BPS = 100


def make_demo_account(
    state: ProcessorState,
    *,
    email: str = "demo@example.com",
    country: str = "US",
    name: str = "Demo reseller",
    days: int = 42,
    told: bool = False,
) -> ProcessorAccount:
    """An Express account that has worked for `days` until now. `told`: its past also goes out as webhooks."""
    end, waiting = state.at, len(state.pending)
    state.at = end - days * PROCESSOR_DAY_SECONDS
    account = make_account(state, kind="express", country=country, email=email, metadata={})
    account.name, account.interval = name, "manual"
    complete_onboarding(state, account.id)
    _add_demo_lists(state, account)
    for day in range(days):
        state.at = end - (days - day) * PROCESSOR_DAY_SECONDS
        live_demo_day(state, account, day)
    state.at = end
    live_last_days(state, account)
    if not told:
        del state.pending[waiting:]
    return account


def live_demo_day(state: ProcessorState, account: ProcessorAccount, day: int) -> None:
    """A few payments; every now and then a refund, and a payout once a week."""
    luck = seeded_random(state.seed, "demo", account.id, day)
    catch_up_processor(state)
    begin = state.at
    for moment in sorted(luck.randrange(PROCESSOR_DAY_SECONDS) for _ in range(luck.randint(1, 6))):
        state.at = begin + moment
        make_demo_payment(
            state,
            account,
            luck.choice(DEMO_PRICES),
            luck.choice(DEMO_PAYERS),
            luck.choice(DECLINED_DEMO_CARDS if luck.random() < 0.06 else DEMO_CARDS),
        )
    if luck.random() < 0.2:
        refund_demo_charge(state, account, whole=luck.random() < 0.6)
    if day % 7 == 6:
        amount = account_funds(state, account.id)[account.currency].available * 4 // 5
        if amount > 0:
            row = start_payout(state, account, amount=amount, currency=account.currency)
            PAYOUTS.notify(state, account.id, row, "payout.created")


def make_demo_payment(state: ProcessorState, account: ProcessorAccount, amount: int, name: str, number: str) -> None:
    """Somebody pays. A declined card leaves a failed charge."""
    email = f"{name.split(maxsplit=1)[0].lower().encode('ascii', 'ignore').decode()}@example.com"
    try:
        make_charge(
            state,
            account.id,
            amount=amount,
            currency=account.currency,
            card=SimulatedCard(number, name, email),
            fee_amount=amount * DEMO_FEE_BPS // 10_000,
            description="eSIM plan",
        )
    except ProcessorRefusal:
        return


def refund_demo_charge(state: ProcessorState, account: ProcessorAccount, *, whole: bool) -> None:
    """Refunds the newest charge that has neither a refund nor a dispute."""
    for charge in reversed(state.book(account.id).charges.values()):
        if charge.status == "succeeded" and charge.amount_refunded == 0 and not charge.disputed:
            amount = charge.amount if whole else charge.amount // 2
            refund_charge(
                state, account.id, charge, amount=amount, reason="requested_by_customer", metadata={}, with_fee=charge.fee is not None
            )
            return


def live_last_days(state: ProcessorState, account: ProcessorAccount) -> None:
    """Adds what a person has to look at: a dispute to answer, and a charge under review."""
    catch_up_processor(state)
    fit = [row for row in state.book(account.id).charges.values() if row.status == "succeeded" and row.amount_refunded == 0]
    open_dispute(state, account.id, fit[-6].id, "product_not_received")
    make_demo_payment(state, account, 4900, DEMO_PAYERS[2], "4000000000009235")


def _add_demo_lists(state: ProcessorState, account: ProcessorAccount) -> None:
    book = state.book(account.id)
    for alias, name, item_type, values in DEMO_VALUE_LISTS:
        row = ValueList(state.new_id("rsl_"), state.now(), alias, name, item_type)
        book.value_lists[row.id] = row
        for value in values:
            item = ListValue(state.new_id("rsli_"), state.now(), row.id, value)
            book.values[item.id] = item
