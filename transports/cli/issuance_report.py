"""What a person is told of issuances: rows of the ledger, what to do next, and what the account shows now."""

from collections.abc import Sequence

import orjson

from operations.services.issuing.evidence import Weighed
from operations.services.issuing.obstacles import reason_of
from registry.policy import stamp
from storage.issuing.issuance import UNSETTLED, IssuanceRow

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def listed(row: IssuanceRow, now: float, *, advised: bool) -> dict[str, object]:
    """A row as a line of the list."""
    shown: dict[str, object] = {
        "organisation": row.organisation,
        "key": row.key,
        "state": row.state,
        "account": row.account_id,
        "template": row.template_id,
        "window": window(row),
        "iccid": row.iccid,
        "dispatched": stamp(row.dispatched),
        "age": age(now - row.dispatched),
        "note": row.note,
    }
    return {**shown, "why": why(row), "next": advice(row)} if advised else shown


def window(row: IssuanceRow) -> str:
    """When the package was to be valid."""
    return row.period or ("from first use" if row.validity_days is None else f"{row.validity_days} days")


def age(seconds: float) -> str:
    """In the largest unit that says enough."""
    whole = max(0, int(seconds))
    return next((f"{whole // size} {unit}" for size, unit in UNITS if whole >= 2 * size), f"{whole} s")


def why(row: IssuanceRow) -> str:
    """What keeps it from being settled by itself."""
    if row.state not in UNSETTLED:
        return "what was sent to take the eSIM back had no answer that proves anything"
    seen = f" ({age(row.clear_seconds or 0.0)} so far)" if row.obstacle == "waiting" else ""
    return reason_of(row.obstacle) + seen


def advice(row: IssuanceRow) -> str:
    """What whoever runs the service does about it."""
    command = f"reseller issuance settle {row.key} --org {row.organisation}"
    if row.state == "outcome_unknown":
        return "nothing yet: the worker looks again by itself, and leaves it to you 24 hours after the dispatch if nothing is proved"
    if row.state == "manual_reconciliation_required":
        return f"find out in account {row.account_id} which line was drawn, if any; then {command} --issued ICCID, or --failed"
    if row.state == "rollback_unknown":
        return f"look at the line {row.iccid}; package gone: {command} --rolled-back; still there: --still-issued"
    return ""


def detailed(row: IssuanceRow, now: float) -> dict[str, object]:
    """All that the ledger knows of a row that a person has to settle; no code of an eSIM is part of it."""
    known: dict[str, object] = {
        **listed(row, now, advised=False),
        "intent": row.intent,
        "package": row.package_id,
        "asked by": row.principal,
        "the answer named": None
        if row.replied is None
        else f"{row.replied}, which was not taken: another issuance had it, or this one had failed",
        "nothing seen since": None if row.clear_since is None else stamp(row.clear_since),
        "why it is not settled": reason_of(row.obstacle) if row.state in UNSETTLED else None,
        "steps of the rollback": steps(row),
    }
    return {name: value for name, value in known.items() if value is not None}


def steps(row: IssuanceRow) -> str | None:
    """Each step with how it went."""
    if row.steps is None:
        return None
    done: list[list[str]] = orjson.loads(row.steps)
    return "; ".join(": ".join(step) for step in done)


def shown_now(weighed: Weighed) -> list[str]:
    """What the account shows of the draw."""
    lines = [
        f"may be it: {found.iccid}, package {found.package.get('subscriberprepaidpackageid')} assigned {found.package.get('tsassigned')}"
        for found in weighed.candidates
    ]
    lines += named("has the template, in another window or from another time", weighed.similar)
    lines += named("was in stock before, and nothing tells what became of it", weighed.unexplained)
    return lines or ["nothing in the account shows a draw: no line left the stock that is not accounted for"]


def named(what: str, iccids: Sequence[str]) -> list[str]:
    """Lines of a kind."""
    return [f"{what}: {iccid}" for iccid in iccids]
