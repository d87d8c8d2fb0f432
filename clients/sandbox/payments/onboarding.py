"""Owners of accounts: they tell the processor what it asks for, let a platform in, and let it go."""

from clients.sandbox.payments.call import found
from clients.sandbox.payments.entities import Account, Code
from clients.sandbox.payments.news import tell_account
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.render_account import requirements
from clients.sandbox.payments.state import State, emit

ASKED = ["business_profile.url", "business_type", "external_account", "tos_acceptance.date", "tos_acceptance.ip"]
CODE_PREFIX = "ac_"
CURRENCY_OF = {
    "US": "usd",
    "GB": "gbp",
    "CH": "chf",
    "SE": "sek",
    "NO": "nok",
    "DK": "dkk",
    "CA": "cad",
    "AU": "aud",
    "JP": "jpy",
    "PL": "pln",
}


def new_account(state: State, *, kind: str, country: str, email: str | None, metadata: dict[str, str]) -> Account:
    """A connected account that knows nothing of its owner yet."""
    account = Account(
        id=state.new_id("acct_1", 15),
        created=state.now(),
        country=country,
        currency=CURRENCY_OF.get(country, "eur"),
        email=email,
        currently_due=list(ASKED),
        delay_days=4 if country == "JP" else 2 if country in ("US", "AU") else 3,
        swept=state.now() // 86_400,
        metadata=metadata,
    )
    account.kind = "standard" if kind == "standard" else "custom" if kind == "custom" else "none" if kind == "none" else "express"
    account.capabilities = {"card_payments": "inactive", "transfers": "inactive"}
    state.accounts[account.id] = account
    return account


def complete_onboarding(state: State, account: str) -> Account:
    """The owner has told all that is asked for: the account takes payments and pays out. Done again, it changes nothing."""
    row = found(state.accounts, account, "account")
    if row.charges_enabled and not row.currently_due:
        return row
    previous: Members = {
        "capabilities": dict(row.capabilities),
        "charges_enabled": row.charges_enabled,
        "details_submitted": row.details_submitted,
        "payouts_enabled": row.payouts_enabled,
        "requirements": requirements(row.currently_due),
    }
    row.currently_due = []
    row.charges_enabled = row.payouts_enabled = row.details_submitted = True
    row.capabilities = dict.fromkeys(row.capabilities, "active")
    row.business_type = row.business_type or "company"
    row.bank = row.bank or state.new_id("ba_")
    row.swept = max(row.swept, state.now() // 86_400)
    tell_account(state, account, previous=previous)
    return row


def restrict_account(state: State, account: str, due: list[str] | None = None) -> Account:
    """The processor asks for more, and lets no payment through until it has it."""
    row = found(state.accounts, account, "account")
    previous: Members = {
        "charges_enabled": row.charges_enabled,
        "payouts_enabled": row.payouts_enabled,
        "requirements": requirements(row.currently_due),
    }
    row.currently_due = due or ["company.verification.document"]
    row.charges_enabled = row.payouts_enabled = False
    tell_account(state, account, previous=previous)
    return row


def open_standard_account(state: State, *, name: str = "Own account", country: str = "US", email: str | None = None) -> Account:
    """An account of somebody who has been with the processor for long, and is not connected to the platform."""
    row = new_account(state, kind="standard", country=country, email=email, metadata={})
    row.name, row.attached = name, False
    row.charges_enabled = row.payouts_enabled = row.details_submitted = True
    row.currently_due, row.bank = [], state.new_id("ba_")
    row.capabilities = dict.fromkeys(row.capabilities, "active")
    return row


def open_resident(state: State, id: str) -> Account:
    """An Express account that takes payments, as if it had been made and onboarded long ago: nothing is told of it."""
    active = {"card_payments": "active", "transfers": "active"}
    state.accounts[id] = row = Account(
        id, state.now(), country="DE", currency="eur", email="demo@example.com", name="Demo Telecom", capabilities=active
    )
    row.charges_enabled = row.payouts_enabled = row.details_submitted = True
    row.business_type, row.bank = "company", state.new_id("ba_")
    row.delay_days, row.swept = 3, state.now() // 86_400
    return row


def authorize_oauth(state: State, account: str, scope: str = "read_write") -> str:
    """The owner lets the platform in: the code that the platform changes for access, once and within five minutes."""
    found(state.accounts, account, "account")
    code = Code(state.new_id(CODE_PREFIX), state.now(), account, scope)
    state.codes[code.id] = code
    return code.id


def attach(state: State, account: str) -> None:
    """The platform has changed the code: from now on it acts in the account."""
    row = state.accounts[account]
    if not row.attached:
        row.attached = True
        emit(state, "account.application.authorized", application(state), account)


def release_account(state: State, account: str) -> Account:
    """Owner or platform end it: the platform acts in the account no more."""
    row = state.accounts.get(account)
    if row is None or not row.attached or account == state.platform:
        raise Refusal(f"This application is not connected to stripe account {account}, or that account does not exist.")
    row.attached = False
    emit(state, "account.application.deauthorized", application(state), account)
    return row


def application(state: State) -> Members:
    """The platform, as accounts see it."""
    return {"id": state.client_id, "object": "application", "name": state.accounts[state.platform].name}
