"""Settling by a person what no evidence could: after looking at the charging system, and on their responsibility. Audited."""

from typing import Literal, NamedTuple

from clients.ocs.outcome import OcsNotFound
from operations.deps import Deps
from operations.ledger.account_reader import AccountReader, read_account_evidence
from operations.ledger.esims import DrawnEsim, esim_from_line
from operations.ledger.evidence import MatchResult, match_drawn_package, match_lines, template_of_package
from operations.ledger.issuance import no_esim_drawn, record_issuance_failed, record_issued_esim
from operations.ledger.issuance_targets import target_of_issuance
from operations.ledger.reconciliation import update_issuance_answer
from operations.ledger.rollback import INTENT_ROLLED_BACK
from operations.ledger.stock import is_sim_in_stock
from operations.upstream.connection import upstream_of_organisation
from registry.errors import Conflict, NotFound
from registry.ports import AuditRecord
from storage.audit import append_audit_record
from storage.engine.connection import Connection
from storage.intents import end_intent
from storage.issuance import UNRESOLVED_ISSUANCE_STATES, IssuanceRow, find_issuance, holder_of_iccid
from storage.rollbacks import finish_rollback, resume_issued
from storage.stock_snapshots import was_returned

IssuanceRuling = Literal["issued", "failed", "rolled_back", "still_issued"]
ISSUE_DECISIONS, ROLLBACK_DECISIONS = ("issued", "failed"), ("rolled_back", "still_issued")


class IssuanceNotSettled(Conflict):
    """The row is not one that waits for a person, or the eSIM is another's."""

    code = "issuance_not_settled"


class IssuanceSettlement(NamedTuple):
    """What a person decided, and who they are, for the audit log. `esim` is what was drawn."""

    decision: IssuanceRuling
    by: str
    esim: DrawnEsim | None = None


async def match_account_lines(deps: Deps, row: IssuanceRow) -> MatchResult:
    """What the account shows of the draw now, for the person who decides."""
    reading = await read_account_evidence(deps, row, AccountReader(deps))
    return MatchResult([], [], []) if reading is None else match_lines(row, reading.look, reading.state, reading.known)


async def find_esim_of_issuance(deps: Deps, row: IssuanceRow, iccid: str) -> DrawnEsim:
    """The eSIM that a person says was drawn, as the charging system knows it: of the row's account, with the row's package."""
    upstream = await upstream_of_organisation(deps, row.organisation)
    try:
        line = await upstream.ocs.subscriber.get_single_subscriber(iccid, by="iccid")
    except OcsNotFound:
        raise NotFound(f"The charging system has no line {iccid} that this organisation could have", param="iccid") from None
    subscriber_id = line.get("subscriberId", 0)
    if line.get("accountId") != row.account_id:
        raise IssuanceNotSettled(f"The line {iccid} is not of account {row.account_id}, which the eSIM was to be drawn from")
    if is_sim_in_stock(line):
        raise IssuanceNotSettled(f"The SIM of {iccid} is in stock, so it was not drawn, or was given back")
    packages = (await upstream.ocs.packages.list_packages(subscriber_id)).get("packages", [])
    found = [package for package in packages if template_of_package(package) == row.template_id]
    shows = [package for package in found if match_drawn_package(package, row) == "shows"] or found
    package_id = shows[-1].get("subscriberprepaidpackageid") if shows else None
    if package_id is None:
        raise IssuanceNotSettled(f"The line {iccid} has no package of template {row.template_id}, which was asked for")
    return esim_from_line(iccid, line.get("sim", {}), subscriber_id=subscriber_id, package_id=package_id)


def apply_issuance_settlement(
    connection: Connection, *, deps: Deps, organisation: str, key: str, settlement: IssuanceSettlement, now: float
) -> IssuanceRow:
    """The decision, the key's answer and the audit row, in one transaction. Refused where there is nothing to decide."""
    row = find_issuance(connection, organisation=organisation, key=key)
    if row is None:
        raise NotFound(f"The organisation {organisation} has no issuance {key}", param="key")
    if settlement.decision in ISSUE_DECISIONS:
        apply_issue_decision(connection, deps, row, settlement, now)
    else:
        apply_rollback_decision(connection, row, settlement, now)
    append_audit_record(connection, settlement_audit_record(row, deps, settlement, now))
    return find_issuance(connection, organisation=organisation, key=key) or row


def apply_issue_decision(connection: Connection, deps: Deps, row: IssuanceRow, settlement: IssuanceSettlement, now: float) -> None:
    """An eSIM was drawn, or none was."""
    if row.state not in UNRESOLVED_ISSUANCE_STATES:
        raise IssuanceNotSettled(f"This issuance is {row.state}; only one whose outcome is unknown is settled as {settlement.decision}")
    target, note = target_of_issuance(connection, deps, row), f"settled by {settlement.by}"
    if settlement.esim is None:
        concluded = record_issuance_failed(
            connection, target=target, organisation=row.organisation, key=row.key, refusal=no_esim_drawn(), now=now, note=note
        )
    else:
        holder = holder_of_iccid(connection, iccid=settlement.esim.iccid)
        if holder is not None and not was_returned(connection, stock=row.stock, holder=holder):
            raise IssuanceNotSettled(f"The eSIM {settlement.esim.iccid} belongs to the issuance {holder.key} of {holder.organisation}")
        concluded = record_issued_esim(
            connection, target=target, organisation=row.organisation, key=row.key, esim=settlement.esim, now=now, note=note
        )
    if concluded.unknown:
        raise issuance_decided_meanwhile()
    update_issuance_answer(connection, deps, row, concluded)


def apply_rollback_decision(connection: Connection, row: IssuanceRow, settlement: IssuanceSettlement, now: float) -> None:
    """The eSIM was given back, or it was not."""
    if row.state != "rollback_unknown":
        raise IssuanceNotSettled(f"This issuance is {row.state}; only one in rollback_unknown is settled as {settlement.decision}")
    note = f"settled by {settlement.by}"
    if settlement.decision == "still_issued":
        settled = resume_issued(connection, organisation=row.organisation, key=row.key, note=note, now=now)
    else:
        settled = finish_rollback(connection, organisation=row.organisation, key=row.key, steps=None, note=note, now=now) is not None
    if not settled:
        raise issuance_decided_meanwhile()
    if settlement.decision == "rolled_back" and row.intent is not None:
        end_intent(connection, intent=row.intent, organisation=row.organisation, error=INTENT_ROLLED_BACK)


def issuance_decided_meanwhile() -> IssuanceNotSettled:
    """Somebody was faster."""
    return IssuanceNotSettled("This issuance was settled meanwhile; look at it again")


def settlement_audit_record(row: IssuanceRow, deps: Deps, settlement: IssuanceSettlement, now: float) -> AuditRecord:
    """Who decided what about which operation's row."""
    return AuditRecord(
        now, row.organisation, "cli", row.operation, settlement.by, "", f"settled_{settlement.decision}", 200, 0.0, deps.ids.new("req_")
    )
