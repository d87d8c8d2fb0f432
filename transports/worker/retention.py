"""The chore that forgets what has outlived its time."""

from collections.abc import Callable
from functools import partial

from operations.people.browser_sessions import SESSION_IDLE_SECONDS
from registry.clock import Clock
from registry.errors import StoreUnavailable
from registry.policy import quota_period
from storage.account_parts import sweep_parts
from storage.alerts import sweep_alert_days, sweep_quota_alerts
from storage.allowances import sweep_allowances
from storage.approvals import APPROVALS_KEPT_SECONDS, sweep_approvals
from storage.audit import AUDIT_HISTORY, AUDIT_READ_HISTORY, next_reading_organisation, sweep_audit, sweep_audit_reads
from storage.browser_sessions import sweep_browser_sessions
from storage.cdr_events import sweep_call_records
from storage.change_rows import sweep_change_sets
from storage.change_sets import SETS_KEPT_SECONDS
from storage.claims import sweep_claims
from storage.confirm_tokens import sweep_confirm_tokens
from storage.connect_accounts import sweep_connect_states
from storage.deliveries import ATTEMPT_HISTORY, DELIVERY_HISTORY
from storage.engine.partitions import History, drop_old_partitions, rows_kept_from
from storage.engine.store import Store
from storage.engine.sweep import Sweep, sweep_in_steps
from storage.event_log import sweep_event_log
from storage.events import DELIVERIES_OF_OLDER_EVENTS, EVENT_HISTORY, OLDER_DELIVERIES, PENDING_DELIVERIES, sweep_deliveries, sweep_events
from storage.fleet_retention import sweep_ended_fleets, sweep_fleet_history
from storage.former_tokens import sweep_former_tokens
from storage.intents import sweep_intents
from storage.invitations import sweep_invitations
from storage.key_retention import sweep_issuances, sweep_stored_answers
from storage.line_changes import LINE_CHANGES_KEPT_SECONDS, sweep_line_changes
from storage.line_steering import LINE_STEERING_KEPT_SECONDS, sweep_line_steering
from storage.mail import sweep_mails
from storage.mail_notices import sweep_notices
from storage.oauth_clients import sweep_unconsented_clients, sweep_unused_clients
from storage.oauth_tokens import sweep_authorizations, sweep_grants, sweep_refresh_tokens
from storage.order_queue import sweep_pending
from storage.payment_records import sweep_payment_events
from storage.placed_packages import sweep_placed_packages
from storage.quota import sweep_quota_counts
from storage.signing_keys import sweep_signing_keys
from storage.spending import sweep_spending
from storage.stock_snapshots import sweep_stock_snapshots
from storage.verifications import sweep_verifications
from storage.webhook_endpoints import fail_waiting_of_disabled, sweep_subscriptions
from storage.webhook_receivers import sweep_receivers
from transports.settings import HistoryDays
from transports.worker.chores import Chore

RETENTION_LOOK_SECONDS = 60.0
HOUR_SECONDS, DAY_SECONDS = 3600, 86_400
# The processor tells an event again for days, and a person there for weeks.
PAYMENT_EVENTS_SECONDS = 90 * DAY_SECONDS
STOCK_LOOKS_SECONDS = HOUR_SECONDS
ACCOUNT_PARTS_SECONDS = 7 * DAY_SECONDS
# Twice as long as evidence is looked for before a person has to settle a draw.
PLACED_SECONDS = 48 * HOUR_SECONDS
# Twice the window that allowances count.
ALLOWANCES_SECONDS = 2 * HOUR_SECONDS
# The mailer drops what is too late at its next round, and says so; this is for a database that none works on.
MAILS_SECONDS = HOUR_SECONDS
# Twice as many days as count for the median.
ALERT_DAYS_SECONDS = 28 * DAY_SECONDS
# The day of a quota has ended by then.
QUOTA_ALERTS_SECONDS = 2 * DAY_SECONDS
# Longer than the days between two digests, of which the last is remembered here.
MAIL_NOTICES_SECONDS = 7 * DAY_SECONDS
# A call that began before midnight may still give back what it was charged.
CALL_COUNTS_SECONDS = DAY_SECONDS
# What is limited by months is counted until the month has surely ended.
SPENDING_SECONDS = 62 * DAY_SECONDS
GRANTS_SECONDS = INVITATIONS_SECONDS = 30 * DAY_SECONDS
# Longer than any payment that is under way takes to arrive.
UNPAID_ORDERS_SECONDS = 30 * DAY_SECONDS
UNCONSENTED_CLIENTS_SECONDS, UNUSED_CLIENTS_SECONDS = 7 * DAY_SECONDS, 365 * DAY_SECONDS


def retention_chore(store: Store, clock: Clock, report: Callable[[str], None], days: HistoryDays | None = None) -> Chore:
    """What calls and people leave behind, and history as the settings say. `report` is told what could not be removed."""
    fleets = FleetRetention(store)

    async def run() -> None:
        now = clock.now()
        await forget_calls(store, now)
        await forget_history(store, now, days or HistoryDays(), report)
        await forget_visits(store, now)
        await forget_logins(store, now)
        await fleets.forget(now)
        await sweep_in_steps(store, sweep_change_sets, before=now - SETS_KEPT_SECONDS)
        await forget_alert_days(store, now)

    return Chore("retention", RETENTION_LOOK_SECONDS, run)


async def forget_calls(store: Store, now: float) -> None:
    """Looks at stocks, packages, changes of lines, parts of accounts, confirm tokens, claims, receivers, events, unpaid orders,
    approvals."""
    await sweep_in_steps(store, sweep_stock_snapshots, before=now - STOCK_LOOKS_SECONDS)
    await sweep_in_steps(store, sweep_placed_packages, before=now - PLACED_SECONDS)
    await sweep_in_steps(store, sweep_line_steering, before=now - LINE_STEERING_KEPT_SECONDS)
    await sweep_in_steps(store, sweep_line_changes, before=now - LINE_CHANGES_KEPT_SECONDS)
    await store.write(sweep_parts, before=now - ACCOUNT_PARTS_SECONDS)
    await store.write(sweep_confirm_tokens, now=now)
    await sweep_in_steps(store, sweep_claims, before=now)
    await sweep_in_steps(store, sweep_receivers, before=now - DAY_SECONDS)
    await sweep_in_steps(store, sweep_subscriptions, before=now)
    await sweep_in_steps(store, sweep_payment_events, before=now - PAYMENT_EVENTS_SECONDS)
    await sweep_in_steps(store, sweep_pending, before=now - UNPAID_ORDERS_SECONDS)
    await sweep_in_steps(store, sweep_approvals, before=now - APPROVALS_KEPT_SECONDS)


async def forget_history(store: Store, now: float, days: HistoryDays, report: Callable[[str], None]) -> None:
    """The audit log, stored answers, issuances, intents, events, deliveries and call records.

    The keys of all that draws, pays or is billed stay for ever.
    """
    await sweep_in_steps(store, fail_waiting_of_disabled, before=now)
    if days.audit:
        await forget_audit(store, now - days.audit * DAY_SECONDS, report)
    await forget_older(store, partial(sweep_stored_answers, now=now), now, days.answers)
    if days.answers:  # a row of the ledger goes after the answer that tells of it
        await forget_older(store, partial(sweep_issuances, now=now), now, days.issuances)
    await forget_older(store, sweep_intents, now, days.intents)
    if days.deliveries:
        await forget_deliveries(store, now - days.deliveries * DAY_SECONDS, report)
    await forget_older(store, sweep_event_log, now, days.event_log)
    if days.events:
        await forget_events(store, now, now - days.events * DAY_SECONDS, report)
    if days.call_records:
        await sweep_call_records(store, days=days.call_records, now=now)


async def sweep_old_partitions(store: Store, report: Callable[[str], None], history: History, before: float, unless: str = "") -> None:
    """Partitions that are old as a whole; in a later minute where somebody uses the table for long, such as a dump."""
    try:
        await store.write(drop_old_partitions, history=history, before=before, unless=unless)
    except StoreUnavailable as error:
        report(f"old partitions of {history.name} could not be dropped and are tried again in a minute: {error}")


async def forget_audit(store: Store, before: float, report: Callable[[str], None]) -> None:
    """The audit log: whole rows, then reads, one organisation after the other. A month that is a partition goes at once."""
    for history in (AUDIT_HISTORY, AUDIT_READ_HISTORY):
        await sweep_old_partitions(store, report, history, before)
    await sweep_in_steps(store, sweep_audit, before=await store.read(rows_kept_from, history=AUDIT_HISTORY, before=before))
    before_read = await store.read(rows_kept_from, history=AUDIT_READ_HISTORY, before=before)
    organisation = await store.read(next_reading_organisation, after=-1)
    while organisation is not None:
        await sweep_in_steps(store, partial(sweep_audit_reads, organisation=organisation), before=before_read)
        organisation = await store.read(next_reading_organisation, after=organisation)


async def forget_deliveries(store: Store, before: float, report: Callable[[str], None]) -> None:
    """Deliveries that have ended, and their attempts."""
    kept = await store.read(rows_kept_from, history=DELIVERY_HISTORY, before=before)
    if kept == before:
        await sweep_in_steps(store, sweep_deliveries, before=before)
    await sweep_old_partitions(store, report, DELIVERY_HISTORY, before, PENDING_DELIVERIES)
    await sweep_old_partitions(store, report, ATTEMPT_HISTORY, before, OLDER_DELIVERIES)


async def forget_events(store: Store, now: float, before: float, report: Callable[[str], None]) -> None:
    """Events with their deliveries. Where events are partitioned, what each may happen once for is remembered before."""
    kept = await store.read(rows_kept_from, history=EVENT_HISTORY, before=before)
    if kept == before:
        await sweep_in_steps(store, partial(sweep_events, now=now), before=before)
    else:
        await forget_deliveries(store, before, report)
        await sweep_old_partitions(store, report, EVENT_HISTORY, before, DELIVERIES_OF_OLDER_EVENTS)


async def forget_older(store: Store, sweep: Sweep, now: float, days: int) -> None:
    """Removes by `sweep` what is older than `days`; 0: nothing is removed. `now`: Unix seconds."""
    if days:
        await sweep_in_steps(store, sweep, before=now - days * DAY_SECONDS)


async def forget_visits(store: Store, now: float) -> None:
    """Codes that were mailed, what was counted of them, mails and notices, browser sessions, invitations, and what was counted by days."""
    await store.write(sweep_verifications, now=now)
    await sweep_in_steps(store, sweep_allowances, before=now - ALLOWANCES_SECONDS)
    await sweep_in_steps(store, sweep_mails, before=now - MAILS_SECONDS)
    await sweep_in_steps(store, sweep_notices, before=now - MAIL_NOTICES_SECONDS)
    await store.write(sweep_browser_sessions, now=now, idle=now - SESSION_IDLE_SECONDS)
    await store.write(sweep_invitations, before=now - INVITATIONS_SECONDS)
    await store.write(sweep_quota_counts, before=quota_period(now - CALL_COUNTS_SECONDS).name)
    await store.write(sweep_spending, before=quota_period(now - SPENDING_SECONDS).name)


async def forget_alert_days(store: Store, now: float) -> None:
    """What was left on accounts by days, and alerts of quotas whose day has ended."""
    await sweep_in_steps(store, sweep_alert_days, before=now - ALERT_DAYS_SECONDS)
    await sweep_in_steps(store, sweep_quota_alerts, before=now - QUOTA_ALERTS_SECONDS)


async def forget_logins(store: Store, now: float) -> None:
    """What programs were let do, from the request to the grant, the programs that nobody uses, and replaced own tokens."""
    await store.write(sweep_authorizations, now=now)
    await store.write(sweep_connect_states, now=now)
    await store.write(sweep_refresh_tokens, now=now)
    await store.write(sweep_grants, before=now - GRANTS_SECONDS)
    await store.write(sweep_unconsented_clients, before=now - UNCONSENTED_CLIENTS_SECONDS)
    await store.write(sweep_unused_clients, before=now - UNUSED_CLIENTS_SECONDS, now=now)
    await store.write(sweep_signing_keys, now=now)
    await store.write(sweep_former_tokens, now=now)


class FleetRetention:
    """What goes of the read model of fleets: what has ended each minute, what has become old each hour."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked: float | None = None

    async def forget(self, now: float) -> None:
        """One round. `now`: Unix seconds."""
        await sweep_ended_fleets(self._store, now)
        if self._looked is None or not 0 <= now - self._looked < HOUR_SECONDS:
            await sweep_fleet_history(self._store, now)
            self._looked = now
