"""An account with a past: some weeks of payments with what goes wrong now and then, the same for the same seed."""

from clients.sandbox.ocs.dice import dice
from clients.sandbox.payments.cards import Card
from clients.sandbox.payments.entities import Account, Value, ValueList
from clients.sandbox.payments.ledger import DAY, funds
from clients.sandbox.payments.news import tell_payout
from clients.sandbox.payments.onboarding import complete_onboarding, new_account
from clients.sandbox.payments.passing import catch_up, pay_out
from clients.sandbox.payments.paying import make_charge
from clients.sandbox.payments.refunding import give_back
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.state import State
from clients.sandbox.payments.trouble import open_dispute

PRICES = (450, 900, 1400, 1900, 2900, 4900)
NAMES = ("Ada Meier", "Noor Haddad", "Tomás Silva", "Mia Larsen", "Jun Tanaka", "Zoë Novak", "Léa Roux", "Sam Okoro")
GOOD, BAD = ("4242424242424242", "5555555555554444", "378282246310005"), ("4000000000000002", "4000000000009995")
LISTS = (
    ("blocked_emails", "Blocked mail addresses", "email", ("chargeback@example.com", "bounce@example.net")),
    ("blocked_card_bins", "Blocked card ranges", "card_bin", ("424299",)),
    ("trusted_countries", "Countries we sell to", "country", ("CH", "DE", "AT", "FR")),
)
FEE_BPS = 100


def demo_account(
    state: State, *, email: str = "demo@example.com", country: str = "US", name: str = "Demo reseller", days: int = 42, told: bool = False
) -> Account:
    """An Express account that has worked for `days` until now. `told`: its past also goes out as webhooks."""
    end, waiting = state.at, len(state.pending)
    state.at = end - days * DAY
    account = new_account(state, kind="express", country=country, email=email, metadata={})
    account.name, account.interval = name, "manual"
    complete_onboarding(state, account.id)
    add_lists(state, account)
    for day in range(days):
        state.at = end - (days - day) * DAY
        live_day(state, account, day)
    state.at = end
    last_days(state, account)
    if not told:
        del state.pending[waiting:]
    return account


def live_day(state: State, account: Account, day: int) -> None:
    """A few payments; every now and then a refund, and a payout once a week."""
    luck = dice(state.seed, "demo", account.id, day)
    catch_up(state)
    begin = state.at
    for moment in sorted(luck.randrange(DAY) for _ in range(luck.randint(1, 6))):
        state.at = begin + moment
        pay(state, account, luck.choice(PRICES), luck.choice(NAMES), luck.choice(BAD if luck.random() < 0.06 else GOOD))
    if luck.random() < 0.2:
        refund_one(state, account, whole=luck.random() < 0.6)
    if day % 7 == 6:
        pay_out_most(state, account)


def pay(state: State, account: Account, amount: int, name: str, number: str) -> None:
    """Somebody buys; a card that is declined is a part of the picture."""
    email = f"{name.split(maxsplit=1)[0].lower().encode('ascii', 'ignore').decode()}@example.com"
    try:
        make_charge(
            state,
            account.id,
            amount=amount,
            currency=account.currency,
            card=Card(number, name, email),
            fee_amount=amount * FEE_BPS // 10_000,
            description="eSIM plan",
        )
    except Refusal:
        return


def refund_one(state: State, account: Account, *, whole: bool) -> None:
    """The newest charge that nothing was given back of."""
    for charge in reversed(state.book(account.id).charges.values()):
        if charge.status == "succeeded" and charge.amount_refunded == 0 and not charge.disputed:
            amount = charge.amount if whole else charge.amount // 2
            give_back(
                state, account.id, charge, amount=amount, reason="requested_by_customer", metadata={}, with_fee=charge.fee is not None
            )
            return


def pay_out_most(state: State, account: Account) -> None:
    """What is at hand, but for a rest."""
    amount = funds(state, account.id)[account.currency].available * 4 // 5
    if amount > 0:
        row = pay_out(state, account, amount=amount, currency=account.currency)
        tell_payout(state, account.id, row, "payout.created")


def last_days(state: State, account: Account) -> None:
    """What a person has to look at: a dispute to answer, and a charge under review."""
    catch_up(state)
    fit = [row for row in state.book(account.id).charges.values() if row.status == "succeeded" and row.amount_refunded == 0]
    open_dispute(state, account.id, fit[-6].id, "product_not_received")
    pay(state, account, 4900, NAMES[2], "4000000000009235")


def add_lists(state: State, account: Account) -> None:
    """What the fraud rules name."""
    book = state.book(account.id)
    for alias, name, item_type, values in LISTS:
        row = ValueList(state.new_id("rsl_"), state.now(), alias, name, item_type)
        book.value_lists[row.id] = row
        for value in values:
            item = Value(state.new_id("rsli_"), state.now(), row.id, value)
            book.values[item.id] = item
