"""The chore that forgets what has outlived its time."""

from collections.abc import Callable
from functools import partial

from operations.services.people.browser_sessions import IDLE
from registry.clock import Clock
from registry.errors import StoreUnavailable
from registry.policy import period_of
from storage.calls.allowances import sweep_allowances
from storage.calls.audit import sweep_audit
from storage.calls.audit_reads import next_organisation, sweep_reads
from storage.calls.claims import sweep_claims
from storage.calls.confirm import sweep_tokens
from storage.calls.expired_keys import sweep_answers
from storage.calls.quota import sweep_counts
from storage.issuing.intents import sweep_intents
from storage.issuing.issuance import sweep_issuances
from storage.issuing.placed import sweep_placed
from storage.issuing.stock import sweep_looks
from storage.mail import sweep_mails
from storage.money.connect_states import sweep_states
from storage.money.payment_events import sweep_payment_events
from storage.money.record_removal import sweep_call_records
from storage.network.account_parts import sweep_parts
from storage.partitions import ATTEMPT, AUDIT, AUDIT_READ, DELIVERY, EVENT, History, drop_old, kept_from
from storage.people.authorizations import sweep_authorizations
from storage.people.browser_sessions import sweep_sessions
from storage.people.former_tokens import sweep_former_tokens
from storage.people.oauth_clients import sweep_clients
from storage.people.refresh_tokens import sweep_refresh_tokens
from storage.people.signing_keys import sweep_signing_keys
from storage.people.sweeps import sweep_grants, sweep_invitations, sweep_unused_clients
from storage.people.verifications import sweep_verifications
from storage.shop.order_queue import sweep_pending
from storage.store import Store
from storage.sweep import Sweep, swept
from storage.webhooks.deliveries import give_up_rest
from storage.webhooks.event_removal import (
    DELIVERIES_OF_OLDER_EVENTS,
    OLDER_DELIVERIES,
    PENDING_DELIVERIES,
    sweep_deliveries,
    sweep_events,
)
from storage.webhooks.receivers import sweep_receivers
from transports.chores import Chore
from transports.history_days import HistoryDays

EVERY_SECONDS = 60.0
HOUR, DAY = 3600, 86_400
# The processor tells an event again for days, and a person there for weeks.
PAYMENT_EVENTS_SECONDS = 90 * DAY
LOOKS_SECONDS = HOUR
ACCOUNT_PARTS_SECONDS = 7 * DAY
# Twice as long as evidence is looked for before a person has to settle a draw.
PLACED_SECONDS = 48 * HOUR
# Twice the window that allowances count.
ALLOWANCES_SECONDS = 2 * HOUR
# A postman drops what is too late at its next round, and says so; this is for a database that none works on.
MAILS_SECONDS = HOUR
# A call that began before midnight may still give back what it was charged.
COUNTS_SECONDS = DAY
GRANTS_SECONDS = INVITATIONS_SECONDS = 30 * DAY
# Longer than any payment that is under way takes to arrive.
UNPAID_ORDERS_SECONDS = 30 * DAY
STILLBORN_CLIENTS_SECONDS, UNUSED_CLIENTS_SECONDS = 7 * DAY, 365 * DAY


def retention(store: Store, clock: Clock, report: Callable[[str], None], days: HistoryDays | None = None) -> Chore:
    """What calls and people leave behind, and history as the settings say. `report` is told what could not be removed."""

    async def run() -> None:
        now = clock.now()
        await forget_calls(store, now)
        await forget_history(store, now, days or HistoryDays(), report)
        await forget_visits(store, now)
        await forget_logins(store, now)

    return Chore("retention", EVERY_SECONDS, run)


async def forget_calls(store: Store, now: float) -> None:
    """Looks at stocks, placed packages, parts of accounts, confirm tokens, claims, receivers, the processor's events and unpaid orders."""
    await swept(store, sweep_looks, before=now - LOOKS_SECONDS)
    await swept(store, sweep_placed, before=now - PLACED_SECONDS)
    await store.write(sweep_parts, before=now - ACCOUNT_PARTS_SECONDS)
    await store.write(sweep_tokens, now=now)
    await swept(store, sweep_claims, before=now)
    await swept(store, sweep_receivers, before=now - DAY)
    await swept(store, sweep_payment_events, before=now - PAYMENT_EVENTS_SECONDS)
    await swept(store, sweep_pending, before=now - UNPAID_ORDERS_SECONDS)


async def forget_history(store: Store, now: float, days: HistoryDays, report: Callable[[str], None]) -> None:
    """The audit log, stored answers, issuances, intents, events, deliveries and call records.

    The keys of all that draws, pays or is billed stay for ever.
    """
    await swept(store, give_up_rest, before=now)
    if days.audit:
        await forget_audit(store, now - days.audit * DAY, report)
    await forget_older(store, partial(sweep_answers, now=now), now, days.answers)
    if days.answers:  # a row of the ledger goes after the answer that tells of it
        await forget_older(store, partial(sweep_issuances, now=now), now, days.issuances)
    await forget_older(store, sweep_intents, now, days.intents)
    if days.deliveries:
        await forget_deliveries(store, now - days.deliveries * DAY, report)
    if days.events:
        await forget_events(store, now, now - days.events * DAY, report)
    if days.call_records:
        await sweep_call_records(store, days=days.call_records, now=now)


async def drop(store: Store, report: Callable[[str], None], history: History, before: float, unless: str = "") -> None:
    """Partitions that are old as a whole; in a later minute where somebody uses the table for long, such as a dump."""
    try:
        await store.write(drop_old, history=history, before=before, unless=unless)
    except StoreUnavailable as error:
        report(f"old partitions of {history.name} could not be dropped and are tried again in a minute: {error}")


async def forget_audit(store: Store, before: float, report: Callable[[str], None]) -> None:
    """The audit log: whole rows, then reads, one organisation after the other. A month that is a partition goes at once."""
    for history in (AUDIT, AUDIT_READ):
        await drop(store, report, history, before)
    await swept(store, sweep_audit, before=await store.read(kept_from, history=AUDIT, before=before))
    before_read = await store.read(kept_from, history=AUDIT_READ, before=before)
    organisation = await store.read(next_organisation, after=-1)
    while organisation is not None:
        await swept(store, partial(sweep_reads, organisation=organisation), before=before_read)
        organisation = await store.read(next_organisation, after=organisation)


async def forget_deliveries(store: Store, before: float, report: Callable[[str], None]) -> None:
    """Deliveries that have ended, and their attempts."""
    kept = await store.read(kept_from, history=DELIVERY, before=before)
    if kept == before:
        await swept(store, sweep_deliveries, before=before)
    await drop(store, report, DELIVERY, before, PENDING_DELIVERIES)
    await drop(store, report, ATTEMPT, before, OLDER_DELIVERIES)


async def forget_events(store: Store, now: float, before: float, report: Callable[[str], None]) -> None:
    """Events with their deliveries. Where events are partitioned, what each may happen once for is remembered before."""
    kept = await store.read(kept_from, history=EVENT, before=before)
    if kept == before:
        await swept(store, partial(sweep_events, now=now), before=before)
    else:
        await forget_deliveries(store, before, report)
        await drop(store, report, EVENT, before, DELIVERIES_OF_OLDER_EVENTS)


async def forget_older(store: Store, sweep: Sweep, now: float, days: int) -> None:
    """What is older than so many days; nothing where it is kept for ever."""
    if days:
        await swept(store, sweep, before=now - days * DAY)


async def forget_visits(store: Store, now: float) -> None:
    """Codes that were mailed, what was counted of them, mails, browser sessions, invitations, and what was counted by days."""
    await store.write(sweep_verifications, now=now)
    await swept(store, sweep_allowances, before=now - ALLOWANCES_SECONDS)
    await swept(store, sweep_mails, before=now - MAILS_SECONDS)
    await store.write(sweep_sessions, now=now, idle=now - IDLE)
    await store.write(sweep_invitations, before=now - INVITATIONS_SECONDS)
    await store.write(sweep_counts, before=period_of(now - COUNTS_SECONDS).name)


async def forget_logins(store: Store, now: float) -> None:
    """What programs were let do, from the request to the grant, the programs that nobody uses, and replaced own tokens."""
    await store.write(sweep_authorizations, now=now)
    await store.write(sweep_states, now=now)
    await store.write(sweep_refresh_tokens, now=now)
    await store.write(sweep_grants, before=now - GRANTS_SECONDS)
    await store.write(sweep_clients, before=now - STILLBORN_CLIENTS_SECONDS)
    await store.write(sweep_unused_clients, before=now - UNUSED_CLIENTS_SECONDS, now=now)
    await store.write(sweep_signing_keys, now=now)
    await store.write(sweep_former_tokens, now=now)
