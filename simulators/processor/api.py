"""The API's front: who calls, in which account, whether the call was made before, and who answers which path."""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import unquote

import orjson

from registry.ids import without_order_tokens
from simulators.processor import (
    accounts,
    application_fees,
    balance,
    charges,
    checkout,
    customers,
    disputes,
    fraud,
    invoices,
    onboarding,
    payouts,
    promotions,
    refunds,
)
from simulators.processor.call import ApiCall, ApiHandler, CallForm, OAuthRefusal, ProcessorRefusal, account_refusal, list_page, parse_form
from simulators.processor.state import PROCESSOR_API_VERSION, JsonObject, ProcessorState, StoredAnswer
from simulators.server import WireAnswer

NO_KEY_TEXT = (
    "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: "
    "Bearer YOUR_SECRET_KEY'). See https://stripe.com/docs/api#authentication for details, or we can help at https://support.stripe.com/."
)

NO_PATH_TEXT = (
    "Unrecognized request URL ({method}: {path}). If you are trying to list objects, remove the trailing slash. If you are trying to "
    "retrieve an object, make sure you passed a valid (non-empty) identifier in your code. Please see https://stripe.com/docs or we can "
    "help at https://support.stripe.com/."
)

REUSED_KEY_TEXT = (
    "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '{key}' "
    "if you meant to execute a different request."
)

IDEMPOTENCY_KEY_LIMIT = 255
OAUTH_ROUTES: dict[str, ApiHandler] = {
    "POST oauth/token": onboarding.exchange_oauth_code,
    "POST oauth/deauthorize": onboarding.deauthorize_account,
}


class ProcessorApi:
    """Answers calls out of a state. Header names are in lower case."""

    def __init__(self, *, key: str) -> None:
        self._key = key

    def handle(self, state: ProcessorState, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> WireAnswer:
        state.request, state.request_key = state.new_id("req_", 14), None
        try:
            return self._answer(state, method, path, query, headers, body)
        except ProcessorRefusal as refused:
            return _api_answer(state, headers, refused.status, refused.body(state.request))
        except OAuthRefusal as refused:
            return _api_answer(state, headers, refused.status, refused.body())
        finally:
            state.request = state.request_key = None

    def _answer(self, state: ProcessorState, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> WireAnswer:
        text = body.decode(errors="replace") if method == "POST" else query
        route = find_route(method, path)
        self._check_key(headers, text if path.startswith("/oauth/") else "")
        if route is None:
            raise ProcessorRefusal(NO_PATH_TEXT.format(method=method, path=path), status=404, early=True)
        account = headers.get("stripe-account") or state.platform
        if account not in state.accounts or not state.accounts[account].attached:
            raise account_refusal(account, self._key)
        check_api_version(headers)
        call = ApiCall(state, account, self._key, path, tuple(map(unquote, route.ids)), method=method, headers=headers)
        if method != "POST":
            return _api_answer(state, headers, 200, route.handler(call, CallForm(parse_form(text))))
        return answer_once(call, route, text)

    def _check_key(self, headers: Mapping[str, str], form: str) -> None:
        """Checks the secret key, a bearer token; the OAuth calls also take it as a parameter."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        secret = parse_form(form).get("client_secret") if form else None
        if isinstance(secret, str):
            given, scheme = secret, "bearer"
        if scheme.lower() != "bearer" or not given:
            raise ProcessorRefusal(NO_KEY_TEXT, status=401, early=True)
        if given != self._key:
            raise ProcessorRefusal(f"Invalid API Key provided: {given[:8]}{'*' * 12}{given[-4:]}", status=401, early=True)


def check_api_version(headers: Mapping[str, str]) -> None:
    """Choice: one version is simulated; without one, it is that."""
    version = headers.get("stripe-version")
    if version not in (None, PROCESSOR_API_VERSION):
        raise ProcessorRefusal(
            f"Invalid Stripe API version: {version}. This simulated processor speaks {PROCESSOR_API_VERSION}.", early=True
        )


class ApiRoute(NamedTuple):
    handler: ApiHandler
    ids: tuple[str, ...]


def answer_once(call: ApiCall, route: ApiRoute, text: str) -> WireAnswer:
    """Performs the call once per idempotency key; repetitions within a day get the same answer."""
    state, headers = call.state, call.headers
    key = headers.get("idempotency-key")
    if key is None:
        return _api_answer(state, headers, *perform_call(call, route, text))
    if not 1 <= len(key) <= IDEMPOTENCY_KEY_LIMIT:
        raise ProcessorRefusal(f"Idempotency keys hold 1 to {IDEMPOTENCY_KEY_LIMIT} characters.", type="idempotency_error", early=True)
    key = without_order_tokens(key)  # as the file has it: a refund that release 1.0 began, and that is sent again, is the same one
    state.request_key = key
    place, fingerprint = f"{call.account}\n{key}", sha256(f"{call.path}\n{text}".encode()).hexdigest()
    stored = state.answers.get(place)
    if stored is not None:
        if stored.fingerprint != fingerprint:
            raise ProcessorRefusal(REUSED_KEY_TEXT.format(key=key), type="idempotency_error", early=True)
        again = {"idempotent-replayed": "true", "original-request": stored.request}
        return _api_answer(state, headers, stored.status, stored.body.encode(), again)
    status, found = perform_call(call, route, text)
    body = orjson.dumps(found)
    state.answers[place] = StoredAnswer(fingerprint, state.now(), status, body.decode(), state.request or "")
    return _api_answer(state, headers, status, body, {"original-request": state.request or ""})


def perform_call(call: ApiCall, route: ApiRoute, text: str) -> tuple[int, JsonObject]:
    """Performs the call. A refusal after the call began is an answer; a refusal before that is raised."""
    try:
        return 200, route.handler(call, CallForm(parse_form(text)))
    except ProcessorRefusal as refused:
        if refused.early:
            raise
        return refused.status, refused.body(call.state.request or "")


def _api_answer(
    state: ProcessorState, headers: Mapping[str, str], status: int, body: JsonObject | bytes, more: Mapping[str, str] | None = None
) -> WireAnswer:
    found: dict[str, str] = {
        "content-type": "application/json",
        "request-id": state.request or "",
        "stripe-version": PROCESSOR_API_VERSION,
        "stripe-should-retry": "false",
        "cache-control": "no-cache, no-store",
        **(more or {}),
    }
    if key := headers.get("idempotency-key"):
        found["idempotency-key"] = key
    if account := headers.get("stripe-account"):
        found["stripe-account"] = account
    return WireAnswer(status, body if isinstance(body, bytes) else orjson.dumps(body), found)


def list_events(call: ApiCall, form: CallForm) -> JsonObject:
    """What happened in the account, newest first; in the platform's, its own events."""
    type, types = form.text("type"), form.texts("types")
    form.flag("delivery_success")
    if type is not None and types is not None:
        raise ProcessorRefusal("You may only specify one of these parameters: type, types.", param="type", early=True)
    own = None if not call.on_behalf else call.account
    rows = {
        id: event
        for id, event in call.state.events.items()
        if event.get("account") == own and event_type_matches(str(event["type"]), [type] if type else types)
    }
    return list_page(form, rows, dict, url="/v1/events", kind="event", when=lambda event: int(str(event["created"])))


def event_type_matches(type: str, wanted: list[str] | None) -> bool:
    """Whether `type` is one of `wanted`, which may end in `.*`; None wants every type."""
    if wanted is None:
        return True
    return any(one == type or (one.endswith(".*") and type.startswith(one[:-1])) for one in wanted)


def _retrieve_event(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    event = call.state.events.get(call.ids[0])
    if event is None or event.get("account") != (call.account if call.on_behalf else None):
        raise ProcessorRefusal(f"No such event: '{call.ids[0]}'", status=404, code="resource_missing", param="id", early=True)
    return dict(event)


NOUNS = (
    *(balance.TRANSACTIONS, charges.CHARGES, charges.PAYMENT_INTENTS, application_fees.APPLICATION_FEES, refunds.REFUNDS),
    *(payouts.PAYOUTS, disputes.DISPUTES, fraud.REVIEWS, fraud.VALUE_LISTS, fraud.LIST_VALUES, customers.CUSTOMERS, invoices.INVOICES),
    *(invoices.INVOICE_ITEMS, checkout.SESSIONS, promotions.COUPONS, promotions.PROMOTIONS),
)
V1_ROUTES: dict[str, ApiHandler] = {
    **{f"GET {noun.path}": noun.list for noun in NOUNS},
    **{f"GET {noun.path}/*": noun.retrieve for noun in NOUNS},
    "GET account": accounts.retrieve_own_account,
    "POST accounts": accounts.create_account,
    "GET accounts/*": accounts.retrieve_account,
    "POST accounts/*": accounts.update_account,
    "POST accounts/*/login_links": onboarding.create_login_link,
    "POST account_links": onboarding.create_account_link,
    "GET balance": balance.retrieve_balance,
    "GET balance_settings": accounts.retrieve_balance_settings,
    "POST balance_settings": accounts.update_balance_settings,
    "GET balance_transactions": balance.list_balance_transactions,
    "POST charges/*": charges.update_charge,
    "GET payment_intents/*": charges.retrieve_payment_intent,
    "GET application_fees/*/refunds": application_fees.list_fee_refunds,
    "GET events": list_events,
    "GET events/*": _retrieve_event,
    "POST refunds": refunds.create_refund,
    "POST refunds/*": refunds.update_refund,
    "POST payouts": payouts.create_payout,
    "POST payouts/*/cancel": payouts.cancel_payout,
    "POST disputes/*": disputes.update_dispute,
    "POST disputes/*/close": disputes.accept_dispute,
    "GET reviews": fraud.list_reviews,
    "POST reviews/*/approve": fraud.approve_review,
    "POST radar/value_lists": fraud.create_value_list,
    "GET radar/value_lists": fraud.list_value_lists,
    "POST radar/value_list_items": fraud.create_value_list_item,
    "GET radar/value_list_items": fraud.list_value_list_items,
    "DELETE radar/value_list_items/*": fraud.delete_value_list_item,
    "POST customers": customers.create_customer,
    "GET customers": customers.list_customers,
    "POST customers/*": customers.update_customer,
    "DELETE customers/*": customers.delete_customer,
    "POST invoices": invoices.create_invoice,
    "GET invoices/*": invoices.retrieve_invoice,
    "POST invoices/*": invoices.update_invoice,
    "DELETE invoices/*": invoices.delete_invoice,
    "POST invoices/*/finalize": invoices.finalize_invoice,
    "POST invoices/*/send": invoices.send_invoice,
    "POST invoices/*/void": invoices.void_invoice,
    "POST invoices/*/pay": invoices.pay_invoice_out_of_band,
    "POST invoices/*/mark_uncollectible": invoices.mark_uncollectible,
    "GET invoices/*/lines": invoices.list_invoice_lines,
    "GET invoice_payments": invoices.list_invoice_payments,
    "POST invoiceitems": invoices.create_invoice_item,
    "GET invoiceitems": invoices.list_invoice_items,
    "DELETE invoiceitems/*": invoices.delete_invoice_item,
    "POST checkout/sessions": checkout.create_session,
    "GET checkout/sessions/*": checkout.retrieve_session,
    "GET checkout/sessions/*/line_items": checkout.list_session_lines,
    "POST checkout/sessions/*/expire": checkout.expire_session,
    "POST coupons": promotions.create_coupon,
    "POST promotion_codes": promotions.create_promotion,
    "GET promotion_codes": promotions.list_promotions,
    "POST promotion_codes/*": promotions.update_promotion,
}


def route_tables() -> dict[tuple[str, int], list[tuple[tuple[str, ...], ApiHandler]]]:
    """The routes by method and number of steps, so that few are compared."""
    found: dict[tuple[str, int], list[tuple[tuple[str, ...], ApiHandler]]] = {}
    for prefix, routes in (("v1/", V1_ROUTES), ("", OAUTH_ROUTES)):
        for name, handler in routes.items():
            method, path = name.split(" ")
            steps = tuple((prefix + path).split("/"))
            found.setdefault((method, len(steps)), []).append((steps, handler))
    return found


ROUTE_TABLES = route_tables()


def find_route(method: str, path: str) -> ApiRoute | None:
    """The handler of a path, and the ids that the path names; None where there is none, or none for `method`."""
    steps = path.strip("/").split("/")
    for pattern, handler in ROUTE_TABLES.get((method, len(steps)), []):
        if all(one in ("*", step) for one, step in zip(pattern, steps, strict=True)):
            return ApiRoute(handler, tuple(step for one, step in zip(pattern, steps, strict=True) if one == "*"))
    return None
