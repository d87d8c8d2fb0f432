"""What is known when an episode is over, read from the tables by hand: what is on trial does not judge itself."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set

import orjson

from operations.letters import open_letter
from storage.sealing import Keyring
from tests.harness.history import History, Key, Record
from tests.harness.invariants import Delivery, Ending, IssuedEvent, LedgerRow
from tests.simulation.errands import Errand
from tests.simulation.processor import Processor
from tests.simulation.replica import Outside
from tests.simulation.sales_checker import OrderEnd, SalesEnding
from tests.simulation.shoppers import Bought
from tests.simulation.shops import SUPPORT
from tests.simulation.tenants import Tenants

PAID_BY_THEN = 30_000
"""Seconds after its beginning: an order that is unpaid then stays so in an episode, however often the processor is asked."""
DUE = f"""select (select min(due_ms) from (select due_ms from delivery where state = 0 union all
    select due_ms from storefront_order where status in ('paid', 'failed')
    or (status = 'pending_payment' and due_ms < (created + {PAID_BY_THEN}) * 1000))),
  (select count(*) from issuance where state = 'outcome_unknown')
  + (select count(*) from storefront_order where status = 'needs_review' and due_ms is not null),
  (select count(*) from issuance where state in ('dispatching', 'rollback_pending'))
  + (select count(*) from claim where state in ('claimed', 'dispatching'))
  + (select count(*) from storefront_order where status in ('paid', 'provisioning') or refund in ('owed', 'sending', 'unknown'))"""
ORDERS = """select o.id, o.top_up_of, o.organisation, o.status, o.code, o.refund, o.template_id, o.iccid, o.package_id, i.state, i.iccid
  from storefront_order o left join issuance i on i.organisation = o.organisation and i.key = o.id order by o.id"""
MAILS = "select id, sealed from mail order by id"
LETTERS = {"needs review": "review", "refund failed": "refund", "too late": "late"}
"""What the operator is told, by words of the subject."""
ROW = re.compile(r"(?:onr|tuc)_[0-9a-z]{26}")
EVENTS = "select id, organisation, data from event where type = 'esim.issued' order by id"
LEDGER_ROWS = "select organisation, coalesce(claim_key, key), intent, state, iccid from issuance order by organisation, key"
BUSY = "select key from claim where state in ('claimed', 'dispatching') order by key"
ATTEMPTS = "select delivery_id, outcome from delivery_attempt order by delivery_id, number"
DELIVERIES = "select id, event_id, endpoint_id, state from delivery order by id"


def read_ending(
    outside: Outside,
    tenants: Tenants,
    history: History,
    errands: Sequence[Errand],
    intents: Mapping[str, Key],
    last: Mapping[Key, Record],
    sold: Mapping[Key, frozenset[int]],
    limited: frozenset[Key],
) -> Ending:
    """All that the judge asks for. `sold`: the templates that orders of shops were to draw; `limited`: the keys of agents' calls."""
    raw = outside.disk.raw
    urls = {url: id for id, url in tenants.urls.items()}
    outcomes: dict[str, list[str]] = defaultdict(list)
    for delivery, outcome in raw.execute(ATTEMPTS):
        outcomes[delivery].append(outcome)
    return Ending(
        history=history,
        log=outside.provider.log,
        wanted={errand.name: errand.templates - {0} for errand in errands} | dict(sold),
        last=last,
        rows=[LedgerRow(intents.get(intent, Key(org, key)), state, iccid) for org, key, intent, state, iccid in raw.execute(LEDGER_ROWS)],
        busy=[key for (key,) in raw.execute(BUSY)],
        told=[told_event(id, organisation, orjson.loads(data), intents) for id, organisation, data in raw.execute(EVENTS)],
        deliveries=[Delivery(event, endpoint, state, tuple(outcomes[id])) for id, event, endpoint, state in raw.execute(DELIVERIES)],
        endpoints={tenant.id: list(tenant.endpoints) for tenant in tenants.all},
        disabled={id for (id,) in raw.execute("select id from webhook_endpoint where status = 'disabled'")},
        taken={(receipt.event, urls[receipt.url]) for receipt in outside.receivers.receipts if receipt.taken},
        packages=set(outside.provider.packages),
        sold=frozenset(sold),
        limited=limited,
    )


def told_event(id: str, organisation: str, data: dict[str, str | None], intents: Mapping[str, Key]) -> IssuedEvent:
    """An event, and the key of the call that it tells of."""
    intent, key = data["intent"], data.get("idempotency_key")
    of = intents.get(intent) if intent is not None else None if key is None else Key(organisation, key)
    return IssuedEvent(id, organisation, of, data["iccid"] or "")


def read_orders(outside: Outside) -> list[OrderEnd]:
    """Every order and top-up as it is now."""
    return [OrderEnd(*row) for row in outside.disk.raw.execute(ORDERS)]


def read_sales(outside: Outside, processor: Processor, bought: Mapping[str, Bought], by_hand: Set[str]) -> SalesEnding:
    """All that the judge of sales asks for."""
    raw = outside.disk.raw
    buyers = {each.address: id for id, each in bought.items()}
    told, warned = Counter[str](), Counter[tuple[str, str]]()
    keyring = Keyring(outside.keyring, outside.rng.randbytes)
    for id, sealed in raw.execute(MAILS):
        letter = open_letter(id, sealed, keyring)
        if letter.to == SUPPORT:
            about = next(name for words, name in LETTERS.items() if words in letter.subject)
            warned[about, next(id for id in ROW.findall(letter.text))] += 1
        else:
            told[buyers[letter.to]] += 1
    return SalesEnding(
        rows=read_orders(outside),
        calls=outside.calls,
        processor=processor,
        by_hand=by_hand,
        log=outside.provider.log,
        told=told,
        warned=warned,
        packages=frozenset(outside.provider.packages),
    )
