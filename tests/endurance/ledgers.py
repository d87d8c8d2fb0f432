"""When the load is over: every ledger of the database against what callers, receivers, the network and the processor saw."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx

from tests.cdr.records import Raw, added_up
from tests.endurance.people import Member, ShopOwner
from tests.endurance.tally import Tally
from tests.harness.tenant_stage import TenantStage
from tests.kill.dispatches import took_effect

RAW = "select event, iccid, occurred_at, bytes_up, bytes_down, network, country from cdr_event where organisation = '{}'"
SUMS = """select month, iccid, bytes_up, bytes_down, bytes_total, events, network, country from cdr_sum
  where organisation = '{}' order by month, iccid"""
MONTHS = "select month, bytes_total from cdr_month where organisation = '{}' order by month"
PERIODS = "select month from invoice_period where organisation = '{}' order by month"
INVOICES = """select i.id, i.number, i.subtotal_cents, i.tax_cents, i.platform_fee_cents, i.total_cents, i.lines, count(l.position),
  coalesce(sum(l.amount_cents), 0) from invoice i left join invoice_line l on l.invoice = i.id where i.organisation = '{}'
  group by i.id, i.number, i.subtotal_cents, i.tax_cents, i.platform_fee_cents, i.total_cents, i.lines order by i.id"""
AUDITED = """select organisation, operation, count(*) from (
  select organisation, operation, outcome from audit union all
  select whose.text, what.text, how.text from audit_read r join audit_name whose on whose.id = r.organisation
  join audit_name what on what.id = r.operation join audit_name how on how.id = r.outcome) as whole
  where outcome = 'ok' group by organisation, operation"""
ORDERS = """select o.id, o.status, o.refund, o.iccid, i.state, i.iccid, o.paid_amount from storefront_order o
  left join issuance i on i.organisation = o.organisation and i.key = o.id where o.organisation = '{}' order by o.id"""
HELD = ("issued", "rollback_pending", "rollback_unknown")
DECIDED = ("pending_payment", "ready", "failed", "needs_review")


def of_the_crowd(stage: TenantStage, members: Sequence[Member], tally: Tally) -> Iterator[str]:
    """What holds as soon as the servers have ended in order: quota, audit, claims, call records, invoices."""
    used: Mapping[str, int] = dict(stage.rows("select organisation, sum(used) from quota group by organisation"))
    audited = {(org, operation): count for org, operation, count in stage.rows(AUDITED)}
    for member in members:
        if int(used.get(member.id, 0)) != tally.charged[member.id]:
            yield f"{member.id}: the quota says {used.get(member.id, 0)}, {tally.charged[member.id]} calls count"
        yield from of_claims(stage, member)
        yield from of_records(stage, member)
        yield from of_invoices(stage, member, tally.done[member.id, "create_invoice"])
    for (organisation, operation), count in sorted(tally.done.items()):
        if audited.get((organisation, operation), 0) != count:
            yield f"{operation} of {organisation}: {audited.get((organisation, operation), 0)} audit rows, {count} calls were carried out"


def of_claims(stage: TenantStage, member: Member) -> Iterator[str]:
    """One eSIM and one event for each key that was answered, and no key is under way."""
    where = f"where organisation = '{member.id}'"
    open_claims = stage.number(f"select count(*) from claim {where} and state <> 'done'")
    if open_claims:
        yield f"{member.id}: {open_claims} keys are under way"
    claims = {key for (key,) in stage.rows(f"select key from claim {where} and operation = 'create_connectivity_intent'")}
    if claims != member.made:
        yield f"{member.id}: {len(claims)} keys of intents are kept, {len(member.made)} were answered"
    intents = stage.number(f"select count(*) from intent {where}")
    told = stage.rows(f"select intent, count(*) from event {where} and type = 'esim.issued' group by intent")
    if intents != len(member.made) or len(told) != intents or any(count != 1 for _, count in told):
        yield f"{member.id}: {len(member.made)} keys made {intents} intents, of which {len(told)} were told of"


def of_records(stage: TenantStage, member: Member) -> Iterator[str]:
    """Each record once, and its sums to the byte."""
    raw = [Raw(*row) for row in stage.rows(RAW.format(member.id))]
    if {row.event for row in raw} != {f"cdr-{number}" for number in member.records}:
        yield f"{member.id}: {len(raw)} call records are kept, {len(member.records)} were taken"
    sums, months, periods = added_up(raw)
    if [tuple(row) for row in sums] != [tuple(row) for row in stage.rows(SUMS.format(member.id))]:
        yield f"{member.id}: the sums of SIMs are not those of the records"
    if [tuple(row) for row in months] != [tuple(row) for row in stage.rows(MONTHS.format(member.id))]:
        yield f"{member.id}: the sums of months are not those of the records"
    if periods != [month for (month,) in stage.rows(PERIODS.format(member.id))]:
        yield f"{member.id}: the periods are not the months that have records"


def of_invoices(stage: TenantStage, member: Member, made: int) -> Iterator[str]:
    """Lines add up to the cent, and numbers have no gap."""
    rows = stage.rows(INVOICES.format(member.id))
    for id, _, subtotal, tax, fee, total, lines, there, summed in rows:
        if (lines, subtotal) != (there, summed) or total != subtotal + tax + fee:
            yield f"{id}: {there} of {lines} lines come to {summed}, subtotal {subtotal}, tax {tax}, fee {fee}, total {total}"
    numbers = sorted(int(number.rsplit("-", 1)[1]) for _, number, *_ in rows)
    if numbers != list(range(1, made + 1)):
        yield f"{member.id}: {made} invoices were made, and numbered {numbers[:3]}..{numbers[-3:]}"


def of_deliveries(stage: TenantStage, members: Sequence[Member]) -> Iterator[str]:
    """Each event reaches each endpoint: taken once, or once more after an answer that was lost on its way."""
    outcomes: defaultdict[str, list[str]] = defaultdict(list)
    for delivery, outcome in stage.rows("select delivery_id, outcome from delivery_attempt order by delivery_id, number"):
        outcomes[delivery].append(outcome)
    for member in members:
        events = {id for (id,) in stage.rows(f"select id from event where organisation = '{member.id}'")}
        for endpoint, receiver in member.endpoints.items():
            rows = stage.rows(f"select event_id, id, state from delivery where endpoint_id = '{endpoint}'")
            if {event for event, _, _ in rows} != events or len(rows) != len(events):
                yield f"{endpoint}: {len(rows)} deliveries of {len(events)} events"
            for event, id, state in rows:
                tried = outcomes[id]
                if state != 1 or tried[-1] != "ok" or "ok" in tried[:-1] or not receiver.taken[event]:
                    yield f"{event} for {endpoint}: state {state} after {tried}, taken {receiver.taken[event]} times"
                elif receiver.taken[event] > 1 and len(tried) < receiver.taken[event] + receiver.refused[event]:
                    yield f"{event} for {endpoint}: taken {receiver.taken[event]} times in {len(tried)} tries"
            if set(receiver.taken) - events:
                yield f"{endpoint}: took {len(set(receiver.taken) - events)} events of others"
            yield from receiver.broken


def of_orders(
    stage: TenantStage, seller: ShopOwner, sold: Mapping[int, Mapping[str, Any]], charges: Sequence[Mapping[str, Any]], visits: int
) -> Iterator[str]:
    """What was paid has its eSIM once, or its money back, or is seen by a person."""
    rows = stage.rows(ORDERS.format(seller.id))
    paid = [row for row in rows if row[1] != "pending_payment"]
    taken = [charge for charge in charges if charge["status"] == "succeeded"]
    if len(paid) != len(taken) or len(taken) < visits:
        yield f"{visits} buyers paid, the processor has {len(taken)} charges, {len(paid)} orders count as paid"
    for id, status, refund, iccid, ledger, drawn, _ in rows:
        if status not in DECIDED:
            yield f"{id}: still {status}"
        if status == "ready" and (ledger not in HELD or iccid != drawn):
            yield f"{id}: ready with {iccid}, the ledger says {ledger} {drawn}"
        if (status == "failed") != (refund is not None):
            yield f"{id}: {status}, and its refund is {refund}"
    holders = Counter(iccid for _, status, _, iccid, _, _, _ in rows if status == "ready")
    yield from (f"{iccid}: {count} orders have it" for iccid, count in holders.items() if count > 1)
    ready, unsure = (sum(row[1] == status for row in rows) for status in ("ready", "needs_review"))
    effects = sum(took_effect(call) for call in sold.values())
    sent = sum(call["code"] != 100 for call in sold.values())
    if sent > len(paid) or not ready <= effects <= ready + unsure:
        yield f"{len(paid)} orders were paid, {sent} draws were sent, {effects} took effect; {ready} are ready, {unsure} unknown"
    returned = sum(row[2] == "done" for row in rows)
    back = sum(charge["amount_refunded"] > 0 for charge in taken)
    if returned != back:
        yield f"{returned} orders count as refunded, the processor gave {back} back"


async def charges_of(processor: httpx.AsyncClient, seller: ShopOwner, key: str) -> Sequence[Mapping[str, Any]]:
    """Every charge of the shop's account, as the processor has it."""
    found: list[Mapping[str, Any]] = []
    headers = {"Authorization": f"Bearer {key}", "Stripe-Account": seller.payee}
    while True:
        after = {"starting_after": str(found[-1]["id"])} if found else {}
        answer = (await processor.get("/v1/charges", params={"limit": "100", **after}, headers=headers)).json()
        found += answer["data"]
        if not answer["has_more"]:
            return found
