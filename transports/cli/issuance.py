"""`reseller issuance`: what was drawn from stock under which key, and settling what no evidence could."""

import asyncio
import getpass
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from operations.services.issuing.drawn_esim import DrawnEsim
from operations.services.issuing.reconciliation import CLEAR_SECONDS
from operations.services.issuing.settlement import OF_ISSUE, OF_ROLLBACK, Decision, Settlement, look_around, look_up, settle
from operations.services.shop.order_opening import issuance_named
from registry.errors import Refusal
from storage.issuing.issuance import UNSETTLED, IssuanceRow
from storage.issuing.reconciling import newest_issuances, unsettled
from storage.people.accounts import list_organisations
from transports.cli.failure import Failure
from transports.cli.issuance_report import detailed, listed, shown_now
from transports.cli.local import open_local
from transports.cli.render import drawn_record, drawn_rows, indented, print_line
from transports.service import Service
from transports.settings import load_settings

issuance_app = typer.Typer(no_args_is_help=True, help="See what was issued from stock, and settle what nobody knows the outcome of.")
Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]
Iccid = Annotated[str | None, typer.Option("--issued", metavar="ICCID", help="This eSIM was drawn for the key.")]
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Decided:
    """What a person says happened, and who they are."""

    key: str
    organisation: str
    decision: Decision
    iccid: str | None
    by: str
    yes: bool
    early: bool


@issuance_app.command("list")
def show(
    unknown: Annotated[bool, typer.Option("--unknown", help="Only what nobody knows the outcome of, with what to do next.")] = False,
    org: Annotated[str | None, typer.Option("--org", help="Only this organisation's.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on a terminal too.")] = False,
    data: Data = None,
) -> None:
    """List issuances: the newest first, or with --unknown the oldest first."""
    rows = asyncio.run(read(data, org, limit, unknown=unknown))
    if as_json or not sys.stdout.isatty():
        print_line(indented({"data": rows}))
    elif rows:
        print_line(drawn_rows(rows).rstrip("\n"))
    else:
        print_line("There is no issuance whose outcome is unknown." if unknown else "Nothing has been issued from stock yet.")


@issuance_app.command("settle")
def settle_one(
    key: Annotated[str, typer.Argument(help="The issuance's idempotency key, an intent's id, or an order's number.")],
    org: Annotated[str, typer.Option("--org", help="The organisation's id, org_...")],
    issued: Iccid = None,
    failed: Annotated[bool, typer.Option("--failed", help="Nothing was drawn for the key.")] = False,
    rolled_back: Annotated[bool, typer.Option("--rolled-back", help="The eSIM was given back.")] = False,
    still_issued: Annotated[bool, typer.Option("--still-issued", help="The eSIM was not given back.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    early: Annotated[bool, typer.Option("--early", help="--failed within 15 minutes of the call, which may still take effect.")] = False,
    by: Annotated[str | None, typer.Option("--by", help="Who decides, for the audit log; without it, your user name.")] = None,
    data: Data = None,
) -> None:
    """Settle an issuance or a rollback that no evidence could settle, after looking at the charging system yourself.

    The key answers from then on what you said, for ever; nothing is sent to the charging system. --issued reads the eSIM there, and
    takes only a line of the issuance's account with its template that no other issuance has.
    """
    said: dict[Decision, bool] = {"issued": issued is not None, "failed": failed, "rolled_back": rolled_back, "still_issued": still_issued}
    chosen: list[Decision] = [decision for decision, given in said.items() if given]
    if len(chosen) != 1:
        raise Failure(
            "give exactly one of --issued ICCID, --failed, --rolled-back and --still-issued: what you found at the charging system"
        )
    decided = Decided(key, org, chosen[0], issued, name_of(by), yes, early)
    try:
        row = asyncio.run(decide(data, decided))
    except Refusal as refusal:
        raise Failure(f"{key}: {refusal.message}", exit_code=1) from None
    print_line(f"{row.key} of {row.organisation} is {row.state}" + (f": {row.iccid}" if row.held else ""))


def name_of(by: str | None) -> str:
    """Who decides."""
    if by is None:
        try:
            by = getpass.getuser()
        except (OSError, KeyError):  # a user without a name, as in some containers
            raise Failure("--by: your user has no name here; say who decides, for the audit log") from None
    if not by.strip() or len(by) > LONGEST_NAME or not by.isprintable():
        raise Failure(f"--by: 1-{LONGEST_NAME} visible characters")
    return by.strip()


async def read(data: Path | None, organisation: str | None, most: int, *, unknown: bool) -> list[dict[str, object]]:
    """The rows of the list."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        if organisation is not None:
            await require_organisation(service, organisation)
        rows = await service.store.read(unsettled if unknown else newest_issuances, most=most, organisation=organisation)
        return [listed(row, service.clock.now(), advised=unknown) for row in rows]
    finally:
        await service.stop()


async def require_organisation(service: Service, organisation: str) -> None:
    """A wrong id is told, not taken for an organisation that issued nothing."""
    if organisation not in {row.id for row in await service.store.read(list_organisations)}:
        raise Failure(f"--org {organisation}: no such organisation; `reseller org list` names them", exit_code=1)


async def decide(data: Path | None, decided: Decided) -> IssuanceRow:
    """Show what is known, ask, and settle; the row as it is then."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        await require_organisation(service, decided.organisation)
        row = await the_row(service, decided)
        require_patience(row, decided, service.clock.now())
        esim = await found(service, row, decided.iccid)
        await confirm(service, row, decided)
        settlement = Settlement(decided.decision, decided.by, esim)
        deps, now = service.pipeline.deps, service.clock.now()
        return await service.store.write(settle, deps=deps, organisation=row.organisation, key=row.key, settlement=settlement, now=now)
    finally:
        await service.stop()


async def the_row(service: Service, decided: Decided) -> IssuanceRow:
    """The row, if there is something to settle about it in this way."""
    row = await service.store.read(issuance_named, organisation=decided.organisation, named=decided.key)
    if row is None:
        raise Failure(
            f"{decided.key}: {decided.organisation} issued nothing under this key; `reseller issuance list --unknown`", exit_code=1
        )
    of_issue, of_rollback = row.state in UNSETTLED, row.state == "rollback_unknown"
    if not (of_issue or of_rollback):
        raise Failure(f"{row.key}: is {row.state}, so there is nothing to settle", exit_code=1)
    allowed = OF_ISSUE if of_issue else OF_ROLLBACK
    if decided.decision not in allowed:
        options = " or ".join("--issued ICCID" if one == "issued" else "--" + one.replace("_", "-") for one in allowed)
        raise Failure(f"{row.key}: is {row.state}, which is settled with {options}", exit_code=1)
    return row


def require_patience(row: IssuanceRow, decided: Decided, now: float) -> None:
    """A call may still take effect for a while after it was sent; who says "failed" before may sell the eSIM twice."""
    passed = now - row.dispatched
    if decided.decision == "failed" and passed < CLEAR_SECONDS and not decided.early:
        raise Failure(
            f"{row.key}: was sent {passed:.0f} s ago and may still take effect; --failed is safe after {CLEAR_SECONDS / 60:.0f} minutes "
            "(--early says it all the same)",
            exit_code=1,
        )


async def found(service: Service, row: IssuanceRow, iccid: str | None) -> DrawnEsim | None:
    """The eSIM that is named, as the charging system knows it."""
    if iccid is None:
        return None
    if service.upstream.simulation is not None:
        raise Failure(
            f"--issued {iccid}: the charging system is simulated inside the server's process, so this command cannot look the eSIM up; "
            "run the server with `reseller sandbox ocs` and SERVICE_OCS_URL to try this",
            exit_code=1,
        )
    return await look_up(service.pipeline.deps, row, iccid)


async def confirm(service: Service, row: IssuanceRow, decided: Decided) -> None:
    """Show what is known, and ask; in a pipe nobody can be asked."""
    if decided.yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure(f"{row.key}: --yes settles it without asking, where nobody can be asked; `reseller issuance list` shows the row")
    print_line(drawn_record(detailed(row, service.clock.now())))
    if row.state in UNSETTLED:
        print_line("\n".join(["The account now:", *(f"  {line}" for line in await account_now(service, row))]) + "\n")
    what = f"was drawn: {decided.iccid}" if decided.iccid else decided.decision.replace("_", " ")
    if not typer.confirm(f"Settle {row.key} for good as: {what}?"):
        raise Failure("nothing was changed", exit_code=1)


async def account_now(service: Service, row: IssuanceRow) -> list[str]:
    """What the account shows; a charging system that cannot be asked hinders no decision."""
    if service.upstream.simulation is not None:
        return ["not known here: the charging system is simulated inside the server's process"]
    try:
        return shown_now(await look_around(service.pipeline.deps, row))
    except Refusal as refusal:
        return [f"could not be read: {refusal.message}"]
