"""`reseller issuance`: what was drawn from stock under which key, and settling what no evidence could."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
import typer

from operations.ledger.esims import DrawnEsim
from operations.ledger.evidence import MatchResult, obstacle_reason
from operations.ledger.orders import find_issuance_named
from operations.ledger.reconciliation import (
    ISSUE_DECISIONS,
    NO_DRAW_SECONDS,
    ROLLBACK_DECISIONS,
    IssuanceRuling,
    IssuanceSettlement,
    apply_issuance_settlement,
    find_esim_of_issuance,
    match_account_lines,
)
from registry.clock import rfc3339_utc
from registry.errors import Refusal
from storage.issuance import UNRESOLVED_ISSUANCE_STATES, IssuanceRow
from storage.reconciliation import newest_issuances, unresolved_issuances
from transports.cli.drawing import draw_record, draw_rows
from transports.cli.target import DatabaseOption, decider_name, open_local, require_organisation
from transports.cli.terminal import Failure, command_settings, indented_json, print_line
from transports.service import Service

AGE_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def issuance_row(row: IssuanceRow, now: float, *, advised: bool) -> dict[str, object]:
    """A row of the list; `advised`: with the reason and the next step."""
    shown: dict[str, object] = {
        "organisation": row.organisation,
        "key": row.key,
        "state": row.state,
        "account": row.account_id,
        "template": row.template_id,
        "window": (row.period or ("from first use" if row.validity_days is None else f"{row.validity_days} days")),
        "iccid": row.iccid,
        "dispatched": rfc3339_utc(row.dispatched),
        "age": age_text(now - row.dispatched),
        "note": row.note,
    }
    return {**shown, "why": unsettled_reason(row), "next": next_step(row)} if advised else shown


def age_text(seconds: float) -> str:
    """`seconds` in the largest unit of which there are two or more."""
    whole = max(0, int(seconds))
    return next((f"{whole // size} {unit}" for size, unit in AGE_UNITS if whole >= 2 * size), f"{whole} s")


def unsettled_reason(row: IssuanceRow) -> str:
    """What prevents it from being settled automatically."""
    if row.state not in UNRESOLVED_ISSUANCE_STATES:
        return "what was sent to take the eSIM back had no answer that proves anything"
    seen = f" ({age_text(row.clear_seconds or 0.0)} so far)" if row.obstacle == "waiting" else ""
    return obstacle_reason(row.obstacle) + seen


def next_step(row: IssuanceRow) -> str:
    """What the operator should do about it."""
    command = f"reseller issuance settle {row.key} --org {row.organisation}"
    if row.state == "outcome_unknown":
        return "nothing yet: the worker looks again by itself, and leaves it to you 24 hours after the dispatch if nothing is proved"
    if row.state == "manual_reconciliation_required":
        return f"find out in account {row.account_id} which line was drawn, if any; then {command} --issued ICCID, or --failed"
    if row.state == "rollback_unknown":
        return f"look at the line {row.iccid}; package gone: {command} --rolled-back; still there: --still-issued"
    return ""


def issuance_details(row: IssuanceRow, now: float) -> dict[str, object]:
    """All that the ledger knows of a row that a person has to settle, without codes of an eSIM."""
    known: dict[str, object] = {
        **issuance_row(row, now, advised=False),
        "intent": row.intent,
        "package": row.package_id,
        "asked by": row.principal,
        "the answer named": None
        if row.replied is None
        else f"{row.replied}, which was not taken: another issuance had it, or this one had failed",
        "nothing seen since": None if row.clear_since is None else rfc3339_utc(row.clear_since),
        "why it is not settled": obstacle_reason(row.obstacle) if row.state in UNRESOLVED_ISSUANCE_STATES else None,
        "steps of the rollback": rollback_steps(row),
    }
    return {name: value for name, value in known.items() if value is not None}


def rollback_steps(row: IssuanceRow) -> str | None:
    if row.steps is None:
        return None
    done: list[list[str]] = orjson.loads(row.steps)
    return "; ".join(": ".join(step) for step in done)


def account_lines(match: MatchResult) -> list[str]:
    lines = [
        f"may be it: {found.iccid}, package {found.package.get('subscriberprepaidpackageid')} assigned {found.package.get('tsassigned')}"
        for found in match.candidates
    ]
    lines += [f"has the template, in another window or from another time: {iccid}" for iccid in match.similar]
    lines += [f"was in stock before, and nothing tells what became of it: {iccid}" for iccid in match.unexplained]
    return lines or ["nothing in the account shows a draw: no line left the stock that is not accounted for"]


issuance_app = typer.Typer(no_args_is_help=True, help="See what was issued from stock, and settle what nobody knows the outcome of.")
IssuedOption = Annotated[str | None, typer.Option("--issued", metavar="ICCID", help="This eSIM was drawn for the key.")]


@dataclass(frozen=True, slots=True)
class IssuanceDecision:
    key: str
    organisation: str
    decision: IssuanceRuling
    iccid: str | None
    by: str
    yes: bool
    early: bool


@issuance_app.command("list")
def list_issuances(
    unknown: Annotated[bool, typer.Option("--unknown", help="Only what nobody knows the outcome of, with what to do next.")] = False,
    org: Annotated[str | None, typer.Option("--org", help="Only this organisation's.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on a terminal too.")] = False,
    data: DatabaseOption = None,
) -> None:
    """List issuances: the newest first, or with --unknown the oldest first."""
    rows = asyncio.run(read_issuances(data, org, limit, unknown=unknown))
    if as_json or not sys.stdout.isatty():
        print_line(indented_json({"data": rows}))
    elif rows:
        sys.stdout.write(draw_rows(rows))
    else:
        print_line("There is no issuance whose outcome is unknown." if unknown else "Nothing has been issued from stock yet.")


@issuance_app.command("settle")
def decide_issuance(
    key: Annotated[str, typer.Argument(help="The issuance's idempotency key, an intent's id, or an order's number.")],
    org: Annotated[str, typer.Option("--org", help="The organisation's id, org_...")],
    issued: IssuedOption = None,
    failed: Annotated[bool, typer.Option("--failed", help="Nothing was drawn for the key.")] = False,
    rolled_back: Annotated[bool, typer.Option("--rolled-back", help="The eSIM was given back.")] = False,
    still_issued: Annotated[bool, typer.Option("--still-issued", help="The eSIM was not given back.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    early: Annotated[bool, typer.Option("--early", help="--failed within 15 minutes of the call, which may still take effect.")] = False,
    by: Annotated[str | None, typer.Option("--by", help="Who decides, for the audit log; without it, your user name.")] = None,
    data: DatabaseOption = None,
) -> None:
    """Settle an issuance or a rollback that no evidence could settle, after looking at the charging system yourself.

    The key answers from then on what you said, for ever; nothing is sent to the charging system. --issued reads the eSIM there, and
    takes only a line of the issuance's account with its template that no other issuance has.
    """
    options: dict[IssuanceRuling, bool] = {
        "issued": issued is not None,
        "failed": failed,
        "rolled_back": rolled_back,
        "still_issued": still_issued,
    }
    chosen: list[IssuanceRuling] = [decision for decision, given in options.items() if given]
    if len(chosen) != 1:
        raise Failure(
            "give exactly one of --issued ICCID, --failed, --rolled-back and --still-issued: what you found at the charging system"
        )
    decided = IssuanceDecision(key, org, chosen[0], issued, decider_name(by), yes, early)
    try:
        row = asyncio.run(apply_decision(data, decided))
    except Refusal as refusal:
        raise Failure(f"{key}: {refusal.message}", exit_code=1) from None
    print_line(f"{row.key} of {row.organisation} is {row.state}" + (f": {row.iccid}" if row.held else ""))


async def read_issuances(data: Path | None, organisation: str | None, most: int, *, unknown: bool) -> list[dict[str, object]]:
    async with open_local(command_settings(data=data)) as service:
        if organisation is not None:
            await require_organisation(service, organisation, option="--org")
        rows = await service.store.read(unresolved_issuances if unknown else newest_issuances, most=most, organisation=organisation)
        return [issuance_row(row, service.clock.now(), advised=unknown) for row in rows]


async def apply_decision(data: Path | None, decided: IssuanceDecision) -> IssuanceRow:
    """Shows what is known, asks, and settles; returns the row afterwards."""
    async with open_local(command_settings(data=data)) as service:
        await require_organisation(service, decided.organisation, option="--org")
        row = await undecided_row(service, decided)
        require_patience(row, decided, service.clock.now())
        esim = await named_esim(service, row, decided.iccid)
        await confirm_decision(service, row, decided)
        settlement = IssuanceSettlement(decided.decision, decided.by, esim)
        deps, now = service.pipeline.deps, service.clock.now()
        return await service.store.write(
            apply_issuance_settlement, deps=deps, organisation=row.organisation, key=row.key, settlement=settlement, now=now
        )


async def undecided_row(service: Service, decided: IssuanceDecision) -> IssuanceRow:
    """The row. Raises Failure unless it can be settled in this way."""
    row = await service.store.read(find_issuance_named, organisation=decided.organisation, named=decided.key)
    if row is None:
        raise Failure(
            f"{decided.key}: {decided.organisation} issued nothing under this key; `reseller issuance list --unknown`", exit_code=1
        )
    of_issue, of_rollback = row.state in UNRESOLVED_ISSUANCE_STATES, row.state == "rollback_unknown"
    if not (of_issue or of_rollback):
        raise Failure(f"{row.key}: is {row.state}, so there is nothing to settle", exit_code=1)
    allowed = ISSUE_DECISIONS if of_issue else ROLLBACK_DECISIONS
    if decided.decision not in allowed:
        options = " or ".join("--issued ICCID" if option == "issued" else "--" + option.replace("_", "-") for option in allowed)
        raise Failure(f"{row.key}: is {row.state}, which is settled with {options}", exit_code=1)
    return row


def require_patience(row: IssuanceRow, decided: IssuanceDecision, now: float) -> None:
    """Raises Failure for --failed while the call may still take effect: the eSIM might be sold twice."""
    passed = now - row.dispatched
    if decided.decision == "failed" and passed < NO_DRAW_SECONDS and not decided.early:
        raise Failure(
            f"{row.key}: was sent {passed:.0f} s ago and may still take effect; --failed is safe after {NO_DRAW_SECONDS / 60:.0f} minutes "
            "(--early says it all the same)",
            exit_code=1,
        )


async def named_esim(service: Service, row: IssuanceRow, iccid: str | None) -> DrawnEsim | None:
    """The eSIM with `iccid`, as the charging system knows it. Waits for the network."""
    if iccid is None:
        return None
    if service.upstream.simulation is not None:
        raise Failure(
            f"--issued {iccid}: the charging system is simulated inside the server's process, so this command cannot look the eSIM up; "
            "run the server with `reseller sandbox ocs` and SERVICE_OCS_URL to try this",
            exit_code=1,
        )
    return await find_esim_of_issuance(service.pipeline.deps, row, iccid)


async def confirm_decision(service: Service, row: IssuanceRow, decided: IssuanceDecision) -> None:
    """Shows what is known and asks. Raises Failure in a pipe, where nobody can answer."""
    if decided.yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure(f"{row.key}: --yes settles it without asking, where nobody can be asked; `reseller issuance list` shows the row")
    sys.stdout.write(draw_record(issuance_details(row, service.clock.now())) + "\n")
    if row.state in UNRESOLVED_ISSUANCE_STATES:
        print_line("\n".join(["The account now:", *(f"  {line}" for line in await account_now(service, row))]) + "\n")
    what = f"was drawn: {decided.iccid}" if decided.iccid else decided.decision.replace("_", " ")
    if not typer.confirm(f"Settle {row.key} for good as: {what}?"):
        raise Failure("nothing was changed", exit_code=1)


async def account_now(service: Service, row: IssuanceRow) -> list[str]:
    """What the account shows; if the charging system cannot be asked, the decision goes on."""
    if service.upstream.simulation is not None:
        return ["not known here: the charging system is simulated inside the server's process"]
    try:
        return account_lines(await match_account_lines(service.pipeline.deps, row))
    except Refusal as refusal:
        return [f"could not be read: {refusal.message}"]
