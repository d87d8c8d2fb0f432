"""When all is over: what the charging system's log, the database and the receivers say, put before the simulation's checker."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook

from tests.kill.errands import Errand, number_of
from tests.kill.network import CHANGE, DELETE, DRAW, Drawn, Network
from tests.kill.stage import Stage, Tenant, iccid_of
from tests.simulation.history import Delivery, Ending, History, Key, Told, check
from tests.simulation.provider import Dispatch

UNDER_WAY = {
    "claims": "select count(*) from claim where state in ('claimed', 'dispatching')",
    "draws": "select count(*) from issuance where state in ('dispatching', 'outcome_unknown')",
    "roll-backs": "select count(*) from issuance where state = 'rollback_pending'",
    "deliveries": "select count(*) from delivery where state = 0",
}


async def judge(stage: Stage, errands: Sequence[Errand], history: History) -> list[str]:
    """What a run broke of our promises; empty when all held."""
    network = stage.network
    await network.look()
    drawn, mine = await dispatches(network), {errand.number for errand in errands}
    await note_released(network, history)
    tenants = stage.tenants
    ending = Ending(
        records=history.records,
        log=[entry for entry in drawn if entry.days in mine],
        key_of={errand.number: errand.name for errand in errands},
        told=told(stage),
        deliveries=[Delivery(*row) for row in stage.rows("select event_id, endpoint_id, state from delivery")],
        endpoints={tenant.id: [tenant.endpoint] for tenant in tenants},
        disabled=set(),
        taken={(event, tenant.endpoint) for tenant in tenants for event in tenant.receiver.ids()},
    )
    broken = check(ending) + [f"{what} still under way: {count}" for what, count in under_way(stage).items() if count]
    broken += [f"{errand.name}: {len(errand.bodies)} different final answers" for errand in errands if len(errand.bodies) > 1]
    sent = {entry.days for entry in drawn}
    broken += [
        f"{errand.name}: succeeded, and nothing was sent" for errand in errands if errand.decided == "ok" and errand.number not in sent
    ]
    broken += [line for tenant in tenants for line in forged(tenant)]
    return broken + await rollbacks_of(stage, drawn)


def forged(tenant: Tenant) -> list[str]:
    """Deliveries that say something else the second time, or are not signed: by the time of the service, which is ahead of ours."""
    bodies, broken = dict[str, bytes](), list[str]()
    for headers, body in tenant.receiver.posts:
        event = headers["webhook-id"]
        signed = Webhook(tenant.signed_with).sign(event, datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC), body.decode())
        if signed not in headers["webhook-signature"].split(" ") or bodies.setdefault(event, body) != body:
            broken.append(f"{event}: a delivery with another body, or without its signature")
    return broken


def under_way(stage: Stage) -> dict[str, int]:
    """What has not ended."""
    return {what: stage.number(statement) for what, statement in UNDER_WAY.items()}


def told(stage: Stage) -> list[Told]:
    """The events."""
    rows = stage.rows("select id, organisation, data from event where type = 'esim.issued' order by id")
    return [Told(id, organisation, iccid_of(data)) for id, organisation, data in rows]


async def dispatches(network: Network) -> list[Dispatch]:
    """Every draw that reached the charging system, with the ICCID it had."""
    found: list[Dispatch] = []
    for call in await network.calls(DRAW):
        asked = call["payload"]
        drawn = Drawn(asked["accountForSubs"], asked["packageTemplateId"], asked.get("validityPeriod"))
        done = call["code"] == 0 and "drop_before" not in call["faults"]
        # With two draws of one key two lines would be seen, and each is an effect; one of which no line is seen has its own name.
        for iccid in sorted(network.given[drawn] or {f"unseen-{call['number']}"}) if done else [None]:
            found.append(Dispatch(0.0, DRAW, drawn.account, drawn.template, number_of(drawn), done, iccid, None, None, call["code"]))
    return found


async def note_released(network: Network, history: History) -> None:
    """Whoever is back in stock may be drawn by the next one."""
    nobody = Key("", "")
    for call in await network.calls(CHANGE):
        if call["code"] == 0:
            history.add(0.0, "released", 0, CHANGE, nobody, network.sims[call["payload"]["simId"]])


async def rollbacks_of(stage: Stage, log: Sequence[Dispatch]) -> list[str]:
    """A package is removed once, a SIM is freed once per draw, and an unknown roll-back is never gone on with."""
    network = stage.network
    deleted = Counter(call["payload"] for call in await network.calls(DELETE))
    broken = [f"package {package} was deleted {count} times" for package, count in deleted.items() if count > 1]
    drawn = Counter(entry.iccid for entry in log if entry.iccid is not None)
    freed = Counter(network.sims[call["payload"]["simId"]] for call in await network.calls(CHANGE))
    broken += [f"{iccid} was freed {count} times and drawn {drawn[iccid]} times" for iccid, count in freed.items() if count > drawn[iccid]]
    gone = stage.rows("select key, package_id from issuance where state = 'rolled_back'")
    return broken + [f"{key} counts as rolled back, and its package was never deleted" for key, package in gone if not deleted[package]]
