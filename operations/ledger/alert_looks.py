"""Looks at what may run out or be late: each organisation in turn, and the events of what has opened or closed.

Balances are read by the call that the reading of the fleet makes, too, and shared with it for a minute; stocks, issued eSIMs, the age of
the fleet's list and the calls of the day are what is stored. Nothing is judged of a fleet that was never listed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import anyio

from clients.ocs.places import in_background
from clients.ocs.resellers import Account
from operations.deps import Deps
from operations.event_types.alerts import (
    BALANCE_LOW,
    BALANCE_RESTORED,
    QUOTA_80,
    QUOTA_EXCEEDED,
    STOCK_LOW,
    STOCK_RESTORED,
    SYNC_BEHIND,
    SYNC_CAUGHT_UP,
    UPSTREAM_ACCEPTED,
    UPSTREAM_REFUSED,
    AccountBalance,
    AccountEsims,
    QuotaUse,
    RefusedToken,
    SyncAge,
)
from operations.event_types.declaration import new_event
from operations.fleet.listing import LISTING_SHARE
from operations.ledger.alert_rules import (
    MOST_DAYS,
    AlertChange,
    LevelLook,
    LevelState,
    daily_uses,
    is_quota_reached,
    judge_age,
    judge_level,
    level_figures,
)
from operations.upstream.connection import upstream_of_organisation
from registry.caller import Tier
from registry.clock import DAY_SECONDS
from registry.errors import OcsError, Refusal
from registry.policy import quota_period
from registry.ports import QuotaPeriod
from storage.alerts import (
    QUOTA_KINDS,
    AlertDay,
    AlertRow,
    AlertSettings,
    WatchedFleet,
    WatchedOrganisation,
    alert_facts,
    close_alert,
    days_of_alerts,
    forget_alerts,
    free_esims,
    issued_esims,
    note_top_up,
    open_alert,
    put_alert_days,
    watched_organisations,
)
from storage.engine.sql import Connection
from storage.event_log import LogEntry, log_event
from storage.fleets import LIST_EVERY_SECONDS, WRONG_CLOCK_SECONDS

ALERT_STEP_SECONDS = 40.0
ORGANISATIONS_AT_ONCE = 100
ACCOUNT_LISTS_AT_ONCE = 4
BALANCES_EVERY_SECONDS = 225.0
"""At every fourth look: with the minute that an answer is shared for, a balance that has fallen is seen within five minutes."""
BALANCES_LIMIT_SECONDS = 10.0
"""Accounts that are not told in this time are asked for again at their next turn."""
LOOK_GAP_SECONDS = DAY_SECONDS
"""What was used since a look that is older is of several days, and is counted for none."""
TOKEN_REFUSED_CODE = 8
WHOLE_QUOTA_PERCENT = 100

LevelKind = Literal["balance", "stock"]


class AccountLevel(NamedTuple):
    """What is left on an account now, EUR or eSIMs. `issued`: eSIMs issued today and yesterday; None: uses are seen from what is left."""

    kind: LevelKind
    account: int
    level: float
    issued: tuple[int, int] | None = None


class OrganisationFacts(NamedTuple):
    """What is known of an organisation before its connection is asked. `fleet`: None where it has none."""

    row: WatchedOrganisation
    alerts: Mapping[tuple[str, str], AlertRow]
    settings: AlertSettings
    fleet: WatchedFleet | None

    def alert(self, kind: str) -> AlertRow | None:
        """The open alert of a kind that is about the organisation as a whole."""
        return self.alerts.get((kind, ""))


class AccountLooks(NamedTuple):
    """What a look at an organisation's accounts has shown. `accounts`: all there are; `stocks_known`: whether their stocks were counted."""

    accounts: frozenset[int]
    levels: Sequence[AccountLevel]
    stocks_known: bool


class AlertLooks:
    """Looks at all organisations, as one chore of the worker."""

    def __init__(self, deps: Deps, report: Callable[[str], None], begun: Callable[[], bool] = lambda: True) -> None:
        """`begun`: whether the charging system is to be asked at all; a simulated one in this process is not begun for it alone."""
        self._deps, self._report, self._begun = deps, report, begun
        self._after = ""
        """The last organisation that was looked at; the next step goes on behind it."""
        self._read = dict[str, float]()
        """When the balances of an organisation were read last, in seconds of the monotonic clock."""
        self._places = anyio.Semaphore(ACCOUNT_LISTS_AT_ONCE)

    async def step(self) -> None:
        """Looks at each organisation once, or as far as the time goes. Waits for the network."""
        deps = self._deps
        ends = deps.clock.monotonic() + ALERT_STEP_SECONDS
        while deps.clock.monotonic() < ends:
            period = quota_period(deps.clock.now())
            page = await deps.store.read(watched_organisations, after=self._after, most=ORGANISATIONS_AT_ONCE, period=period.name)
            await self._look_at_page(page, period, ends)
            if len(page) < ORGANISATIONS_AT_ONCE and (not page or self._after == page[-1].id):
                self._after = ""
                return

    async def _look_at_page(self, page: Sequence[WatchedOrganisation], period: QuotaPeriod, ends: float) -> None:
        """Looks at these organisations until the time is over; the next step goes on with the one that was not reached."""
        facts = await self._deps.store.read(alert_facts, organisations=[row.id for row in page])
        instances = ("", self._deps.network_instance)
        fleets = {fleet.organisation: fleet for fleet in sorted(facts.fleets, key=lambda one: one.listed) if fleet.instance in instances}
        settings = {row.organisation: row.settings for row in facts.settings}
        alerts = dict[str, dict[tuple[str, str], AlertRow]]()
        for alert in facts.alerts:
            alerts.setdefault(alert.organisation, {})[alert.kind, alert.subject] = alert
        async with anyio.create_task_group() as group:
            for row in page:
                known = OrganisationFacts(row, alerts.get(row.id, {}), settings.get(row.id, AlertSettings()), fleets.get(row.id))
                await self._look_at_quota(known, period)
                if row.mode is not None:
                    await self._places.acquire()
                    group.start_soon(self._look_at_connection, known)
                elif any(kind not in QUOTA_KINDS for kind, _ in known.alerts):
                    await self._deps.store.write(forget_alerts, organisation=row.id)
                self._after = row.id
                if self._deps.clock.monotonic() >= ends:
                    return

    async def _look_at_quota(self, known: OrganisationFacts, period: QuotaPeriod) -> None:
        limit = self._deps.rate_limiter.limits.tiers[Tier(known.row.tier)].calls_per_day
        percents = {"quota_80": known.settings.quota_percent, "quota_exceeded": WHOLE_QUOTA_PERCENT}
        for kind, percent in percents.items() if known.settings.quota else ():
            if is_quota_reached(known.row.used, limit, percent) and (kind, period.name) not in known.alerts:
                alert = AlertRow(known.row.id, kind, period.name, self._deps.clock.now(), known.row.used, limit, 0.0)
                if await self._deps.store.write(open_quota_alert, deps=self._deps, alert=alert, percent=percent, period=period):
                    self._deps.wake_worker()

    async def _look_at_connection(self, known: OrganisationFacts) -> None:
        """The age of the fleet's list, and, when it is time, the accounts. What cannot be read or stored now is looked at again later."""
        try:
            told = await self._look_at_sync(known)
            if self._is_due(known):
                told = await self._look_at_accounts(known) or told
            if told:
                self._deps.wake_worker()
        except Refusal as failure:
            if not isinstance(failure, OcsError):
                self._report(f"alerts of {known.row.id} could not be looked at: {failure.message}")
        finally:
            self._places.release()

    def _is_due(self, known: OrganisationFacts) -> bool:
        """Whether the accounts are to be read now. Those of a fleet that was never listed are for a token's sake alone."""
        now, organisation = self._deps.clock.monotonic(), known.row.id
        listed = known.fleet is not None and known.fleet.listed > 0
        if not self._begun() or not (listed or known.row.mode == "own"):
            return False
        if now - self._read.get(organisation, float("-inf")) < BALANCES_EVERY_SECONDS:
            return False
        self._read[organisation] = now
        return True

    async def _look_at_sync(self, known: OrganisationFacts) -> bool:
        """Whether an event was written of the age of the fleet's list. A fleet that was never listed has none."""
        fleet, alert, now = known.fleet, known.alert("sync"), self._deps.clock.now()
        if not known.settings.sync:
            return await self._drop(alert)
        if fleet is None or not is_listed(fleet, now):
            return False
        age, normal = now - fleet.listed, normal_age(fleet)
        change = judge_age(age, normal, alert.opened if alert else 0.0)
        if change is None:
            return False
        row = alert or AlertRow(known.row.id, "sync", "", now, age, normal, 0.0)
        data: SyncAge = {
            "listed_at": int(fleet.listed),
            "age_seconds": int(age),
            "normal_seconds": int(normal),
            "opened": int(row.opened),
        }
        event_type = SYNC_BEHIND if change == "open" else SYNC_CAUGHT_UP
        event = new_event(event_type, data, organisation=row.organisation, ids=self._deps.ids, now=now)
        return await self._deps.store.write(change_alert, row=row, change=change, event=event)

    async def _drop(self, alert: AlertRow | None) -> bool:
        """Ends an alert that nobody wants any more, without an event."""
        if alert is not None:
            await self._deps.store.write(close_alert, row=alert)
        return False

    async def _look_at_accounts(self, known: OrganisationFacts) -> bool:
        """Whether an event was written of what the accounts hold, or of the token. Raises OcsError where they cannot be read."""
        deps, fleet = self._deps, known.fleet
        accounts: Sequence[Account] | None = None
        try:
            upstream = await upstream_of_organisation(deps, known.row.id)
            with in_background(), anyio.move_on_after(BALANCES_LIMIT_SECONDS):
                accounts = await upstream.accounts()
        except OcsError as failure:
            if failure.ocs_code == TOKEN_REFUSED_CODE and known.row.mode == "own":
                return await self._note_token(known, refused=True)
            raise
        if accounts is None:
            return False
        told = await self._note_token(known, refused=False)
        now = deps.clock.now()
        if fleet is None or not is_listed(fleet, now):
            return told
        looks = await self._levels(fleet, accounts, now)
        written = await deps.store.write(record_levels, deps=deps, known=known, looks=looks, now=now)
        return written > 0 or told

    async def _note_token(self, known: OrganisationFacts, *, refused: bool) -> bool:
        alert, now = known.alert("upstream"), self._deps.clock.now()
        if not known.settings.upstream:
            return await self._drop(alert)
        if refused == (alert is not None):
            return False
        row = alert or AlertRow(known.row.id, "upstream", "", now, 0.0, 0.0, 0.0)
        event_type = UPSTREAM_REFUSED if refused else UPSTREAM_ACCEPTED
        data: RefusedToken = {"opened": int(row.opened)}
        event = new_event(event_type, data, organisation=row.organisation, ids=self._deps.ids, now=now)
        return await self._deps.store.write(change_alert, row=row, change="open" if refused else "close", event=event)

    async def _levels(self, fleet: WatchedFleet, accounts: Sequence[Account], now: float) -> AccountLooks:
        numbers = [account.get("id", 0) for account in accounts]
        balances = [
            AccountLevel("balance", account.get("id", 0), account["balance"])
            for account in accounts
            if "balance" in account and not account.get("packageOnly")
        ]
        # Of a list that is old or not whole nobody knows how many are free.
        known = not fleet.cut and judge_age(now - fleet.listed, normal_age(fleet), 0.0) is None
        if not known:
            return AccountLooks(frozenset(numbers), balances, stocks_known=False)
        free = await self._deps.store.read(free_esims, fleet=fleet.id)
        issued = await self._deps.store.read(issued_esims, accounts=numbers, day=int(now) // DAY_SECONDS)
        stocks = [AccountLevel("stock", number, free.get(number, 0), issued.get(number, (0, 0))) for number in numbers]
        return AccountLooks(frozenset(numbers), [*balances, *stocks], stocks_known=True)


def is_listed(fleet: WatchedFleet, now: float) -> bool:
    """Whether the fleet was listed as a whole at least once, by a clock that was not wrong."""
    return 0 < fleet.listed <= now + WRONG_CLOCK_SECONDS


def normal_age(fleet: WatchedFleet) -> float:
    """How old the fleet's list becomes, in seconds, before the next one ends, by the schedule of the fleet itself."""
    return fleet.listing_seconds + max(LIST_EVERY_SECONDS, LISTING_SHARE * fleet.listing_seconds)


def open_quota_alert(connection: Connection, *, deps: Deps, alert: AlertRow, percent: int, period: QuotaPeriod) -> bool:
    """Opens the alert of a quota with its event, once in a period."""
    data: QuotaUse = {
        "period": period.name,
        "limit": int(alert.daily),
        "used": int(alert.level),
        "percent": percent,
        "resets_at": period.reset,
    }
    event_type = QUOTA_80 if alert.kind == "quota_80" else QUOTA_EXCEEDED
    event = new_event(event_type, data, organisation=alert.organisation, ids=deps.ids, now=alert.opened)
    return change_alert(connection, row=alert, change="open", event=event)


def change_alert(connection: Connection, *, row: AlertRow, change: Literal["open", "close"], event: LogEntry) -> bool:
    """Opens or closes the alert and writes the event; False, and no event, where somebody else has done so."""
    changed = open_alert(connection, row=row) if change == "open" else close_alert(connection, row=row)
    if changed:
        log_event(connection, event=event)
    return changed


def record_levels(connection: Connection, *, deps: Deps, known: OrganisationFacts, looks: AccountLooks, now: float) -> int:
    """Keeps what is left on the accounts, and opens and closes their alerts; how many events were written. `now`: Unix seconds."""
    today = int(now) // DAY_SECONDS
    history = dict[tuple[str, str], list[AlertDay]]()
    for day in days_of_alerts(connection, organisation=known.row.id, first=today - MOST_DAYS):
        history.setdefault((day.kind, day.subject), []).append(day)
    written, changed = 0, list[AlertDay]()
    for look in looks.levels:
        former = history.get((look.kind, str(look.account)), [])
        days = add_look(former, known.row.id, look, now)
        changed += days[len(former) - 1 if former else 0 :]
        written += judge_account(connection, deps, known, look, LookHistory(former, days), now)
    put_alert_days(connection, days=changed)
    for (kind, subject), alert in known.alerts.items():
        if kind in ("balance", "stock") and not is_looked_at(looks, kind, subject):
            close_alert(connection, row=alert)
    return written


def is_looked_at(looks: AccountLooks, kind: str, subject: str) -> bool:
    """Whether the account of an alert is there still, as far as that is known."""
    if kind == "stock":
        return not looks.stocks_known or int(subject) in looks.accounts
    return any(look.kind == kind and str(look.account) == subject for look in looks.levels)


def add_look(former: Sequence[AlertDay], organisation: str, look: AccountLevel, now: float) -> list[AlertDay]:
    """The days of an account after a look at it; the last two of them may be others than before. `now`: Unix seconds."""
    today, days = int(now) // DAY_SECONDS, list(former)
    last = days[-1] if days else None
    recent = last is not None and now - last.ended < LOOK_GAP_SECONDS
    drop = max(0.0, last.level - look.level) if last is not None and recent else 0.0
    if last is not None and last.day >= today:
        used = look.issued[0] if look.issued else last.used + drop
        return [*days[:-1], last._replace(ended=max(last.ended, now), level=look.level, used=used)]
    if last is not None and last.day == today - 1 and look.issued:
        days[-1] = last._replace(used=look.issued[1])
    began = max(float(today * DAY_SECONDS), last.ended) if last is not None and recent else now
    used = look.issued[0] if look.issued else drop
    return [*days, AlertDay(organisation, look.kind, str(look.account), today, began, now, look.level, used)]


class LookHistory(NamedTuple):
    """The days of an account before a look, and after it."""

    before: Sequence[AlertDay]
    days: Sequence[AlertDay]


def judge_account(
    connection: Connection, deps: Deps, known: OrganisationFacts, look: AccountLevel, history: LookHistory, now: float
) -> bool:
    """Opens or closes the alert of one account's balance or stock; whether an event was written."""
    alert = known.alerts.get((look.kind, str(look.account)))
    if not (known.settings.balance if look.kind == "balance" else known.settings.stock):
        if alert is not None:
            close_alert(connection, row=alert)
        return False
    state = LevelState() if alert is None else LevelState(alert.opened, alert.daily, alert.topped)
    before = history.before[-1].level if history.before else None
    seen = LevelLook(look.level, before, daily_uses(history.days, int(now) // DAY_SECONDS), complete=True, now=now)
    change, after = judge_level(seen, known.settings, state)
    if change is None:
        if alert is not None and after.topped != alert.topped:
            note_top_up(connection, row=alert, since=after.topped)
        return False
    row = alert or AlertRow(known.row.id, look.kind, str(look.account), now, look.level, after.daily, 0.0)
    return change_alert(connection, row=row, change=change, event=level_event(deps, row, look, seen.uses, change, now))


def level_event(deps: Deps, alert: AlertRow, look: AccountLevel, uses: Sequence[float], change: AlertChange, now: float) -> LogEntry:
    """The event of an account's alert that opens or closes."""
    daily, left = level_figures(look.level, uses)
    use, opened = daily or 0.0, int(alert.opened)
    if look.kind == "stock":
        esims: AccountEsims = {
            "account": look.account,
            "free_esims": int(look.level),
            "daily_use": use,
            "days_left": left,
            "opened": opened,
        }
        return new_event(STOCK_LOW if change == "open" else STOCK_RESTORED, esims, organisation=alert.organisation, ids=deps.ids, now=now)
    money: AccountBalance = {
        "account": look.account,
        "balance": round(look.level, 2),
        "daily_use": use,
        "currency": "EUR",
        "days_left": left,
        "opened": opened,
    }
    return new_event(BALANCE_LOW if change == "open" else BALANCE_RESTORED, money, organisation=alert.organisation, ids=deps.ids, now=now)
