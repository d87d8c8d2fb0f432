"""Which call is answered by whom: every path that is simulated."""

from typing import NamedTuple

from clients.sandbox.payments import (
    api_accounts,
    api_charges,
    api_checkout,
    api_customers,
    api_disputes,
    api_invoices,
    api_items,
    api_oauth,
    api_payouts,
    api_promotions,
    api_radar,
    api_refunds,
)
from clients.sandbox.payments.call import Handler

V1: dict[str, Handler] = {
    "GET account": api_accounts.retrieve_own_account,
    "POST accounts": api_accounts.create_account,
    "GET accounts/*": api_accounts.retrieve_account,
    "POST accounts/*": api_accounts.update_account,
    "POST accounts/*/login_links": api_accounts.create_login_link,
    "POST account_links": api_accounts.create_account_link,
    "GET balance": api_accounts.retrieve_balance,
    "GET balance_settings": api_accounts.retrieve_balance_settings,
    "POST balance_settings": api_accounts.update_balance_settings,
    "GET balance_transactions": api_charges.list_balance_transactions,
    "GET balance_transactions/*": api_charges.retrieve_balance_transaction,
    "GET charges": api_charges.list_charges,
    "GET charges/*": api_charges.retrieve_charge,
    "POST charges/*": api_charges.update_charge,
    "GET payment_intents": api_charges.list_payment_intents,
    "GET payment_intents/*": api_charges.retrieve_payment_intent,
    "GET application_fees": api_charges.list_application_fees,
    "GET application_fees/*": api_charges.retrieve_application_fee,
    "GET application_fees/*/refunds": api_charges.list_fee_refunds,
    "GET events": api_charges.list_events,
    "GET events/*": api_charges.retrieve_event,
    "POST refunds": api_refunds.create_refund,
    "GET refunds": api_refunds.list_refunds,
    "GET refunds/*": api_refunds.retrieve_refund,
    "POST refunds/*": api_refunds.update_refund,
    "POST payouts": api_payouts.create_payout,
    "GET payouts": api_payouts.list_payouts,
    "GET payouts/*": api_payouts.retrieve_payout,
    "POST payouts/*/cancel": api_payouts.cancel_payout,
    "GET disputes": api_disputes.list_disputes,
    "GET disputes/*": api_disputes.retrieve_dispute,
    "POST disputes/*": api_disputes.update_dispute,
    "POST disputes/*/close": api_disputes.accept_dispute,
    "GET reviews": api_radar.list_reviews,
    "GET reviews/*": api_radar.retrieve_review,
    "POST reviews/*/approve": api_radar.approve_review,
    "POST radar/value_lists": api_radar.create_value_list,
    "GET radar/value_lists": api_radar.list_value_lists,
    "GET radar/value_lists/*": api_radar.retrieve_value_list,
    "POST radar/value_list_items": api_radar.create_value_list_item,
    "GET radar/value_list_items": api_radar.list_value_list_items,
    "GET radar/value_list_items/*": api_radar.retrieve_value_list_item,
    "DELETE radar/value_list_items/*": api_radar.delete_value_list_item,
    "POST customers": api_customers.create_customer,
    "GET customers": api_customers.list_customers,
    "GET customers/*": api_customers.retrieve_customer,
    "POST customers/*": api_customers.update_customer,
    "DELETE customers/*": api_customers.delete_customer,
    "POST invoices": api_invoices.create_invoice,
    "GET invoices": api_invoices.list_invoices,
    "GET invoices/*": api_invoices.retrieve_invoice,
    "POST invoices/*": api_invoices.update_invoice,
    "DELETE invoices/*": api_invoices.delete_invoice,
    "POST invoices/*/finalize": api_invoices.finalize_invoice,
    "POST invoices/*/send": api_invoices.send_invoice,
    "POST invoices/*/void": api_invoices.void_invoice,
    "POST invoices/*/pay": api_invoices.pay_invoice,
    "POST invoices/*/mark_uncollectible": api_invoices.mark_uncollectible,
    "GET invoices/*/lines": api_invoices.list_invoice_lines,
    "GET invoice_payments": api_invoices.list_invoice_payments,
    "POST invoiceitems": api_items.create_item,
    "GET invoiceitems": api_items.list_items,
    "GET invoiceitems/*": api_items.retrieve_item,
    "DELETE invoiceitems/*": api_items.delete_item,
    "POST checkout/sessions": api_checkout.create_session,
    "GET checkout/sessions": api_checkout.list_sessions,
    "GET checkout/sessions/*": api_checkout.retrieve_session,
    "GET checkout/sessions/*/line_items": api_checkout.list_session_lines,
    "POST checkout/sessions/*/expire": api_checkout.expire_session,
    "POST coupons": api_promotions.create_coupon,
    "GET coupons": api_promotions.list_coupons,
    "GET coupons/*": api_promotions.retrieve_coupon,
    "POST promotion_codes": api_promotions.create_promotion,
    "GET promotion_codes": api_promotions.list_promotions,
    "GET promotion_codes/*": api_promotions.retrieve_promotion,
    "POST promotion_codes/*": api_promotions.update_promotion,
}
OTHERS: dict[str, Handler] = {"POST oauth/token": api_oauth.token, "POST oauth/deauthorize": api_oauth.deauthorize}


class Route(NamedTuple):
    """Who answers, and what the path names."""

    handler: Handler
    ids: tuple[str, ...]


def tables() -> dict[tuple[str, int], list[tuple[tuple[str, ...], Handler]]]:
    """By method and length, so that few are looked at."""
    found: dict[tuple[str, int], list[tuple[tuple[str, ...], Handler]]] = {}
    for prefix, routes in (("v1/", V1), ("", OTHERS)):
        for name, handler in routes.items():
            method, path = name.split(" ")
            steps = tuple((prefix + path).split("/"))
            found.setdefault((method, len(steps)), []).append((steps, handler))
    return found


TABLES = tables()


def route_of(method: str, path: str) -> Route | None:
    """None: there is nothing at that path, or nothing for that method."""
    steps = path.strip("/").split("/")
    for pattern, handler in TABLES.get((method, len(steps)), []):
        if all(one in ("*", step) for one, step in zip(pattern, steps, strict=True)):
            return Route(handler, tuple(step for one, step in zip(pattern, steps, strict=True) if one == "*"))
    return None
