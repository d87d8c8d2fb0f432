"""Alerts of an organisation: what is set, which are open now, and what is known of each account."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.ledger.alert_rules import MOST_DAYS, daily_uses, level_figures
from registry.caller import Role
from registry.clock import DAY_SECONDS
from registry.operation import Example, Input, Nothing, Scope, SpendKind, operation
from registry.policy import quota_period
from registry.versions import ObjectVersion, Versioned
from storage.alerts import QUOTA_KINDS, AlertDay, AlertRow, AlertSettingRow, AlertSettings, alert_facts, days_of_alerts, put_alert_settings
from storage.engine.sql import Connection
from storage.organisations import lock_organisation

MOST_ALERT_DAYS = 365

AlertUnit = Literal["EUR", "eSIMs", "seconds", "calls"]
AlertTypeName = Literal[
    "organisation.balance_low",
    "organisation.stock_low",
    "organisation.sync_behind",
    "organisation.upstream_refused",
    "organisation.quota_80",
    "organisation.quota_exceeded",
]

ALERT_TYPES: dict[str, AlertTypeName] = {
    "balance": "organisation.balance_low",
    "stock": "organisation.stock_low",
    "sync": "organisation.sync_behind",
    "upstream": "organisation.upstream_refused",
    "quota_80": "organisation.quota_80",
    "quota_exceeded": "organisation.quota_exceeded",
}
UNITS: dict[str, AlertUnit] = {"balance": "EUR", "stock": "eSIMs", "sync": "seconds", "quota_80": "calls", "quota_exceeded": "calls"}


class AlertChoice(Input):
    """Which alerts are wanted, and when they open. What is left out is as it is by default."""

    balance: Annotated[bool, Field(description="Alerts when the balance of an account runs out.")] = True
    stock: Annotated[bool, Field(description="Alerts when the eSIMs of an account run out.")] = True
    sync: Annotated[bool, Field(description="Alerts when the list of the fleet is old.")] = True
    quota: Annotated[bool, Field(description="Alerts when the calls of the day are used up.")] = True
    upstream: Annotated[bool, Field(description="Alerts when the charging system refuses your own token.")] = True
    days_to_open: Annotated[
        int, Field(ge=1, le=MOST_ALERT_DAYS, description="A balance or stock that lasts for fewer days opens an alert.")
    ] = 7
    days_to_close: Annotated[
        int, Field(ge=2, le=MOST_ALERT_DAYS, description="One that lasts for more days closes it; above days_to_open.")
    ] = 10
    quota_percent: Annotated[int, Field(ge=1, le=99, description="The share of the day's calls that quota_80 is written at.")] = 80

    @model_validator(mode="after")
    def check(self) -> "AlertChoice":
        """Between opening and closing there is a distance, so that an alert does not come and go."""
        if self.days_to_close <= self.days_to_open:
            text = f"days_to_close {self.days_to_close}: it must be above days_to_open, which is {self.days_to_open}"
            raise ValueError(f"{text}; send for example days_to_close {self.days_to_open + 3}")
        return self


class AlertChoiceView(TypedDict):
    """What is set."""

    balance: bool
    stock: bool
    sync: bool
    quota: bool
    upstream: bool
    days_to_open: int
    days_to_close: int
    quota_percent: int


class AlertChoiceAnswer(TypedDict):
    """What holds from now on."""

    object: Literal["connectivity.alert_settings"]
    settings: AlertChoiceView


class OpenAlert(TypedDict):
    """An alert that is open. Of a quota: until its day ends."""

    type: Annotated[AlertTypeName, Field(description="The type of the event that told of it")]
    account: Annotated[int | None, Field(description="Account id; null where it is about no account")]
    opened: Annotated[int, Field(description="Unix seconds")]
    level: Annotated[
        float | None,
        Field(description="What was left when it opened; of a quota: calls that were used; of the sync: the age of the fleet's list"),
    ]
    unit: Annotated[AlertUnit | None, Field(description="Of the level")]


class AlertLevel(TypedDict):
    """What is known of the balance or the stock of an account."""

    kind: Literal["balance", "stock"]
    account: Annotated[int, Field(description="Account id")]
    level: Annotated[float, Field(description="What is left: EUR, or eSIMs that can be issued")]
    unit: AlertUnit
    daily_use: Annotated[float | None, Field(description="Median of the last 14 finished days; null before there are 3")]
    days_left: Annotated[float | None, Field(description="For how many days the level lasts; null: not known, or nothing is used")]
    days_of_data: Annotated[int, Field(description="Finished days that count, 14 at most")]
    read_at: Annotated[int, Field(description="Unix seconds: when it was read last")]


class AlertState(TypedDict):
    """What is set, what is open, and what is known."""

    object: Literal["connectivity.alerts"]
    settings: AlertChoiceView
    open: list[OpenAlert]
    levels: list[AlertLevel]


SETTINGS_EXAMPLE: AlertChoiceView = {
    "balance": True,
    "stock": True,
    "sync": True,
    "quota": True,
    "upstream": True,
    "days_to_open": 7,
    "days_to_close": 10,
    "quota_percent": 80,
}


def read_alerts_version(connection: Connection, ctx: Ctx, params: Input, hold: bool) -> ObjectVersion:
    """The version of what is set: alerts open and close by themselves."""
    del params
    if hold:  # a row need not be there to be held
        lock_organisation(connection, organisation=ctx.organisation)
    found = alert_facts(connection, organisations=[ctx.organisation]).settings
    return ObjectVersion(found[0].settings if found else AlertSettings(), alone=True)


ALERTS_VERSION = Versioned("choice of alerts", read_alerts_version, "get_alerts", ("set_alerts",))


@operation(
    "GET",
    "/v1/connectivity/alerts",
    versioned=ALERTS_VERSION,
    role=Role.ADMIN,
    title="Get alerts",
    examples=[
        Example("Is anything running out?", {}, {"object": "connectivity.alerts", "settings": SETTINGS_EXAMPLE, "open": [], "levels": []})
    ],
)
async def get_alerts(ctx: Ctx, _params: Nothing) -> AlertState:
    """Show which alerts are open now, what is set, and how long money and eSIMs last.

    Needs the role admin. A balance or stock opens an alert when, at the median daily use of the last 14 days, it lasts for fewer than
    `days_to_open` days, and closes it when it lasts for more than `days_to_close`, or after a top-up that has held for an hour. Before
    there are 3 finished days, and before the fleet was listed once, nothing is judged. Balances are read every 4 minutes.
    """
    store, organisation, now = ctx.deps.store, ctx.organisation, ctx.now
    today = int(now) // DAY_SECONDS
    facts = await store.read(alert_facts, organisations=[organisation])
    days = await store.read(days_of_alerts, organisation=organisation, first=today - MOST_DAYS)
    settings = facts.settings[0].settings if facts.settings else AlertSettings()
    period = quota_period(now).name
    return {
        "object": "connectivity.alerts",
        "settings": render_alert_settings(settings),
        "open": [render_alert(row) for row in facts.alerts if row.kind not in QUOTA_KINDS or row.subject == period],
        "levels": render_levels(days, today),
    }


def render_alert_settings(settings: AlertSettings) -> AlertChoiceView:
    return {
        "balance": bool(settings.balance),
        "stock": bool(settings.stock),
        "sync": bool(settings.sync),
        "quota": bool(settings.quota),
        "upstream": bool(settings.upstream),
        "days_to_open": settings.days_to_open,
        "days_to_close": settings.days_to_close,
        "quota_percent": settings.quota_percent,
    }


def render_alert(row: AlertRow) -> OpenAlert:
    of_account, unit = row.kind in ("balance", "stock"), UNITS.get(row.kind)
    return {
        "type": ALERT_TYPES[row.kind],
        "account": int(row.subject) if of_account else None,
        "opened": int(row.opened),
        "level": None if unit is None else round(row.level, 2),
        "unit": unit,
    }


def render_levels(days: Sequence[AlertDay], today: int) -> list[AlertLevel]:
    """The newest level of each account, with its use. `days`: of all accounts, the days of each one after the other."""
    accounts = dict[tuple[str, str], list[AlertDay]]()
    for day in days:
        accounts.setdefault((day.kind, day.subject), []).append(day)
    rows = list[AlertLevel]()
    for (kind, subject), own in accounts.items():
        last, uses = own[-1], daily_uses(own, today)
        daily, left = level_figures(last.level, uses)
        rows.append(
            {
                "kind": "balance" if kind == "balance" else "stock",
                "account": int(subject),
                "level": round(last.level, 2),
                "unit": UNITS[kind],
                "daily_use": daily,
                "days_left": left,
                "days_of_data": len(uses),
                "read_at": int(last.ended),
            }
        )
    return rows


@operation(
    "PUT",
    "/v1/connectivity/alerts",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    role=Role.ADMIN,
    versioned=ALERTS_VERSION,
    title="Set alerts",
    examples=[
        Example(
            "Warn me two weeks before the money runs out, and not of the quota",
            {"days_to_open": 14, "days_to_close": 18, "quota": False},
            {
                "object": "connectivity.alert_settings",
                "settings": {**SETTINGS_EXAMPLE, "quota": False, "days_to_open": 14, "days_to_close": 18},
            },
        )
    ],
)
async def set_alerts(ctx: Ctx, params: AlertChoice) -> AlertChoiceAnswer:
    """Choose which alerts your organisation gets, and when they open.

    Needs the role admin, on any tier. What is left out is as it is by default. An alert that is open and not wanted any more ends without
    an event. Events are sent to webhook endpoints that have chosen their types; get_alerts shows what is set and open.
    """
    chosen = AlertSettings(*(int(getattr(params, name)) for name in AlertSettings._fields))
    answer: AlertChoiceAnswer = {"object": "connectivity.alert_settings", "settings": render_alert_settings(chosen)}
    return await ctx.settle(answer, put_alert_settings, row=AlertSettingRow(ctx.organisation, *chosen))
