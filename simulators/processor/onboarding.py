"""Owners of accounts: their links, what they tell the processor, and how they let a platform in (OAuth 2.0) and go."""

from simulators.processor.accounts import find_call_account, make_account, notify_account, requirements_json
from simulators.processor.call import (
    ApiCall,
    CallForm,
    OAuthRefusal,
    ProcessorRefusal,
    account_refusal,
    find_row,
    invalid_parameter,
    row_members,
)
from simulators.processor.state import (
    PROCESSOR_DAY_SECONDS,
    AccountLink,
    JsonObject,
    OAuthCode,
    ProcessorAccount,
    ProcessorState,
    emit_event,
)

OAUTH_CODE_PREFIX = "ac_"
ONBOARDING_LINK_SECONDS = 300
LOGIN_LINK_SECONDS = 300
OAUTH_CODE_SECONDS = 300


def complete_onboarding(state: ProcessorState, account: str) -> ProcessorAccount:
    """Completes the onboarding: the account takes payments and pays out. Repeated, it changes nothing."""
    row = find_row(state.accounts, account, "account")
    if row.charges_enabled and not row.currently_due:
        return row
    previous: JsonObject = {
        **row_members(row, "charges_enabled details_submitted payouts_enabled"),
        "capabilities": dict(row.capabilities),
        "requirements": requirements_json(row.currently_due),
    }
    row.currently_due = []
    row.charges_enabled = row.payouts_enabled = row.details_submitted = True
    row.capabilities = dict.fromkeys(row.capabilities, "active")
    row.business_type = row.business_type or "company"
    row.bank = row.bank or state.new_id("ba_")
    row.swept = max(row.swept, state.now() // PROCESSOR_DAY_SECONDS)
    notify_account(state, account, previous=previous)
    return row


def restrict_account(state: ProcessorState, account: str, due: list[str] | None = None) -> ProcessorAccount:
    """The processor asks for more, and lets no payment through until it has it."""
    row = find_row(state.accounts, account, "account")
    previous: JsonObject = {**row_members(row, "charges_enabled payouts_enabled"), "requirements": requirements_json(row.currently_due)}
    row.currently_due = due or ["company.verification.document"]
    row.charges_enabled = row.payouts_enabled = False
    notify_account(state, account, previous=previous)
    return row


def open_standard_account(
    state: ProcessorState, *, name: str = "Own account", country: str = "US", email: str | None = None
) -> ProcessorAccount:
    """A Standard account that has existed for long and is not connected to the platform."""
    row = make_account(state, kind="standard", country=country, email=email, metadata={})
    row.name, row.attached = name, False
    row.charges_enabled = row.payouts_enabled = row.details_submitted = True
    row.currently_due, row.bank = [], state.new_id("ba_")
    row.capabilities = dict.fromkeys(row.capabilities, "active")
    return row


def authorize_oauth(state: ProcessorState, account: str, scope: str = "read_write") -> str:
    """The code with which the owner gives the platform access: it is exchanged once, within five minutes."""
    find_row(state.accounts, account, "account")
    code = OAuthCode(state.new_id(OAUTH_CODE_PREFIX), state.now(), account, scope)
    state.codes[code.id] = code
    return code.id


def attach_account(state: ProcessorState, account: str) -> None:
    row = state.accounts[account]
    if not row.attached:
        row.attached = True
        emit_event(state, "account.application.authorized", _platform_json(state), account)


def release_account(state: ProcessorState, account: str) -> ProcessorAccount:
    row = state.accounts.get(account)
    if row is None or not row.attached or account == state.platform:
        raise ProcessorRefusal(f"This application is not connected to stripe account {account}, or that account does not exist.")
    row.attached = False
    emit_event(state, "account.application.deauthorized", _platform_json(state), account)
    return row


def _platform_json(state: ProcessorState) -> JsonObject:
    return {"id": state.client_id, "object": "application", "name": state.accounts[state.platform].name}


def open_account_link(state: ProcessorState, account: str, *, kind: str, return_url: str = "", refresh_url: str = "") -> AccountLink:
    """A page whose address nobody can guess in the real world."""
    seconds = LOGIN_LINK_SECONDS if kind == "login" else ONBOARDING_LINK_SECONDS
    visit = AccountLink(state.new_id("visit_"), state.now(), account, state.now() + seconds, kind, return_url, refresh_url)
    state.visits[visit.id] = visit
    return visit


def follow_account_link(state: ProcessorState, token: str, *, kind: str = "account_onboarding") -> AccountLink | None:
    """The link, opened for the first time and in time; None otherwise."""
    visit = state.visits.get(token)
    if visit is None or visit.used or visit.expires_at <= state.now() or (visit.kind == "login") != (kind == "login"):
        return None
    visit.used = True
    return visit


def exchange_oauth_code(call: ApiCall, form: CallForm) -> JsonObject:
    grant, code = form.raw("grant_type"), form.raw("code")
    if grant not in ("authorization_code",):
        said = "No grant type specified" if grant is None else f"Unsupported grant type: {grant}"
        raise OAuthRefusal("invalid_request" if grant is None else "unsupported_grant_type", said)
    if not code:
        raise OAuthRefusal("invalid_request", "No authorization code provided")
    row = call.state.codes.get(code)
    if row is None:
        raise OAuthRefusal("invalid_grant", f"Authorization code does not exist: {code}")
    if row.used:
        raise OAuthRefusal(
            "invalid_grant", f"This authorization code has already been used. All tokens issued with this code have been revoked: {code}"
        )
    if row.created + OAUTH_CODE_SECONDS <= call.state.now():
        raise OAuthRefusal("invalid_grant", f"Authorization code expired: {code}")
    row.used = True
    attach_account(call.state, row.account)
    mode = "live" if call.state.live else "test"
    return {
        "access_token": call.state.new_id(f"sk_{mode}_"),
        "livemode": call.state.live,
        "refresh_token": call.state.new_id("rt_"),
        "scope": row.scope,
        "stripe_publishable_key": call.state.new_id(f"pk_{mode}_"),
        "stripe_user_id": row.account,
        "token_type": "bearer",
    }


def deauthorize_account(call: ApiCall, form: CallForm) -> JsonObject:
    client, account = form.raw("client_id"), form.raw("stripe_user_id")
    if not client:
        raise OAuthRefusal("invalid_request", "No client_id specified")
    if not account:
        raise OAuthRefusal("invalid_request", "No stripe_user_id specified")
    try:
        release_account(call.state, account)
    except ProcessorRefusal as refused:
        raise OAuthRefusal("invalid_client", refused.message, 401) from refused
    return {"stripe_user_id": account}


def create_account_link(call: ApiCall, form: CallForm) -> JsonObject:
    """The way into onboarding, for one visit."""
    account = form.need_text("account")
    kind = form.choice("type", ("account_onboarding", "account_update"))
    refresh_url, return_url = form.url("refresh_url"), form.url("return_url")
    form.choice("collect", ("currently_due", "eventually_due"))
    options = form.part("collection_options")
    if options is not None:
        options.choice("fields", ("currently_due", "eventually_due"))
        options.choice("future_requirements", ("include", "omit"))
    form.done()
    kind = form.need("type", kind)
    refresh_url, return_url = form.need("refresh_url", refresh_url), form.need("return_url", return_url)
    row = call.state.accounts.get(account)
    if row is None or not row.attached:
        raise account_refusal(account, call.key)
    if row.kind == "standard" and kind == "account_update":
        raise invalid_parameter("You cannot create `account_update` type Account Links for this account.", "type")
    visit = open_account_link(call.state, account, kind=kind, return_url=return_url, refresh_url=refresh_url)
    url = f"{call.state.pages_url}/onboarding/{visit.id}"
    return {"object": "account_link", "created": visit.created, "expires_at": visit.expires_at, "url": url}


def create_login_link(call: ApiCall, form: CallForm) -> JsonObject:
    """The way into an Express account's own pages."""
    form.done()
    row = find_call_account(call)
    if row.kind != "express":
        raise ProcessorRefusal(
            f"Cannot create a login link: the account {row.id} does not have access to the Express Dashboard.", param="account"
        )
    if not row.details_submitted:
        raise ProcessorRefusal("Cannot create a login link for an account that has not completed onboarding.", param="account")
    return _login_link_json(call.state, open_account_link(call.state, row.id, kind="login"))


def _login_link_json(state: ProcessorState, row: AccountLink) -> JsonObject:
    return {"object": "login_link", "created": row.created, "url": f"{state.pages_url}/dashboard/{row.id}"}
