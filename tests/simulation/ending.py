"""What is known when an episode is over, read from the tables by hand: what is on trial does not judge itself."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import orjson

from tests.simulation.checker import Delivery, Ending, Row, Told
from tests.simulation.errands import Errand
from tests.simulation.history import History, Key, Record
from tests.simulation.replica import Outside
from tests.simulation.tenants import Tenants

DUE = """select (select min(due_ms) from delivery where state = 0),
  (select count(*) from issuance where state = 'outcome_unknown'),
  (select count(*) from issuance where state in ('dispatching', 'rollback_pending'))
  + (select count(*) from claim where state in ('claimed', 'dispatching'))"""
EVENTS = "select id, organisation, data from event where type = 'esim.issued' order by id"
ROWS = "select organisation, coalesce(claim_key, key), intent, state, iccid from issuance order by organisation, key"
BUSY = "select key from claim where state in ('claimed', 'dispatching') order by key"
ATTEMPTS = "select delivery_id, outcome from delivery_attempt order by delivery_id, number"
DELIVERIES = "select id, event_id, endpoint_id, state from delivery order by id"


def read_ending(
    outside: Outside, tenants: Tenants, history: History, errands: Sequence[Errand], intents: Mapping[str, Key], last: Mapping[Key, Record]
) -> Ending:
    """All that the judge asks for."""
    raw = outside.disk.raw
    urls = {url: id for id, url in tenants.urls.items()}
    outcomes: dict[str, list[str]] = defaultdict(list)
    for delivery, outcome in raw.execute(ATTEMPTS):
        outcomes[delivery].append(outcome)
    return Ending(
        history=history,
        log=outside.provider.log,
        wanted={errand.name: errand.templates - {0} for errand in errands},
        last=last,
        rows=[Row(intents.get(intent, Key(org, key)), state, iccid) for org, key, intent, state, iccid in raw.execute(ROWS)],
        busy=[key for (key,) in raw.execute(BUSY)],
        told=[told(id, organisation, orjson.loads(data), intents) for id, organisation, data in raw.execute(EVENTS)],
        deliveries=[Delivery(event, endpoint, state, tuple(outcomes[id])) for id, event, endpoint, state in raw.execute(DELIVERIES)],
        endpoints={tenant.id: list(tenant.endpoints) for tenant in tenants.all},
        disabled={id for (id,) in raw.execute("select id from webhook_endpoint where status = 'disabled'")},
        taken={(receipt.event, urls[receipt.url]) for receipt in outside.receivers.receipts if receipt.taken},
        packages=set(outside.provider.packages),
    )


def told(id: str, organisation: str, data: dict[str, str | None], intents: Mapping[str, Key]) -> Told:
    """An event, and the key of the call that it tells of."""
    intent, key = data["intent"], data.get("idempotency_key")
    of = intents.get(intent) if intent is not None else None if key is None else Key(organisation, key)
    return Told(id, organisation, of, data["iccid"] or "")
