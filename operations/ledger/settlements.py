"""What an admin of an organisation says of an issuance whose outcome is unknown, and what is not taken from them.

Whoever runs the service settles what they have looked at by `reseller issuance settle` and `reseller storefront settle`. An admin waits
until the worker has had its 24 hours, and says nothing against what the charging system shows. Both write through the same functions
(reconciliation.py), in one transaction that finds the issuance unsettled still.
"""

import shlex
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from clients.ocs.packages import Package
from operations.deps import Ctx, Deps
from operations.ledger.esims import DrawnEsim
from operations.ledger.evidence import (
    AccountEvidence,
    AccountReader,
    match_lines,
    may_be_draw_time,
    parse_package_moment,
    read_account_evidence,
    template_of_package,
)
from operations.ledger.reconciliation import (
    ISSUANCE_PATIENCE_SECONDS,
    EsimOfAnotherKey,
    IssuanceFinding,
    IssuanceNotSettled,
    IssuanceSettlement,
    apply_issuance_settlement,
    find_esim_of_issuance,
    find_hindrance,
)
from operations.upstream.connection import connect_upstream
from operations.upstream.lines import find_line
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, Conflict
from registry.redaction import readable_text, redact
from storage.engine.sql import Connection
from storage.issuance import UNRESOLVED_ISSUANCE_STATES, IssuanceRow, holder_of_iccid
from storage.stock_snapshots import was_returned

SettlementReason = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        pattern=r"[^\s\x1c-\x1f\x85\ufeff]",  # which space is one, languages see differently
        description="How you know it, in a sentence. It is kept, without what looks like a secret, a number of a line or an address.",
    ),
]


class SettlementTooEarly(Conflict):
    """The worker still has time to find out what became of it."""

    code = "settlement_too_early"


class SettlementAgainstEvidence(Conflict):
    """What was said is not what the charging system shows."""

    code = "settlement_against_evidence"


def redact_settlement_reason(reason: str) -> str:
    """`reason` in one line of what a person can see, without secrets. Raises BadRequest for one of which nothing is left."""
    line = " ".join(redact(readable_text(reason)).split())
    if not line:
        raise BadRequest("reason: nothing in it can be seen", param="reason", hint="Say in a sentence how you know what became of it")
    return line


def own_command(row: IssuanceRow) -> str:
    """Who may settle `row` all the same, and by which command."""
    command = f"reseller issuance settle {shlex.quote(row.key)} --org {row.organisation}"
    return f"Whoever runs the service can settle it all the same: {command} with --issued ICCID or --failed"


def unknown_since(row: IssuanceRow) -> float:
    """When the outcome of `row` became unknown, Unix seconds.

    Choice: of one that the worker left to a person it is the dispatch, from which the worker's own 24 hours are counted; of one that a late
    answer opened again it is that answer.
    """
    left = row.state == "manual_reconciliation_required" and row.obstacle != "late_answer"
    return row.dispatched if left else row.updated


async def check_issuance_statement(ctx: Ctx, row: IssuanceRow, iccid: str | None) -> DrawnEsim | None:
    """The eSIM that an admin names by `iccid`, as the charging system knows it; None: they say that nothing was drawn.

    Raises SettlementTooEarly, NotFound for a line that is not the caller's, IssuanceNotSettled for one that cannot be it, and
    SettlementAgainstEvidence. Waits for the network.
    """
    deps = ctx.deps
    ends = unknown_since(row) + ISSUANCE_PATIENCE_SECONDS
    if ctx.now < ends:
        raise SettlementTooEarly(
            f"The outcome of {row.key} is unknown since {rfc3339_utc(unknown_since(row))}; the worker looks for 24 hours by itself, "
            f"so it can be settled by you from {rfc3339_utc(ends)} on",
            param="outcome",
            hint=own_command(row),
        )
    esim = None if iccid is None else await find_named_esim(ctx, row, iccid)
    evidence = await read_account_evidence(deps, row, AccountReader(deps))
    against = None if evidence is None else await deps.store.read(find_contradiction, row=row, evidence=evidence, iccid=iccid)
    if against is not None:
        raise SettlementAgainstEvidence(
            f"This is not what the charging system shows of {row.key}: {against}; nothing was settled",
            param="outcome",
            hint=own_command(row),
        )
    return esim


async def find_named_esim(ctx: Ctx, row: IssuanceRow, iccid: str) -> DrawnEsim:
    """The eSIM that may be the one of `row`. A line of another organisation is not found, as an unknown one is. Waits for the network."""
    await find_line(await connect_upstream(ctx), iccid)
    await ctx.deps.store.read(require_free_iccid, row=row, iccid=iccid)
    return await find_esim_of_issuance(ctx.deps, row, iccid)


def require_free_iccid(connection: Connection, *, row: IssuanceRow, iccid: str) -> None:
    """Raises IssuanceNotSettled where another row of the ledger has the eSIM; it names none that is not the organisation's."""
    holder = holder_of_iccid(connection, iccid=iccid)
    if holder is not None and not was_returned(connection, stock=row.stock, holder=holder):
        raise esim_has_key(iccid, holder.key if holder.organisation == row.organisation else None)


def esim_has_key(iccid: str, key: str | None = None) -> IssuanceNotSettled:
    """The refusal of an eSIM that another issuance has. `key`: that one's, where it is the caller's own."""
    which = "another issuance" if key is None else f"the issuance {key}"
    return IssuanceNotSettled(
        f"The eSIM {iccid} belongs to {which}, and one eSIM is never two keys'; nothing was settled",
        param="iccid",
        hint="Look in your account for the line that was drawn at that time, or say not_issued where there is none",
    )


def find_contradiction(connection: Connection, *, row: IssuanceRow, evidence: AccountEvidence, iccid: str | None) -> str | None:
    """What `evidence` says against the eSIM with `iccid`, or against none with None, in words; None: nothing.

    Where several keys may have drawn one line, or several lines may be it, the evidence decides nothing, and the person does.
    """
    verdict = evidence.verdict(row)
    candidate = verdict.candidate
    if candidate is not None:
        if candidate.iccid == iccid or find_hindrance(connection, row, IssuanceFinding(verdict, None, evidence.at)) is not None:
            return None
        return f"the eSIM {candidate.iccid} was drawn for it"
    if iccid is None:
        return None
    if verdict.kind == "clear":
        return "nothing was drawn for it, and every line that left the stock of its account is another's"
    match = match_lines(row, evidence.look, evidence.state, evidence.known)
    possible = {found.iccid for found in match.candidates} | {*match.similar, *match.unexplained}
    if iccid not in possible and evidence.state.complete and evidence.look.complete:
        return f"the eSIM {iccid} did not leave the stock when it was asked for"
    packages = evidence.state.packages.get(iccid)
    if packages is not None and not any(was_assigned_then(package, row) for package in packages):
        return f"the eSIM {iccid} got its package of the template at another time"
    return None


def was_assigned_then(package: Package, row: IssuanceRow) -> bool:
    """Whether `package` is of the template of `row`, and may have been assigned when that was sent."""
    assigned = parse_package_moment(package.get("tsassigned"))
    return template_of_package(package) == row.template_id and (assigned is None or may_be_draw_time(assigned, row))


class IssuanceStatement(NamedTuple):
    """What an admin said of an issuance, once it was checked. `esim` None: nothing was drawn."""

    row: IssuanceRow
    esim: DrawnEsim | None


def is_unresolved(row: IssuanceRow | None) -> bool:
    """Whether nobody knows what became of `row`."""
    return row is not None and row.state in UNRESOLVED_ISSUANCE_STATES


def settle_as_said(
    connection: Connection, *, deps: Deps, said: IssuanceStatement, settlement: IssuanceSettlement, now: float
) -> IssuanceRow:
    """The row after what was said was written. Raises IssuanceNotSettled where somebody else was faster. `now`: Unix seconds."""
    named = {"organisation": said.row.organisation, "key": said.row.key}
    try:
        return apply_issuance_settlement(connection, deps=deps, **named, settlement=settlement, now=now)
    except EsimOfAnotherKey:
        raise esim_has_key(settlement.esim.iccid if settlement.esim else "") from None


def settlement_of(ctx: Ctx, said: IssuanceStatement, reason: str) -> IssuanceSettlement:
    """What is written of a statement by the caller of `ctx`; the audit row of the call says it as well."""
    decision: Literal["issued", "failed"] = "failed" if said.esim is None else "issued"
    kept = redact_settlement_reason(reason)
    ctx.record_change(f"{said.row.key}: {said.row.state} -> {decision} ({kept})")
    return IssuanceSettlement(decision, ctx.principal, said.esim, kept, ctx.call.surface)
