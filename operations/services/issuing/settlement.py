"""Settling by a person what no evidence could: after looking at the charging system, and on their responsibility. Audited."""

from typing import Literal, NamedTuple

from clients.ocs.failure import OcsNotFound
from operations.deps import Deps
from operations.services.issuing.account_stock import is_free
from operations.services.issuing.drawn_esim import DrawnEsim, found_esim
from operations.services.issuing.evidence import Weighed, fit, template_of, weigh
from operations.services.issuing.ledger import settle_failed, settle_issued
from operations.services.issuing.purpose import nothing_drawn
from operations.services.issuing.reconciliation import keep_answer, purpose_of, read_account
from operations.services.issuing.rollback import ROLLED_BACK
from operations.services.issuing.survey import Survey
from operations.services.network.upstream import reach_for
from registry.errors import Conflict, NotFound
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.issuing.intents import end_intent
from storage.issuing.issuance import UNSETTLED, IssuanceRow, find_issuance, holder_of
from storage.issuing.rollbacks import finish_rollback, resume_issued
from storage.issuing.stock import was_returned

Decision = Literal["issued", "failed", "rolled_back", "still_issued"]
OF_ISSUE, OF_ROLLBACK = ("issued", "failed"), ("rolled_back", "still_issued")


class NotSettled(Conflict):
    """The row is not one that waits for a person, or the eSIM is another's."""

    code = "issuance_not_settled"


class Settlement(NamedTuple):
    """What a person decided, and who they are, for the audit log. `esim` is what was drawn."""

    decision: Decision
    by: str
    esim: DrawnEsim | None = None


async def look_around(deps: Deps, row: IssuanceRow) -> Weighed:
    """What the account shows of the draw now, for the person who decides."""
    reading = await read_account(deps, row, Survey(deps))
    return Weighed([], [], []) if reading is None else weigh(row, reading.look, reading.scene, reading.known)


async def look_up(deps: Deps, row: IssuanceRow, iccid: str) -> DrawnEsim:
    """The eSIM that a person says was drawn, as the charging system knows it: of the row's account, with the row's package."""
    upstream = await reach_for(deps, row.organisation)
    try:
        line = await upstream.ocs.subscriber.get_single_subscriber(iccid, by="iccid")
    except OcsNotFound:
        raise NotFound(f"The charging system has no line {iccid} that this organisation could have", param="iccid") from None
    subscriber_id = line.get("subscriberId", 0)
    if line.get("accountId") != row.account_id:
        raise NotSettled(f"The line {iccid} is not of account {row.account_id}, which the eSIM was to be drawn from")
    if is_free(line):
        raise NotSettled(f"The SIM of {iccid} is in stock, so it was not drawn, or was given back")
    packages = (await upstream.ocs.packages.list_packages(subscriber_id)).get("packages", [])
    found = [package for package in packages if template_of(package) == row.template_id]
    shows = [package for package in found if fit(package, row) == "shows"] or found
    package_id = shows[-1].get("subscriberprepaidpackageid") if shows else None
    if package_id is None:
        raise NotSettled(f"The line {iccid} has no package of template {row.template_id}, which was asked for")
    return found_esim(iccid, line.get("sim", {}), subscriber_id=subscriber_id, package_id=package_id)


def settle(connection: Connection, *, deps: Deps, organisation: str, key: str, settlement: Settlement, now: float) -> IssuanceRow:
    """The decision, the key's answer and the audit row, in one transaction. Refused where there is nothing to decide."""
    row = find_issuance(connection, organisation=organisation, key=key)
    if row is None:
        raise NotFound(f"The organisation {organisation} has no issuance {key}", param="key")
    if settlement.decision in OF_ISSUE:
        settle_outcome(connection, deps, row, settlement, now)
    else:
        settle_rollback(connection, row, settlement, now)
    append_line(connection, audit_of(row, deps, settlement, now))
    return find_issuance(connection, organisation=organisation, key=key) or row


def settle_outcome(connection: Connection, deps: Deps, row: IssuanceRow, settlement: Settlement, now: float) -> None:
    """An eSIM was drawn, or none was."""
    if row.state not in UNSETTLED:
        raise NotSettled(f"This issuance is {row.state}; only one whose outcome is unknown is settled as {settlement.decision}")
    purpose, note = purpose_of(connection, deps, row), f"settled by {settlement.by}"
    if settlement.esim is None:
        concluded = settle_failed(
            connection, purpose=purpose, organisation=row.organisation, key=row.key, refusal=nothing_drawn(), now=now, note=note
        )
    else:
        holder = holder_of(connection, iccid=settlement.esim.iccid)
        if holder is not None and not was_returned(connection, stock=row.stock, holder=holder):
            raise NotSettled(f"The eSIM {settlement.esim.iccid} belongs to the issuance {holder.key} of {holder.organisation}")
        concluded = settle_issued(
            connection, purpose=purpose, organisation=row.organisation, key=row.key, esim=settlement.esim, now=now, note=note
        )
    if concluded.unknown:
        raise settled_meanwhile()
    keep_answer(connection, deps, row, concluded)


def settle_rollback(connection: Connection, row: IssuanceRow, settlement: Settlement, now: float) -> None:
    """The eSIM was given back, or it was not."""
    if row.state != "rollback_unknown":
        raise NotSettled(f"This issuance is {row.state}; only one in rollback_unknown is settled as {settlement.decision}")
    note = f"settled by {settlement.by}"
    if settlement.decision == "still_issued":
        settled = resume_issued(connection, organisation=row.organisation, key=row.key, note=note, now=now)
    else:
        settled = finish_rollback(connection, organisation=row.organisation, key=row.key, steps=None, note=note, now=now) is not None
    if not settled:
        raise settled_meanwhile()
    if settlement.decision == "rolled_back" and row.intent is not None:
        end_intent(connection, intent=row.intent, organisation=row.organisation, error=ROLLED_BACK)


def settled_meanwhile() -> NotSettled:
    """Somebody was faster."""
    return NotSettled("This issuance was settled meanwhile; look at it again")


def audit_of(row: IssuanceRow, deps: Deps, settlement: Settlement, now: float) -> Line:
    """Who decided what about which operation's row."""
    return Line(
        now, row.organisation, "cli", row.operation, settlement.by, "", f"settled_{settlement.decision}", 200, 0.0, deps.ids.new("req_")
    )
