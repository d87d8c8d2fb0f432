"""Events of alerts: what runs out, what is late, and when it is well again. Admins alone see them."""

from typing import Literal

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class QuotaUse(TypedDict):
    """Calls of an organisation in a period, a UTC day. `used` counts what is leased, too; `percent` is the share that was reached.

    `resets_at`: when the next period begins, Unix seconds.
    """

    period: str
    limit: int
    used: int
    percent: int
    resets_at: int


class AccountBalance(TypedDict):
    """The balance of an account. `daily_use` is the median of the last 14 days; `days_left` is null where nothing is used.

    `opened`: when the alert opened, Unix seconds.
    """

    account: int
    balance: float
    daily_use: float
    currency: Literal["EUR"]
    days_left: float | None
    opened: int


class AccountEsims(TypedDict):
    """The eSIMs that an account can still issue; the other members as for a balance, in eSIMs."""

    account: int
    free_esims: int
    daily_use: float
    days_left: float | None
    opened: int


class SyncAge(TypedDict):
    """How old the last finished list of the fleet is, and how old it becomes when all is well. `listed_at`, `opened`: Unix seconds."""

    listed_at: int
    age_seconds: int
    normal_seconds: int
    opened: int


class RefusedToken(TypedDict):
    """`opened`: since when the token was found to be refused, Unix seconds."""

    opened: int


QUOTA_EXAMPLE: QuotaUse = {"period": "2027-01-15", "limit": 50_000, "used": 40_000, "percent": 80, "resets_at": 1_800_057_600}
BALANCE_EXAMPLE: AccountBalance = {
    "account": 8101,
    "balance": 118.2,
    "daily_use": 20.5,
    "currency": "EUR",
    "days_left": 5.8,
    "opened": 1_800_014_400,
}
STOCK_EXAMPLE: AccountEsims = {"account": 8101, "free_esims": 12, "daily_use": 2.0, "days_left": 6.0, "opened": 1_800_014_400}
SYNC_EXAMPLE: SyncAge = {"listed_at": 1_800_013_440, "age_seconds": 960, "normal_seconds": 300, "opened": 1_800_014_400}

QUOTA_80 = EventType(
    "organisation.quota_80",
    "The organisation has used 80 percent of its calls of the day, or the share that an admin has set.",
    QuotaUse,
    QUOTA_EXAMPLE,
    read_with="get_alerts",
    admin=True,
)

QUOTA_EXCEEDED = EventType(
    "organisation.quota_exceeded",
    "The organisation has used all its calls of the day: further ones are refused until the next day.",
    QuotaUse,
    {**QUOTA_EXAMPLE, "used": 50_000, "percent": 100},
    read_with="get_alerts",
    admin=True,
)

BALANCE_LOW = EventType(
    "organisation.balance_low",
    "At its median daily use of the last 14 days, the balance of an account lasts for less than 7 days, or what an admin has set.",
    AccountBalance,
    BALANCE_EXAMPLE,
    read_with="get_alerts",
    admin=True,
)

BALANCE_RESTORED = EventType(
    "organisation.balance_restored",
    "The balance of an account, which was low, lasts for more than 10 days again, or was topped up an hour ago.",
    AccountBalance,
    {**BALANCE_EXAMPLE, "balance": 618.2, "days_left": 30.2},
    read_with="get_alerts",
    admin=True,
)

STOCK_LOW = EventType(
    "organisation.stock_low",
    "At its median daily use of the last 14 days, the stock of eSIMs of an account lasts for less than 7 days, or what an admin has set.",
    AccountEsims,
    STOCK_EXAMPLE,
    read_with="get_alerts",
    admin=True,
)

STOCK_RESTORED = EventType(
    "organisation.stock_restored",
    "The stock of eSIMs of an account, which was low, lasts for more than 10 days again, or was filled up an hour ago.",
    AccountEsims,
    {**STOCK_EXAMPLE, "free_esims": 112, "days_left": 56.0},
    read_with="get_alerts",
    admin=True,
)

SYNC_BEHIND = EventType(
    "organisation.sync_behind",
    "The last finished list of the fleet is three times as old as it becomes when all is well.",
    SyncAge,
    SYNC_EXAMPLE,
    read_with="get_alerts",
    admin=True,
)

SYNC_CAUGHT_UP = EventType(
    "organisation.sync_caught_up",
    "The fleet, whose list was old, was listed again.",
    SyncAge,
    {**SYNC_EXAMPLE, "listed_at": 1_800_014_640, "age_seconds": 20},
    read_with="get_alerts",
    admin=True,
)

UPSTREAM_REFUSED = EventType(
    "organisation.upstream_refused",
    "The charging system does not accept the organisation's own token.",
    RefusedToken,
    {"opened": 1_800_014_400},
    read_with="get_alerts",
    admin=True,
)

UPSTREAM_ACCEPTED = EventType(
    "organisation.upstream_accepted",
    "The charging system, which did not accept the organisation's own token, accepts it again, or a new one.",
    RefusedToken,
    {"opened": 1_800_014_400},
    read_with="get_alerts",
    admin=True,
)
