"""Accounts and their payout schedules: made and changed by calls, and how they go over the wire."""

from typing import NamedTuple

from simulators.processor.call import (
    ApiCall,
    CallForm,
    ProcessorRefusal,
    account_refusal,
    invalid_parameter,
    list_object,
    null_members,
    row_members,
)
from simulators.processor.state import PROCESSOR_DAY_SECONDS, JsonObject, ProcessorAccount, ProcessorState, emit_event

ACCOUNT_TYPES = ("express", "custom", "standard")

ACCOUNT_COUNTRY_CODES = (
    "AE AT AU BE BG BR CA CH CY CZ DE DK EE ES FI FR GB GI GR HK HR HU IE IT JP LI LT LU LV MT MX MY NL NO NZ PL PT RO SE SG SI SK TH US"
)
ACCOUNT_COUNTRIES = frozenset(ACCOUNT_COUNTRY_CODES.split())
ACCOUNT_CONTROLLERS: dict[str, tuple[str, str, str, str]] = {
    "express": ("application_express", "application", "stripe", "express"),
    "standard": ("account", "stripe", "stripe", "full"),
    "custom": ("application_custom", "application", "application", "none"),
    "none": ("application", "application", "application", "none"),
}
REQUIRED_DETAILS = ["business_profile.url", "business_type", "external_account", "tos_acceptance.date", "tos_acceptance.ip"]
COUNTRY_CURRENCIES = {
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

PAYOUT_INTERVALS = ("daily", "manual", "monthly", "weekly")
PAYOUT_WORKDAYS = ("friday", "monday", "thursday", "tuesday", "wednesday")
PAYOUT_DELAY_LIMIT = 31


def create_account(call: ApiCall, form: CallForm) -> JsonObject:
    """A connected account; by `type`, or by what its `controller` says."""
    kind, country = read_account_kind(form), form.text("country")
    if country is not None and country not in ACCOUNT_COUNTRIES:
        raise invalid_parameter(f"Country '{country}' is unknown. Try using a 2-character alphanumeric country code instead.", "country")
    email, metadata = form.email(), form.metadata()
    business_type = form.choice("business_type", ("company", "government_entity", "individual", "non_profit"))
    profile, capabilities, schedule = _read_business_profile(form), _read_capabilities(form), read_account_schedule(form)
    form.done()
    if call.on_behalf:
        raise ProcessorRefusal("Only platforms can create connected accounts; leave out the Stripe-Account header.", early=True)
    account = make_account(call.state, kind=kind, country=country or call.owner.country, email=email, metadata=metadata)
    account.business_type = business_type
    account.name, account.url = profile
    account.capabilities |= dict.fromkeys(capabilities, "inactive")
    if schedule is not None:
        change_payout_schedule(account, schedule)
    return account_json(call.state, account)


def read_account_kind(form: CallForm) -> str:
    """The kind that `type` or `controller` asks for. Choice: without both it is a Standard account, as before controllers."""
    kind, controller = form.choice("type", ACCOUNT_TYPES), form.part("controller")
    if controller is None:
        return kind or "standard"
    if kind is not None:
        raise invalid_parameter("You may only specify one of these parameters: type, controller.", "controller")
    fees, losses, dashboard = (controller.part(name) for name in ("fees", "losses", "stripe_dashboard"))
    payer = fees.choice("payer", ("account", "application")) if fees else None
    loser = losses.choice("payments", ("application", "stripe")) if losses else None
    shown = dashboard.choice("type", ("express", "full", "none")) if dashboard else None
    controller.choice("requirement_collection", ("application", "stripe"))
    if shown == "express" and (loser, payer) != ("application", "application"):
        raise invalid_parameter(
            "Accounts with the Express Dashboard need `losses.payments` and `fees.payer` of `application`.", "controller"
        )
    return {"express": "express", "none": "none"}.get(shown or "full", "standard")


def _read_business_profile(form: CallForm) -> tuple[str | None, str | None]:
    profile = form.part("business_profile")
    if profile is None:
        return None, None
    for other in ("mcc", "product_description", "support_email", "support_phone", "support_url"):
        profile.raw(other)
    return profile.text("name"), profile.url("url")


def _read_capabilities(form: CallForm) -> list[str]:
    wanted = form.part("capabilities")
    if wanted is None:
        return []
    parts = {name: wanted.part(name) for name in ("card_payments", "transfers")}
    return [name for name, part in parts.items() if part is not None and part.flag("requested")]


def find_call_account(call: ApiCall) -> ProcessorAccount:
    """The account of the path. Raises ProcessorRefusal: an account that does not exist is refused as one that is not connected."""
    row = call.state.accounts.get(call.ids[0])
    if row is None or not row.attached or (call.on_behalf and row.id != call.account):
        raise account_refusal(call.ids[0], call.key)
    return row


def retrieve_account(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    return account_json(call.state, find_call_account(call))


def retrieve_own_account(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    return account_json(call.state, call.owner)


def update_account(call: ApiCall, form: CallForm) -> JsonObject:
    row = find_call_account(call)
    before = account_json(call.state, row)
    email, metadata = form.email(), form.metadata(row.metadata)
    business_type = form.choice("business_type", ("company", "government_entity", "individual", "non_profit"))
    name, url = _read_business_profile(form)
    capabilities, schedule = _read_capabilities(form), read_account_schedule(form)
    form.done()
    row.email, row.business_type = email or row.email, business_type or row.business_type
    row.name, row.url, row.metadata = name or row.name, url or row.url, metadata
    for capability in capabilities:
        row.capabilities.setdefault(capability, "active" if row.charges_enabled else "inactive")
    if schedule is not None:
        change_payout_schedule(row, schedule)
    after = account_json(call.state, row)
    changed = {key: value for key, value in before.items() if after[key] != value}
    if changed:
        notify_account(call.state, row.id, previous=changed)
    return after


def retrieve_balance_settings(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    return balance_settings_json(call.owner)


def update_balance_settings(call: ApiCall, form: CallForm) -> JsonObject:
    schedule = read_balance_schedule(form)
    form.done()
    if schedule is not None:
        change_payout_schedule(call.owner, schedule)
        notify_account(call.state, call.account)
    return balance_settings_json(call.owner)


def account_json(state: ProcessorState, row: ProcessorAccount) -> JsonObject:
    return {
        **row_members(row, "id business_type charges_enabled country created details_submitted email payouts_enabled"),
        "object": "account",
        "business_profile": {
            **null_members(
                "annual_revenue estimated_worker_count mcc minority_owned_business_designation product_description support_address"
            ),
            **null_members("support_email support_phone support_url"),
            "name": row.name,
            "url": row.url,
        },
        "capabilities": dict(row.capabilities),
        "controller": _controller_json(state, row),
        "default_currency": row.currency,
        "external_accounts": list_object([_bank_json(row)] if row.bank else [], f"/v1/accounts/{row.id}/external_accounts"),
        "future_requirements": {**requirements_json([]), "disabled_reason": None},
        "metadata": dict(row.metadata),
        "requirements": requirements_json(row.currently_due),
        "settings": account_settings_json(row),
        "tos_acceptance": {"date": row.created if row.details_submitted else None, "ip": None, "user_agent": None},
        "type": row.kind,
    }


def _controller_json(state: ProcessorState, row: ProcessorAccount) -> JsonObject:
    if row.id == state.platform:
        return {"type": "account"}
    payer, losses, collects, dashboard = ACCOUNT_CONTROLLERS[row.kind]
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


def requirements_json(due: list[str]) -> JsonObject:
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


def account_settings_json(row: ProcessorAccount) -> JsonObject:
    """The settings of an account; only the payout schedule is simulated."""
    return {
        "bacs_debit_payments": {"display_name": None, "service_user_number": None},
        "branding": null_members("icon logo primary_color secondary_color"),
        "card_issuing": {"tos_acceptance": {"date": None, "ip": None}},
        "card_payments": {
            "decline_on": {"avs_failure": False, "cvc_failure": False},
            **null_members("statement_descriptor_prefix statement_descriptor_prefix_kana statement_descriptor_prefix_kanji"),
        },
        "dashboard": {"display_name": row.name, "timezone": "Etc/UTC"},
        "invoices": {"default_account_tax_ids": None, "hosted_payment_method_save": "offer"},
        "payments": null_members("statement_descriptor statement_descriptor_kana statement_descriptor_kanji"),
        "payouts": {"debit_negative_balances": True, "schedule": payout_schedule_json(row), "statement_descriptor": None},
        "sepa_debit_payments": {},
    }


def _bank_json(row: ProcessorAccount) -> JsonObject:
    return {
        "id": row.bank,
        "object": "bank_account",
        "account": row.id,
        **null_members("account_holder_name account_holder_type account_type"),
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


def make_account(state: ProcessorState, *, kind: str, country: str, email: str | None, metadata: dict[str, str]) -> ProcessorAccount:
    """A new connected account, of whose owner nothing is known."""
    account = ProcessorAccount(
        id=state.new_id("acct_1", 15),
        created=state.now(),
        country=country,
        currency=COUNTRY_CURRENCIES.get(country, "eur"),
        email=email,
        currently_due=list(REQUIRED_DETAILS),
        delay_days=4 if country == "JP" else 2 if country in ("US", "AU") else 3,
        swept=state.now() // PROCESSOR_DAY_SECONDS,
        metadata=metadata,
    )
    account.kind = "standard" if kind == "standard" else "custom" if kind == "custom" else "none" if kind == "none" else "express"
    account.capabilities = {"card_payments": "inactive", "transfers": "inactive"}
    state.accounts[account.id] = account
    return account


def notify_account(state: ProcessorState, account: str, type: str = "account.updated", previous: JsonObject | None = None) -> None:
    emit_event(state, type, account_json(state, state.accounts[account]), account, previous)


class ScheduleRequest(NamedTuple):
    """A requested payout schedule; what is None or empty stays as it is."""

    interval: str | None
    weekly: list[str]
    monthly: list[int]
    delay_days: int | None
    at: str
    """The parameter's name, for refusals."""


def read_account_schedule(form: CallForm) -> ScheduleRequest | None:
    """`settings[payouts][schedule]` of an account."""
    settings = form.part("settings")
    payouts = settings.part("payouts") if settings else None
    schedule = payouts.part("schedule") if payouts else None
    if schedule is None:
        return None
    weekly, monthly = _read_payout_days(schedule)
    weekday, anchor = schedule.choice("weekly_anchor", PAYOUT_WORKDAYS), schedule.integer("monthly_anchor", 1, 31)
    delay = schedule.raw("delay_days")
    days = None if delay in (None, "minimum") else schedule.integer("delay_days", 2, PAYOUT_DELAY_LIMIT)
    weekly, monthly = weekly or ([weekday] if weekday else []), monthly or ([anchor] if anchor else [])
    return check_schedule(
        ScheduleRequest(schedule.choice("interval", PAYOUT_INTERVALS), weekly, monthly, days, "settings[payouts][schedule]")
    )


def read_balance_schedule(form: CallForm) -> ScheduleRequest | None:
    """`payments[payouts][schedule]` of the balance's settings."""
    payments = form.part("payments")
    if payments is None:
        return None
    payments.flag("debit_negative_balances")
    payouts, timing = payments.part("payouts"), payments.part("settlement_timing")
    if payouts is not None:
        payouts.text("statement_descriptor")
    schedule = payouts.part("schedule") if payouts else None
    blank = timing is None or timing.raw("delay_days_override") == ""
    days = None if timing is None or blank else timing.integer("delay_days_override", 2, PAYOUT_DELAY_LIMIT)
    if schedule is None:
        return ScheduleRequest(None, [], [], days, "payments[payouts][schedule]")
    weekly, monthly = _read_payout_days(schedule)
    return check_schedule(
        ScheduleRequest(schedule.choice("interval", PAYOUT_INTERVALS), weekly, monthly, days, "payments[payouts][schedule]")
    )


def _read_payout_days(schedule: CallForm) -> tuple[list[str], list[int]]:
    days, dates = schedule.texts("weekly_payout_days") or [], schedule.texts("monthly_payout_days") or []
    if not {*days} <= {*PAYOUT_WORKDAYS}:
        where = schedule.at("weekly_payout_days")
        raise invalid_parameter(f"Invalid {where}: must be one of {', '.join(PAYOUT_WORKDAYS)}", where)
    if any(not date.isdecimal() or not 1 <= int(date) <= 31 for date in dates):
        where = schedule.at("monthly_payout_days")
        raise invalid_parameter(f"Invalid {where}: must be from 1 to 31", where)
    return days, [int(date) for date in dates]


def check_schedule(wanted: ScheduleRequest) -> ScheduleRequest:
    """Days fit the interval, and an interval has its days."""
    fits = {"weekly": wanted.weekly, "monthly": wanted.monthly}
    for interval, days in fits.items():
        if wanted.interval == interval and not days:
            raise invalid_parameter(f"You must provide the days of an interval that is {interval}.", f"{wanted.at}[{interval}_payout_days]")
        if wanted.interval not in (None, interval) and days:
            raise invalid_parameter(
                f"Only an interval that is {interval} takes {interval} payout days.", f"{wanted.at}[{interval}_payout_days]"
            )
    return wanted


def change_payout_schedule(row: ProcessorAccount, wanted: ScheduleRequest) -> None:
    if wanted.interval is not None:
        row.interval = wanted.interval
    if wanted.interval is not None or wanted.weekly or wanted.monthly:
        row.weekly_days, row.monthly_days = wanted.weekly, wanted.monthly
    row.delay_days = wanted.delay_days or row.delay_days


def payout_schedule_json(row: ProcessorAccount) -> JsonObject:
    """As account settings say it; parts that the interval has no use for are left out."""
    found: JsonObject = {"delay_days": row.delay_days, "interval": row.interval}
    if row.interval == "weekly":
        found |= {"weekly_anchor": row.weekly_days[0], "weekly_payout_days": list(row.weekly_days)}
    if row.interval == "monthly":
        found |= {"monthly_anchor": row.monthly_days[0], "monthly_payout_days": list(row.monthly_days)}
    return found


def balance_settings_json(row: ProcessorAccount) -> JsonObject:
    """The same schedule, as the balance's settings say it."""
    found: JsonObject = {"interval": row.interval}
    if row.interval == "weekly":
        found["weekly_payout_days"] = list(row.weekly_days)
    if row.interval == "monthly":
        found["monthly_payout_days"] = list(row.monthly_days)
    return {
        "object": "balance_settings",
        "payments": {
            "debit_negative_balances": True,
            "payouts": {
                **null_members("minimum_balance_by_currency statement_descriptor"),
                "schedule": found,
                "status": "enabled" if row.payouts_enabled else "disabled",
            },
            "settlement_timing": {"delay_days": row.delay_days},
        },
    }
