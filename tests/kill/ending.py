"""When all is over: what the charging system's log, the database and the receivers say, put before the simulation's checker."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime

import orjson
from standardwebhooks import Webhook

from tests.harness.history import History, Key
from tests.harness.invariants import Delivery, Ending, IssuedEvent, LedgerRow, broken_promises, by_key
from tests.harness.tenant_stage import Tenant, TenantStage
from tests.kill.dispatches import dispatches
from tests.kill.errands import KilledErrand
from tests.kill.mails import broken_mails, mail_ending
from tests.network_facts import CHANGE, DELETE, DRAW
from tests.simulation.ending import ATTEMPTS, BUSY, DELIVERIES, EVENTS, LEDGER_ROWS, told_event
from tests.simulation.provider import Dispatch

UNDER_WAY = {
    "claims": "select count(*) from claim where state in ('claimed', 'dispatching')",
    "draws": "select count(*) from issuance where state in ('dispatching', 'outcome_unknown')",
    "roll-backs": "select count(*) from issuance where state = 'rollback_pending'",
    "events": "select count(*) from event_log where position is null",
    "deliveries": "select count(*) from delivery where state = 0",
}


async def judge(
    stage: TenantStage, errands: Sequence[KilledErrand], history: History, *, look: Callable[[], Awaitable[None]] | None = None
) -> list[str]:
    """What a run broke of our promises; empty when all held. Every key was asked once more, and nothing after that.

    Others may use the database: what is judged is of the stage's organisations.
    """
    await (look or stage.network.look)()
    ending = await read_ending(stage, errands, history)
    broken = broken_promises(ending) + [f"{what} still under way: {count}" for what, count in under_way(stage).items() if count]
    broken += [f"{errand.name}: {len(errand.bodies)} different final answers" for errand in errands if len(errand.bodies) > 1]
    broken += [line for tenant in stage.tenants for line in forged(tenant)]
    broken += [line for tenant in stage.tenants for line in lost_of_log(stage, tenant)]
    broken += [] if stage.mails is None else broken_mails(mail_ending(stage))
    return broken + rollbacks_of(stage, ending.log)


async def read_ending(stage: TenantStage, errands: Sequence[KilledErrand], history: History) -> Ending:
    """All that the judge asks for."""
    network, tenants = stage.network, stage.tenants
    ours = {tenant.id for tenant in tenants}
    answers = by_key(history.records)
    intents = {errand.ledger_key: errand.name for errand in errands if errand.product is not None and errand.ledger_key is not None}
    return Ending(
        history=history,
        log=dispatches(network, errands, stage.since),
        wanted={errand.name: frozenset({errand.asks.template}) for errand in errands},
        last={errand.name: answers[errand.name][-1] for errand in errands},
        rows=[
            LedgerRow(intents.get(intent, Key(org, key)), state, iccid)
            for org, key, intent, state, iccid in stage.rows(LEDGER_ROWS)
            if org in ours
        ],
        busy=[key for (key,) in stage.rows(BUSY)],
        told=told_of(stage, intents),
        deliveries=deliveries(stage),
        endpoints={tenant.id: [tenant.endpoint] for tenant in tenants},
        disabled=set(),
        taken={(event, tenant.endpoint) for tenant in tenants for event in tenant.receiver.ids()},
        packages=await network.packages(),
    )


def told_of(stage: TenantStage, intents: Mapping[str, Key]) -> list[IssuedEvent]:
    ours = {tenant.id for tenant in stage.tenants}
    return [
        told_event(id, organisation, orjson.loads(data), intents) for id, organisation, data in stage.rows(EVENTS) if organisation in ours
    ]


def deliveries(stage: TenantStage) -> list[Delivery]:
    outcomes: defaultdict[str, list[str]] = defaultdict(list)
    for delivery, outcome in stage.rows(ATTEMPTS):
        outcomes[delivery].append(outcome)
    ours = {tenant.endpoint for tenant in stage.tenants}
    return [
        Delivery(event, endpoint, state, tuple(outcomes[id])) for id, event, endpoint, state in stage.rows(DELIVERIES) if endpoint in ours
    ]


LOGGED = "select organisation, id, type, line, position, line_number from event_log order by arrival"


def lost_of_log(stage: TenantStage, tenant: Tenant) -> list[str]:
    """What the log of an organisation, or who has chosen all of it, is without: a place, a number, or an event at all."""
    rows = [row[1:] for row in stage.rows(LOGGED) if row[0] == tenant.id]
    places = sorted(-1 if position is None else position for _, _, _, position, _ in rows)
    broken = [] if places == list(range(1, len(rows) + 1)) else [f"{tenant.id}: its log has the places {places}"]
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for _, type, line, _, number in sorted(rows, key=lambda row: row[3] or 0):
        if type.startswith("line."):
            numbers[line].append(number)
    broken += [f"{line}: its events are numbered {found}" for line, found in numbers.items() if found != list(range(1, len(found) + 1))]
    told = tenant.subscribed.ids()
    broken += [f"{event} ({type}) was never sent to who has chosen it" for event, type, _, _, _ in rows if event not in told]
    issued = {event for event, type, *_ in rows if type == "esim.issued"}
    broken += [
        f"{event}: esim.issued is not in the log" for event in tenant.receiver.ids() if event not in issued and is_issued(tenant, event)
    ]
    return broken


def is_issued(tenant: Tenant, event: str) -> bool:
    """Whether what was delivered under this id is an esim.issued."""
    return any(headers["webhook-id"] == event and b'"esim.issued"' in body for headers, body in tenant.receiver.posts)


def forged(tenant: Tenant) -> list[str]:
    """Deliveries that say something else the second time, or are not signed: by the time of the service, which is ahead of ours."""
    bodies, broken = dict[str, bytes](), list[str]()
    for headers, body in tenant.receiver.posts:
        event = headers["webhook-id"]
        signed = Webhook(tenant.signed_with).sign(event, datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC), body.decode())
        if signed not in headers["webhook-signature"].split(" ") or bodies.setdefault(event, body) != body:
            broken.append(f"{event}: a delivery with another body, or without its signature")
    return broken


def under_way(stage: TenantStage) -> dict[str, int]:
    return {what: stage.number(statement) for what, statement in UNDER_WAY.items()}


def rollbacks_of(stage: TenantStage, log: Sequence[Dispatch]) -> list[str]:
    """A package is removed once, a SIM is freed once per draw, and an unknown roll-back is never gone on with."""
    deleted = Counter(entry.package for entry in log if entry.method == DELETE)
    broken = [f"package {package} was deleted {count} times" for package, count in deleted.items() if count > 1]
    drawn = Counter(entry.iccid for entry in log if entry.method == DRAW)
    freed = Counter(entry.iccid for entry in log if entry.method == CHANGE)
    broken += [f"{iccid} was freed {count} times and drawn {drawn[iccid]} times" for iccid, count in freed.items() if count > drawn[iccid]]
    gone = stage.rows("select key, package_id from issuance where state = 'rolled_back'")
    return broken + [f"{key} counts as rolled back, and its package was never deleted" for key, package in gone if not deleted[package]]
