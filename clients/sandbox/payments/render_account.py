"""Accounts and what belongs to them, as they go over the wire."""

from clients.sandbox.payments.call import nulls, page
from clients.sandbox.payments.entities import Account, Customer, Visit
from clients.sandbox.payments.ledger import Funds, funds
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.state import State

CONTROLLERS: dict[str, tuple[str, str, str, str]] = {
    "express": ("application_express", "application", "stripe", "express"),
    "standard": ("account", "stripe", "stripe", "full"),
    "custom": ("application_custom", "application", "application", "none"),
    "none": ("application", "application", "application", "none"),
}


def account(state: State, row: Account) -> Members:
    """An account as the platform sees it."""
    return {
        "id": row.id,
        "object": "account",
        "business_profile": {
            **nulls("annual_revenue estimated_worker_count mcc minority_owned_business_designation product_description support_address"),
            **nulls("support_email support_phone support_url"),
            "name": row.name,
            "url": row.url,
        },
        "business_type": row.business_type,
        "capabilities": dict(row.capabilities),
        "charges_enabled": row.charges_enabled,
        "controller": controller(state, row),
        "country": row.country,
        "created": row.created,
        "default_currency": row.currency,
        "details_submitted": row.details_submitted,
        "email": row.email,
        "external_accounts": page([bank(row)] if row.bank else [], f"/v1/accounts/{row.id}/external_accounts"),
        "future_requirements": {**requirements([]), "disabled_reason": None},
        "metadata": dict(row.metadata),
        "payouts_enabled": row.payouts_enabled,
        "requirements": requirements(row.currently_due),
        "settings": settings(row),
        "tos_acceptance": {"date": row.created if row.details_submitted else None, "ip": None, "user_agent": None},
        "type": row.kind,
    }


def controller(state: State, row: Account) -> Members:
    """Who answers for what."""
    if row.id == state.platform:
        return {"type": "account"}
    payer, losses, collects, dashboard = CONTROLLERS[row.kind]
    if row.kind == "standard":
        return {"type": "application", "is_controller": False}
    return {
        "type": "application",
        "is_controller": True,
        "fees": {"payer": payer},
        "losses": {"payments": losses},
        "requirement_collection": collects,
        "stripe_dashboard": {"type": dashboard},
    }


def requirements(due: list[str]) -> Members:
    """What the processor still asks for."""
    return {
        "alternatives": [],
        "current_deadline": None,
        "currently_due": list(due),
        "disabled_reason": "requirements.past_due" if due else None,
        "errors": [],
        "eventually_due": list(due),
        "past_due": list(due),
        "pending_verification": [],
    }


def settings(row: Account) -> Members:
    """Of them, only the payout schedule is simulated."""
    return {
        "bacs_debit_payments": {"display_name": None, "service_user_number": None},
        "branding": nulls("icon logo primary_color secondary_color"),
        "card_issuing": {"tos_acceptance": {"date": None, "ip": None}},
        "card_payments": {
            "decline_on": {"avs_failure": False, "cvc_failure": False},
            **nulls("statement_descriptor_prefix statement_descriptor_prefix_kana statement_descriptor_prefix_kanji"),
        },
        "dashboard": {"display_name": row.name, "timezone": "Etc/UTC"},
        "invoices": {"default_account_tax_ids": None, "hosted_payment_method_save": "offer"},
        "payments": nulls("statement_descriptor statement_descriptor_kana statement_descriptor_kanji"),
        "payouts": {"debit_negative_balances": True, "schedule": schedule(row), "statement_descriptor": None},
        "sepa_debit_payments": {},
    }


def schedule(row: Account) -> Members:
    """As account settings say it; parts that the interval has no use for are left out."""
    found: Members = {"delay_days": row.delay_days, "interval": row.interval}
    if row.interval == "weekly":
        found |= {"weekly_anchor": row.weekly_days[0], "weekly_payout_days": list(row.weekly_days)}
    if row.interval == "monthly":
        found |= {"monthly_anchor": row.monthly_days[0], "monthly_payout_days": list(row.monthly_days)}
    return found


def balance_settings(row: Account) -> Members:
    """The same schedule, as the balance's settings say it."""
    found: Members = {"interval": row.interval}
    if row.interval == "weekly":
        found["weekly_payout_days"] = list(row.weekly_days)
    if row.interval == "monthly":
        found["monthly_payout_days"] = list(row.monthly_days)
    return {
        "object": "balance_settings",
        "payments": {
            "debit_negative_balances": True,
            "payouts": {
                "minimum_balance_by_currency": None,
                "schedule": found,
                "statement_descriptor": None,
                "status": "enabled" if row.payouts_enabled else "disabled",
            },
            "settlement_timing": {"delay_days": row.delay_days},
        },
    }


def bank(row: Account) -> Members:
    """The account's own bank."""
    return {
        "id": row.bank,
        "object": "bank_account",
        "account": row.id,
        **nulls("account_holder_name account_holder_type account_type"),
        "available_payout_methods": ["standard"],
        "bank_name": "SIMULATED BANK",
        "country": row.country,
        "currency": row.currency,
        "default_for_currency": True,
        "fingerprint": row.bank[-16:],
        "last4": row.bank_last4,
        "metadata": {},
        "routing_number": "110000000" if row.country == "US" else None,
        "status": "new",
    }


def balance(state: State, account: str) -> Members:
    """What there is, by currency."""
    sums = funds(state, account)

    def amounts(place: int) -> list[Members]:
        rows: list[tuple[str, Funds]] = sorted(sums.items())
        return [{"amount": one[place], "currency": currency, "source_types": {"card": one[place]}} for currency, one in rows]

    found: Members = {"object": "balance", "available": amounts(0), "livemode": state.live, "pending": amounts(1)}
    if account == state.platform:
        found["connect_reserved"] = [{"amount": 0, "currency": currency} for currency in sorted(sums)]
    return found


def visit_link(state: State, row: Visit) -> Members:
    """An account link."""
    url = f"{state.pages_url}/onboarding/{row.id}"
    return {"object": "account_link", "created": row.created, "expires_at": row.expires_at, "url": url}


def login_link(state: State, row: Visit) -> Members:
    """A login link."""
    return {"object": "login_link", "created": row.created, "url": f"{state.pages_url}/dashboard/{row.id}"}


def customer(state: State, row: Customer) -> Members:
    """Somebody who pays."""
    if row.deleted:
        return {"id": row.id, "object": "customer", "deleted": True}
    return {
        "id": row.id,
        "object": "customer",
        "address": row.address,
        "balance": 0,
        "created": row.created,
        "currency": row.currency,
        "default_source": None,
        "delinquent": False,
        "description": row.description,
        "discount": None,
        "email": row.email,
        "invoice_prefix": row.prefix,
        "invoice_settings": nulls("custom_fields default_payment_method footer rendering_options"),
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "name": row.name,
        "next_invoice_sequence": 1,
        "phone": row.phone,
        "preferred_locales": [],
        "shipping": None,
        "tax_exempt": "none",
        "test_clock": None,
    }
