"""Calls about accounts: made, changed, entered, looked into."""

from clients.sandbox.payments import render_account
from clients.sandbox.payments.api_schedules import change_schedule, read_account_schedule, read_balance_schedule
from clients.sandbox.payments.call import Call
from clients.sandbox.payments.entities import Account
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.news import tell_account
from clients.sandbox.payments.onboarding import new_account
from clients.sandbox.payments.refusal import Members, Refusal, no_account
from clients.sandbox.payments.visits import open_visit

TYPES = ("express", "custom", "standard")
COUNTRIES = frozenset(
    (
        "AE",
        "AT",
        "AU",
        "BE",
        "BG",
        "BR",
        "CA",
        "CH",
        "CY",
        "CZ",
        "DE",
        "DK",
        "EE",
        "ES",
        "FI",
        "FR",
        "GB",
        "GI",
        "GR",
        "HK",
        "HR",
        "HU",
        "IE",
        "IT",
        "JP",
        "LI",
        "LT",
        "LU",
        "LV",
        "MT",
        "MX",
        "MY",
        "NL",
        "NO",
        "NZ",
        "PL",
        "PT",
        "RO",
        "SE",
        "SG",
        "SI",
        "SK",
        "TH",
        "US",
    )
)


def create_account(call: Call, form: Form) -> Members:
    """A connected account; by `type`, or by what its `controller` says."""
    kind, country = read_kind(form), form.text("country")
    if country is not None and country not in COUNTRIES:
        raise invalid(f"Country '{country}' is unknown. Try using a 2-character alphanumeric country code instead.", "country")
    email, metadata = form.email(), form.metadata()
    business_type = form.choice("business_type", ("company", "government_entity", "individual", "non_profit"))
    profile, capabilities, schedule = read_profile(form), read_capabilities(form), read_account_schedule(form)
    form.done()
    own_account_only(call)
    account = new_account(call.state, kind=kind, country=country or call.owner.country, email=email, metadata=metadata)
    account.business_type = business_type
    account.name, account.url = profile
    account.capabilities |= dict.fromkeys(capabilities, "inactive")
    if schedule is not None:
        change_schedule(account, schedule)
    return render_account.account(call.state, account)


def own_account_only(call: Call) -> None:
    """Connected accounts connect nobody."""
    if call.on_behalf:
        raise Refusal("Only platforms can create connected accounts; leave out the Stripe-Account header.", early=True)


def read_kind(form: Form) -> str:
    """Choice: absent, it is a Standard account, as it was before controllers."""
    kind, controller = form.choice("type", TYPES), form.part("controller")
    if controller is None:
        return kind or "standard"
    if kind is not None:
        raise invalid("You may only specify one of these parameters: type, controller.", "controller")
    parts = {name: controller.part(name) for name in ("fees", "losses", "stripe_dashboard")}
    fees, losses, dashboard = parts["fees"], parts["losses"], parts["stripe_dashboard"]
    payer = fees.choice("payer", ("account", "application")) if fees else None
    loser = losses.choice("payments", ("application", "stripe")) if losses else None
    shown = dashboard.choice("type", ("express", "full", "none")) if dashboard else None
    controller.choice("requirement_collection", ("application", "stripe"))
    if shown == "express" and (loser, payer) != ("application", "application"):
        raise invalid("Accounts with the Express Dashboard need `losses.payments` and `fees.payer` of `application`.", "controller")
    return {"express": "express", "none": "none"}.get(shown or "full", "standard")


def read_profile(form: Form) -> tuple[str | None, str | None]:
    """Name and address of the business."""
    profile = form.part("business_profile")
    if profile is None:
        return None, None
    for other in ("mcc", "product_description", "support_email", "support_phone", "support_url"):
        profile.raw(other)
    return profile.text("name"), profile.url("url")


def read_capabilities(form: Form) -> list[str]:
    """What the account should be able to do."""
    wanted = form.part("capabilities")
    if wanted is None:
        return []
    parts = {name: wanted.part(name) for name in ("card_payments", "transfers")}
    return [name for name, part in parts.items() if part is not None and part.flag("requested")]


def account_of(call: Call) -> Account:
    """The account of the path. One that is not there is as forbidden as one that is not connected."""
    row = call.state.accounts.get(call.ids[0])
    if row is None or not row.attached or (call.on_behalf and row.id != call.account):
        raise no_account(call.ids[0], call.key)
    return row


def retrieve_account(call: Call, form: Form) -> Members:
    """One account."""
    form.done()
    return render_account.account(call.state, account_of(call))


def retrieve_own_account(call: Call, form: Form) -> Members:
    """The account that the call acts in."""
    form.done()
    return render_account.account(call.state, call.owner)


def update_account(call: Call, form: Form) -> Members:
    """Its schedule, its business's name, the platform's words about it."""
    row = account_of(call)
    before = render_account.account(call.state, row)
    email, metadata = form.email(), form.metadata(row.metadata)
    business_type = form.choice("business_type", ("company", "government_entity", "individual", "non_profit"))
    name, url = read_profile(form)
    capabilities, schedule = read_capabilities(form), read_account_schedule(form)
    form.done()
    row.email, row.business_type = email or row.email, business_type or row.business_type
    row.name, row.url, row.metadata = name or row.name, url or row.url, metadata
    for capability in capabilities:
        row.capabilities.setdefault(capability, "active" if row.charges_enabled else "inactive")
    if schedule is not None:
        change_schedule(row, schedule)
    after = render_account.account(call.state, row)
    changed = {key: value for key, value in before.items() if after[key] != value}
    if changed:
        tell_account(call.state, row.id, previous=changed)
    return after


def create_account_link(call: Call, form: Form) -> Members:
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
    if kind is None:
        raise form.missing("type")
    for name, value in (("refresh_url", refresh_url), ("return_url", return_url)):
        if value is None:
            raise form.missing(name)
    row = call.state.accounts.get(account)
    if row is None or not row.attached:
        raise no_account(account, call.key)
    if row.kind == "standard" and kind == "account_update":
        raise invalid("You cannot create `account_update` type Account Links for this account.", "type")
    visit = open_visit(call.state, account, kind=kind, return_url=return_url or "", refresh_url=refresh_url or "")
    return render_account.visit_link(call.state, visit)


def create_login_link(call: Call, form: Form) -> Members:
    """The way into an Express account's own pages."""
    form.done()
    row = account_of(call)
    if row.kind != "express":
        raise Refusal(f"Cannot create a login link: the account {row.id} does not have access to the Express Dashboard.", param="account")
    if not row.details_submitted:
        raise Refusal("Cannot create a login link for an account that has not completed onboarding.", param="account")
    return render_account.login_link(call.state, open_visit(call.state, row.id, kind="login"))


def retrieve_balance(call: Call, form: Form) -> Members:
    """What there is."""
    form.done()
    return render_account.balance(call.state, call.account)


def retrieve_balance_settings(call: Call, form: Form) -> Members:
    """When it is paid out."""
    form.done()
    return render_account.balance_settings(call.owner)


def update_balance_settings(call: Call, form: Form) -> Members:
    """Another schedule."""
    schedule = read_balance_schedule(form)
    form.done()
    if schedule is not None:
        change_schedule(call.owner, schedule)
        tell_account(call.state, call.account)
    return render_account.balance_settings(call.owner)
